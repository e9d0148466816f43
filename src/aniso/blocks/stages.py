"""Local operations on images, one after another: the same in memory, for Dask arrays and for stores.

A stage changes a state: named images (channels, …) on one grid. What it computes at a pixel depends on the
state within its reach only, so that a block with a halo of that width gives the same bits as the whole array.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from aniso.arrays import Array
from aniso.blocks import worker
from aniso.blocks.costs import cycle_seconds, stores_tensors
from aniso.blocks.halo import Region, Window, reach, without_margins
from aniso.evolving import EvolvingImage
from aniso.schemes import Cycle
from aniso.settings import Prepared

#: Images by name, as contiguous arrays (channels, …). The one called "image" is never modified in place; a
#: stage may modify the others. A mask called "fixed" (without channels) marks pixels that keep their values.
State = dict[str, Any]
#: Number of channels of each image of a state.
Channels = dict[str, int]

# Numbers per pixel and channel of stored tensors, and of the image before, by the number of axes.
_TENSOR_NUMBERS = {1: 5, 2: 5, 3: 8}


class Stage(ABC):
    """A local operation. Stages are frozen, and their representation says all that they do."""

    #: Rough time per pixel and channel, in seconds on one thread.
    cost = 3e-9

    @property
    @abstractmethod
    def reach(self) -> tuple[int, ...]:
        """The distance in pixels, along each axis, within which it needs the state."""

    @abstractmethod
    def run(self, state: State, region: Region, tick: Callable[[], object]) -> None:
        """Change the state, which covers `region.needed`; call `tick` after each cycle of a diffusion."""

    @abstractmethod
    def channels(self, before: Channels) -> Channels:
        """Return the channels of the state after this stage, given those before."""

    def parts(self) -> Iterable[Stage]:
        """Return stages that do the same one after another, with smaller reaches."""
        return (self,)

    def cut(self, region: Region) -> Stage:
        """Return the stage for one block, without data for the rest of the array."""
        return self

    def working(self, channels: Channels, ndim: int) -> int:
        """Return how many numbers per pixel it needs in memory besides the state before and after it."""
        return 2 * max(channels.values())

    def seconds(self, channels: Channels, itemsize: int) -> float:
        """Estimate the time per pixel."""
        return self.cost * sum(channels.values()) * itemsize / 4

    @property
    def ticks(self) -> int:
        """How often `run` calls `tick`."""
        return 0


@dataclass(frozen=True)
class Diffuse(Stage):
    """Diffuse an image of the state. Other stages may look at it between cycles.

    `looks` are pairs of a number of cycles and a stage that runs after them. Without `keep`, the result is
    only looked at.
    """

    source: str
    target: str
    prepared: Prepared
    cycles: tuple[Cycle, ...]
    looks: tuple[tuple[int, Stage], ...] = ()
    keep: bool = True

    @property
    def reach(self) -> tuple[int, ...]:
        """The sum over all cycles."""
        problem = self.prepared.problem
        far = [reach(cycle, problem.model, problem.spacings) for cycle in self.cycles]
        far += [look.reach for _, look in self.looks]
        return tuple(map(sum, zip(*far, strict=True)))

    @property
    def ticks(self) -> int:
        """One for each cycle."""
        return len(self.cycles)

    def run(self, state: State, region: Region, tick: Callable[[], object]) -> None:
        """Run all cycles."""
        prepared = self.prepared
        if "fixed" in state:
            prepared = prepared.with_fixed(state["fixed"] != 0)
        evolving = EvolvingImage.of_channels(state[self.source], prepared)
        if self.source == self.target:
            del state[self.source]  # free its memory
        with contextlib.closing(evolving.evolution) as evolution:
            for number, cycle in enumerate(self.cycles, 1):
                evolution.advance(cycle)
                tick()
                looks = [look for when, look in self.looks if when == number]
                if looks:
                    state[self.target] = evolving.pixels()  # not a copy: looks must not modify it
                for look in looks:
                    look.run(state, region, tick)
                state.pop(self.target, None)
        if self.keep:
            state[self.target] = evolving.image()

    def channels(self, before: Channels) -> Channels:
        """Return the channels after the diffusion."""
        during = before | {self.target: before[self.source]}
        for _, look in self.looks:
            during = look.channels(during)
        if not self.keep:
            del during[self.target]
        return during

    def parts(self) -> Iterator[Diffuse]:
        """Yield the cycles one by one."""
        for number, cycle in enumerate(self.cycles, 1):
            yield replace(
                self,
                source=self.source if number == 1 else self.target,
                cycles=(cycle,),
                looks=tuple((1, look) for when, look in self.looks if when == number),
                keep=self.keep or number < len(self.cycles),
            )

    def cut(self, region: Region) -> Diffuse:
        """Return the diffusion of one block: tensors, stencils and masks that cover the array are cut."""
        looks = tuple((when, look.cut(region)) for when, look in self.looks)
        problem = worker.cut_problem(self.prepared.problem, region)
        return replace(self, prepared=replace(self.prepared, problem=problem), looks=looks)

    def working(self, channels: Channels, ndim: int) -> int:
        """Return the numbers of the image and its successor, and of tensors and the image before."""
        problem, count = self.prepared.problem, channels[self.source]
        tensors = any(stores_tensors(cycle, problem.model, count) for cycle in self.cycles)
        during = channels | {self.target: count}
        looks = max((look.working(during, ndim) for _, look in self.looks), default=0)
        return count * (2 + (_TENSOR_NUMBERS[ndim] if tensors else 0)) + looks

    def seconds(self, channels: Channels, itemsize: int) -> float:
        """Estimate the time per pixel."""
        count, problem = channels[self.source], self.prepared.problem
        during = channels | {self.target: count}
        return sum(
            cycle_seconds(cycle, problem.model, count, problem.spacings, itemsize) for cycle in self.cycles
        ) + sum(look.seconds(during, itemsize) for _, look in self.looks)


@dataclass(frozen=True)
class Take(Stage):
    """Return one of the images as the result."""

    name: str
    ndim: int

    @property
    def reach(self) -> tuple[int, ...]:
        """Pixel by pixel."""
        return (0,) * self.ndim

    def run(self, state: State, region: Region, tick: Callable[[], object]) -> None:
        """Leave this image only."""
        taken = state[self.name]
        state.clear()
        state["image"] = taken

    def channels(self, before: Channels) -> Channels:
        """Return the channels of the image."""
        return {"image": before[self.name]}


@dataclass(frozen=True)
class Pipeline:
    """Stages from "image" to "image", for arrays of one shape (without channels).

    All stages but the first one work on a grid that may be wider than the array, by `margins` on each side,
    or finer, by `scale`. The first one takes the part of the array in `source_window` and returns that of the
    grid. On a finer grid, blocks start and end between pixels of the array, and reaches are multiples of
    the scale.
    """

    shape: tuple[int, ...]
    stages: tuple[Stage, ...]
    margins: tuple[int, ...] = ()
    scale: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.margins:
            object.__setattr__(self, "margins", (0,) * len(self.shape))
        if not self.scale:
            object.__setattr__(self, "scale", (1,) * len(self.shape))

    @classmethod
    def diffuse(cls, shape: tuple[int, ...], prepared: Prepared, cycles: Iterable[Cycle]) -> Pipeline:
        """Return a single diffusion; without cycles nothing is done."""
        known = tuple(cycles)
        return cls(shape, (Diffuse("image", "image", prepared, known),) if known else ())

    @property
    def grid(self) -> tuple[int, ...]:
        """The shape of the result with its margins."""
        return tuple(n + 2 * m for n, m in zip(self.result_shape, self.margins, strict=True))

    @property
    def result_shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        return tuple(n * s for n, s in zip(self.shape, self.scale, strict=True))

    @property
    def crop(self) -> Window:
        """The window of the grid that is the result."""
        return tuple(slice(m, m + n) for m, n in zip(self.margins, self.result_shape, strict=True))

    def source_window(self, window: Window) -> Window:
        """Return the part of the array that lies in a window of the grid."""
        return without_margins(window, self.margins, self.shape, self.scale)

    def parts(self) -> list[Stage]:
        """Return the stages in pieces with small reaches."""
        return [part for stage in self.stages for part in stage.parts()]

    def run(self, image: Any, report: Callable[[float], object] = lambda done: None) -> Any:
        """Return the result for a whole array (channels, …) or tensor (images, channels, …).

        Parts of 1 are reported.
        """
        region = whole_region(self.grid)
        total, done = sum(stage.ticks for stage in self.stages), 0

        def tick() -> None:
            nonlocal done
            done += 1
            report(done / total)

        state: State = {"image": np.ascontiguousarray(image) if isinstance(image, np.ndarray) else image}
        for stage in self.stages:
            stage.run(state, region, tick)
        result = state["image"][(..., *self.crop)]
        if isinstance(result, np.ndarray) and np.may_share_memory(result, image):
            return result.copy()
        return result


def whole_region(grid: tuple[int, ...]) -> Region:
    """Return a grid as one block."""
    everything = tuple(slice(0, n) for n in grid)
    return Region((0,) * len(grid), everything, everything)


def run_stages(
    stages: Sequence[Stage], pixels: Array, channels: Channels, region: Region, fixed: Array | None = None
) -> Array:
    """Run stages on a block: from a stacked state that covers its halo to that of the block alone.

    The stages are cut for the block. `channels` are those of the state before, and say how it is stacked
    along the first axis.
    """
    state = unstack(np.ascontiguousarray(pixels), channels)
    if fixed is not None:
        state["fixed"] = fixed
    for stage in stages:
        stage.run(state, region, lambda: None)
        channels = stage.channels(channels)
    inner = (slice(None), *region.inner)
    return np.concatenate([state[name][inner] for name in channels])


def unstack(pixels: Array, channels: Channels) -> State:
    """Return the images of a stacked state; all but the first one are copies."""
    state, start = {}, 0
    for name, count in channels.items():
        part = pixels[start : start + count]
        state[name] = part if name == "image" else part.copy()
        start += count
    return state


def channels_after(stages: Sequence[Stage], before: Channels) -> Channels:
    """Return the channels of the state after several stages."""
    for stage in stages:
        before = stage.channels(before)
    return before


def total_reach(stages: Sequence[Stage]) -> tuple[int, ...]:
    """Return the sum of all reaches: the width of the halo."""
    return tuple(map(sum, zip(*(stage.reach for stage in stages), strict=True)))


def total_seconds(stages: Sequence[Stage], before: Channels, itemsize: int) -> float:
    """Estimate the time of all stages per pixel."""
    total = 0.0
    for stage in stages:
        total += stage.seconds(before, itemsize)
        before = stage.channels(before)
    return total
