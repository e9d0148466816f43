"""The size of blocks, and the stages in a pass.

A large block has a small halo for its size, but must fit in the memory of a worker, and workers should not
wait for the last one. Many stages in a pass need less reading and writing, but a wide halo. The combination
with the smallest estimated time is chosen (see :mod:`aniso.blocks.costs`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

from aniso.blocks.costs import STORE_BYTES_PER_SECOND, STORE_TASK_SECONDS
from aniso.blocks.groups import Halo, StageGroup, cut_stages, halo_limits
from aniso.blocks.stages import Stage

Block = tuple[int, ...]

# Dask stops a worker at 80 % of its memory and ends it at 95 %.
USABLE = 0.8
# Memory of a worker without data, with the libraries it loads.
WORKER_BYTES = 300e6


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
    def passes(self) -> dict[int, list[StageGroup]]:
        """The passes for each limit of the width of halos."""
        ndim = len(self.shape)
        return {
            limit: groups_or_copy(self.stages, limit, self.channels, ndim)
            for limit in halo_limits(self.stages)
        }

    def needed_bytes(self, block: Block, limit: int) -> float:
        """Return the memory that a worker needs for a block with its halo, in the pass that needs most."""
        most = max(self._numbers(block, group) for group in self.passes[limit])
        return (WORKER_BYTES + most * self.itemsize) / USABLE

    def _numbers(self, block: Block, group: StageGroup) -> float:
        """Return how many numbers are in memory at the same time: to read, to compute or to write."""
        size = partial(self.with_halo, block)
        # An image of another type is in memory twice; chunks are joined to an image.
        read = sum(group.before[name] * size(halo) for name, halo in group.reads.items())
        read += max(group.before[name] * size(halo) for name, halo in group.reads.items())
        written = [group.after[name] * size((0,) * len(block)) for name in group.writes]
        return max(read, group.numbers(size), sum(written) + 2 * max(written))

    def seconds(self, block: Block, limit: int, workers: int) -> float:
        """Estimate the time of all passes; in each of them, workers wait for the last block."""
        blocks = self.frames * math.prod(self._blocks(block))
        each = sum(self._seconds(block, group) for group in self.passes[limit])
        return math.ceil(blocks / workers) * each

    def _blocks(self, block: Block) -> list[int]:
        return [-(-n // b) for n, b in zip(self.shape, block, strict=True)]

    def _seconds(self, block: Block, group: StageGroup) -> float:
        """Estimate the time of a worker for a block: to compute the stages, and to read and write it."""

        def size(halo: Halo) -> float:
            """Return the mean over all blocks: those at the border of the array have less of a halo."""
            sides = zip(self.shape, self._blocks(block), halo, self.margins, strict=True)
            return math.prod(
                min(n + 2 * m + 2 * far * (count - 1), count * (n + 2 * m)) / count
                for n, count, far, m in sides
            )

        moved = sum(group.before[name] * size(halo) for name, halo in group.reads.items())
        moved += sum(group.after[name] * size((0,) * len(block)) for name in group.writes)
        compute = group.seconds(size, self.itemsize)
        return compute + moved * self.itemsize / self.bytes_per_second + STORE_TASK_SECONDS

    def with_halo(self, block: Block, halo: Sequence[int]) -> int:
        """Return the number of pixels of a block with its halo, or with the margin where that is wider."""
        sides = zip(block, halo, self.margins, self.shape, strict=True)
        return math.prod(min(n + far + max(far, m), length + 2 * m) for n, far, m, length in sides)


def groups_or_copy(stages: Sequence[Stage], limit: int, channels: int, ndim: int) -> list[StageGroup]:
    """Return the stages of each pass; without any, one pass that copies."""
    image = {"image": channels}
    copy = StageGroup((), {"image": (0,) * ndim}, ("image",), image, image)
    return cut_stages(stages, limit, channels) or [copy]


def block_and_limit(workload: Workload, memory: float, workers: int) -> tuple[Block, int]:
    """Return the block, in multiples of the chunks, and the limit for the width of halos."""
    candidates = [
        (workload.seconds(block, limit, workers), block, limit)
        for limit in workload.passes
        for block in _blocks(workload, limit, memory)
    ]
    if not candidates:
        least = min(workload.needed_bytes(workload.chunks, limit) for limit in workload.passes)
        narrowest = workload.passes[min(workload.passes)]
        halo = map(max, zip(*(group.halo for group in narrowest), strict=True))
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
    while workload.needed_bytes(tuple(block), limit) <= memory:
        yield _even(workload, block)
        growing = [axis for axis, length in enumerate(workload.shape) if block[axis] < length]
        if not growing:
            return
        axis = min(growing, key=lambda k: block[k])
        block[axis] += workload.chunks[axis]


def _even(workload: Workload, block: Sequence[int]) -> Block:
    """Return a block that is not larger and gives the same number of blocks, of more equal sizes."""
    chunks = [-(-n // chunk) for n, chunk in zip(workload.shape, workload.chunks, strict=True)]
    sides = [b // chunk for b, chunk in zip(block, workload.chunks, strict=True)]
    even = [-(-n // -(-n // side)) for n, side in zip(chunks, sides, strict=True)]
    return tuple(side * chunk for side, chunk in zip(even, workload.chunks, strict=True))
