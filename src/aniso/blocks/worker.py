"""The work on one block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from aniso.arrays import Array
from aniso.blocks.halo import Region, Window
from aniso.engines import Problem
from aniso.stencil import FreeStencil


def cut_problem(problem: Problem, region: Region) -> Problem:
    """Return the problem of one block: tensors, stencils and masks that cover the array are cut."""
    if (
        problem.model.entries is None
        and problem.fixed is None
        and not isinstance(problem.stencil, FreeStencil)
    ):
        return problem
    problem = replace(problem, model=problem.model.part(region.cells))
    if isinstance(problem.stencil, FreeStencil):
        problem = replace(problem, stencil=FreeStencil(problem.stencil.values[region.cells]))
    if problem.fixed is not None:
        problem = replace(problem, fixed=problem.fixed[region.needed])
    return problem


def join(parts: Sequence[Array], places: Sequence[Window]) -> Array:
    """Return parts of neighbouring blocks as one array."""
    if len(parts) == 1:
        return parts[0]
    shape = tuple(max(place[axis].stop for place in places) for axis in range(len(places[0])))
    whole = np.empty(shape, parts[0].dtype)
    for part, place in zip(parts, places, strict=True):
        whole[place] = part
    return whole


def check_pixels(
    pixels: Array,
    start: Sequence[int],
    block_of: Callable[[tuple[int, ...]], tuple[int, ...]],
    frame: tuple[int, ...] = (),
) -> Array:
    """Return the pixels (channels, …); reject NaN and infinity, and name their block and index.

    `start` is the index of the first pixel in the whole array, `block_of` returns the block of an index.
    """
    if pixels.dtype.kind == "f" and not np.isfinite(pixels).all():
        bad = ~np.isfinite(pixels)
        channel, *place = (int(i) for i in np.argwhere(bad)[0])
        where = tuple(i + first for i, first in zip(place, start, strict=True))
        of_frame = f", frame {', '.join(map(str, frame))}" if frame else ""
        raise ValueError(
            f"block {block_of(where)} holds NaN or infinite values, the first at index {where} of the whole "
            f"array ({pixels[(channel, *place)]}, channel {channel}{of_frame}): one would spread over all "
            "blocks. Fill them in first, with inpaint and a mask of them."
        )
    return pixels
