"""Which stages are computed with one exchange of halos, and how.

Each stage of a group is computed on the block and the part of the halo that later stages need, so that the
window gets narrower from stage to stage. Diffusions that start from the same image side by side, as in a
mixture, need no wider halo than the widest of them. A wider halo needs fewer exchanges between blocks and
more redundant work. The combination with the smallest estimated time is chosen (see
:mod:`aniso.blocks.costs`). Results do not depend on it.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from aniso.arrays import Array
from aniso.blocks.costs import NETWORK_BYTES_PER_SECOND, TASK_SECONDS
from aniso.blocks.halo import Region, Window, within
from aniso.blocks.stages import Channels, Stage, State

#: Pixels around a block, along each axis.
Halo = tuple[int, ...]
# Slabs of a block, at most: the last one is not written while something is computed.
_SLABS = 8

#: From the width of a halo to the number of pixels of a block with it.
Size = Callable[[Halo], float]


@dataclass(frozen=True)
class Step:
    """A stage of a group, the halo with which it is computed, and those of the images before and after it."""

    stage: Stage
    channels: Channels  # of the images that the stage reads
    halo: Halo
    before: dict[str, Halo]
    after: dict[str, Halo]

    def run(self, state: State, region: Region, fixed: Array | None) -> None:
        """Change a state whose images have the halos `before` to one with the halos `after`."""
        part = region.narrow(self.halo)
        changed = self.stage.flow(self.channels).makes.keys()
        own: State = {}
        for name in self.channels:
            leaves = name in changed or name not in self.after
            image = state.pop(name) if leaves else state[name]
            own[name] = _narrow(image, region, self.before[name], self.halo)
            del image  # its memory is free as soon as the stage gives it up
        if fixed is not None:
            own["fixed"] = fixed[within(region.needed, part.needed)]
        self.stage.run(own, part, lambda: None)
        for name in changed & set(self.after):
            state[name] = _narrow(own.pop(name), region, self.halo, self.after[name])
        for name in state.keys() & self.before.keys() - changed:
            state[name] = _narrow(state[name], region, self.before[name], self.after[name])

    def numbers(self, counts: Channels, size: Size) -> float:
        """Return how many numbers are in memory at the same time."""
        made = self.stage.channels(self.channels)
        held = sum(counts[name] * size(halo) for name, halo in self.before.items())
        held += sum(
            count * size(self.halo) for name, count in self.channels.items() if self.before[name] != self.halo
        )
        held += sum(count * size(self.halo) for name, count in made.items() if name not in self.channels)
        return held + self.stage.working(self.channels, len(self.halo)) * size(self.halo)


@dataclass(frozen=True)
class StageGroup:
    """Stages that are computed with one exchange of halos.

    `reads` are the halos of the images that they need, `writes` are the images that they make or change and
    that are needed later, and `before` and `after` the channels of all images that are needed from there on.
    """

    steps: tuple[Step, ...]
    reads: dict[str, Halo]
    writes: tuple[str, ...]
    before: Channels
    after: Channels

    @property
    def halo(self) -> Halo:
        """The widest halo."""
        return _widest(self.reads.values())

    def cut(self, region: Region) -> StageGroup:
        """Return the group for one block."""
        steps = (replace(step, stage=step.stage.cut(region.narrow(step.halo))) for step in self.steps)
        return replace(self, steps=tuple(steps))

    def run(self, state: State, region: Region, fixed: Array | None = None) -> State:
        """Return the images that the group writes, for the block alone.

        The group is cut for the block. The images of the state have the halos of `reads`; the state is
        emptied. `fixed` covers the whole region.
        """
        for step in self.steps:
            step.run(state, region, fixed)
        return {name: state.pop(name) for name in self.writes}

    def run_in_slabs(
        self, state: State, region: Region, slabs: Sequence[Region], fixed: Array | None = None
    ) -> Iterator[tuple[Window, State]]:
        """Run the group, but the last step slab by slab; yield the window and the images of each slab.

        So the first slabs can be written while others are computed.
        """
        if not self.steps:
            yield region.core, self.run(state, region, fixed)
            return
        *steps, last = self.steps
        for step in steps:
            step.run(state, region, fixed)
        # Before its first stages, an image may be on another grid, or without a margin.
        if not all(_covers(state[name], region.narrow(halo)) for name, halo in last.before.items()):
            slabs = [region]
        if len(slabs) == 1:
            last.run(state, region, fixed)
            yield region.core, {name: state.pop(name) for name in self.writes}
            return
        for slab in slabs:
            # Stages may modify all but the image, and slabs share their halos.
            own = {
                name: (np.ascontiguousarray if name == "image" else np.array)(
                    state[name][(slice(None), *within(region.narrow(halo).needed, slab.narrow(halo).needed))]
                )
                for name, halo in last.before.items()
            }
            needed = within(region.narrow(last.halo).needed, slab.narrow(last.halo).needed)
            stage = last.stage.cut(replace(slab, needed=needed))
            replace(last, stage=stage).run(own, slab, fixed)
            yield slab.core, {name: own.pop(name) for name in self.writes}
        state.clear()

    def slab_length(self, length: int, side: int) -> int:
        """Return how long slabs of a block of this length are: multiples of a side.

        What the last step computes twice, at the borders of slabs, is at most a twentieth.
        """
        reach = self.steps[-1].halo[0] if self.steps else 0
        count = min(_SLABS, 1 + length // max(40 * reach, 1))
        return -(-length // (side * count)) * side

    def run_stacked(self, pixels: Array, fixed: Array | None = None, *, region: Region) -> Array:
        """Run the group on images `before`, stacked along the first axis, and return those `after`.

        The given ones have the widest halo.
        """
        whole, start = {}, 0
        for name, count in self.before.items():
            whole[name] = pixels[start : start + count]
            start += count
        state = {
            # Stages may modify all but the image.
            name: (np.ascontiguousarray if name == "image" else np.array)(
                _narrow(whole[name], region, self.halo, halo)
            )
            for name, halo in self.reads.items()
        }
        made = self.run(state, region, fixed)
        kept = (slice(None), *region.inner)
        return np.concatenate([made[name] if name in made else whole[name][kept] for name in self.after])

    def seconds(self, size: Size, itemsize: int) -> float:
        """Estimate the time to compute a block."""
        return sum(step.stage.seconds(step.channels, itemsize) * size(step.halo) for step in self.steps)

    def numbers(self, size: Size) -> float:
        """Return how many numbers are in memory at the same time while a block is computed."""
        counts = self.before
        most = 0.0
        for step in self.steps:
            most = max(most, step.numbers(counts, size))
            counts = counts | step.stage.channels(step.channels)
        return most


def cut_stages(stages: Sequence[Stage], limit: int, channels: int = 1) -> list[StageGroup]:
    """Return the stages in groups whose halo is at most `limit` wide, or that of their first stage.

    `channels` are those of the image with which the stages begin.
    """
    useful = _Sequence.of(stages, channels)
    groups: list[StageGroup] = []
    first, end = 0, len(useful.stages)
    while first < end:
        # More stages never need a narrower halo: double their number, then search in between.
        count, most = 1, max(limit, useful.width(first, first + 1))
        while first + 2 * count <= end and useful.width(first, first + 2 * count) <= most:
            count *= 2
        longer = range(first + count + 1, min(first + 2 * count, end) + 1)
        count += bisect.bisect_right(longer, most, key=partial(useful.width, first))
        groups.append(useful.group(first, first + count))
        first += count
    return groups


@dataclass(frozen=True)
class _Sequence:
    """Stages whose results are needed, and the images before each of them and after the last one."""

    stages: tuple[Stage, ...]
    known: tuple[Channels, ...]
    needed: tuple[Channels, ...]  # those among them that are read later

    @classmethod
    def of(cls, stages: Sequence[Stage], channels: int) -> _Sequence:
        """Return the stages without those whose results nobody reads."""
        flows, known = [], [{"image": channels}]
        for stage in stages:
            flows.append(stage.flow(known[-1]))
            known.append(stage.channels(known[-1]))
        names = [{"image"}]
        for flow in reversed(flows):
            changed = flow.makes.keys()
            names.append((names[-1] - changed) | flow.reads if changed & names[-1] else names[-1])
        names.reverse()
        useful = [number for number, flow in enumerate(flows) if flow.makes.keys() & names[number + 1]]
        chosen = [*useful, len(stages)]
        needed = [{name: known[k][name] for name in known[k] if name in names[k]} for k in chosen]
        return cls(tuple(stages[k] for k in useful), tuple(known[k] for k in chosen), tuple(needed))

    def group(self, first: int, last: int) -> StageGroup:
        """Return some of the stages as a group.

        From the last stage to the first: what is needed after the group, without a halo, determines how wide
        each stage is computed, and what it needs.
        """
        span = list(zip(self.stages[first:last], self.known[first:last], strict=True))
        after = self.needed[last]
        changed_at_all = set().union(*(stage.flow(channels).makes for stage, channels in span))
        writes = tuple(name for name in after if name in changed_at_all)
        halos: dict[str, Halo] = dict.fromkeys(writes, (0,) * len(span[0][0].reach))
        steps: list[Step] = []
        for stage, channels in reversed(span):
            flow = stage.flow(channels)
            wide = _widest(halos[name] for name in halos if name in flow.makes)
            halo = tuple(map(sum, zip(wide, stage.reach, strict=True)))
            earlier = {name: width for name, width in halos.items() if name not in flow.makes}
            own = {name: count for name, count in channels.items() if name in flow.reads}
            for name in own:
                earlier[name] = _widest([halo, earlier.get(name, halo)])
            steps.append(Step(stage, own, halo, earlier, halos))
            halos = earlier
        return StageGroup(tuple(reversed(steps)), halos, writes, self.needed[first], after)

    def width(self, first: int, last: int) -> int:
        """Return the width of the halo of such a group along the axis where it is widest."""
        return max(self.group(first, last).halo)


def group_stages(
    stages: Sequence[Stage], channels: int, block: Sequence[int], itemsize: int
) -> list[StageGroup]:
    """Return the stages in groups, for blocks of this size (without channels)."""
    return min(
        (cut_stages(stages, limit, channels) for limit in halo_limits(stages)),
        key=lambda groups: estimate_seconds(groups, block, itemsize),
    )


def halo_limits(stages: Sequence[Stage]) -> list[int]:
    """Return limits for the width of halos: powers of √2, up to one halo for all stages."""
    everything = cut_stages(stages, sum(max(stage.reach) for stage in stages))
    widest = max((max(group.halo) for group in everything), default=0)
    limits = sorted({round(2 ** (k / 2)) for k in range(2 * widest.bit_length() + 1)})
    return [limit for limit in limits if limit < widest] + [max(widest, 1)]


def estimate_seconds(groups: Sequence[StageGroup], block: Sequence[int], itemsize: int) -> float:
    """Estimate the time of all groups for one block, with the transfer of its halos."""

    def size(halo: Halo) -> float:
        return math.prod(n + 2 * h for n, h in zip(block, halo, strict=True))

    total = 0.0
    for group in groups:
        moved = (size(group.halo) - math.prod(block)) * sum(group.before.values()) * itemsize
        total += group.seconds(size, itemsize) + moved / NETWORK_BYTES_PER_SECOND + TASK_SECONDS
    return total


def _widest(halos: Iterable[Halo]) -> Halo:
    return tuple(map(max, zip(*halos, strict=True)))


def _covers(image: Array, region: Region) -> bool:
    """Whether an image (channels, …) has the shape of the window."""
    return image.shape[1:] == tuple(part.stop - part.start for part in region.needed)


def _narrow(image: Array, region: Region, halo: Halo, narrower: Halo) -> Array:
    """Return an image of a block with a halo as one with another halo, which is not wider."""
    if halo == narrower:
        return image
    inside = within(region.narrow(halo).needed, region.narrow(narrower).needed)
    return np.ascontiguousarray(image[(slice(None), *inside)])
