"""Coarser and finer grids of arrays in blocks, as inpainting needs them."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from aniso.blocks.halo import Window, regions
from aniso.blocks.lazy import BlockTask, from_windows
from aniso.verbs.inpaint_solver import pair_sums, twice_as_fine

if TYPE_CHECKING:
    import dask.array

Array = npt.NDArray[Any]


def sums_over_pairs(array: dask.array.Array) -> dask.array.Array:
    """Sums over 2 × 2 (× 2) pixels of an array (channels, …); a last row without a neighbour stays alone."""
    even = tuple(_even(lengths) for lengths in array.chunks[1:])
    array = array.rechunk((array.chunks[0], *even))
    halves = tuple(tuple((length + 1) // 2 for length in lengths) for lengths in even)
    result: Any = array.map_blocks(_block_sums, dtype=array.dtype, chunks=(array.chunks[0], *halves))
    return result


def on_finer_grid(coarse: dask.array.Array, fine: dask.array.Array) -> dask.array.Array:
    """The coarse array (channels, …), interpolated linearly, in the shape and chunks of the fine one."""
    channels = slice(0, coarse.shape[0])
    tasks = []
    for region in regions(fine.chunks[1:], (0,) * (fine.ndim - 1)):
        needed, places = zip(
            *(_coarse_span(part, n) for part, n in zip(region.core, coarse.shape[1:], strict=True)),
            strict=True,
        )
        tasks.append(BlockTask((0, *region.index), _finer, [(coarse, (channels, *needed))], (places,)))
    return from_windows(tasks, fine.chunks, coarse.dtype, "finer")


def _even(lengths: tuple[int, ...]) -> tuple[int, ...]:
    """About these lengths, all but the last of which are even, so that no pair is cut."""
    stops = [stop + stop % 2 for stop in itertools.accumulate(lengths[:-1])]
    total = sum(lengths)
    edges = sorted({0, total, *(min(stop, total) for stop in stops)})
    return tuple(after - before for before, after in itertools.pairwise(edges))


def _block_sums(block: Array) -> Array:
    for axis in range(1, block.ndim):
        block = pair_sums(block, axis)
    return block


def _coarse_span(part: slice, length: int) -> tuple[slice, slice]:
    """The coarse pixels from which some fine ones are interpolated, and where these are then."""
    start, stop = max(0, part.start // 2 - 1), min(length, (part.stop - 1) // 2 + 2)
    return slice(start, stop), slice(part.start - 2 * start, part.stop - 2 * start)


def _finer(coarse: Array, places: Window) -> Array:
    for axis in range(1, coarse.ndim):
        coarse = twice_as_fine(coarse, axis, 2 * coarse.shape[axis])
    return np.ascontiguousarray(coarse[(slice(None), *places)])
