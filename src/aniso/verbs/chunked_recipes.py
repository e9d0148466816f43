"""What a verb does to a large array: one diffusion, whose parameters come from a few windows of it.

In memory, denoise() also mixes several diffusions, and enhance() diffuses again where lines are interrupted:
both look at the image as a whole, which blocks cannot.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from aniso import estimates
from aniso.checks import Auto
from aniso.evolve import scale_space
from aniso.models import CoherenceEnhancing, ImageDriven
from aniso.schemes import FED, Explicit, Scheme
from aniso.stencil import Stencil
from aniso.verbs.candidates import GIVEN_SIGMA, TIMES, candidates, edge_enhancing
from aniso.verbs.info import BlockInfo
from aniso.verbs.line_scales import CYCLES, LineScales
from aniso.verbs.risk import Judge

#: A window of the array, (channels, …).
Window = npt.NDArray[Any]


@dataclass(frozen=True)
class Recipe:
    """One diffusion; none if the model is None."""

    model: ImageDriven | None
    time: float
    scheme: Scheme
    info: BlockInfo | None


def denoising(
    windows: Sequence[Window],
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
    level = _noise(windows, noise)
    pixel = estimates.pixel_size(spacings)
    if contrast is not None:
        models: list[ImageDriven] = [edge_enhancing(contrast, GIVEN_SIGMA * pixel)]
    else:
        models = candidates(level, pixel, len(spacings)) if level > 0 else []
    times = [t * pixel**2 for t in TIMES] if time is None else [time]
    # To leave the array alone is a candidate too, unless a time was asked for.
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


def enhancing(
    windows: Sequence[Window],
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
    """Return coherence-enhancing diffusion with the median of what each window asks for."""
    if refine:
        raise ValueError(
            "refine=True depends on the image as a whole, but this array is computed block by block. Leave "
            "refine out for a single diffusion."
        )
    level = _noise(windows, noise)
    scenes = [LineScales.of(one, level, wavelength, contrast, time, plates, spacings, 0) for one in windows]
    scenes = [scene for scene in scenes if not scene.flat]
    if not scenes:
        return Recipe(None, 0.0, FED(CYCLES), BlockInfo(level, None, 0.0, len(windows)))

    def usual(name: str) -> float:
        return float(np.median([getattr(scene.model, name) for scene in scenes]))

    model = CoherenceEnhancing(usual("contrast"), usual("sigma"), usual("rho"), plates=plates)
    duration = float(np.median([max(scene.time, scene.first) for scene in scenes]))
    return Recipe(model, duration, FED(CYCLES), BlockInfo(level, model, duration, len(windows)))


def _noise(windows: Sequence[Window], noise: float | Auto) -> float:
    """The level that was given, or the median of those of the windows, which strong texture does not move."""
    for window in windows:
        estimates.check_squares(window)
    return float(np.median([estimates.given_noise(noise, window, 0) for window in windows]))


def _risks(
    windows: Sequence[Window],
    level: float,
    model: ImageDriven,
    times: Sequence[float],
    spacings: tuple[float, ...],
    stencil: Stencil,
) -> npt.NDArray[np.float64]:
    """The expected mean squared error at each time, over all windows."""
    options: dict[str, Any] = {
        "stencil": stencil,
        "scheme": FED(1) if len(times) > 1 else Explicit(),
        "spacing": spacings,
        "channel_axis": 0,
    }
    total, size = np.zeros(len(times)), 0
    for window in windows:
        judge = Judge(window, level)
        pairs = zip(
            scale_space(judge.image, model, times, **options),
            scale_space(judge.changed, model, times, **options),
            strict=True,
        )
        total += window.size * np.array([judge.risk(image, changed) for (_, image), (_, changed) in pairs])
        size += window.size
    return total / size


#: Verb → how its recipe is found.
RECIPES: dict[str, Callable[..., Recipe]] = {"denoise": denoising, "enhance": enhancing}
