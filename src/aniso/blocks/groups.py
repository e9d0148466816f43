"""Which stages are computed with one halo.

A wider halo needs fewer exchanges between blocks and more redundant work. The combination with the smallest
estimated time is chosen (see :mod:`aniso.blocks.costs`). Results do not depend on it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from aniso.blocks.costs import NETWORK_BYTES_PER_SECOND, TASK_SECONDS
from aniso.blocks.halo import Region
from aniso.blocks.stages import Channels, Stage, channels_after, total_reach, total_seconds


@dataclass(frozen=True)
class StageGroup:
    """Stages that are computed with one halo."""

    stages: tuple[Stage, ...]
    halo: tuple[int, ...]

    def cut(self, region: Region) -> tuple[Stage, ...]:
        """Return the stages for one block."""
        return tuple(stage.cut(region) for stage in self.stages)


def group_stages(
    stages: Sequence[Stage], channels: Channels, block: Sequence[int], itemsize: int
) -> list[StageGroup]:
    """Return the stages in groups, for blocks of this size (without channels)."""
    return min(
        (cut_stages(stages, limit) for limit in halo_limits(stages)),
        key=lambda groups: estimate_seconds(groups, channels, block, itemsize),
    )


def halo_limits(stages: Sequence[Stage]) -> list[int]:
    """Return limits for the width of halos: powers of 2, up to one halo for all stages."""
    widest = max(total_reach(stages), default=0)
    return [2**k for k in range(widest.bit_length() + 1)]


def cut_stages(stages: Sequence[Stage], limit: int) -> list[StageGroup]:
    """Return the stages in groups whose halo is at most `limit` wide, or that of a single stage."""
    groups: list[tuple[list[Stage], tuple[int, ...]]] = []
    for stage in stages:
        reach = stage.reach
        if groups:
            group, halo = groups[-1]
            wider = tuple(map(sum, zip(halo, reach, strict=True)))
            if max(wider) <= limit:
                group.append(stage)
                groups[-1] = group, wider
                continue
        groups.append(([stage], reach))
    return [StageGroup(tuple(group), halo) for group, halo in groups]


def estimate_seconds(
    groups: Sequence[StageGroup], channels: Channels, block: Sequence[int], itemsize: int
) -> float:
    """Estimate the time of all groups for one block, with the transfer of its halos."""
    core, total = math.prod(block), 0.0
    for group in groups:
        wide = math.prod(n + 2 * h for n, h in zip(block, group.halo, strict=True))
        size = sum(channels.values()) * itemsize
        total += wide * total_seconds(group.stages, channels, itemsize)
        total += (wide - core) * size / NETWORK_BYTES_PER_SECOND + TASK_SECONDS
        channels = channels_after(group.stages, channels)
    return total
