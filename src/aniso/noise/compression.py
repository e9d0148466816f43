"""Traces of JPEG compression, which changes noise in a way that no correlation describes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aniso.arrays import Array

#: Side of the blocks of JPEG, in pixels.
SIDE = 8
# By how many standard deviations differences across the borders of blocks must exceed others, along each axis
# and summed over both.
_LEAST, _CLEAR = 2.5, 7.5
# Error of a median of normal values, over their median deviation.
_MEDIAN_ERROR = 1.2533 * 1.4826
# Blocks along an axis that are needed for a median.
_LEAST_BLOCKS = 8


def has_blocks(windows: Sequence[Array]) -> bool:
    """Return whether windows (channels, …) of an image are made of blocks: their borders are seen.

    Medians of the differences between neighbours are compared for all places within blocks of eight pixels.
    JPEG removes high frequencies within blocks only, so that one of the eight has larger differences.
    """
    if windows[0].ndim != 3:  # images only
        return False
    found = np.median([[_excess(window, axis) for axis in (1, 2)] for window in windows], axis=0)
    return bool(found.min() > _LEAST and found.sum() > _CLEAR)


def lost_variance(windows: Sequence[Array]) -> float:
    """Return the variance of what compression changed in windows (channels, …) of a JPEG file.

    Its errors in neighbouring blocks are independent, so that differences across borders have twice this
    variance more than others.
    """
    found = []
    for window in windows:
        for axis in (1, 2):
            rows = _steps(window, axis, 1)
            if len(rows):
                border = int(np.argmax(np.median(rows, axis=0)))
                found.append(0.5 * float(_steps(window, axis, 2)[:, border].mean()))
    return max(float(np.mean(found)), 0.0) if found else 0.0


def _steps(window: Array, axis: int, power: int) -> Array:
    """Return by how much powers of differences exceed those on both sides, which vary slowly in any image.

    They are means over lines across the axis: one row for each block, one column for each place in it.
    """
    others = tuple(each for each in range(window.ndim) if each != axis)
    steps = (np.abs(np.diff(window.astype(np.float64), axis=axis)) ** power).mean(axis=others)
    steps = steps[1:-1] - 0.5 * (steps[:-2] + steps[2:])
    count = len(steps) // SIDE
    return np.asarray(steps[: count * SIDE].reshape(count, SIDE))


def _excess(window: Array, axis: int) -> float:
    """Return by how many standard deviations one of eight medians exceeds the others."""
    rows = _steps(window, axis, 1)
    count = len(rows)
    if count < _LEAST_BLOCKS:
        return 0.0
    means = np.median(rows, axis=0)  # single edges of objects must not count
    largest = int(np.argmax(means))
    rest = np.delete(rows, [(largest + k) % SIDE for k in (-1, 0, 1)], axis=1)
    usual = float(np.median(rest))
    error = _MEDIAN_ERROR * float(np.median(np.abs(rest - usual))) / np.sqrt(count)
    return (float(means[largest]) - usual) / error if error > 0 else 0.0
