"""How large blocks may be, and how many cycles to do in a pass.

A large block has a small halo for its size, but must fit the memory of a worker; many cycles in a pass spare
reading and writing, but need a wide halo. Of all numbers of cycles, each with the largest block that fits,
that one is taken whose cost per pixel and cycle is least (see :mod:`aniso.engines.tiled.exchanges`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from aniso.engines.tiled.exchanges import TASK_SECONDS, with_halo, work_seconds

# What a worker needs by itself, with the libraries it loads.
WORKER_BYTES = 350e6
# Numbers in memory per pixel of the block and its halo: what is read, the image, its successor, what is
# written and its compressed form; with stored tensors also these and the image before, in 2-D and 3-D.
_ARRAYS, _WITH_TENSORS = 5, {2: 10, 3: 13}
# What one worker reads and writes.
_DISK_BYTES_PER_SECOND = 2e8
_MOST_CYCLES = 64


@dataclass(frozen=True)
class Job:
    """What decides about blocks and passes."""

    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    channels: int
    itemsize: int
    reach: tuple[int, ...]
    steps: int
    cycles: int
    stored_tensors: bool

    def needed_bytes(self, block: Sequence[int], cycles: int) -> float:
        """Memory of a worker for a block with the halo for so many cycles."""
        inside = [min(n, length) for n, length in zip(block, self.shape, strict=True)]
        arrays = _WITH_TENSORS[len(self.shape)] if self.stored_tensors else _ARRAYS
        halo = [
            min(n + 2 * cycles * r, length)
            for n, r, length in zip(inside, self.reach, self.shape, strict=True)
        ]
        return WORKER_BYTES + math.prod(halo) * self.channels * self.itemsize * arrays

    def cost(self, block: Sequence[int], cycles: int) -> float:
        """Seconds per pixel and cycle."""
        core, wide = math.prod(block), with_halo(block, self.reach, cycles)
        moved = (wide + core) * self.channels * self.itemsize / _DISK_BYTES_PER_SECOND
        work = work_seconds(cycles, self.steps, wide * self.channels, len(block))
        return (work + moved + TASK_SECONDS) / (core * cycles)


def blocks_and_cycles(job: Job, memory: float) -> tuple[tuple[int, ...], int]:
    """The block, in multiples of the chunks, and the number of cycles per pass."""
    candidates = []
    for cycles in range(1, min(job.cycles, _MOST_CYCLES) + 1):
        block = _largest_block(job, cycles, memory)
        if block is not None:
            candidates.append((job.cost(block, cycles), block, cycles))
    if not candidates:
        least = job.needed_bytes(job.chunks, 1)
        raise MemoryError(
            f"a single chunk of {' × '.join(map(str, job.chunks))} pixels with its halo of "
            f"{' × '.join(map(str, job.reach))} needs about {least / 1e6:.0f} MB, and a worker has "
            f"{memory / 1e6:.0f} MB. Give workers more memory, or store the array in smaller chunks."
        )
    _, block, cycles = min(candidates)
    return block, cycles


def _largest_block(job: Job, cycles: int, memory: float) -> tuple[int, ...] | None:
    """As near to a cube as multiples of the chunks allow, or None if one chunk is too large already."""
    block = list(job.chunks)
    if job.needed_bytes(block, cycles) > memory:
        return None
    growing = set(range(len(block)))
    while growing:
        axis = min(growing, key=lambda k: block[k])
        wider = [n + job.chunks[axis] * (k == axis) for k, n in enumerate(block)]
        if block[axis] >= job.shape[axis] or job.needed_bytes(wider, cycles) > memory:
            growing.discard(axis)
        else:
            block = wider
    return tuple(block)
