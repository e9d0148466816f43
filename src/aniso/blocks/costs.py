"""Estimated times of cycles and transfers, from which blocks, passes and groups of stages are chosen.

Results do not depend on them. `benchmarks/tiled.py` measures the constants.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aniso.engines import STEPS_OF_PASS
from aniso.formulas.gaussian import gaussian_radius
from aniso.models import Model
from aniso.schemes import Cycle


@dataclass(frozen=True)
class Rates:
    """Seconds per pixel and channel, of one thread in single precision."""

    step: float  # with given tensors
    tensor: float  # of a tensor that is used immediately
    stored_tensor: float  # of one that is stored first
    tap: float  # per pixel of the radius of the Gaussian that averages structure


RATES = {2: Rates(0.8e-9, 2.4e-9, 2.4e-9, 0.45e-9), 3: Rates(3.2e-9, 4.0e-9, 14e-9, 1.4e-9)}
# Overhead of a task: in a graph of Dask, and if it opens stores.
TASK_SECONDS, STORE_TASK_SECONDS = 5e-3, 35e-3
# Between workers on one machine or a fast network; and for one worker that reads from and writes to stores.
NETWORK_BYTES_PER_SECOND, STORE_BYTES_PER_SECOND = 5e8, 2.5e8


def stores_tensors(cycle: Cycle, model: Model, ndim: int) -> bool:
    """Return whether the tensors of a cycle are stored: for later passes, or averages in volumes."""
    return len(cycle.steps) > STEPS_OF_PASS[ndim] or (ndim == 3 and model.integration > 0)


def cycle_seconds(
    cycle: Cycle, model: Model, channels: int, spacings: Sequence[float], itemsize: int
) -> float:
    """Estimate the time of a cycle per pixel, for all channels."""
    rates = RATES[len(spacings)]
    tensor = rates.stored_tensor if stores_tensors(cycle, model, len(spacings)) else rates.tensor
    # Every pixel has one structure tensor, whatever the number of channels.
    average = rates.tap * sum(gaussian_radius(model.integration / h) for h in spacings) / len(spacings)
    return (channels * (len(cycle.steps) * rates.step + tensor) + average) * itemsize / 4
