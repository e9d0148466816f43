"""The constants of the cost model on this machine: time per pixel of the parts of a cycle, on one thread."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt

import aniso
from aniso.blocks.costs import Rates
from aniso.formulas.gaussian import gaussian_radius

SHAPES = {2: (1024, 1024), 3: (128, 128, 128)}
ROUNDS = 7
EDGES = aniso.EdgeEnhancing(contrast=10.0)
NARROW, WIDE = (aniso.CoherenceEnhancing(contrast=5.0, sigma=0.7, rho=rho) for rho in (1.0, 4.0))


def measured_rates(ndim: int) -> Rates:
    """Each as the difference of two runs, of which the best of several rounds counts."""
    image = 30 * np.random.default_rng(0).standard_normal(SHAPES[ndim], dtype=np.float32)
    limit = aniso.stability.stable_step(EDGES, ndim=ndim)
    # Cycles so long that tensors are stored.
    kinds = (1, 32), (1, 16), (4, 16)
    long, short, several = (_fed(image, cycles, steps, limit) for cycles, steps in kinds)
    edges, narrow, wide = (_per_step(image, model, ndim) for model in (EDGES, NARROW, WIDE))
    step = (long - short) / 16
    tap = (wide - narrow) / (gaussian_radius(4.0) - gaussian_radius(1.0))
    stored = (several - short) / 3 - 16 * step
    if ndim == 3:
        # Also that of CED without its averages; the model takes them as equal.
        stored = (stored + narrow - step - tap * gaussian_radius(1.0)) / 2
    return Rates(step, edges - step, stored, tap)


def _fed(image: npt.NDArray[Any], cycles: int, steps: int, limit: float) -> float:
    """Measure the seconds per pixel of a number of cycles and steps."""
    duration = 0.999 * cycles * limit * (steps**2 + steps) / 3  # what such cycles reach, hardly less
    return _best(image, EDGES, duration, aniso.FED(cycles))


def _per_step(image: npt.NDArray[Any], model: aniso.models.ImageDriven, ndim: int) -> float:
    """Seconds per pixel of one explicit step."""
    step = 0.9 * aniso.stability.stable_step(model, ndim=ndim)
    many, few = (_best(image, model, count * step, aniso.Explicit(step)) for count in (5, 1))
    return (many - few) / 4


# Processor time hardly depends on other load.
def _best(image: npt.NDArray[Any], model: Any, duration: float, scheme: aniso.schemes.Scheme) -> float:
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        aniso.diffuse(image, model, duration, scheme=scheme, threads=1)
        times.append(time.process_time() - start)
    return min(times) / image.size
