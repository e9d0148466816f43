"""How many cycles to do between two exchanges of halos.

A wider halo spares exchanges and costs work that is done twice. The cost of an exchange is estimated as

    time of a pixel and step × pixels of the block with its halo × steps
    + bytes of the halo over the bandwidth + a constant per task

and that number of cycles is taken whose cost per cycle is least.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from aniso.schemes import Cycle

# Of one thread: seconds per pixel and step with stored tensors, and what a new tensor costs in such steps.
STEP_SECONDS = {2: 2.5e-9, 3: 8e-9}
TENSOR_STEPS = 3.0
# Between workers on one machine or a good network; and what a task costs by itself.
BYTES_PER_SECOND = 5e8
TASK_SECONDS = 5e-3
# More cycles at once would make halos wider than blocks for little gain.
_MOST = 64


@dataclass(frozen=True)
class Exchange:
    """Cycles that are carried out with one halo."""

    cycles: tuple[Cycle, ...]
    halo: tuple[int, ...]


def work_seconds(cycles: int, steps: int, pixels: int, ndim: int) -> float:
    """What so many cycles, of so many steps each, take on an array of so many pixels."""
    return pixels * cycles * (steps + TENSOR_STEPS) * STEP_SECONDS[ndim]


def with_halo(block: Sequence[int], reach: Sequence[int], cycles: int) -> int:
    """Pixels of a block and of the halo for so many cycles."""
    return math.prod(n + 2 * cycles * r for n, r in zip(block, reach, strict=True))


def cost(
    cycles: int, steps: int, reach: Sequence[int], block: Sequence[int], channels: int, itemsize: int
) -> float:
    """Seconds for one block and one exchange of this many cycles, of so many steps each."""
    wide, core = with_halo(block, reach, cycles), math.prod(block)
    moved = channels * (wide - core) * itemsize
    work = work_seconds(cycles, steps, channels * wide, len(block))
    return work + moved / BYTES_PER_SECOND + TASK_SECONDS


def cycles_per_exchange(
    steps: int, reach: Sequence[int], block: Sequence[int], channels: int, itemsize: int
) -> int:
    """The number of cycles whose cost per cycle is least."""
    return min(range(1, _MOST + 1), key=lambda n: cost(n, steps, reach, block, channels, itemsize) / n)


def exchanges(cycles: Iterable[Cycle], reach: Sequence[int], together: int) -> Iterator[Exchange]:
    """The cycles in groups; all have the same reach."""
    remaining = iter(cycles)
    while group := tuple(itertools.islice(remaining, together)):
        yield Exchange(group, tuple(len(group) * r for r in reach))
