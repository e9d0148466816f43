"""The size of blocks, and the number of cycles in a pass.

A large block has a small halo for its size, but must fit in the memory of a worker, and workers should not
wait for the last one. Many cycles in a pass need less reading and writing, but a wide halo. The combination
with the smallest estimated time is chosen (see :mod:`aniso.blocks.costs`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from aniso.blocks.costs import STORE_BYTES_PER_SECOND, STORE_TASK_SECONDS, with_halo

Block = tuple[int, ...]

# Dask stops a worker at 80 % of its memory and ends it at 95 %.
USABLE = 0.8
# Memory of a worker without data, with the libraries it loads.
WORKER_BYTES = 300e6
# Numbers in memory per pixel of the block and its halo: what is read, the image, its successor, what is
# written and its compressed form; with stored tensors also these and the image before, in 2-D and 3-D.
_ARRAYS, _WITH_TENSORS = 5, {2: 10, 3: 13}
_MOST_CYCLES = 64


@dataclass(frozen=True)
class Workload:
    """What determines blocks and passes."""

    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    frames: int
    pixel_bytes: int  # of all channels
    reach: tuple[int, ...]
    cycles: int
    cycle_seconds: float  # per pixel
    stored_tensors: bool
    bytes_per_second: float = STORE_BYTES_PER_SECOND  # that one worker reads or writes

    def needed_bytes(self, block: Block, cycles: int) -> float:
        """Return the memory that a worker needs for a block with the halo for this number of cycles."""
        arrays = _WITH_TENSORS[len(self.shape)] if self.stored_tensors else _ARRAYS
        wide = with_halo(block, self.reach, cycles, self.shape)
        return (WORKER_BYTES + wide * self.pixel_bytes * arrays) / USABLE

    def block_seconds(self, block: Block, cycles: int) -> float:
        """Estimate the time of a worker for a block: to compute the cycles, and to read and write it."""
        wide, core = with_halo(block, self.reach, cycles, self.shape), math.prod(block)
        moved = (wide + core) * self.pixel_bytes / self.bytes_per_second
        return cycles * wide * self.cycle_seconds + moved + STORE_TASK_SECONDS

    def seconds(self, block: Block, cycles: int, workers: int) -> float:
        """Estimate the time of all passes; in each of them, workers wait for the last block."""
        blocks = self.frames * math.prod(-(-n // b) for n, b in zip(self.shape, block, strict=True))
        turns = math.ceil(blocks / workers)
        passes, rest = divmod(self.cycles, cycles)
        total = passes * turns * self.block_seconds(block, cycles)
        return total + (turns * self.block_seconds(block, rest) if rest else 0.0)


def blocks_and_cycles(workload: Workload, memory: float, workers: int) -> tuple[Block, int]:
    """Return the block, in multiples of the chunks, and the number of cycles per pass."""
    candidates = [
        (workload.seconds(block, cycles, workers), block, cycles)
        for cycles in range(1, min(workload.cycles, _MOST_CYCLES) + 1)
        for block in _blocks(workload, cycles, memory)
    ]
    if not candidates:
        least = workload.needed_bytes(workload.chunks, 1)
        raise MemoryError(
            f"a single chunk of {' × '.join(map(str, workload.chunks))} pixels with its halo of "
            f"{' × '.join(map(str, workload.reach))} needs about {least / 1e6:.0f} MB, but a worker has "
            f"{memory / 1e6:.0f} MB. Give workers more memory, or store the array in smaller chunks."
        )
    _, block, cycles = min(candidates)
    return block, cycles


def _blocks(workload: Workload, cycles: int, memory: float) -> Iterator[Block]:
    """Yield blocks that fit, from one chunk on, each as close to a cube as multiples of the chunks allow."""
    block = list(workload.chunks)
    growing = set(range(len(block)))
    while growing and workload.needed_bytes(tuple(block), cycles) <= memory:
        yield _even(workload, block)
        axis = min(growing, key=lambda k: block[k])
        block[axis] += workload.chunks[axis]
        if block[axis] >= workload.shape[axis]:
            growing.discard(axis)
    if not growing and workload.needed_bytes(tuple(block), cycles) <= memory:
        yield _even(workload, block)


def _even(workload: Workload, block: Sequence[int]) -> Block:
    """Return a block that is not larger and gives the same number of blocks, of more equal sizes."""
    chunks = [-(-n // chunk) for n, chunk in zip(workload.shape, workload.chunks, strict=True)]
    sides = [b // chunk for b, chunk in zip(block, workload.chunks, strict=True)]
    even = [-(-n // -(-n // side)) for n, side in zip(chunks, sides, strict=True)]
    return tuple(side * chunk for side, chunk in zip(even, workload.chunks, strict=True))
