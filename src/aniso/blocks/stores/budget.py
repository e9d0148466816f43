"""The size of blocks, and the stages in a pass.

A large block has a small halo for its size, but must fit in the memory of a worker, and workers should not
wait for the last one. Many stages in a pass need less reading and writing, but a wide halo. The combination
with the smallest estimated time is chosen (see :mod:`aniso.blocks.costs`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from aniso.blocks.costs import STORE_BYTES_PER_SECOND, STORE_TASK_SECONDS
from aniso.blocks.groups import StageGroup, cut_stages, halo_limits
from aniso.blocks.stages import Channels, Stage, channels_after, total_seconds

Block = tuple[int, ...]

# Dask stops a worker at 80 % of its memory and ends it at 95 %.
USABLE = 0.8
# Memory of a worker without data, with the libraries it loads.
WORKER_BYTES = 300e6


@dataclass(frozen=True)
class PassCost:
    """What a pass needs per pixel of a block with its halo, and how wide that is."""

    halo: tuple[int, ...]
    seconds: float
    held: int  # numbers in memory at the same time
    read: int  # numbers of the state before
    written: int

    @classmethod
    def of(cls, group: StageGroup, before: Channels, itemsize: int) -> PassCost:
        """Return the cost of stages that begin with this state."""
        # The state that was read, and copies of all but the image, which stages may modify. Then what the
        # stages work with, and the images that they add.
        read = sum(before.values())
        held, channels = 0, before
        for stage in group.stages:
            working, channels = stage.working(channels, len(group.halo)), stage.channels(channels)
            held = max(held, working + max(sum(channels.values()) - read, 0))
        written = sum(channels.values())
        held += 2 * read - before["image"]
        return cls(group.halo, total_seconds(group.stages, before, itemsize), held, read, written)


@dataclass(frozen=True)
class Workload:
    """What determines blocks and passes."""

    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    margins: tuple[int, ...]  # of the grid on which the stages work
    frames: int
    channels: int  # of the image
    itemsize: int
    stages: tuple[Stage, ...]  # with small reaches
    bytes_per_second: float = STORE_BYTES_PER_SECOND  # that one worker reads or writes

    @cached_property
    def costs(self) -> dict[int, list[PassCost]]:
        """The passes for each limit of the width of halos."""
        return {limit: self.pass_costs(limit) for limit in halo_limits(self.stages)}

    def pass_costs(self, limit: int) -> list[PassCost]:
        """Return the passes for one limit."""
        found, channels = [], {"image": self.channels}
        for group in groups_or_copy(self.stages, limit, len(self.shape)):
            found.append(PassCost.of(group, channels, self.itemsize))
            channels = channels_after(group.stages, channels)
        return found

    def needed_bytes(self, block: Block, limit: int) -> float:
        """Return the memory that a worker needs for a block with its halo, in the pass that needs most."""
        core = math.prod(block)  # is written, and compressed before
        wide = ((self.with_halo(block, each.halo), each) for each in self.costs[limit])
        needs = (pixels * each.held + 2 * core * each.written for pixels, each in wide)
        return (WORKER_BYTES + max(needs) * self.itemsize) / USABLE

    def seconds(self, block: Block, limit: int, workers: int) -> float:
        """Estimate the time of all passes; in each of them, workers wait for the last block."""
        blocks = self.frames * math.prod(-(-n // b) for n, b in zip(self.shape, block, strict=True))
        return math.ceil(blocks / workers) * sum(self._seconds(block, each) for each in self.costs[limit])

    def _seconds(self, block: Block, cost: PassCost) -> float:
        """Estimate the time of a worker for a block: to compute the stages, and to read and write it."""
        wide, core = self.with_halo(block, cost.halo), math.prod(block)
        moved = (wide * cost.read + core * cost.written) * self.itemsize / self.bytes_per_second
        return wide * cost.seconds + moved + STORE_TASK_SECONDS

    def with_halo(self, block: Block, halo: Sequence[int]) -> int:
        """Return the number of pixels of a block with its halo, or with the margin where that is wider."""
        sides = zip(block, halo, self.margins, self.shape, strict=True)
        return math.prod(min(n + far + max(far, m), length + 2 * m) for n, far, m, length in sides)


def groups_or_copy(stages: Sequence[Stage], limit: int, ndim: int) -> list[StageGroup]:
    """Return the stages of each pass; without any, one pass that copies."""
    return cut_stages(stages, limit) or [StageGroup((), (0,) * ndim)]


def block_and_limit(workload: Workload, memory: float, workers: int) -> tuple[Block, int]:
    """Return the block, in multiples of the chunks, and the limit for the width of halos."""
    candidates = [
        (workload.seconds(block, limit, workers), block, limit)
        for limit in workload.costs
        for block in _blocks(workload, limit, memory)
    ]
    if not candidates:
        least = min(workload.needed_bytes(workload.chunks, limit) for limit in workload.costs)
        halo = [max(widths) for widths in zip(*(each.halo for each in workload.costs[1]), strict=True)]
        raise MemoryError(
            f"a single chunk of {' × '.join(map(str, workload.chunks))} pixels with its halo of "
            f"{' × '.join(map(str, halo))} needs about {least / 1e6:.0f} MB, but a worker has "
            f"{memory / 1e6:.0f} MB. Give workers more memory, or store the array in smaller chunks."
        )
    _, block, limit = min(candidates)
    return block, limit


def _blocks(workload: Workload, limit: int, memory: float) -> Iterator[Block]:
    """Yield blocks that fit, from one chunk on, each as close to a cube as multiples of the chunks allow."""
    block = list(workload.chunks)
    growing = set(range(len(block)))
    while growing and workload.needed_bytes(tuple(block), limit) <= memory:
        yield _even(workload, block)
        axis = min(growing, key=lambda k: block[k])
        block[axis] += workload.chunks[axis]
        if block[axis] >= workload.shape[axis]:
            growing.discard(axis)
    if not growing and workload.needed_bytes(tuple(block), limit) <= memory:
        yield _even(workload, block)


def _even(workload: Workload, block: Sequence[int]) -> Block:
    """Return a block that is not larger and gives the same number of blocks, of more equal sizes."""
    chunks = [-(-n // chunk) for n, chunk in zip(workload.shape, workload.chunks, strict=True)]
    sides = [b // chunk for b, chunk in zip(block, workload.chunks, strict=True)]
    even = [-(-n // -(-n // side)) for n, side in zip(chunks, sides, strict=True)]
    return tuple(side * chunk for side, chunk in zip(even, workload.chunks, strict=True))
