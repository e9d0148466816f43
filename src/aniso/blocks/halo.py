"""The reach of a cycle, and the pixels that a block needs."""

from __future__ import annotations

import bisect
import functools
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from aniso.formulas.gaussian import gaussian_radius
from aniso.models import Model
from aniso.schemes import Cycle

Window = tuple[slice, ...]
#: Lengths of the blocks along each axis.
Chunks = tuple[tuple[int, ...], ...]


def reach(cycle: Cycle, model: Model, spacings: tuple[float, ...]) -> tuple[int, ...]:
    """Return the distance in pixels, along each axis, within which a cycle needs the image for one pixel.

    Each step of the cycle needs the nearest neighbours. The tensor is frozen, so that the Gaussians of
    presmoothing and integration count once.
    """
    return tuple(len(cycle.steps) + far for far in tensor_reach(model, spacings))


def tensor_reach(model: Model, spacings: tuple[float, ...]) -> tuple[int, ...]:
    """Return how far beyond the corners of a cell, in pixels, its tensor depends on the image."""
    widths = (model.presmoothing, model.integration)
    return tuple(sum(gaussian_radius(width / h) for width in widths) for h in spacings)


@dataclass(frozen=True)
class Region:
    """A block of an array, and the window with its halo."""

    index: tuple[int, ...]
    core: Window
    needed: Window

    @property
    def inner(self) -> Window:
        """The block within the window."""
        return within(self.needed, self.core)

    def narrow(self, halo: Sequence[int]) -> Region:
        """Return the block with a halo that is not wider than this."""
        needed = tuple(
            slice(max(core.start - far, whole.start), min(core.stop + far, whole.stop))
            for core, whole, far in zip(self.core, self.needed, halo, strict=True)
        )
        return replace(self, needed=needed)

    def slabs(self, length: int, margin: int) -> Iterator[Region]:
        """Yield slabs of the block along the first axis, of this length without the margin of the grid."""
        core = self.core[0]
        stops = range(max(core.start, margin) + length, core.stop - margin, length)
        for start, stop in itertools.pairwise((core.start, *stops, core.stop)):
            yield replace(self, core=(slice(start, stop), *self.core[1:]))

    def in_array(self, margins: Sequence[int], shape: Sequence[int]) -> tuple[list[range], list[range]]:
        """Return the window in coordinates of an array without its margins, and the part inside the array."""
        pairs = zip(self.needed, margins, strict=True)
        whole = [range(part.start - m, part.stop - m) for part, m in pairs]
        inside = (range(max(one.start, 0), min(one.stop, n)) for one, n in zip(whole, shape, strict=True))
        return whole, list(inside)

    @property
    def cells(self) -> Window:
        """The cells of the window: one more along each axis."""
        return tuple(slice(needed.start, needed.stop + 1) for needed in self.needed)


def regions(chunks: Chunks, halo: Sequence[int]) -> Iterator[Region]:
    """Yield all blocks with their halos, cut at the border of the array."""
    spans = [
        [slice(stop - length, stop) for stop, length in zip(_stops(lengths), lengths, strict=True)]
        for lengths in chunks
    ]
    everything = tuple(slice(0, axis[-1].stop) for axis in spans)
    for index in itertools.product(*(range(len(axis)) for axis in spans)):
        core = tuple(axis[k] for axis, k in zip(spans, index, strict=True))
        yield Region(index, core, everything).narrow(halo)


def within(outer: Sequence[slice | range], inner: Sequence[slice | range]) -> Window:
    """Return the place of a window in another one."""
    pairs = zip(outer, inner, strict=True)
    return tuple(slice(part.start - whole.start, part.stop - whole.start) for whole, part in pairs)


def widen(lengths: tuple[int, ...], margin: int) -> tuple[int, ...]:
    """Return the lengths of blocks with a margin added to the first and the last one."""
    if len(lengths) == 1:
        return (lengths[0] + 2 * margin,)
    return (lengths[0] + margin, *lengths[1:-1], lengths[-1] + margin)


def without_margins(
    window: Window, margins: Sequence[int], shape: Sequence[int], scale: Sequence[int] = ()
) -> Window:
    """Return the part of an array of this shape that lies in a window of its grid.

    The grid is wider by margins and finer by the scale.
    """
    return tuple(
        slice(max((part.start - m) // s, 0), min(-((m - part.stop) // s), n))
        for part, m, n, s in zip(window, margins, shape, scale or (1,) * len(window), strict=True)
    )


def pieces(chunks: Chunks, window: Window) -> Iterator[tuple[tuple[int, ...], Window, Window]]:
    """Yield the blocks that make up a window, with their part there, and its place in the window."""
    along = [list(_overlaps(lengths, part)) for lengths, part in zip(chunks, window, strict=True)]
    for parts in itertools.product(*along):
        block, there, here = zip(*parts, strict=True)
        yield block, there, here


def block_of(chunks: Chunks, place: Sequence[int]) -> tuple[int, ...]:
    """Return the block of a pixel."""
    return tuple(bisect.bisect_right(_stops(lengths), i) for lengths, i in zip(chunks, place, strict=True))


def _overlaps(lengths: tuple[int, ...], part: slice) -> Iterator[tuple[int, slice, slice]]:
    stops = _stops(lengths)
    for number in range(bisect.bisect_right(stops, part.start), len(lengths)):
        first = stops[number] - lengths[number]
        if first >= part.stop:
            return
        start, stop = max(first, part.start), min(stops[number], part.stop)
        if start < stop:  # a block may be empty
            yield number, slice(start - first, stop - first), slice(start - part.start, stop - part.start)


@functools.lru_cache(maxsize=16)
def _stops(lengths: tuple[int, ...]) -> list[int]:
    return list(itertools.accumulate(lengths))
