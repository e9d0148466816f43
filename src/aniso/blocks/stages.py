"""Local operations on images, one after another: the same in memory, for Dask arrays and for stores.

A stage changes a state: named images (channels, …) on one grid. What it computes at a pixel depends on the
state within its reach only, so that a block with a halo of that width gives the same bits as the whole array.
"""

from __future__ import annotations

import contextlib
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from aniso.blocks.costs import cycle_seconds, stores_tensors
from aniso.blocks.halo import Region, Window, reach, without_margins
from aniso.evolving import EvolvingImage
from aniso.memory import return_freed_memory
from aniso.schemes import Cycle
from aniso.settings import Prepared
from aniso.stencil import FreeStencil

#: Images by name, as contiguous arrays (channels, …). The one called "image" is never modified in place; a
#: stage may modify others that it changes. A mask called "fixed" (without channels) marks pixels that keep
#: their values.
State = dict[str, Any]
#: Number of channels of each image of a state.
Channels = dict[str, int]

# Entries of a tensor, by the number of axes; signals are images of one row.
_TENSOR_ENTRIES = {1: 3, 2: 3, 3: 6}


@dataclass(frozen=True)
class Flow:
    """The images that a stage reads, those that it makes or changes, and those that are gone after it.

    All others are the same after it.
    """

    reads: AbstractSet[str]
    makes: Channels
    drops: AbstractSet[str] = frozenset()


class Stage(ABC):
    """A local operation. Stages are frozen, and their representation says all that they do."""

    #: Rough time per pixel and channel, in seconds on one thread.
    cost = 3e-9
    #: Number of axes, for stages that work pixel by pixel.
    ndim: int

    @property
    def reach(self) -> tuple[int, ...]:
        """The distance in pixels, along each axis, within which it needs the state."""
        return (0,) * self.ndim

    @abstractmethod
    def run(self, state: State, region: Region, tick: Callable[[], object]) -> None:
        """Change the state, which covers `region.needed`; call `tick` after each cycle of a diffusion."""

    def flow(self, before: Channels) -> Flow:
        """Return which images it reads and makes, given those before; by default it changes all of them."""
        return Flow(set(before), before)

    def channels(self, before: Channels) -> Channels:
        """Return the channels of the state after this stage, given those before."""
        flow = self.flow(before)
        return {name: count for name, count in before.items() if name not in flow.drops} | flow.makes

    def parts(self) -> Iterable[Stage]:
        """Return stages that do the same one after another, with smaller reaches.

        They may leave images that no later stage reads.
        """
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
        del evolving, evolution
        if len(region.needed) == 3:
            return_freed_memory()  # in pieces into which the tensors of another diffusion may not fit

    def flow(self, before: Channels) -> Flow:
        """Diffuse one image; with looks, all of them may change."""
        made = {self.target: before[self.source]}
        if not self.looks:
            return Flow({self.source}, made)
        after = before | made
        for _, look in self.looks:
            after = look.channels(after)
        if not self.keep:
            del after[self.target]
        return Flow(set(before), after, before.keys() - after.keys())

    def parts(self) -> Iterator[Stage]:
        """Yield the cycles one by one, and the stages that look at the image after each of them."""
        for number, cycle in enumerate(self.cycles, 1):
            source = self.source if number == 1 else self.target
            yield replace(self, source=source, cycles=(cycle,), looks=(), keep=True)
            yield from (look for when, look in self.looks if when == number)

    def cut(self, region: Region) -> Diffuse:
        """Return the diffusion of one block: tensors, stencils and masks that cover the array are cut."""
        problem = self.prepared.problem
        if problem.model.entries is not None:
            problem = replace(problem, model=problem.model.part(region.cells))
        if isinstance(problem.stencil, FreeStencil):
            problem = replace(problem, stencil=FreeStencil(problem.stencil.values[region.cells]))
        if problem.fixed is not None:
            problem = replace(problem, fixed=problem.fixed[region.needed])
        looks = tuple((when, look.cut(region)) for when, look in self.looks)
        return replace(self, prepared=replace(self.prepared, problem=problem), looks=looks)

    def working(self, channels: Channels, ndim: int) -> int:
        """Return the numbers of the image and its successor, of tensors, and of images before."""
        problem, count = self.prepared.problem, channels[self.source]
        tensors = [cycle for cycle in self.cycles if stores_tensors(cycle, problem.model, ndim)]
        # Extrapolation in such long cycles needs the image before and its successor.
        before = any(weight != 1 for cycle in tensors for weight, _ in cycle.steps)
        during = channels | {self.target: count}
        looks = max((look.working(during, ndim) for _, look in self.looks), default=0)
        return count * (4 if before else 2) + (_TENSOR_ENTRIES[ndim] if tensors else 0) + looks

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

    def run(self, state: State, region: Region, tick: Callable[[], object]) -> None:
        """Leave this image only."""
        taken = state[self.name]
        state.clear()
        state["image"] = taken

    def flow(self, before: Channels) -> Flow:
        """Leave this image only."""
        return Flow({self.name}, {"image": before[self.name]}, set(before))


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

        given = weakref.ref(image) if isinstance(image, np.ndarray) else lambda: None
        state: State = {"image": np.ascontiguousarray(image) if isinstance(image, np.ndarray) else image}
        del image  # it may have been converted for this call only, and is freed when a stage has replaced it
        for stage in self.stages:
            stage.run(state, region, tick)
        result = state["image"][(..., *self.crop)]
        image = given()
        if image is not None and np.may_share_memory(result, image):
            return result.copy()
        return result


def whole_region(grid: tuple[int, ...]) -> Region:
    """Return a grid as one block."""
    everything = tuple(slice(0, n) for n in grid)
    return Region((0,) * len(grid), everything, everything)
