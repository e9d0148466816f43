"""inpaint() on Dask arrays: the same grids and cycles, their number fixed beforehand."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from aniso import checks, engines, layouts
from aniso.checks import Spacing
from aniso.edge_contrast import estimated_contrast, usual_difference
from aniso.engines.tiled import lazy
from aniso.estimates import pixel_size
from aniso.in_blocks.grids import on_finer_grid, sums_over_pairs
from aniso.in_blocks.sample import windows_of
from aniso.inpainting import COARSE_CYCLES, LEAST, SHARE, STENCIL, coarse_start, fsi_cycle
from aniso.models import EdgeContinuing
from aniso.stability import stable_step

if TYPE_CHECKING:
    import dask.array

#: How many cycles on the finest grid, if nothing is said.
CYCLES = 20
# Grids of at most so many pixels are computed in one piece.
_SMALL = 2**20


def inpaint(
    image: dask.array.Array,
    mask: Any,
    contrast: float | None,
    sigma: float | None,
    rho: float | None,
    cycles: int | None,
    spacing: Spacing | None,
    channel_axis: int | None,
    engine: str | None,
    threads: int | None,
) -> dask.array.Array:
    """The image with its unknown pixels filled in, lazily, in the chunks it has."""
    import dask.array as da

    lazy.checked(image, channel_axis)
    given = image[np.newaxis] if channel_axis is None else da.moveaxis(image, channel_axis, 0)
    channels = given.rechunk({0: -1})
    known = _known(channels, mask)
    values = da.where(known, channels, 0).astype(layouts.result_type(image.dtype))
    spacings = checks.axis_spacing(spacing, known.ndim)
    pixel = pixel_size(spacings)
    if contrast is None:
        contrast = _sampled_contrast(values, known, spacings, pixel)
    model = EdgeContinuing(
        contrast, 0.7 * pixel if sigma is None else sigma, 0.8 * pixel if rho is None else rho, "charbonnier"
    )
    limit = stable_step(model, STENCIL, spacings, len(spacings))
    problem = engines.Problem(model, STENCIL, spacings, None, threads or 1)
    cycle = fsi_cycle(limit)

    def at_rest(start: Any, fixed: Any, count: int) -> Any:
        return lazy.evolved(start, 0, (cycle,) * count, problem, engine, fixed)

    start = _start(values, known, at_rest, model, spacings, engine, threads)
    filled = at_rest(start, known, CYCLES if cycles is None else cycles)
    low, high = _range(values, known)
    filled = da.where(known, values, da.clip(filled, low, high))
    filled = filled.rechunk(given.chunks)
    return filled[0] if channel_axis is None else da.moveaxis(filled, 0, channel_axis)


def _known(channels: Any, mask: Any) -> Any:
    """True where a pixel is known: a Dask array in the chunks of the image."""
    import dask.array as da

    chunks = channels.chunks[1:]
    if mask is None:
        if channels.dtype.kind != "f":
            return da.ones(channels.shape[1:], dtype=bool, chunks=chunks)
        return ~da.isnan(channels).any(axis=0)
    if mask.shape != channels.shape[1:]:
        raise ValueError(
            f"mask has shape {mask.shape}, the image without channels {channels.shape[1:]}: they must be equal."
        )
    if mask.dtype.kind not in "biu":
        raise TypeError(f"mask must hold True and False, got dtype {mask.dtype}. Use e.g. mask > 0.")
    unknown = mask if lazy.is_dask(mask) else da.from_array(np.asarray(mask), chunks=chunks)
    return unknown.rechunk(chunks) == 0


def _start(
    values: Any, known: Any, at_rest: Any, model: Any, spacings: Any, engine: Any, threads: Any
) -> Any:
    """Known pixels, and between them what coarser grids say."""
    import dask.array as da

    grids = [(values, known)]
    sums, counts = values, known[np.newaxis].astype(values.dtype)
    while math.prod(sums.shape[1:]) > _SMALL:
        sums, counts = sums_over_pairs(sums), sums_over_pairs(counts)
        covered = counts[0] > 0
        grids.append((da.where(covered, sums / da.maximum(counts, 1), 0), covered))
    # The smallest of these grids, and those below it, in one piece.
    means, covered = grids[-1]
    whole = da.map_blocks(
        coarse_start,
        means.rechunk(-1),
        covered.rechunk(-1)[np.newaxis],
        model,
        spacings,
        engine,
        threads,
        dtype=means.dtype,
        chunks=tuple((n,) for n in means.shape),
    )
    start = whole.rechunk(means.chunks)
    for number, (fine, fixed) in enumerate(reversed(grids[:-1])):
        if number or len(grids) > 1:
            start = at_rest(start, grids[len(grids) - 1 - number][1], COARSE_CYCLES)
        start = da.where(fixed, fine, on_finer_grid(start, fine))
    return start
