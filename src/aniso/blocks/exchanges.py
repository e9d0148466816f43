"""How many cycles to do between two exchanges of halos.

A wider halo spares exchanges and costs work that is done twice. That number of cycles is taken for which the
estimated time per cycle is least (see :mod:`aniso.blocks.costs`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from aniso.blocks.costs import NETWORK_BYTES_PER_SECOND, TASK_SECONDS, with_halo
from aniso.schemes import Cycle

# More cycles at once would make halos wider than blocks for little gain.
_MOST = 64


@dataclass(frozen=True)
class Exchange:
    """Cycles that are carried out with one halo."""

    cycles: tuple[Cycle, ...]
    halo: tuple[int, ...]


def seconds(
    cycles: int, cycle_seconds: float, reach: Sequence[int], block: Sequence[int], size: int
) -> float:
    """What an exchange of so many cycles takes for a block whose pixels have `size` bytes."""
    wide, core = with_halo(block, reach, cycles), math.prod(block)
    return cycles * wide * cycle_seconds + (wide - core) * size / NETWORK_BYTES_PER_SECOND + TASK_SECONDS


def cycles_per_exchange(cycle_seconds: float, reach: Sequence[int], block: Sequence[int], size: int) -> int:
    """The number of cycles for which the time per cycle is least."""
    return min(range(1, _MOST + 1), key=lambda n: seconds(n, cycle_seconds, reach, block, size) / n)


def exchanges(cycles: Iterable[Cycle], reach: Sequence[int], together: int) -> Iterator[Exchange]:
    """The cycles in groups; all have the same reach."""
    remaining = iter(cycles)
    while group := tuple(itertools.islice(remaining, together)):
        yield Exchange(group, tuple(len(group) * r for r in reach))
