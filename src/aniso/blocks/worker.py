"""What a worker does with one block."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from aniso import arrays, engines
from aniso.blocks.halo import Region, Window
from aniso.schemes import Cycle
from aniso.stencil import FreeStencil

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Work:
    """All that workers have to know besides the pixels: small, and the same for all blocks."""

    problem: engines.Problem
    engine: str

    def of(self, region: Region) -> Work:
        """The same for one block: of tensors and stencils that are given per cell, its part."""
        problem = replace(self.problem, model=self.problem.model.part(region.cells))
        if isinstance(problem.stencil, FreeStencil):
            problem = replace(problem, stencil=FreeStencil(problem.stencil.values[region.cells]))
        if problem.fixed is not None:
            problem = replace(problem, fixed=problem.fixed[region.needed])
        return replace(self, problem=problem)


def joined(parts: Sequence[Array], places: Sequence[Window]) -> Array:
    """Parts of neighbouring blocks as one array."""
    if len(parts) == 1:
        return parts[0]
    shape = tuple(max(place[axis].stop for place in places) for axis in range(len(places[0])))
    whole = np.empty(shape, parts[0].dtype)
    for part, place in zip(parts, places, strict=True):
        whole[place] = part
    return whole


def advanced(pixels: Array, work: Work, cycles: Sequence[Cycle], region: Region) -> Array:
    """The block after these cycles, from its pixels and those of its halo, (channels, …).

    These must be finite: :func:`checked` looks at them when they are read, and results are finite again.
    """
    layout = arrays.ArrayLayout(pixels, 0, work.engine, finite=True)
    start = work.problem.precise(layout.start)
    with contextlib.closing(engines.load(work.engine)(start, work.problem)) as evolution:
        for cycle in cycles:
            evolution.advance(cycle)
        image: Array = arrays.checked_result(layout, evolution.image)
    return np.ascontiguousarray(image[(slice(None), *region.inner)])


def advanced_with_mask(
    pixels: Array, fixed: Array, work: Work, cycles: Sequence[Cycle], region: Region
) -> Array:
    """The same where `fixed` is True for pixels that keep their values."""
    return advanced(pixels, replace(work, problem=replace(work.problem, fixed=fixed)), cycles, region)


def checked(
    pixels: Array,
    start: Sequence[int],
    block_of: Callable[[tuple[int, ...]], tuple[int, ...]],
    frame: tuple[int, ...] = (),
) -> Array:
    """Pixels (channels, …) themselves, if none is NaN or infinite; else say which block and where.

    `start` is the place of the first pixel in the whole array, `block_of` gives the block of a place.
    """
    if pixels.dtype.kind == "f" and not np.isfinite(pixels).all():
        bad = ~np.isfinite(pixels)
        channel, *place = (int(i) for i in np.argwhere(bad)[0])
        where = tuple(i + first for i, first in zip(place, start, strict=True))
        of_frame = f", frame {', '.join(map(str, frame))}" if frame else ""
        raise ValueError(
            f"block {block_of(where)} holds NaN or infinite values, the first at index {where} of the whole "
            f"array ({pixels[(channel, *place)]}, channel {channel}{of_frame}): one would spread over all "
            "blocks. Replace them first, e.g. with dask.array.nan_to_num."
        )
    return pixels
