"""Coarser and finer grids: sums of pairs of pixels, and linear interpolation. Images are (channels, …).

Dask arrays give the same bits as NumPy arrays.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from aniso.arrays import Array, is_dask
from aniso.blocks.halo import Window, regions, within
from aniso.blocks.lazy import BlockTask, from_windows


def halve(image: Any) -> Any:
    """Return sums over 2 × 2 (× 2) pixels of a NumPy or Dask array; a last pixel alone is kept."""
    if not is_dask(image):
        for axis in range(1, image.ndim):
            image = _pair_sums(image, axis)
        return image
    even = tuple(_even(lengths) for lengths in image.chunks[1:])
    image = image.rechunk((image.chunks[0], *even))
    halves = tuple(tuple((length + 1) // 2 for length in lengths) for lengths in even)
    return image.map_blocks(halve, dtype=image.dtype, chunks=(image.chunks[0], *halves))


def double(coarse: Array, shape: tuple[int, ...]) -> Array:
    """Interpolate between the centres of pixels, constant beyond the last ones. `shape` has no channels."""
    for axis, length in enumerate(shape, 1):
        coarse = _refine_axis(coarse, axis, length)
    return coarse


def double_lazily(coarse: Any, like: Any) -> Any:
    """Interpolate a Dask array, with the shape and chunks of another one."""
    channels = slice(0, coarse.shape[0])
    tasks = []
    for region in regions(like.chunks[1:], (0,) * (like.ndim - 1)):
        needed, places = _coarse_window(region.core, coarse.shape[1:])
        block = partial(_double_block, places=places)
        tasks.append(BlockTask((0, *region.index), block, [(coarse, (channels, *needed))]))
    return from_windows(tasks, like.chunks, coarse.dtype, "finer")


def double_window(read: Callable[[Window], Array], window: Window, shape: tuple[int, ...]) -> Array:
    """Interpolate a window of the finer grid; `read` returns a window of the coarser one, of this shape."""
    needed, places = _coarse_window(window, shape)
    return _double_block(read(needed), places)


def _pair_sums(image: Array, axis: int) -> Array:
    before = (slice(None),) * axis
    sums = image[(*before, slice(None, None, 2))].copy()
    sums[(*before, slice(None, image.shape[axis] // 2))] += image[(*before, slice(1, None, 2))]
    return sums


def _refine_axis(coarse: Array, axis: int, length: int) -> Array:
    """Return 3/4 of each pixel and 1/4 of its neighbour to either side, cut to a length."""
    before = (slice(None),) * axis
    shape = list(coarse.shape)
    shape[axis] = length
    fine = np.empty(shape, coarse.dtype)
    most, quarter = 0.75 * coarse, 0.25 * coarse
    for first, here, neighbour, end in (
        (0, slice(1, None), slice(None, -1), slice(0, 1)),
        (1, slice(None, -1), slice(1, None), slice(-1, None)),
    ):
        sums = most.copy()
        sums[(*before, here)] += quarter[(*before, neighbour)]
        sums[(*before, end)] += quarter[(*before, end)]
        target = fine[(*before, slice(first, None, 2))]
        target[...] = sums[(*before, slice(0, target.shape[axis]))]
    return fine


def _even(lengths: tuple[int, ...]) -> tuple[int, ...]:
    """Return similar lengths, all of them even except the last one, so that no pair is cut."""
    stops = [stop + stop % 2 for stop in itertools.accumulate(lengths[:-1])]
    total = sum(lengths)
    edges = sorted({0, total, *(min(stop, total) for stop in stops)})
    return tuple(after - before for before, after in itertools.pairwise(edges))


def _coarse_window(window: Window, shape: Sequence[int]) -> tuple[Window, Window]:
    """Return the coarse pixels from which a window is interpolated, and its place between them."""
    needed = tuple(
        slice(max(0, part.start // 2 - 1), min(n, (part.stop - 1) // 2 + 2))
        for part, n in zip(window, shape, strict=True)
    )
    return needed, within([slice(2 * part.start, 2 * part.stop) for part in needed], window)


def _double_block(coarse: Array, places: Window) -> Array:
    fine = double(coarse, tuple(2 * n for n in coarse.shape[1:]))
    return np.ascontiguousarray(fine[(slice(None), *places)])
