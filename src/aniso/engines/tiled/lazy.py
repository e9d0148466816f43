"""Dask arrays: the evolution as a graph of tasks, one layer per exchange of halos."""

from __future__ import annotations

import itertools
import math
import operator
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from aniso import engines, layouts
from aniso.engines.tiled import blocks
from aniso.engines.tiled.blocks import Work
from aniso.engines.tiled.exchanges import Exchange, cycles_per_exchange, exchanges
from aniso.engines.tiled.halo import pieces, reach, regions
from aniso.schemes import Cycle

if TYPE_CHECKING:
    import dask.array

_WORKERS_ENGINE = "cpu"


def is_dask(image: Any) -> bool:
    """Whether this is a Dask array; Dask is not imported to find out."""
    array = sys.modules.get("dask.array")
    return array is not None and isinstance(image, array.Array)


def checked(image: dask.array.Array, channel_axis: int | None) -> dask.array.Array:
    """The image, if it can be computed in blocks: real numbers, known chunks, two or three axes."""
    if any(math.isnan(length) for lengths in image.chunks for length in lengths):
        raise ValueError(
            f"image has chunks of unknown size, {image.chunks}: their neighbours cannot be found. Call "
            "image.compute_chunk_sizes() first."
        )
    layouts.check_type(image.dtype)
    layouts.check_axes(image.shape, channel_axis)
    if image.ndim - (channel_axis is not None) == 1:
        raise ValueError(
            f"a Dask array must be an image (H, W) or a volume (D, H, W), got the signal {image.shape}. Use "
            "image.compute()."
        )
    return image


def evolved(
    image: dask.array.Array,
    channel_axis: int | None,
    cycles: Sequence[Cycle],
    problem: engines.Problem,
    engine: str | None,
    fixed: Any = None,
) -> dask.array.Array:
    """The image after all cycles, lazily, in the chunks it has.

    `cycles` all have the same number of steps. `fixed` may be a Dask array of bool.
    """
    import dask.array as da

    source = image[np.newaxis] if channel_axis is None else da.moveaxis(image, channel_axis, 0)
    whole = source.rechunk({0: -1})
    dtype = layouts.result_type(image.dtype)
    result = whole.map_blocks(_checked, dtype=whole.dtype, meta=whole._meta).astype(dtype)
    if cycles:
        work = Work(problem, engine or _WORKERS_ENGINE)
        far = reach(cycles[0], problem.model, problem.spacings)
        largest = [max(lengths) for lengths in whole.chunks[1:]]
        together = cycles_per_exchange(len(cycles[0].steps), far, largest, whole.shape[0], dtype.itemsize)
        for exchange in exchanges(cycles, far, together):
            result = _exchanged(result, work, exchange, fixed)
    result = result.rechunk(source.chunks)
    return result[0] if channel_axis is None else da.moveaxis(result, 0, channel_axis)


def _checked(pixels: Any, block_info: Any = None) -> Any:
    about = block_info[0]
    starts = [start for start, _ in about["array-location"]]
    return blocks.checked(pixels, starts[1:], lambda _: tuple(about["chunk-location"][1:]))


def _exchanged(
    image: dask.array.Array, work: Work, exchange: Exchange, fixed: dask.array.Array | None
) -> dask.array.Array:
    """One layer of the graph: each block from its own pixels and those of its halo."""
    import dask.array as da
    from dask.base import tokenize
    from dask.highlevelgraph import HighLevelGraph

    name = "aniso-" + tokenize(image.name, work, exchange, None if fixed is None else fixed.name)
    chunks = image.chunks[1:]
    numbers = itertools.count()
    graph: dict[Any, Any] = {}

    def parts(
        source: str, block_chunks: Any, window: Any, leading: tuple[int, ...]
    ) -> tuple[list[Any], list[Any]]:
        """Keys of the parts of a window, each cut out by a task where its block is, and their places."""
        keys, places = [], []
        for piece in pieces(block_chunks, window):
            key = (source, *leading, *piece.block)
            whole = all(
                part == slice(0, lengths[k])
                for part, lengths, k in zip(piece.there, block_chunks, piece.block, strict=True)
            )
            if not whole:
                cut = (f"{name}-halo", next(numbers))
                graph[cut] = (operator.getitem, key, (*[slice(None)] * len(leading), *piece.there))
                key = cut
            keys.append(key)
            places.append(piece.here)
        return keys, places

    for region in regions(chunks, exchange.halo):
        keys, places = parts(image.name, chunks, region.needed, (0,))
        mask: Any = None
        if fixed is not None:
            mask = (_joined_mask, *parts(fixed.name, fixed.chunks, region.needed, ()))
        graph[(name, 0, *region.index)] = (
            blocks.advanced, (blocks.joined, keys, places), work.of(region), exchange.cycles, region, mask,
        )  # fmt: skip
    sources: Any = [image] if fixed is None else [image, fixed]
    layers = HighLevelGraph.from_collections(name, graph, sources)
    return da.Array(layers, name, image.chunks, dtype=image.dtype)


def _joined_mask(parts: list[Any], places: list[Any]) -> Any:
    whole = blocks.joined([part[np.newaxis] for part in parts], places)
    return whole[0]
