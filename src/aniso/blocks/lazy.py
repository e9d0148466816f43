"""Dask arrays: the evolution as a graph of tasks, one layer per exchange of halos."""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from aniso import arrays, engines
from aniso.blocks import worker
from aniso.blocks.costs import cycle_seconds
from aniso.blocks.exchanges import Exchange, cycles_per_exchange, exchanges
from aniso.blocks.halo import Chunks, Window, pieces, reach, regions
from aniso.blocks.worker import Work
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
    arrays.check_type(image.dtype)
    arrays.check_axes(image.shape, channel_axis)
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
    source: Any = arrays.channels_first(image, channel_axis)
    whole = source.rechunk({0: -1})
    dtype = arrays.result_type(image.dtype)
    result = finite(whole).astype(dtype)
    if cycles:
        work = Work(problem, engine or _WORKERS_ENGINE)
        far = reach(cycles[0], problem.model, problem.spacings)
        largest = [max(lengths) for lengths in whole.chunks[1:]]
        each = cycle_seconds(cycles[0], problem.model, whole.shape[0], problem.spacings, dtype.itemsize)
        together = cycles_per_exchange(each, far, largest, whole.shape[0] * dtype.itemsize)
        for exchange in exchanges(cycles, far, together):
            result = _exchanged(result, work, exchange, fixed)
    return channels_back(result.rechunk(source.chunks), channel_axis)


def channels_back(image: Any, channel_axis: int | None) -> Any:
    """The way back from `layouts.channels_first`, lazily."""
    return image[0] if channel_axis is None else np.moveaxis(image, 0, channel_axis)


def finite(channels: Any) -> Any:
    """The array (channels, …) itself; when computed, blocks with NaN are refused."""
    return channels.map_blocks(_checked, dtype=channels.dtype, meta=channels._meta)


def _checked(pixels: Any, block_info: Any = None) -> Any:
    about = block_info[0]
    starts = [start for start, _ in about["array-location"]]
    return worker.checked(pixels, starts[1:], lambda _: tuple(about["chunk-location"][1:]))


def _exchanged(
    image: dask.array.Array, work: Work, exchange: Exchange, fixed: dask.array.Array | None
) -> dask.array.Array:
    """One layer of the graph: each block from its own pixels and those of its halo."""
    channels = slice(0, image.shape[0])
    tasks = []
    for region in regions(image.chunks[1:], exchange.halo):
        function, windows = worker.advanced, [(image, (channels, *region.needed))]
        if fixed is not None:
            function, windows = worker.advanced_with_mask, [*windows, (fixed, region.needed)]
        arguments = work.of(region), exchange.cycles, region
        tasks.append(BlockTask((0, *region.index), function, windows, arguments))
    return from_windows(tasks, image.chunks, image.dtype, (work, exchange))


@dataclass(frozen=True)
class BlockTask:
    """How one block of a new array comes about: from windows of other arrays."""

    index: tuple[int, ...]
    function: Callable[..., Any]
    windows: list[tuple[Any, Window]]
    arguments: tuple[Any, ...]


def from_windows(tasks: list[BlockTask], chunks: Chunks, dtype: Any, token: Any) -> dask.array.Array:
    """A Dask array whose blocks are function(*windows, *arguments).

    What a window needs of a block is cut out by a task of its own, so that a cluster moves only that.
    """
    import dask.array as da
    from dask.base import tokenize
    from dask.highlevelgraph import HighLevelGraph

    sources: Any = {array.name: array for task in tasks for array, _ in task.windows}
    name = "aniso-" + tokenize(list(sources), chunks, token)
    graph: dict[Any, Any] = {}
    for task in tasks:
        windows = [_window(graph, name, array, window) for array, window in task.windows]
        graph[(name, *task.index)] = (_called, task.function, windows, task.arguments)
    layers = HighLevelGraph.from_collections(name, graph, list(sources.values()))
    return da.Array(layers, name, chunks, dtype=dtype)


def _window(graph: dict[Any, Any], name: str, array: Any, window: Window) -> Any:
    keys, places = [], []
    for piece in pieces(array.chunks, window):
        key = (array.name, *piece.block)
        lengths = [axis[k] for axis, k in zip(array.chunks, piece.block, strict=True)]
        if any(part != slice(0, length) for part, length in zip(piece.there, lengths, strict=True)):
            cut = (f"{name}-cut", len(graph))
            graph[cut] = (operator.getitem, key, piece.there)
            key = cut
        keys.append(key)
        places.append(piece.here)
    return (worker.joined, keys, places)


def _called(function: Callable[..., Any], windows: list[Any], arguments: tuple[Any, ...]) -> Any:
    return function(*windows, *arguments)
