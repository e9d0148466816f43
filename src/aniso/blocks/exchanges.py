"""The number of cycles between two exchanges of halos.

A wider halo needs fewer exchanges and more redundant work. The number of cycles is chosen that minimises the
estimated time per cycle (see :mod:`aniso.blocks.costs`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from aniso.blocks.costs import NETWORK_BYTES_PER_SECOND, TASK_SECONDS, with_halo
from aniso.schemes import Cycle

# With more cycles, halos would be wider than blocks, for little gain.
_MOST = 64


@dataclass(frozen=True)
class Exchange:
    """Cycles that are computed with one halo."""

    cycles: tuple[Cycle, ...]
    halo: tuple[int, ...]


def exchange_seconds(
    cycles: int, cycle_seconds: float, reach: Sequence[int], block: Sequence[int], size: int
) -> float:
    """Estimate the time of an exchange of several cycles, for a block whose pixels have `size` bytes."""
    wide, core = with_halo(block, reach, cycles), math.prod(block)
    return cycles * wide * cycle_seconds + (wide - core) * size / NETWORK_BYTES_PER_SECOND + TASK_SECONDS


def cycles_per_exchange(cycle_seconds: float, reach: Sequence[int], block: Sequence[int], size: int) -> int:
    """Return the number of cycles that minimises the time per cycle."""
    return min(range(1, _MOST + 1), key=lambda n: exchange_seconds(n, cycle_seconds, reach, block, size) / n)


def group_cycles(cycles: Iterable[Cycle], reach: Sequence[int], together: int) -> Iterator[Exchange]:
    """Yield the cycles in groups; all have the same reach."""
    remaining = iter(cycles)
    while group := tuple(itertools.islice(remaining, together)):
        yield Exchange(group, tuple(len(group) * r for r in reach))
