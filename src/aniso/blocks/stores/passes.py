"""Pass after pass over all blocks, from one store into the next."""

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
from aniso.blocks.stores import budget, cluster, progress
from aniso.blocks.stores.opened import Opened, array_at, chunks_at, create_like
from aniso.blocks.worker import Work
from aniso.io.picture import stored
from aniso.schemes import Cycle

# Least side of the chunks between passes, in pixels.
_SIDE = 48

Tell = Callable[[float, float], object]
#: Indices of images along the axes that are neither of space nor of channels.
Frames = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Run:
    """An evolution of all that a store holds."""

    source: Opened
    work: Work
    cycles: tuple[Cycle, ...]
    block: tuple[int, ...]
    together: int

    @classmethod
    def of(cls, source: Opened, work: Work, cycles: Sequence[Cycle], memory: float, workers: int) -> Run:
        """With blocks and passes that suit the number of workers and the memory of each."""
        job = estimated(source, work, cycles)
        return cls(source, work, tuple(cycles), *budget.blocks_and_cycles(job, memory, workers))

    @cached_property
    def passes(self) -> list[exchanges.Exchange]:
        """The cycles of each pass, with the halo they need; without cycles, one pass that copies."""
        far = _reach(self.work, self.cycles)
        return list(exchanges.exchanges(self.cycles, far, self.together)) or [exchanges.Exchange((), far)]

    def described(self) -> dict[str, Any]:
        """What must be the same for an interrupted run to go on."""
        return {
            "input": progress.fingerprint(self.source),
            "channel axis": self.source.channel_axis,
            "frame axes": list(self.source.frame_axes),
            "model": repr(self.work.problem.model),
            "stencil": repr(self.work.problem.stencil),
            "spacing": list(self.work.problem.spacings),
            "steps": [[list(step) for step in cycle.steps] for cycle in self.cycles],
            "engine": self.work.engine,
            "version": aniso.__version__,
        }

    def regions(self, exchange: exchanges.Exchange) -> Iterator[tuple[Frames, Region]]:
        """All blocks of all frames; frames that share a chunk go together, since one writes over another."""
        shape = self.source.spatial_shape
        chunks = tuple(_lengths(n, size) for n, size in zip(shape, self.block, strict=True))
        spans = [
            [range(start, min(start + length, n)) for start in range(0, n, length)]
            for n, length in ((self.source.shape[k], self.source.chunks[k]) for k in self.source.frame_axes)
        ]
        frames = [tuple(itertools.product(*span)) for span in itertools.product(*spans)]
        return itertools.product(frames, list(halo.regions(chunks, exchange.halo)))


def run(job: Run, target: Path, client: Any, tell: Tell) -> Run:
    """Carry out all passes, and put the result in its place; the run as it was cut.

    An interrupted run goes on with the blocks it was begun with.
    """
    target = target.absolute()
    folder = progress.folder_of(target)
    progress.check_place(target)
    with progress.alone(folder):
        job = _all_passes(job, folder, client, tell)
        with progress.writing(target):
            progress.finish(progress.store_of(folder, len(job.passes) - 1), target)
    progress.clear(folder)
    return job


def _all_passes(job: Run, folder: Path, client: Any, tell: Tell) -> Run:
    """Carry out what is not done yet; the run as it was cut."""
    with progress.writing(folder):
        cut = progress.begin(folder, job.described(), {"block": list(job.block), "together": job.together})
    job = replace(job, block=tuple(cut["block"]), together=cut["together"])
    total = len(job.passes) * sum(1 for _ in job.regions(job.passes[0]))
    finished = 0
    for number, exchange in enumerate(job.passes):
        complete = progress.done(folder, number)
        waiting = [
            (frames, region)
            for frames, region in job.regions(exchange)
            if _name(frames, region) not in complete
        ]
        finished += len(complete)
        tell(finished, total)
        if not waiting:
            continue  # its store may be gone, since a later one has been begun
        source = job.source.location if number == 0 else _array_in(progress.store_of(folder, number - 1), job)
        with progress.writing(folder):
            target_array = _prepared(job, folder, number, anew=not complete)
        with progress.recording(folder, number) as file:
            for name in _carried_out(client, job, exchange, waiting, source, target_array):
                progress.record(file, name)
                finished += 1
                tell(finished, total)
        if number > 0:
            progress.forget(folder, number - 1)
    return job


def estimated(source: Opened, work: Work, cycles: Sequence[Cycle]) -> budget.Job:
    """What is known about a run before it is cut into blocks and passes."""
    model, spacings = work.problem.model, work.problem.spacings
    cycle = cycles[0] if cycles else Cycle(0.0, ())
    itemsize = arrays.result_type(source.dtype).itemsize
    return budget.Job(
        source.spatial_shape,
        source.spatial_chunks,
        math.prod(source.shape[axis] for axis in source.frame_axes),
        source.channels * itemsize,
        _reach(work, cycles),
        max(len(cycles), 1),
        costs.cycle_seconds(cycle, model, source.channels, spacings, itemsize),
        costs.stores_tensors(cycle, model, source.channels),
    )


def filtered_block(
    work: Work,
    cycles: Sequence[Cycle],
    frames: Frames,
    region: Region,
    layout: Opened,
    source: str,
    target: str,
) -> str:
    """On a worker: read a block with its halo, advance it, and write it, in one frame after another."""
    import zarr

    read = array_at(source)
    write: Any = zarr.open_array(target, mode="r+")
    # Chunks that are read at the same time are in memory at the same time.
    with zarr.config.set({"async.concurrency": 2}):
        for frame in frames:
            pixels = _read(read, layout, frame, region.needed)
            if source == layout.location:  # what passes have written is finite
                pixels = _checked(pixels, layout, frame, region.needed)
            result = worker.advanced(pixels, work.of(region), cycles, region) if cycles else pixels
            values = arrays.channels_back(result, _place_of_channels(layout))
            with progress.writing(target):
                write[index_of(layout, frame, region.core)] = stored(values, write.dtype)
    # The name is listed as complete, which must hold after a power failure too.
    indices = (index_of(layout, frame, region.core) for frame in frames)
    keys = {key for index in indices for key, _ in chunks_at(write, index)}
    with progress.writing(target):
        progress.persist(Path(target), keys)
    return _name(frames, region)


def read_window(array: Any, layout: Opened, frame: tuple[int, ...], window: halo.Window) -> Any:
    """Pixels (channels, …) of the source, if they are finite; else the chunk of the first one is named."""
    return _checked(_read(array, layout, frame, window), layout, frame, window)


def _read(array: Any, layout: Opened, frame: tuple[int, ...], window: halo.Window) -> Any:
    index = index_of(layout, frame, window)
    try:
        return channels_of(np.asarray(array[index]), layout)
    except Exception as error:  # whatever a codec raises
        raise OSError(
            f"{_damaged(array, index)} of {array.store_path} cannot be read: {error}. It is damaged or cut "
            "short; copy the store again."
        ) from error


def _damaged(array: Any, index: tuple[Any, ...]) -> str:
    """The first chunk that cannot be read by itself; without one, all that were to be read."""
    for key, parts in chunks_at(array, index):
        try:
            array[parts]
        except Exception:
            return f"chunk {key}"
    return "a chunk among " + ", ".join(key for key, _ in chunks_at(array, index))


def _checked(pixels: Any, layout: Opened, frame: tuple[int, ...], window: halo.Window) -> Any:
    block_of = partial(_chunk_of, layout.spatial_chunks)
    return worker.checked(pixels, [part.start for part in window], block_of, frame)


def _carried_out(
    client: Any,
    job: Run,
    exchange: exchanges.Exchange,
    waiting: Sequence[tuple[Frames, Region]],
    source: str,
    target: str,
) -> Iterator[str]:
    """Names of the blocks as they are done; only as many are under way as keep the workers busy."""
    from dask.distributed import as_completed

    def submitted(frames: Frames, region: Region) -> Any:
        return client.submit(
            filtered_block, job.work, exchange.cycles, frames, region, job.source, source, target, pure=False
        )

    remaining = iter(waiting)
    ahead = 3 * cluster.capacity(client)[1]
    under_way = as_completed(submitted(*one) for one in itertools.islice(remaining, ahead))
    for future in under_way:
        yield _result(future)
        for one in itertools.islice(remaining, 1):
            under_way.add(submitted(*one))


def _result(future: Any) -> str:
    """What a worker returns; if there is none any more, say so."""
    from concurrent.futures import CancelledError

    from dask.distributed import KilledWorker

    try:
        name: str = future.result()
    except KilledWorker as error:
        raise ConnectionError(
            "workers died several times at the same block, most likely for want of memory. Give them more, "
            "and repeat the call to go on."
        ) from error
    except CancelledError as error:
        raise ConnectionError(
            "the Dask scheduler is gone. What is complete is kept; repeat the call to go on."
        ) from error
    return name


def _reach(work: Work, cycles: Sequence[Cycle]) -> tuple[int, ...]:
    spacings = work.problem.spacings
    return halo.reach(cycles[0], work.problem.model, spacings) if cycles else (0,) * len(spacings)


def _prepared(job: Run, folder: Path, number: int, anew: bool) -> str:
    """The array into which a pass writes: the last one has the type of the source."""
    import zarr

    store = progress.store_of(folder, number)
    last = number == len(job.passes) - 1
    if anew:
        progress.forget(folder, number)
        if last:
            location = create_like(job.source, store)
            progress.persist_all(store)
            return location
        sizes = map(_part_of_block, job.block, job.source.spatial_chunks)
        sides = dict(zip(job.source.spatial_axes, sizes, strict=True))
        chunks = tuple(
            1 if axis in job.source.frame_axes else min(sides.get(axis, n), n)
            for axis, n in enumerate(job.source.shape)
        )
        dtype = arrays.result_type(job.source.dtype)
        zarr.create_array(str(store), shape=job.source.shape, chunks=chunks, dtype=dtype, compressors=None)
        progress.persist_all(store)
    return _array_in(store, job) if last else str(store)


def _part_of_block(block: int, chunk: int) -> int:
    """A side of chunks between passes: not the whole block, since neighbours read only parts of it."""
    count = block // chunk
    return next((n * chunk for n in range(1, count) if count % n == 0 and n * chunk >= _SIDE), block)


def _array_in(store: Path, job: Run) -> str:
    """Where the array is in a store: in a group if the source is one and this is the last pass."""
    last = store == progress.store_of(store.parent, len(job.passes) - 1)
    return str(store / job.source.key) if last and job.source.key else str(store)


def _name(frames: Frames, region: Region) -> str:
    return ".".join(map(str, (*frames[0], *region.index)))


def index_of(layout: Opened, frame: tuple[int, ...], window: halo.Window) -> tuple[Any, ...]:
    """The index of a window of a frame, all channels."""
    index: list[Any] = [slice(None)] * len(layout.shape)
    for axis, number in zip(layout.frame_axes, frame, strict=True):
        index[axis] = number
    for axis, part in zip(layout.spatial_axes, window, strict=True):
        index[axis] = part
    return tuple(index)


def channels_of(pixels: Any, layout: Opened) -> Any:
    """Pixels of one frame as (channels, …)."""
    return arrays.channels_first(pixels, _place_of_channels(layout))


def _place_of_channels(layout: Opened) -> int | None:
    """The axis of the channels, once the frames are chosen."""
    if layout.channel_axis is None:
        return None
    return layout.channel_axis - sum(axis < layout.channel_axis for axis in layout.frame_axes)


def _chunk_of(chunks: tuple[int, ...], place: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(i // n for i, n in zip(place, chunks, strict=True))


def _lengths(length: int, size: int) -> tuple[int, ...]:
    """Blocks of this size, the last one as long as there is left."""
    whole, rest = divmod(length, size)
    return (size,) * whole + ((rest,) if rest else ())
