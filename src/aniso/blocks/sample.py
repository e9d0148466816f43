"""Windows of an array, from which parameters are chosen: the same ones wherever the array is."""

from __future__ import annotations

import math
from collections.abc import Sequence

from aniso.blocks.halo import Window

# How many values (pixels times channels) are looked at, by the number of axes, and in how many windows.
_VALUES = {1: 2**18, 2: 2**19, 3: 320_000}
_COUNT = {1: 4, 2: 9, 3: 5}


def windows(shape: Sequence[int], channels: int = 1) -> list[Window]:
    """Return windows spread over an array of this shape (without channels), one of them in the middle.

    A small array is one window. Otherwise the centres are multiples of irrational steps, so that they do not
    coincide with regular structures.
    """
    pixels = _VALUES[len(shape)] // channels
    if math.prod(shape) <= pixels:
        return [tuple(slice(0, n) for n in shape)]
    count = _COUNT[len(shape)]
    sides = _sides(shape, max(pixels // count, 1))
    # The generalised golden ratio spreads points evenly in any number of dimensions.
    ratio = 2.0
    for _ in range(30):
        ratio = (1 + ratio) ** (1 / (len(shape) + 1))
    found = []
    for number in range(count):
        shares = [math.fmod(0.5 + number / ratio ** (axis + 1), 1.0) for axis in range(len(shape))]
        starts = [int(share * (n - side + 1)) for share, n, side in zip(shares, shape, sides, strict=True)]
        found.append(tuple(slice(start, start + side) for start, side in zip(starts, sides, strict=True)))
    return found


def _sides(shape: Sequence[int], pixels: int) -> list[int]:
    """Return sides of a window with this many pixels, equal ones where the array is long enough."""
    sides = [1] * len(shape)
    for rank, axis in enumerate(sorted(range(len(shape)), key=lambda axis: shape[axis])):
        equal = round(pixels ** (1 / (len(shape) - rank)))
        sides[axis] = max(1, min(shape[axis], equal))
        pixels = max(pixels // sides[axis], 1)
    return sides
