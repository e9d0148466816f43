"""Passes over all blocks: each reads the images that it needs from stores, and writes those it changes."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

import aniso
from aniso import arrays
from aniso.blocks import halo
from aniso.blocks.groups import StageGroup
from aniso.blocks.halo import Region, Window
from aniso.blocks.stages import Pipeline
from aniso.blocks.stores import budget, cluster, journal, pyramid
from aniso.blocks.stores.ends import End, ImageEnd, StateEnd
from aniso.blocks.stores.holes import Filling
from aniso.blocks.stores.places import Lease, Place, explain_write_errors
from aniso.blocks.stores.pyramid import Level
from aniso.blocks.stores.urls import place_of
from aniso.blocks.stores.zarr_array import ZarrArray, chunks_at, concurrency, create_like, read_only, to_write

# Least side of the chunks between passes, in pixels.
_SIDE = 48

Report = Callable[[float, float], object]
#: Indices of images along the axes that are neither spatial nor channels.
Frames = tuple[tuple[int, ...], ...]
#: Where images are found or written, by name.
Ends = dict[str, End]
#: The number of a pass or of a lower resolution, and the names of its blocks as they complete.
Blocks = tuple[int, Generator[str, None, None]]


@dataclass(frozen=True)
class StoreRun:
    """A pipeline for all images of a Zarr array, cut into blocks and passes.

    `facts` are what decides the values of the result, besides the source. Halos are at most `limit` wide, or
    that of a single stage.
    """

    source: ZarrArray
    pipeline: Pipeline
    facts: dict[str, Any]
    block: tuple[int, ...]
    limit: int
    filling: Filling | None = None  # if pixels are unknown
    levels: tuple[Level, ...] = ()  # of lower resolution

    @classmethod
    def plan(
        cls,
        source: ZarrArray,
        pipeline: Pipeline,
        facts: dict[str, Any],
        memory: float,
        workers: int,
        filling: Filling | None = None,
    ) -> StoreRun:
        """Choose blocks and passes for the number of workers and the memory of each."""
        workload = estimate_workload(source, pipeline)
        return cls(source, pipeline, facts, *budget.block_and_limit(workload, memory, workers), filling)

    @cached_property
    def passes(self) -> list[StageGroup]:
        """The stages of each pass with their halo; without stages, one pass that copies."""
        return budget.groups_or_copy(self.pipeline.parts(), self.limit, self.source.channels, len(self.block))

    @property
    def result(self) -> ZarrArray:
        """The axes of the result, whose grid may be finer than that of the source."""
        return self.source.refine(self.pipeline.scale)

    def describe(self) -> dict[str, Any]:
        """Return what must be the same for an interrupted run to continue."""
        return {
            "input": journal.fingerprint(self.source),
            "channel axis": self.source.channel_axis,
            "frame axes": list(self.source.frame_axes),
            "version": aniso.__version__,
            "pyramid": [level.key for level in self.levels] or None,
            **self.facts,
        }

    def cut(self) -> dict[str, Any]:
        """Return how the run is cut, which a continued run keeps."""
        return {
            "block": list(self.block),
            "limit": self.limit,
            "passes": len(self.passes),
            "blocks": sum(1 for _ in self.regions(self.passes[0])),
            "lower": [sum(1 for _ in level.windows()) for level in self.levels],
        }

    def regions(self, group: StageGroup) -> Iterator[tuple[Frames, Region]]:
        """Return all blocks of all frames; frames that share a chunk form one task."""
        lengths = map(_lengths, self.pipeline.result_shape, self.block)
        chunks = tuple(map(halo.widen, lengths, self.pipeline.margins))
        spans = [
            [range(start, min(start + length, n)) for start in range(0, n, length)]
            for n, length in ((self.source.shape[k], self.source.chunks[k]) for k in self.source.frame_axes)
        ]
        frames = [tuple(itertools.product(*span)) for span in itertools.product(*spans)]
        return itertools.product(frames, list(halo.regions(chunks, group.halo)))

    @property
    def chunk_sides(self) -> tuple[int, ...]:
        """The sides of the chunks between passes: parts of blocks."""
        return tuple(map(_part_of_block, self.block, block_unit(self.source, self.pipeline)))

    @property
    def offset(self) -> tuple[int, ...]:
        """Where the grid begins in stores between passes, so that blocks begin at chunks there."""
        return tuple(-m % side for m, side in zip(self.pipeline.margins, self.chunk_sides, strict=True))

    def inputs(self, folder: Place, number: int) -> Ends:
        """Return where pass `number` finds the images that it reads."""
        found = {name: self._newest(folder, number, name) for name in self.passes[number].reads}
        return found if self.filling is None else {**found, "fixed": self.filling.known(folder)}

    def outputs(self, folder: Place, number: int) -> Ends:
        """Return where pass `number` writes the images that it changes."""
        return {name: self._end(folder, number, name) for name in self.passes[number].writes}

    def stores_after(self, folder: Place, number: int) -> set[Place]:
        """Return the stores that are needed after pass `number`."""
        ends = (self._newest(folder, number + 1, name) for name in self.passes[number].after)
        return {end.store for end in ends if end.store is not None}

    def _newest(self, folder: Place, number: int, name: str) -> End:
        """Return where an image is found before pass `number`: as the last pass that changed it wrote it."""
        for earlier in reversed(range(number)):
            if name in self.passes[earlier].writes:
                return self._end(folder, earlier, name)
        if self.filling is not None:
            return self.filling.start(folder)
        return ImageEnd(None, self.source.location, self.source, self.pipeline.margins, self.pipeline.scale)

    def _end(self, folder: Place, number: int, name: str) -> End:
        store = journal.store_of(folder, number, name)
        if number == len(self.passes) - 1:
            data = journal.data_of(folder, store) / self.source.key
            margins = self.pipeline.margins
            end = ImageEnd(store, store / self.source.key, self.result, margins, data=data)
            return end if self.filling is None else self.filling.result(folder, end)
        return StateEnd(store, store, self.offset)


def carry_out(run: StoreRun, target: Place | str | os.PathLike[str], client: Any, report: Report) -> StoreRun:
    """Carry out all passes, make the result visible, and return the run as it was cut.

    An interrupted run continues with the blocks that it began with.
    """
    target = place_of(target).absolute()
    folder = journal.folder_of(target)
    target.check_writable()
    with folder.lock() as lease:
        target.check_free()  # another run may just have finished
        with explain_write_errors(folder):
            cut = journal.begin_run(folder, run.describe(), run.cut())
        run = replace(run, block=tuple(cut["block"]), limit=cut["limit"])
        if run.filling is not None:
            run.filling.prepare(folder, client)
        total = cut["passes"] * cut["blocks"] + sum(cut["lower"])
        numbers = range(len(run.passes) + len(run.levels))
        done = sum(len(journal.complete_blocks(folder, number)) for number in numbers)
        report(done, total)
        parts = (run, folder, client, lease)
        for number, blocks in itertools.chain(_all_passes(*parts), _all_levels(*parts)):
            with journal.open_list(folder, number) as record, contextlib.closing(blocks):
                for name in blocks:
                    record(name)
                    done += 1
                    report(done, total)
        lease.check()
        with explain_write_errors(target):
            journal.store_of(folder, len(run.passes) - 1).publish(target)
        folder.remove()  # within the lock, so that it is not the folder of a later run
    if folder.moves:
        folder.remove()  # some systems keep a locked file
    return run


def _all_passes(run: StoreRun, folder: Place, client: Any, lease: Lease) -> Iterator[Blocks]:
    """Yield the passes that are not done yet; the blocks of each are to be consumed before the next one."""
    for number, group in enumerate(run.passes):
        complete = journal.complete_blocks(folder, number)
        waiting = [
            (frames, region) for frames, region in run.regions(group) if _name(frames, region) not in complete
        ]
        if not waiting:
            continue  # its stores may be gone, since a later pass has begun
        if not complete:
            with explain_write_errors(folder):
                _create_stores(run, folder, number)
        work = BlockWork.open(run, folder, number, lease)

        def submit(frames: Frames, region: Region, group: StageGroup = group, work: BlockWork = work) -> Any:
            return client.submit(filter_block, group.cut(region), frames, region, work, pure=False)

        yield number, _as_they_complete(client, submit, waiting)
        journal.forget_all_but(folder, run.stores_after(folder, number))


def _all_levels(run: StoreRun, folder: Place, client: Any, lease: Lease) -> Iterator[Blocks]:
    """Yield the lower resolutions, which workers write one after another."""
    store = journal.store_of(folder, len(run.passes) - 1)
    places = [store, journal.data_of(folder, store)]  # descriptions, data
    before = [place / run.source.key for place in places]
    for number, level in enumerate(run.levels, len(run.passes)):
        complete = journal.complete_blocks(folder, number)
        waiting = [(window,) for window in level.windows() if pyramid.name_of(window) not in complete]
        target = [place / level.key for place in places]
        ends = to_write(*before), to_write(*target), target[0], journal.list_of_workers(folder, number), lease

        def submit(window: Any, level: Level = level, ends: Any = ends) -> Any:
            return client.submit(pyramid.reduce_window, level, window, *ends, pure=False)

        yield number, _as_they_complete(client, submit, waiting)
        before = target


def estimate_workload(source: ZarrArray, pipeline: Pipeline) -> budget.Workload:
    """Return what determines how a run is cut into blocks and passes."""
    return budget.Workload(
        pipeline.result_shape,
        block_unit(source, pipeline),
        pipeline.margins,
        math.prod(source.shape[axis] for axis in source.frame_axes),
        source.channels,
        arrays.result_type(source.dtype).itemsize,
        tuple(pipeline.parts()),
    )


def block_unit(source: ZarrArray, pipeline: Pipeline) -> tuple[int, ...]:
    """Return of what blocks are multiples: chunks of the result, and pixels of the source."""
    return tuple(map(math.lcm, source.spatial_chunks, pipeline.scale))


@dataclass(frozen=True)
class BlockWork:
    """What all blocks of a pass have in common: where they are read and written, as opened arrays."""

    sources: dict[str, tuple[End, Any]]
    targets: dict[str, tuple[End, Any]]
    slab: int | None  # the length of parts that are written while others are computed
    margin: int  # of the grid along the first axis
    lease: Lease
    done: Place | None  # the list of complete blocks, if workers add to it

    @classmethod
    def open(cls, run: StoreRun, folder: Place, number: int, lease: Lease) -> BlockWork:
        """Open the arrays of a pass, for all workers: they do not read the descriptions again."""
        sources = {name: (end, read_only(end.location)) for name, end in run.inputs(folder, number).items()}
        targets = {name: (end, end.open_to_write()) for name, end in run.outputs(folder, number).items()}
        done = journal.list_of_workers(folder, number)
        # A disk does not need slabs: what is written there is in memory at first.
        slab = None if folder.moves else run.passes[number].slab_length(run.block[0], run.chunk_sides[0])
        return cls(sources, targets, slab, run.pipeline.margins[0], lease, done)

    @property
    def concurrency(self) -> int:
        """How many chunks are read or written at the same time."""
        return min(concurrency(array) for _, array in (*self.sources.values(), *self.targets.values()))

    def read(self, group: StageGroup, frame: tuple[int, ...], region: Region) -> dict[str, Any]:
        """Return the images of a block that a group of stages reads, each with its halo."""
        found = {}
        for name, (end, array) in self.sources.items():
            window = region.narrow(group.reads.get(name, group.halo)).needed
            pixels = end.read(array, frame, window)
            if group.steps and name != "fixed":
                pixels = np.ascontiguousarray(pixels, arrays.result_type(pixels.dtype))
            found[name] = pixels
        return found

    def write(self, frame: tuple[int, ...], window: Window, made: dict[str, Any]) -> None:
        """Write the images of a part of a block, if the run may still write."""
        self.lease.check()
        for name, (end, array) in self.targets.items():
            with explain_write_errors(end.location):
                end.write(array, frame, window, made.pop(name))

    def persist(self, frames: Frames, region: Region) -> None:
        """Force the chunks of a block to the disk, so that it can be listed as complete."""
        for end, array in self.targets.values():
            indices = (end.index(frame, region.core) for frame in frames)
            keys = {key for index in indices for key, _ in chunks_at(array, index)}
            with explain_write_errors(end.location):
                end.location.persist(keys)


def filter_block(group: StageGroup, frames: Frames, region: Region, work: BlockWork) -> str:
    """Read a block with its halo on a worker, run the stages, and write it, one frame after another."""
    import zarr

    slabs = [region] if work.slab is None else list(region.slabs(work.slab, work.margin))
    with zarr.config.set({"async.concurrency": work.concurrency}), ThreadPoolExecutor(1) as writer:
        for frame in frames:
            state = work.read(group, frame, region)
            fixed = state.pop("fixed", None)
            writing: Future[None] | None = None
            for window, made in group.run_in_slabs(state, region, slabs, fixed):
                if writing is not None:
                    writing.result()  # one slab waits in memory
                writing = writer.submit(work.write, frame, window, made)
            assert writing is not None
            writing.result()
    work.persist(frames, region)
    name = _name(frames, region)
    if work.done is not None:
        (work.done / name).write(b"")
    return name


def _as_they_complete(
    client: Any, submit: Callable[..., Any], waiting: Sequence[tuple[Any, ...]]
) -> Generator[str, None, None]:
    """Yield the names of blocks as they complete; only enough are submitted to keep the workers busy."""
    from dask.distributed import as_completed

    remaining = iter(waiting)
    ahead = 3 * cluster.capacity(client)[1]
    submitted = {submit(*one) for one in itertools.islice(remaining, ahead)}
    under_way = as_completed(submitted)
    try:
        for future in under_way:
            yield _result(future)
            submitted.discard(future)
            for one in itertools.islice(remaining, 1):
                new = submit(*one)
                submitted.add(new)
                under_way.add(new)
    finally:
        # Workers do not begin with further blocks of a run that has ended.
        for future in submitted:
            future.release()


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


def _create_stores(run: StoreRun, folder: Place, number: int) -> None:
    """Create the stores into which a pass writes; that of the last pass is like the source."""
    import zarr

    group = run.passes[number]
    frames = [run.source.shape[axis] for axis in run.source.frame_axes]
    grid = [n + first for n, first in zip(run.pipeline.grid, run.offset, strict=True)]
    for name in group.writes:
        store, count = journal.store_of(folder, number, name), group.after[name]
        store.remove()
        if number == len(run.passes) - 1:
            create_like(run.source, store, run.pipeline.scale, [level.dataset for level in run.levels])
            pyramid.create_levels(run.source, store, run.levels)
        else:
            zarr.create_array(
                store.node,
                shape=(*frames, count, *grid),
                chunks=(*(1 for _ in frames), count, *map(min, run.chunk_sides, grid)),
                dtype=arrays.result_type(run.source.dtype),
                compressors=None,
            )
        store.persist()


def _part_of_block(block: int, chunk: int) -> int:
    """Return a side of chunks between passes, smaller than the block, since neighbours read parts of it."""
    count = block // chunk
    return next((n * chunk for n in range(1, count) if count % n == 0 and n * chunk >= _SIDE), block)


def _name(frames: Frames, region: Region) -> str:
    return ".".join(map(str, (*frames[0], *region.index)))


def _lengths(length: int, size: int) -> tuple[int, ...]:
    """Return the lengths of blocks of this size; the last one may be shorter."""
    whole, rest = divmod(length, size)
    return (size,) * whole + ((rest,) if rest else ())
