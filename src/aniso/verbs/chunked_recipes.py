"""What a verb does to a large array: one diffusion, whose parameters are estimated from a few windows.

In memory, denoise() also mixes several diffusions, and enhance() diffuses again where lines are interrupted:
both depend on the image as a whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from aniso import estimates
from aniso.arrays import Array, Field
from aniso.checks import Auto
from aniso.evolving import EvolvingImage
from aniso.models import CoherenceEnhancing, ImageDriven
from aniso.noise import check_squares, choose_noise
from aniso.schemes import FED, Explicit, Scheme
from aniso.settings import Settings
from aniso.stencil import Stencil
from aniso.verbs.candidates import TIMES, choose_models
from aniso.verbs.info import BlockInfo
from aniso.verbs.line_scales import CYCLES, LineScales
from aniso.verbs.risk import Judge


@dataclass(frozen=True)
class Recipe:
    """One diffusion; none if the model is None."""

    model: ImageDriven | None
    time: float
    scheme: Scheme
    info: BlockInfo | None


def choose_denoising(
    windows: Sequence[Array],
    spacings: tuple[float, ...],
    *,
    stencil: Stencil,
    noise: float | Auto = None,
    contrast: float | None = None,
    time: float | None = None,
    mix: bool | None = None,
) -> Recipe:
    """Return the diffusion with the least risk, which is summed over all windows."""
    if mix:
        raise ValueError(
            "mix=True depends on the image as a whole, but this array is computed block by block. Leave mix "
            "out to use the best single diffusion."
        )
    level = _choose_noise(windows, noise)
    pixel = estimates.pixel_size(spacings)
    models = choose_models(level, contrast, pixel, len(spacings))
    times = [t * pixel**2 for t in TIMES] if time is None else [time]
    # Leaving the array unchanged is a candidate too, unless a time is given.
    model, duration, least = None, 0.0, math.inf if time is not None and models else level**2
    if len(models) * len(times) == 1:
        (model,), (duration,) = models, times
    else:
        for one in models:
            risks = _risks(windows, level, one, times, spacings, stencil)
            best = int(np.argmin(risks))
            if risks[best] < least:
                model, duration, least = one, times[best], float(risks[best])
    return Recipe(model, duration, Explicit(), BlockInfo(level, model, duration, len(windows)))


def choose_enhancing(
    windows: Sequence[Array],
    spacings: tuple[float, ...],
    *,
    stencil: Stencil,
    noise: float | Auto = None,
    wavelength: float | Auto = None,
    contrast: float | Auto = None,
    time: float | Auto = None,
    plates: bool = True,
    refine: bool | None = None,
) -> Recipe:
    """Return coherence-enhancing diffusion with the median of the parameters of all windows."""
    if refine:
        raise ValueError(
            "refine=True depends on the image as a whole, but this array is computed block by block. Leave "
            "refine out for a single diffusion."
        )
    level = _choose_noise(windows, noise)
    wishes: dict[str, Any] = {"wavelength": wavelength, "contrast": contrast, "time": time, "plates": plates}
    scenes = [LineScales.estimate(one, spacings, noise=level, **wishes) for one in windows]
    scenes = [scene for scene in scenes if not scene.flat]
    if not scenes:
        return Recipe(None, 0.0, FED(CYCLES), BlockInfo(level, None, 0.0, len(windows)))

    def usual(name: str) -> float:
        return float(np.median([getattr(scene.model, name) for scene in scenes]))

    model = CoherenceEnhancing(usual("contrast"), usual("sigma"), usual("rho"), plates=plates)
    duration = float(np.median([max(scene.time, scene.first) for scene in scenes]))
    return Recipe(model, duration, FED(CYCLES), BlockInfo(level, model, duration, len(windows)))


def _choose_noise(windows: Sequence[Array], noise: float | Auto) -> float:
    """Return the given level, or the median over the windows, which is robust against texture."""
    for window in windows:
        check_squares(window)
    return float(np.median([choose_noise(noise, window) for window in windows]))


def _risks(
    windows: Sequence[Array],
    level: float,
    model: ImageDriven,
    times: Sequence[float],
    spacings: tuple[float, ...],
    stencil: Stencil,
) -> Field:
    """Estimate the mean squared error at each time, over all windows."""
    scheme = FED(1) if len(times) > 1 else Explicit()
    settings = Settings(spacings=spacings, stencil=stencil, scheme=scheme)
    total, size = np.zeros(len(times)), 0
    for window in windows:
        judge = Judge(window, level)
        prepared = settings.prepare(model, window.shape[1:])
        images = (EvolvingImage.of_channels(start, prepared) for start in (judge.image, judge.changed))
        pairs = zip(*(image.snapshots(times) for image in images), strict=True)
        total += window.size * np.array([judge.risk(image, changed) for (_, image), (_, changed) in pairs])
        size += window.size
    return total / size


#: Verb → the function that chooses its recipe from windows (channels, …).
RECIPES: dict[str, Callable[..., Recipe]] = {"denoise": choose_denoising, "enhance": choose_enhancing}
