"""Passes over all blocks, each from one store into the next."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

import aniso
from aniso import arrays
from aniso.blocks import costs, exchanges, halo, worker
from aniso.blocks.halo import Region
from aniso.blocks.stores import budget, cluster, journal
from aniso.blocks.stores.zarr_array import ZarrArray, chunks_at, create_like, read_only
from aniso.engines import Problem
from aniso.io.picture import as_dtype
from aniso.schemes import Cycle

# Least side of the chunks between passes, in pixels.
_SIDE = 48

Report = Callable[[float, float], object]
#: Indices of images along the axes that are neither spatial nor channels.
Frames = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class StoreRun:
    """An evolution of all images of a Zarr array, cut into blocks and passes."""

    source: ZarrArray
    problem: Problem
    cycles: tuple[Cycle, ...]
    block: tuple[int, ...]
    together: int

    @classmethod
    def plan(
        cls, source: ZarrArray, problem: Problem, cycles: Sequence[Cycle], memory: float, workers: int
    ) -> StoreRun:
        """Choose blocks and passes for the number of workers and the memory of each."""
        workload = estimate_workload(source, problem, cycles)
        return cls(source, problem, tuple(cycles), *budget.blocks_and_cycles(workload, memory, workers))

    @cached_property
    def passes(self) -> list[exchanges.Exchange]:
        """The cycles of each pass with their halo; without cycles, one pass that copies."""
        far = _reach(self.problem, self.cycles)
        return list(exchanges.group_cycles(self.cycles, far, self.together)) or [exchanges.Exchange((), far)]

    def describe(self) -> dict[str, Any]:
        """Return what must be the same for an interrupted run to continue."""
        return {
            "input": journal.fingerprint(self.source),
            "channel axis": self.source.channel_axis,
            "frame axes": list(self.source.frame_axes),
            "model": repr(self.problem.model),
            "stencil": repr(self.problem.stencil),
            "spacing": list(self.problem.spacings),
            "steps": [[list(step) for step in cycle.steps] for cycle in self.cycles],
            "engine": self.problem.engine,
            "version": aniso.__version__,
        }

    def regions(self, exchange: exchanges.Exchange) -> Iterator[tuple[Frames, Region]]:
        """Return all blocks of all frames; frames that share a chunk form one task."""
        shape = self.source.spatial_shape
        chunks = tuple(_lengths(n, size) for n, size in zip(shape, self.block, strict=True))
        spans = [
            [range(start, min(start + length, n)) for start in range(0, n, length)]
            for n, length in ((self.source.shape[k], self.source.chunks[k]) for k in self.source.frame_axes)
        ]
        frames = [tuple(itertools.product(*span)) for span in itertools.product(*spans)]
        return itertools.product(frames, list(halo.regions(chunks, exchange.halo)))


def carry_out(run: StoreRun, target: Path, client: Any, report: Report) -> StoreRun:
    """Carry out all passes, move the result to its place, and return the run as it was cut.

    An interrupted run continues with the blocks that it began with.
    """
    target = target.absolute()
    folder = journal.folder_of(target)
    journal.check_place(target)
    with journal.lock_folder(folder):
        journal.check_place(target)  # another run may just have finished
        run = _all_passes(run, folder, client, report)
        with journal.explain_write_errors(target):
            journal.finish(journal.store_of(folder, len(run.passes) - 1), target)
        journal.clear(folder)  # within the lock, so that it is not the folder of a later run
    journal.clear(folder)  # some systems keep a locked file
    return run


def _all_passes(run: StoreRun, folder: Path, client: Any, report: Report) -> StoreRun:
    """Carry out what is not done yet, and return the run as it was cut."""
    with journal.explain_write_errors(folder):
        cut = journal.begin_run(folder, run.describe(), {"block": list(run.block), "together": run.together})
    run = replace(run, block=tuple(cut["block"]), together=cut["together"])
    total = len(run.passes) * sum(1 for _ in run.regions(run.passes[0]))
    finished = 0
    for number, exchange in enumerate(run.passes):
        complete = journal.complete_blocks(folder, number)
        waiting = [
            (frames, region)
            for frames, region in run.regions(exchange)
            if _name(frames, region) not in complete
        ]
        finished += len(complete)
        report(finished, total)
        if not waiting:
            continue  # its store may be gone, since a later pass has begun
        source = run.source.location if number == 0 else _array_in(journal.store_of(folder, number - 1), run)
        with journal.explain_write_errors(folder):
            target_array = _prepare_store(run, folder, number, fresh=not complete)
        with journal.open_list(folder, number) as file:
            for name in _submit_blocks(client, run, exchange, waiting, source, target_array):
                journal.record(file, name)
                finished += 1
                report(finished, total)
        if number > 0:
            journal.forget(folder, number - 1)
    return run


def estimate_workload(source: ZarrArray, problem: Problem, cycles: Sequence[Cycle]) -> budget.Workload:
    """Return what determines how a run is cut into blocks and passes."""
    model, spacings = problem.model, problem.spacings
    cycle = cycles[0] if cycles else Cycle(0.0, ())
    itemsize = arrays.result_type(source.dtype).itemsize
    return budget.Workload(
        source.spatial_shape,
        source.spatial_chunks,
        math.prod(source.shape[axis] for axis in source.frame_axes),
        source.channels * itemsize,
        _reach(problem, cycles),
        max(len(cycles), 1),
        costs.cycle_seconds(cycle, model, source.channels, spacings, itemsize),
        costs.stores_tensors(cycle, model, source.channels),
    )


def filter_block(
    problem: Problem,
    cycles: Sequence[Cycle],
    frames: Frames,
    region: Region,
    origin: ZarrArray,
    source: str,
    target: str,
) -> str:
    """Read a block with its halo on a worker, advance it, and write it, one frame after another."""
    import zarr

    read = read_only(source)
    write: Any = zarr.open_array(target, mode="r+")
    # Chunks that are read at the same time are in memory at the same time.
    with zarr.config.set({"async.concurrency": 2}):
        for frame in frames:
            pixels = _read(read, origin, frame, region.needed)
            if source == origin.location:  # what passes have written is finite
                pixels = _check_pixels(pixels, origin, frame, region.needed)
            if cycles:
                pixels = worker.advance(pixels, worker.cut_problem(problem, region), cycles, region)
            values = arrays.channels_back(pixels, _place_of_channels(origin))
            with journal.explain_write_errors(target):
                write[index_of(origin, frame, region.core)] = as_dtype(values, write.dtype)
    # The name is listed as complete, which must hold after a power failure too.
    indices = (index_of(origin, frame, region.core) for frame in frames)
    keys = {key for index in indices for key, _ in chunks_at(write, index)}
    with journal.explain_write_errors(target):
        journal.persist(Path(target), keys)
    return _name(frames, region)


def read_window(array: Any, origin: ZarrArray, frame: tuple[int, ...], window: halo.Window) -> Any:
    """Return pixels (channels, …) of the source; reject NaN and infinity, and name their chunk."""
    return _check_pixels(_read(array, origin, frame, window), origin, frame, window)


def _read(array: Any, origin: ZarrArray, frame: tuple[int, ...], window: halo.Window) -> Any:
    index = index_of(origin, frame, window)
    try:
        return channels_of(np.asarray(array[index]), origin)
    except Exception as error:  # whatever a codec raises
        raise OSError(
            f"{_find_damaged(array, index)} of {array.store_path} cannot be read: {error}. The store appears "
            "to be corrupt; copy it again."
        ) from error


def _find_damaged(array: Any, index: tuple[Any, ...]) -> str:
    """Name the first chunk that cannot be read by itself; without one, all chunks of the index."""
    for key, parts in chunks_at(array, index):
        try:
            array[parts]
        except Exception:
            return f"chunk {key}"
    return "a chunk among " + ", ".join(key for key, _ in chunks_at(array, index))


def _check_pixels(pixels: Any, origin: ZarrArray, frame: tuple[int, ...], window: halo.Window) -> Any:
    block_of = partial(_chunk_of, origin.spatial_chunks)
    return worker.check_pixels(pixels, [part.start for part in window], block_of, frame)


def _submit_blocks(
    client: Any,
    run: StoreRun,
    exchange: exchanges.Exchange,
    waiting: Sequence[tuple[Frames, Region]],
    source: str,
    target: str,
) -> Iterator[str]:
    """Yield the names of blocks as they complete; only enough are submitted to keep the workers busy."""
    from dask.distributed import as_completed

    def submit(frames: Frames, region: Region) -> Any:
        return client.submit(
            filter_block, run.problem, exchange.cycles, frames, region, run.source, source, target, pure=False
        )

    remaining = iter(waiting)
    ahead = 3 * cluster.capacity(client)[1]
    under_way = as_completed(submit(*one) for one in itertools.islice(remaining, ahead))
    for future in under_way:
        yield _result(future)
        for one in itertools.islice(remaining, 1):
            under_way.add(submit(*one))


def _result(future: Any) -> str:
    """Return the result of a worker, or raise an error if workers or the scheduler are gone."""
    from concurrent.futures import CancelledError

    from dask.distributed import KilledWorker

    try:
        name: str = future.result()
    except KilledWorker as error:
        raise ConnectionError(
            "workers died several times at the same block, most likely because of too little memory. Give "
            "them more, and repeat the call to continue."
        ) from error
    except CancelledError as error:
        raise ConnectionError(
            "the Dask scheduler is gone. Complete blocks are kept; repeat the call to continue."
        ) from error
    return name


def _reach(problem: Problem, cycles: Sequence[Cycle]) -> tuple[int, ...]:
    spacings = problem.spacings
    return halo.reach(cycles[0], problem.model, spacings) if cycles else (0,) * len(spacings)


def _prepare_store(run: StoreRun, folder: Path, number: int, fresh: bool) -> str:
    """Return the location of the array into which a pass writes; that of the last pass is like the source."""
    import zarr

    store = journal.store_of(folder, number)
    last = number == len(run.passes) - 1
    if fresh:
        journal.forget(folder, number)
        if last:
            location = create_like(run.source, store)
            journal.persist_all(store)
            return location
        sizes = map(_part_of_block, run.block, run.source.spatial_chunks)
        sides = dict(zip(run.source.spatial_axes, sizes, strict=True))
        chunks = tuple(
            1 if axis in run.source.frame_axes else min(sides.get(axis, n), n)
            for axis, n in enumerate(run.source.shape)
        )
        dtype = arrays.result_type(run.source.dtype)
        zarr.create_array(str(store), shape=run.source.shape, chunks=chunks, dtype=dtype, compressors=None)
        journal.persist_all(store)
    return _array_in(store, run) if last else str(store)


def _part_of_block(block: int, chunk: int) -> int:
    """Return a side of chunks between passes, smaller than the block, since neighbours read parts of it."""
    count = block // chunk
    return next((n * chunk for n in range(1, count) if count % n == 0 and n * chunk >= _SIDE), block)


def _array_in(store: Path, run: StoreRun) -> str:
    """Return where the array is in a store: in a group if the source is in one and this is the last pass."""
    last = store == journal.store_of(store.parent, len(run.passes) - 1)
    return str(store / run.source.key) if last and run.source.key else str(store)


def _name(frames: Frames, region: Region) -> str:
    return ".".join(map(str, (*frames[0], *region.index)))


def index_of(origin: ZarrArray, frame: tuple[int, ...], window: halo.Window) -> tuple[Any, ...]:
    """Return the index of a window of a frame, all channels."""
    index: list[Any] = [slice(None)] * len(origin.shape)
    for axis, number in zip(origin.frame_axes, frame, strict=True):
        index[axis] = number
    for axis, part in zip(origin.spatial_axes, window, strict=True):
        index[axis] = part
    return tuple(index)


def channels_of(pixels: Any, origin: ZarrArray) -> Any:
    """Return pixels of one frame as (channels, …)."""
    return arrays.channels_first(pixels, _place_of_channels(origin))


def _place_of_channels(origin: ZarrArray) -> int | None:
    """Return the axis of the channels in one frame."""
    if origin.channel_axis is None:
        return None
    return origin.channel_axis - sum(axis < origin.channel_axis for axis in origin.frame_axes)


def _chunk_of(chunks: tuple[int, ...], place: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(i // n for i, n in zip(place, chunks, strict=True))


def _lengths(length: int, size: int) -> tuple[int, ...]:
    """Return the lengths of blocks of this size; the last one may be shorter."""
    whole, rest = divmod(length, size)
    return (size,) * whole + ((rest,) if rest else ())
