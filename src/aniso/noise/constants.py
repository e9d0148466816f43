"""Constant regions: masked or empty parts of an image, or those of a drawing without noise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aniso.arrays import Array, Field, Mask

#: Sides of the smallest constant regions, by the number of axes.
CONSTANT_SIDES = {1: 16, 2: 5, 3: 3}
# An image is a drawing if its constant regions have at least this number of grey values, of which each covers
# this share of the image, and all of them that share. The ends of the range, which may be clipped, and the
# most frequent other one, which may be a background, do not count.
_VALUES, _EACH, _ALL = 4, 0.003, 0.2


def find_constant(window: Field) -> Mask:
    """Return the pixels in the middle of regions that are constant."""
    from scipy import ndimage

    if not _has_runs(window):
        return np.zeros(window.shape, bool)
    side = CONSTANT_SIDES[window.ndim]
    found: Mask = ndimage.maximum_filter(window, side) == ndimage.minimum_filter(window, side)
    return found


def find_noiseless(channel: Array) -> Mask:
    """Return the pixels of large constant regions: they have no noise. Few photons have small ones."""
    from scipy import ndimage

    if not _has_runs(channel):
        return np.zeros(channel.shape, bool)
    side = 2 * CONSTANT_SIDES[channel.ndim] - 1
    middle = ndimage.maximum_filter(channel, side) == ndimage.minimum_filter(channel, side)
    found: Mask = ndimage.maximum_filter(middle, side) if middle.any() else middle
    return found


def is_drawing(windows: Sequence[Field]) -> bool:
    """Return whether large parts of an image are constant, with several grey values: nothing has noise then.

    Masks, borders and empty background have one or two grey values.
    """
    inside = np.concatenate([window[find_constant(window)] for window in windows])
    values, counts = np.unique(inside, return_counts=True)
    ends = min(window.min() for window in windows), max(window.max() for window in windows)
    counts = np.sort(counts[~np.isin(values, ends)])[:-1]
    size = sum(window.size for window in windows)
    counts = counts[counts >= _EACH * size]
    return len(counts) >= _VALUES and counts.sum() >= _ALL * size


def _has_runs(window: Array) -> bool:
    """Return whether any two neighbours along the last axis are equal, and their neighbours too."""
    equal = window[..., 1:] == window[..., :-1]
    return bool(np.any(equal[..., 1:] & equal[..., :-1]))
