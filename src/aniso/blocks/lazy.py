"""Dask arrays: stages as a graph of tasks, one layer per exchange of halos."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from aniso import arrays
from aniso.arrays import Array
from aniso.blocks.groups import StageGroup, group_stages
from aniso.blocks.halo import Chunks, Window, pieces, regions, widen
from aniso.blocks.stages import Pipeline

if TYPE_CHECKING:
    import dask.array


def check_chunks(image: dask.array.Array, channel_axis: int | None) -> None:
    """Reject Dask arrays that are not images or volumes of real numbers with known chunks."""
    if any(math.isnan(length) for lengths in image.chunks for length in lengths):
        raise ValueError(
            f"image has chunks of unknown size, got {image.chunks}. Call image.compute_chunk_sizes() first."
        )
    arrays.check_type(image.dtype)
    arrays.check_axes(image.shape, channel_axis)
    if image.ndim - (channel_axis is not None) == 1:
        raise ValueError(
            f"a Dask array must be an image (H, W) or a volume (D, H, W), got shape {image.shape}. For "
            "signals, use image.compute()."
        )


def reject_progress(progress: Any) -> None:
    """Reject a request for progress, which is not known for arrays that are computed later."""
    if progress:
        raise ValueError(
            "progress cannot be reported for a Dask array, which is computed later. Use "
            "dask.diagnostics.ProgressBar, or the dashboard of a cluster."
        )


def run_pipeline(
    image: dask.array.Array, channel_axis: int | None, pipeline: Pipeline, fixed: Any = None
) -> dask.array.Array:
    """Return the image after all stages, lazily, with the same chunks (longer ones on a finer grid).

    `fixed` may be a Dask array of bool, for pipelines without margins: pixels that keep their values.
    """
    source: Any = arrays.channels_first(image, channel_axis)
    whole = source.rechunk({0: -1})
    dtype = arrays.result_type(image.dtype)
    result = check_finite(whole).astype(dtype)
    finer = zip(whole.chunks[1:], pipeline.scale, strict=True)
    inner = tuple(tuple(scale * length for length in lengths) for lengths, scale in finer)
    chunks = tuple(widen(lengths, margin) for lengths, margin in zip(inner, pipeline.margins, strict=True))
    block = [max(lengths) for lengths in inner]
    groups = group_stages(pipeline.parts(), whole.shape[0], block, dtype.itemsize)
    for number, group in enumerate(groups):
        result = _add_layer(result, pipeline, group, chunks, fixed, first=number == 0)
    result = result[(slice(None), *pipeline.crop)]
    return arrays.channels_back(result.rechunk((source.chunks[0], *inner)), channel_axis)


def compute(parts: Sequence[Any]) -> list[Any]:
    """Return arrays in memory; Dask arrays are computed now, together."""
    if not any(map(arrays.is_dask, parts)):
        return list(parts)
    from dask.base import compute

    return list(compute(*parts))


def _add_layer(
    state: dask.array.Array,
    pipeline: Pipeline,
    group: StageGroup,
    chunks: Chunks,
    fixed: dask.array.Array | None,
    *,
    first: bool,
) -> dask.array.Array:
    """Add one layer to the graph: stages on each block of a stacked state, with its halo."""
    count = slice(0, sum(group.before.values()))
    tasks = []
    for region in regions(chunks, group.halo):
        window = pipeline.source_window(region.needed) if first else region.needed
        windows: list[tuple[Any, Window]] = [(state, (count, *window))]
        if fixed is not None:
            windows.append((fixed, region.needed))
        run = partial(group.cut(region).run_stacked, region=region)
        tasks.append(BlockTask((0, *region.index), run, windows))
    after = sum(group.after.values())
    return from_windows(tasks, ((after,), *chunks), state.dtype, group)


def check_finite(channels: Any) -> Any:
    """Return the array (channels, …); blocks with NaN are rejected when they are computed."""
    return channels.map_blocks(_check_block, dtype=channels.dtype, meta=channels._meta)


def _check_block(pixels: Any, block_info: Any = None) -> Any:
    about = block_info[0]
    starts = [start for start, _ in about["array-location"]]
    return check_pixels(pixels, starts[1:], lambda _: tuple(about["chunk-location"][1:]))


@dataclass(frozen=True)
class BlockTask:
    """How one block of a new array is computed from windows of other arrays."""

    index: tuple[int, ...]
    function: Callable[..., Any]
    windows: list[tuple[Any, Window]]


def from_windows(tasks: list[BlockTask], chunks: Chunks, dtype: Any, token: Any) -> dask.array.Array:
    """Return a Dask array whose blocks are function(*windows).

    Parts of blocks are cut out by tasks of their own, so that a cluster transfers only those.
    """
    import dask.array as da
    from dask.base import tokenize
    from dask.highlevelgraph import HighLevelGraph

    sources: Any = {array.name: array for task in tasks for array, _ in task.windows}
    name = "aniso-" + tokenize(list(sources), chunks, token)
    graph: dict[Any, Any] = {}
    for task in tasks:
        windows = [_window(graph, name, array, window) for array, window in task.windows]
        graph[(name, *task.index)] = (task.function, *windows)
    layers = HighLevelGraph.from_collections(name, graph, list(sources.values()))
    return da.Array(layers, name, chunks, dtype=dtype)


def _window(graph: dict[Any, Any], name: str, array: Any, window: Window) -> Any:
    keys, places = [], []
    for block, there, here in pieces(array.chunks, window):
        key = (array.name, *block)
        lengths = [axis[k] for axis, k in zip(array.chunks, block, strict=True)]
        if any(part != slice(0, length) for part, length in zip(there, lengths, strict=True)):
            cut = (f"{name}-cut", len(graph))
            graph[cut] = (operator.getitem, key, there)
            key = cut
        keys.append(key)
        places.append(here)
    return (_join, keys, places)


def _join(parts: Sequence[Array], places: Sequence[Window]) -> Array:
    """Return parts of neighbouring blocks as one array."""
    if len(parts) == 1:
        return parts[0]
    shape = tuple(max(place[axis].stop for place in places) for axis in range(len(places[0])))
    whole = np.empty(shape, parts[0].dtype)
    for part, place in zip(parts, places, strict=True):
        whole[place] = part
    return whole


def check_pixels(
    pixels: Array,
    start: Sequence[int],
    block_of: Callable[[tuple[int, ...]], tuple[int, ...]],
    frame: tuple[int, ...] = (),
) -> Array:
    """Return the pixels (channels, …); reject NaN and infinity, and name their block and index.

    `start` is the index of the first pixel in the whole array, `block_of` returns the block of an index.
    """
    if pixels.dtype.kind == "f" and not np.isfinite(pixels).all():
        bad = ~np.isfinite(pixels)
        channel, *place = (int(i) for i in np.argwhere(bad)[0])
        where = tuple(i + first for i, first in zip(place, start, strict=True))
        of_frame = f", frame {', '.join(map(str, frame))}" if frame else ""
        raise ValueError(
            f"block {block_of(where)} holds NaN or infinite values, the first at index {where} of the whole "
            f"array ({pixels[(channel, *place)]}, channel {channel}{of_frame}): one would spread over all "
            "blocks. Fill them in first, with inpaint and a mask of them."
        )
    return pixels
