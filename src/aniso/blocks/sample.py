"""Windows of an array, from which parameters are chosen: the same ones wherever the array is."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from aniso.arrays import Array, Mask
from aniso.blocks.halo import Window

# How many values (pixels times channels) are looked at, by the number of axes, and in how many windows.
_VALUES = {1: 2**18, 2: 2**19, 3: 320_000}
_COUNT = {1: 4, 2: 9, 3: 5}
# Part of a sum of grey values that may be rounding.
_ROUNDING = 1e-10


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


def orient(
    images: Sequence[Array], masks: Sequence[Mask] | None = None, spacings: Sequence[float] | None = None
) -> tuple[list[Array], list[Mask] | None]:
    """Return windows (channels, …), with masks of their pixels, reversed and transposed alike.

    A window of a reflected or rotated image becomes the same one, so that what is chosen from it, partly by
    differences to random numbers, is the same for both. Along each axis, the second half is brighter than the
    first. The last two axes are exchanged if their spacings are equal; others differ for slices of volumes.
    """
    turned = [_orientation(image, spacings) for image in images]
    oriented = [_turn(image, *one, first=1) for image, one in zip(images, turned, strict=True)]
    if masks is None:
        return oriented, None
    return oriented, [_turn(mask, *one, first=0) for mask, one in zip(masks, turned, strict=True)]


def _orientation(image: Array, spacings: Sequence[float] | None) -> tuple[list[int], bool]:
    """Return the axes along which (channels, …) are reversed, and whether the last two are exchanged."""
    ndim, reverse, moments = image.ndim - 1, [], []
    for axis in range(ndim):
        others = tuple(each for each in range(image.ndim) if each != axis + 1)
        profile = image.sum(axis=others, dtype=np.float64)
        profile -= profile.mean()
        places = np.arange(len(profile)) - 0.5 * (len(profile) - 1)
        moment = float(profile @ places)
        if abs(moment) <= _ROUNDING * float(np.abs(profile) @ np.abs(places)):
            moment = 0.0  # symmetric up to rounding
        if moment < 0:
            reverse.append(axis)
        moments.append((image.shape[axis + 1], abs(moment)))
    alike = ndim > 1 and (spacings is None or spacings[-1] == spacings[-2])
    return reverse, alike and moments[-1] < moments[-2]


def _turn(array: Array, reverse: Sequence[int], exchange: bool, *, first: int) -> Array:
    turned = np.flip(array, tuple(axis + first for axis in reverse))
    # In one order in memory, so that sums have the same bits.
    return np.ascontiguousarray(turned.swapaxes(-1, -2) if exchange else turned)


def _sides(shape: Sequence[int], pixels: int) -> list[int]:
    """Return sides of a window with this many pixels, equal ones where the array is long enough."""
    sides = [1] * len(shape)
    for rank, axis in enumerate(sorted(range(len(shape)), key=lambda axis: shape[axis])):
        equal = round(pixels ** (1 / (len(shape) - rank)))
        sides[axis] = max(1, min(shape[axis], equal))
        pixels = max(pixels // sides[axis], 1)
    return sides
