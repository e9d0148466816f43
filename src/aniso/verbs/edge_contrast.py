"""The contrast of verbs: how strong a gradient must be to count as an edge."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from aniso import checks
from aniso.arrays import Array, Field, Mask

# A sufficient number of pairs of known pixels, and about how many pixels are used.
_ENOUGH, _LOOK_AT = 200, 2**14


def check_sums(values: Array) -> None:
    """Reject known grey values that are too large to be added (doubles: squared)."""
    high = 1e140 if values.dtype == np.float64 else 1e35
    checks.ordinary("image", values, 0.0, high, values.dtype.name)


def check_contrast(contrast: float | checks.Auto) -> float | None:
    """Return a given contrast, or None if it is to be estimated."""
    return checks.number_or_auto("contrast", contrast, "the gradient above which there are edges")


def choose_scales(usual: tuple[float, float], **given: float | checks.Auto) -> list[float]:
    """Return two standard deviations of Gaussians, given by name, or the usual ones."""
    numbers = (
        checks.number_or_auto(name, scale, "the width of a Gaussian", open_low=False)
        for name, scale in given.items()
    )
    return [one if number is None else number for one, number in zip(usual, numbers, strict=True)]


def choose_contrast(usual: float, least: float) -> float:
    """Return the larger one; in a constant image, where both are 0, the contrast does not matter."""
    return max(usual, least) or 1.0


def spread_of(windows: Sequence[Array], known: Sequence[Mask] | None = None) -> list[float]:
    """Return the standard deviation of the known pixels of all windows together, for each channel."""
    spreads = []
    for number in range(len(windows[0])):
        values = [window[number] for window in windows]
        if known is not None:
            values = [one[inside] for one, inside in zip(values, known, strict=True)]
        joined = np.stack(values) if known is None else np.concatenate(values)
        spreads.append(float(np.std(joined, dtype=np.float64)) if joined.size else 0.0)
    return spreads


def usual_difference(
    windows: Sequence[Array], spacings: tuple[float, ...], known: Sequence[Mask] | None = None
) -> float:
    """Return (mean of ∣d∣^¼)⁴ over the differences d of known neighbours in all windows, per unit length.

    This is similar to a median, but not 0 if more than half of the image is flat. If there are too few
    neighbours, pairs farther apart are used. In large images only some lines are used.
    """
    masks: Sequence[Mask | None] = [None] * len(windows) if known is None else known
    axes = range(len(spacings))
    longest = max(windows[0].shape[1:])
    # Lines are left out along all other axes.
    pixels = math.prod(windows[0].shape[1:]) * len(windows)
    step = max(1, math.ceil((pixels / _LOOK_AT) ** (1 / max(len(spacings) - 1, 1))))
    best: tuple[int, float] = 0, 0.0
    distance = 1
    while distance < longest:
        roots = [
            np.sqrt(np.sqrt(_differences(window, inside, axis, distance, step) / spacings[axis]))
            for window, inside in zip(windows, masks, strict=True)
            for axis in axes
        ]
        pairs = sum(len(root) for root in roots)
        if pairs > best[0]:
            best = pairs, (sum(float(root.sum()) for root in roots) / pairs) ** 4 / math.sqrt(distance)
        if pairs >= _ENOUGH:
            break
        distance *= 2
    return best[1]


def _differences(image: Array, known: Mask | None, axis: int, distance: int, step: int) -> Field:
    """Return root mean square differences over the channels of known pixels at a distance along an axis."""
    lines = [slice(None) if other == axis else slice(None, None, step) for other in range(image.ndim - 1)]
    ahead, behind = lines.copy(), lines.copy()
    ahead[axis], behind[axis] = slice(distance, None), slice(None, -distance)
    if image.ndim == 2:  # a signal has no other axis
        ahead, behind = [slice(distance, None)], [slice(None, -distance)]
    both = ... if known is None else known[tuple(ahead)] & known[tuple(behind)]
    squares: Any = 0.0
    for channel in image:
        squares = squares + np.square(
            np.subtract(channel[tuple(ahead)][both], channel[tuple(behind)][both], dtype=np.float64)
        )
    return np.sqrt(squares / len(image)).reshape(-1)
