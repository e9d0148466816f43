"""Pass after pass over all blocks, from one store into the next."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from aniso import layouts
from aniso.engines.tiled import blocks, exchanges, halo
from aniso.engines.tiled.blocks import Work
from aniso.engines.tiled.halo import Region
from aniso.picture import stored
from aniso.schemes import Cycle
from aniso.stores import budget, progress
from aniso.stores.opened import Opened, array_at, create_like, part_of

Tell = Callable[[float, float], object]


@dataclass(frozen=True)
class Run:
    """An evolution of all that a store holds."""

    source: Opened
    work: Work
    cycles: tuple[Cycle, ...]
    block: tuple[int, ...]
    together: int

    @classmethod
    def of(cls, source: Opened, work: Work, cycles: Sequence[Cycle], memory: float) -> Run:
        """With blocks and passes that suit the memory of a worker."""
        model, spacings = work.problem.model, work.problem.spacings
        length = len(cycles[0].steps)
        job = budget.Job(
            source.spatial_shape,
            source.spatial_chunks,
            source.channels,
            layouts.result_type(source.dtype).itemsize,
            halo.reach(cycles[0], model, spacings),
            length,
            len(cycles),
            stored_tensors=length > 1 or source.channels > 1 or getattr(model, "integration", 1.0) > 0,
        )
        return cls(source, work, tuple(cycles), *budget.blocks_and_cycles(job, memory))

    @cached_property
    def passes(self) -> list[exchanges.Exchange]:
        """The cycles of each pass, with the halo they need."""
        far = halo.reach(self.cycles[0], self.work.problem.model, self.work.problem.spacings)
        return list(exchanges.exchanges(self.cycles, far, self.together))

    def described(self) -> dict[str, Any]:
        """What must be the same for an interrupted run to go on."""
        return {
            "input": progress.fingerprint(self.source),
            "model": repr(self.work.problem.model),
            "stencil": repr(self.work.problem.stencil),
            "spacing": list(self.work.problem.spacings),
            "steps": [[list(step) for step in cycle.steps] for cycle in self.cycles],
            "engine": self.work.engine,
            "blocks": list(self.block),
            "passes": self.together,
        }

    def regions(self, exchange: exchanges.Exchange) -> Iterator[tuple[tuple[int, ...], Region]]:
        """All blocks of all frames."""
        shape = self.source.spatial_shape
        chunks = tuple(_lengths(n, size) for n, size in zip(shape, self.block, strict=True))
        frames = itertools.product(*(range(self.source.shape[axis]) for axis in self.source.frame_axes))
        return itertools.product(frames, list(halo.regions(chunks, exchange.halo)))


def run(job: Run, target: Path, client: Any, tell: Tell) -> None:
    """Carry out all passes, and put the result in its place; an interrupted run goes on."""
    folder = progress.folder_of(target)
    progress.begin(folder, job.described())
    total = len(job.passes) * sum(1 for _ in job.regions(job.passes[0]))
    finished = 0
    for number, exchange in enumerate(job.passes):
        complete = progress.done(folder, number)
        waiting = [
            (frame, region) for frame, region in job.regions(exchange) if _name(frame, region) not in complete
        ]
        finished += len(complete)
        tell(finished, total)
        if not waiting:
            continue  # its store may be gone, since a later one has been begun
        source = job.source.location if number == 0 else _array_in(progress.store_of(folder, number - 1), job)
        target_array = _prepared(job, folder, number, anew=not complete)
        with progress.recording(folder, number) as file:
            for name in _carried_out(client, job, exchange, waiting, source, target_array):
                progress.record(file, name)
                finished += 1
                tell(finished, total)
        if number > 0:
            progress.forget(folder, number - 1)
    progress.finish(folder, progress.store_of(folder, len(job.passes) - 1), target)


def filtered_block(
    work: Work,
    cycles: Sequence[Cycle],
    frame: tuple[int, ...],
    region: Region,
    block: tuple[int, ...],
    layout: Opened,
    source: str,
    target: str,
) -> str:
    """On a worker: read a block with its halo, advance it, and write it; its name."""
    import zarr

    read = array_at(source)
    pixels = channels_of(part_of(read, index_of(layout, frame, region.needed)), layout)
    blocks.checked(pixels, [part.start for part in region.needed], partial(_block_of, block))
    result = blocks.advanced(pixels, work.of(region), cycles, region)
    write: Any = zarr.open_array(target, mode="r+")
    values = layouts.channels_back(result, _place_of_channels(layout))
    write[index_of(layout, frame, region.core)] = stored(values, write.dtype)
    return _name(frame, region)


def _carried_out(
    client: Any,
    job: Run,
    exchange: exchanges.Exchange,
    waiting: Sequence[tuple[tuple[int, ...], Region]],
    source: str,
    target: str,
) -> Iterator[str]:
    """Names of the blocks as they are done; only as many are under way as keep the workers busy."""
    from dask.distributed import as_completed

    def submitted(frame: tuple[int, ...], region: Region) -> Any:
        return client.submit(
            filtered_block, job.work, exchange.cycles, frame, region, job.block, job.source, source, target,
            pure=False,
        )  # fmt: skip

    remaining = iter(waiting)
    ahead = 3 * max(1, len(client.scheduler_info(n_workers=-1)["workers"]))
    under_way = as_completed(submitted(*one) for one in itertools.islice(remaining, ahead))
    for future in under_way:
        yield future.result()
        for one in itertools.islice(remaining, 1):
            under_way.add(submitted(*one))


def _prepared(job: Run, folder: Path, number: int, anew: bool) -> str:
    """The array into which a pass writes: the last one has the type of the source."""
    import zarr

    store = progress.store_of(folder, number)
    last = number == len(job.passes) - 1
    if anew:
        progress.forget(folder, number)
        if last:
            return create_like(job.source, store, job.source.dtype)
        sizes = dict(zip(job.source.spatial_axes, job.block, strict=True))
        chunks = tuple(
            1 if axis in job.source.frame_axes else min(sizes.get(axis, n), n)
            for axis, n in enumerate(job.source.shape)
        )
        dtype = layouts.result_type(job.source.dtype)
        zarr.create_array(str(store), shape=job.source.shape, chunks=chunks, dtype=dtype, compressors=None)
    return _array_in(store, job) if last else str(store)


def _array_in(store: Path, job: Run) -> str:
    """Where the array is in a store: in a group if the source is one and this is the last pass."""
    last = store == progress.store_of(store.parent, len(job.passes) - 1)
    return str(store / job.source.key) if last and job.source.key else str(store)


def _name(frame: tuple[int, ...], region: Region) -> str:
    return ".".join(map(str, (*frame, *region.index)))


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
    return layouts.channels_first(pixels, _place_of_channels(layout))


def _place_of_channels(layout: Opened) -> int | None:
    """The axis of the channels, once the frames are chosen."""
    if layout.channel_axis is None:
        return None
    return layout.channel_axis - sum(axis < layout.channel_axis for axis in layout.frame_axes)


def _block_of(block: tuple[int, ...], place: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(i // n for i, n in zip(place, block, strict=True))


def _lengths(length: int, size: int) -> tuple[int, ...]:
    """Blocks of this size, the last one as long as there is left."""
    whole, rest = divmod(length, size)
    return (size,) * whole + ((rest,) if rest else ())
