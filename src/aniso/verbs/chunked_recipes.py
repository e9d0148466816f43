"""What a verb does to a large array: one diffusion, whose parameters are estimated from a few windows.

In memory, denoise() also mixes several diffusions, and enhance() diffuses again where lines are interrupted:
both depend on the image as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from aniso.arrays import Array
from aniso.checks import Auto
from aniso.models import CoherenceEnhancing, ImageDriven
from aniso.noise import check_squares, choose_noise
from aniso.schemes import FED, Scheme
from aniso.stencil import Stencil
from aniso.verbs.info import BlockInfo
from aniso.verbs.line_scales import CYCLES, LineScales


@dataclass(frozen=True)
class Recipe:
    """One diffusion; none if the model is None."""

    model: ImageDriven | None
    time: float
    scheme: Scheme
    info: BlockInfo | None


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


#: Verb → the function that chooses its recipe from windows (channels, …).
RECIPES: dict[str, Callable[..., Recipe]] = {"enhance": choose_enhancing}
