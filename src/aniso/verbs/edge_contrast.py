"""How strong a gradient must be to count as an edge: what verbs take it to be."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from aniso import checks

# Pairs of known pixels that are enough to estimate from, and about how many pixels to look at.
_ENOUGH, _LOOK_AT = 200, 2**14


def check_sums(values: npt.NDArray[Any]) -> None:
    """Refuse known grey values that are no numbers, or too large to be added up (doubles: squared)."""
    checks.finite("image", values, "known pixels would spread them into unknown ones")
    high = 1e140 if values.dtype == np.float64 else 1e35
    checks.ordinary("image", values, 0.0, high, values.dtype.name)


def given_contrast(contrast: float | checks.Auto) -> float | None:
    """The number given, or None to estimate it."""
    return checks.number_or_auto("contrast", contrast, "the gradient above which there are edges")


def given_scale(name: str, scale: float | checks.Auto, usual: float) -> float:
    """The width of a Gaussian that was given, or the usual one."""
    number = checks.number_or_auto(name, scale, "the width of a Gaussian", open_low=False)
    return usual if number is None else number


def estimated_contrast(usual: float, least: float) -> float:
    """The larger of both; where there is no difference at all, every contrast gives the same."""
    return max(usual, least) or 1.0


def usual_difference(
    image: npt.NDArray[Any], spacings: tuple[float, ...], known: npt.NDArray[np.bool_] | None = None
) -> float:
    """(mean of ∣d∣^¼)⁴ over the differences d of known neighbours, per unit length.

    Close to a median, but not 0 where more than half of the image is flat. Pairs further apart serve if
    there are too few neighbours. Large images are looked at in lines some pixels apart.
    """
    axes = range(len(spacings))
    longest = max(image.shape[1:])
    # Lines are left out along all other axes.
    step = max(1, math.ceil((math.prod(image.shape[1:]) / _LOOK_AT) ** (1 / max(len(spacings) - 1, 1))))
    best: tuple[int, float] = 0, 0.0
    distance = 1
    while distance < longest:
        roots = [
            np.sqrt(np.sqrt(_differences(image, known, axis, distance, step) / spacings[axis]))
            for axis in axes
        ]
        pairs = sum(len(root) for root in roots)
        if pairs > best[0]:
            best = pairs, (sum(float(root.sum()) for root in roots) / pairs) ** 4 / math.sqrt(distance)
        if pairs >= _ENOUGH:
            break
        distance *= 2
    return best[1]


def _differences(
    image: npt.NDArray[Any], known: npt.NDArray[np.bool_] | None, axis: int, distance: int, step: int
) -> npt.NDArray[np.float64]:
    """Of pixels that are so far apart along an axis, both known; root mean square over the channels."""
    lines = [slice(None) if other == axis else slice(None, None, step) for other in range(image.ndim - 1)]
    ahead, behind = lines.copy(), lines.copy()
    ahead[axis], behind[axis] = slice(distance, None), slice(None, -distance)
    if image.ndim == 2:  # a signal has no other axis along which to leave out lines
        ahead, behind = [slice(distance, None)], [slice(None, -distance)]
    both = ... if known is None else known[tuple(ahead)] & known[tuple(behind)]
    squares: Any = 0.0
    for channel in image:
        squares = squares + np.square(
            np.subtract(channel[tuple(ahead)][both], channel[tuple(behind)][both], dtype=np.float64)
        )
    return np.sqrt(squares / len(image)).reshape(-1)
