"""inpaint() on Dask arrays: the same grids and cycles, with a fixed number of cycles."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from aniso import arrays
from aniso.arrays import is_dask
from aniso.blocks import lazy
from aniso.blocks.sample import windows
from aniso.estimates import pixel_size
from aniso.settings import check_progress
from aniso.verbs.chunked_grids import coarsen, interpolate
from aniso.verbs.edge_contrast import check_contrast, check_sums, choose_contrast, usual_difference
from aniso.verbs.inpaint_solver import (
    COARSE_CYCLES,
    LEAST,
    SHARE,
    UNKNOWN,
    Solver,
    check_stopping,
    edge_continuing,
    fsi_cycle,
    nothing_known,
    solver_settings,
    spread_of,
)

if TYPE_CHECKING:
    import dask.array

#: Default number of cycles on the finest grid.
CYCLES = 20
# Grids of at most this many pixels are computed in one piece.
_SMALL = 2**20


def inpaint(
    image: dask.array.Array,
    mask: Any,
    *,
    contrast: Any,
    sigma: Any,
    rho: Any,
    tolerance: float,
    max_cycles: int | None,
    channel_axis: int | None,
    progress: Any,
    return_info: bool,
    threads: int | None,
    **options: Any,
) -> dask.array.Array:
    """Fill in the unknown pixels lazily, with the same chunks; arguments are those of :func:`aniso.inpaint`.

    Pixels without known ones in a grid are filled from the next coarser grid, as in memory. Grids of up to a
    million pixels are computed in one piece.
    """
    import dask.array as da

    wanted = check_contrast(contrast)
    _, max_cycles = check_stopping(tolerance, max_cycles)
    check_progress(progress)
    lazy.reject_progress(progress)
    if return_info:
        raise ValueError("a Dask array is computed later, and has no info before. Leave return_info out.")
    lazy.check_chunks(image, channel_axis)
    given: Any = arrays.channels_first(image, channel_axis)
    channels = given.rechunk({0: -1})
    known = _known_pixels(channels, mask)
    values = lazy.check_finite(da.where(known, channels, 0)).astype(arrays.result_type(image.dtype))
    settings = solver_settings(known.ndim, threads=1 if threads is None else threads, **options)
    spacings = settings.spacings
    model = edge_continuing(
        wanted or _estimate_contrast(values, known, spacings), sigma, rho, pixel_size(spacings)
    )
    prepared = settings.prepare(model, known.shape)
    cycle = fsi_cycle(prepared.limit)

    def evolve(start: Any, fixed: Any, count: int) -> Any:
        return lazy.evolve(start, 0, (cycle,) * count, prepared, fixed)

    start = _start(values, known, evolve, Solver(prepared, 1.0, 0.0, 1))
    filled = evolve(start, known, CYCLES if max_cycles is None else max_cycles)
    low, high = _range(values, known)
    filled = da.where(known, values, da.maximum(da.minimum(filled, high), low))
    result: dask.array.Array = arrays.channels_back(filled.rechunk(given.chunks), channel_axis)
    return result


def _known_pixels(channels: Any, mask: Any) -> Any:
    """Return a Dask array that is True where a pixel is known, with the chunks of the image."""
    import dask.array as da

    shape, chunks = channels.shape[1:], channels.chunks[1:]
    if mask is None:
        if channels.dtype.kind != "f":
            return da.ones(shape, dtype=bool, chunks=chunks)
        return ~da.isnan(channels).any(axis=0)
    unknown: Any = arrays.check_mask("mask", mask, shape, UNKNOWN)
    if not is_dask(unknown):
        unknown = da.from_array(unknown, chunks=chunks)
    return ~unknown.rechunk(chunks)


def _start(values: Any, known: Any, evolve: Callable[[Any, Any, int], Any], solver: Solver) -> Any:
    """Return known pixels, and interpolated coarser grids between them."""
    import dask.array as da

    grids = [(values, known)]
    sums, counts = values, known[np.newaxis].astype(values.dtype)
    while math.prod(sums.shape[1:]) > _SMALL:
        sums, counts = coarsen(sums), coarsen(counts)
        covered = counts[0] > 0
        grids.append((sums / da.maximum(counts, 1), covered))
    means, covered = grids.pop()
    start = da.map_blocks(
        _start_in_memory,
        means.rechunk(-1),
        counts.rechunk(-1),
        solver,
        bool(grids),
        dtype=means.dtype,
        chunks=tuple((n,) for n in means.shape),
    ).rechunk(means.chunks)
    while grids:
        means, covered = grids.pop()
        start = da.where(covered, means, interpolate(start, means))
        if grids:
            start = evolve(start, covered, COARSE_CYCLES)
    return start


def _start_in_memory(means: Any, counts: Any, solver: Solver, diffuses: bool) -> Any:
    """Return the start on a grid that fits in memory; diffused if it is not the finest one."""
    covered = counts[0] > 0
    if not covered.any():
        raise nothing_known()
    start, _ = solver.start(means, covered, counts)
    return solver.smooth(start, covered) if diffuses else start


def _estimate_contrast(values: Any, known: Any, spacings: tuple[float, ...]) -> float:
    """Return the median over windows with known pixels of the contrast that is estimated in memory."""
    from dask.base import compute

    chosen = [(values[(slice(None), *window)], known[window]) for window in windows(known.shape)]
    found = []
    for image, inside in compute(*chosen):
        if inside.any():
            check_sums(image[:, inside])
            usual = usual_difference(image, spacings, inside)
            found.append(max(SHARE * usual, LEAST * spread_of(image, inside) / pixel_size(spacings)))
    return choose_contrast(float(np.median(found)) if found else 0.0, 0.0)


def _range(values: Any, known: Any) -> tuple[Any, Any]:
    """Return the least and greatest known value of each channel, shaped for comparison with the image."""
    import dask.array as da

    axes = tuple(range(1, values.ndim))
    low = da.where(known, values, np.inf).min(axis=axes, keepdims=True)
    high = da.where(known, values, -np.inf).max(axis=axes, keepdims=True)
    return low.astype(values.dtype), high.astype(values.dtype)
