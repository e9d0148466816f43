"""Which stages are computed with one halo.

A wider halo needs fewer exchanges between blocks and more redundant work. The combination with the smallest
estimated time is chosen (see :mod:`aniso.blocks.costs`). Results do not depend on it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from aniso.blocks.costs import NETWORK_BYTES_PER_SECOND, TASK_SECONDS
from aniso.blocks.stages import Channels, Stage, channels_after, total_reach, total_seconds


@dataclass(frozen=True)
class StageGroup:
    """Stages that are computed with one halo."""

    stages: tuple[Stage, ...]
    halo: tuple[int, ...]


def group_stages(
    stages: Sequence[Stage], channels: Channels, block: Sequence[int], itemsize: int
) -> list[StageGroup]:
    """Return the stages in groups, for blocks of this size (without channels)."""
    widest = max(total_reach(stages), default=0)
    limits = [2**k for k in range(widest.bit_length() + 1)]
    return min(
        (cut_stages(stages, limit) for limit in limits),
        key=lambda groups: estimate_seconds(groups, channels, block, itemsize),
    )


def cut_stages(stages: Sequence[Stage], limit: int) -> list[StageGroup]:
    """Return the stages in groups whose halo is at most `limit` wide, or that of a single stage."""
    groups: list[list[Stage]] = []
    for stage in stages:
        if groups and max(total_reach([*groups[-1], stage])) <= limit:
            groups[-1].append(stage)
        else:
            groups.append([stage])
    return [StageGroup(tuple(group), total_reach(group)) for group in groups]


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
