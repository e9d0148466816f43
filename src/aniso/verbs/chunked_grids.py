"""Coarser and finer grids of Dask arrays, for inpainting."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from aniso.arrays import Array
from aniso.blocks.halo import Window, regions
from aniso.blocks.lazy import BlockTask, from_windows
from aniso.verbs.inpaint_solver import pair_sums, refine_axis

if TYPE_CHECKING:
    import dask.array


def coarsen(array: dask.array.Array) -> dask.array.Array:
    """Return sums over 2 × 2 (× 2) pixels of an array (channels, …); a last row alone is kept."""
    even = tuple(_even(lengths) for lengths in array.chunks[1:])
    array = array.rechunk((array.chunks[0], *even))
    halves = tuple(tuple((length + 1) // 2 for length in lengths) for lengths in even)
    result: Any = array.map_blocks(_block_sums, dtype=array.dtype, chunks=(array.chunks[0], *halves))
    return result


def interpolate(coarse: dask.array.Array, fine: dask.array.Array) -> dask.array.Array:
    """Interpolate a coarse array (channels, …) linearly, with the shape and chunks of the fine one."""
    channels = slice(0, coarse.shape[0])
    tasks = []
    for region in regions(fine.chunks[1:], (0,) * (fine.ndim - 1)):
        needed, places = zip(
            *(_coarse_span(part, n) for part, n in zip(region.core, coarse.shape[1:], strict=True)),
            strict=True,
        )
        tasks.append(
            BlockTask((0, *region.index), _interpolate_block, [(coarse, (channels, *needed))], (places,))
        )
    return from_windows(tasks, fine.chunks, coarse.dtype, "finer")


def _even(lengths: tuple[int, ...]) -> tuple[int, ...]:
    """Return similar lengths, all of them even except the last one, so that no pair is cut."""
    stops = [stop + stop % 2 for stop in itertools.accumulate(lengths[:-1])]
    total = sum(lengths)
    edges = sorted({0, total, *(min(stop, total) for stop in stops)})
    return tuple(after - before for before, after in itertools.pairwise(edges))


def _block_sums(block: Array) -> Array:
    for axis in range(1, block.ndim):
        block = pair_sums(block, axis)
    return block


def _coarse_span(part: slice, length: int) -> tuple[slice, slice]:
    """Return the coarse pixels from which fine ones are interpolated, and the place of the fine ones."""
    start, stop = max(0, part.start // 2 - 1), min(length, (part.stop - 1) // 2 + 2)
    return slice(start, stop), slice(part.start - 2 * start, part.stop - 2 * start)


def _interpolate_block(coarse: Array, places: Window) -> Array:
    for axis in range(1, coarse.ndim):
        coarse = refine_axis(coarse, axis, 2 * coarse.shape[axis])
    return np.ascontiguousarray(coarse[(slice(None), *places)])
