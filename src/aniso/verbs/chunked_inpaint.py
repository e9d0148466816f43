"""inpaint() on Dask arrays: the same grids and cycles, their number fixed beforehand."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from aniso import arrays, checks, engines
from aniso.blocks import lazy
from aniso.blocks.sample import windows
from aniso.checks import Auto, Spacing
from aniso.estimates import pixel_size
from aniso.stability import stable_step
from aniso.verbs.chunked_grids import on_finer_grid, sums_over_pairs
from aniso.verbs.edge_contrast import (
    check_sums,
    estimated_contrast,
    usual_difference,
)
from aniso.verbs.inpaint_solver import (
    COARSE_CYCLES,
    LEAST,
    SHARE,
    STENCIL,
    Solver,
    edge_continuing,
    fsi_cycle,
    spread_of,
)

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
    sigma: float | Auto,
    rho: float | Auto,
    cycles: int | None,
    spacing: Spacing | None,
    channel_axis: int | None,
    engine: Any,
    threads: int | None,
) -> dask.array.Array:
    """The image with its unknown pixels filled in, lazily, in the chunks it has.

    Pixels of which a grid says nothing are filled from the next coarser grid, and so on, as in memory. Grids
    of up to a million pixels are computed in one piece.
    """
    import dask.array as da

    lazy.checked(image, channel_axis)
    given: Any = arrays.channels_first(image, channel_axis)
    channels = given.rechunk({0: -1})
    known = _known(channels, mask)
    values = lazy.finite(da.where(known, channels, 0)).astype(arrays.result_type(image.dtype))
    spacings = checks.axis_spacing(spacing, known.ndim)
    wanted = contrast or _sampled_contrast(values, known, spacings)
    model = edge_continuing(wanted, sigma, rho, pixel_size(spacings))
    cycle = fsi_cycle(stable_step(model, STENCIL, spacings, len(spacings)))
    problem = engines.Problem(model, STENCIL, spacings, None, threads or 1)

    def evolved(start: Any, fixed: Any, count: int) -> Any:
        return lazy.evolved(start, 0, (cycle,) * count, problem, engine, fixed)

    solver = Solver(model, spacings, engine, threads or 1, 1.0, 0.0, 1)
    start = _start(values, known, evolved, solver)
    filled = evolved(start, known, CYCLES if cycles is None else cycles)
    low, high = _range(values, known)
    filled = da.where(known, values, da.maximum(da.minimum(filled, high), low))
    return lazy.channels_back(filled.rechunk(given.chunks), channel_axis)


def _known(channels: Any, mask: Any) -> Any:
    """True where a pixel is known: a Dask array in the chunks of the image."""
    import dask.array as da

    shape, chunks = channels.shape[1:], channels.chunks[1:]
    if mask is None:
        if channels.dtype.kind != "f":
            return da.ones(shape, dtype=bool, chunks=chunks)
        return ~da.isnan(channels).any(axis=0)
    if not lazy.is_dask(mask):
        mask = np.asarray(mask)
    if mask.dtype.kind not in "biu":
        raise TypeError(f"mask must hold True and False, got dtype {mask.dtype}. Use e.g. mask > 0.")
    if mask.shape != shape:
        raise ValueError(f"mask has shape {mask.shape}, the image without channels {shape}: make them equal.")
    unknown: Any = mask if lazy.is_dask(mask) else da.from_array(mask, chunks=chunks)
    return unknown.rechunk(chunks) == 0


def _start(values: Any, known: Any, evolved: Callable[[Any, Any, int], Any], solver: Solver) -> Any:
    """Known pixels, and between them what coarser grids say."""
    import dask.array as da

    grids = [(values, known)]
    sums, counts = values, known[np.newaxis].astype(values.dtype)
    while math.prod(sums.shape[1:]) > _SMALL:
        sums, counts = sums_over_pairs(sums), sums_over_pairs(counts)
        covered = counts[0] > 0
        grids.append((sums / da.maximum(counts, 1), covered))
    means, covered = grids.pop()
    start = da.map_blocks(
        _in_one_piece,
        means.rechunk(-1),
        counts.rechunk(-1),
        solver,
        bool(grids),
        dtype=means.dtype,
        chunks=tuple((n,) for n in means.shape),
    ).rechunk(means.chunks)
    while grids:
        means, covered = grids.pop()
        start = da.where(covered, means, on_finer_grid(start, means))
        if grids:
            start = evolved(start, covered, COARSE_CYCLES)
    return start


def _in_one_piece(means: Any, counts: Any, solver: Solver, diffuses: bool) -> Any:
    """The start on a grid that fits in memory; diffused if it is not the finest one."""
    covered = counts[0] > 0
    if not covered.any():
        raise ValueError("all pixels are unknown: there is nothing to fill in from.")
    start, _ = solver.start(means, covered, counts)
    return solver.soon_at_rest(start, covered) if diffuses else start


def _sampled_contrast(values: Any, known: Any, spacings: tuple[float, ...]) -> float:
    """As :func:`aniso.inpaint` estimates it, from some windows: the median of those with known pixels."""
    from dask.base import compute

    chosen = [(values[(slice(None), *window)], known[window]) for window in windows(known.shape)]
    found = []
    for image, inside in compute(*chosen):
        if inside.any():
            check_sums(image[:, inside])
            usual = usual_difference(image, spacings, inside)
            found.append(max(SHARE * usual, LEAST * spread_of(image, inside) / pixel_size(spacings)))
    return estimated_contrast(float(np.median(found)) if found else 0.0, 0.0)


def _range(values: Any, known: Any) -> tuple[Any, Any]:
    """Least and greatest known value of each channel, shaped to be compared with the image."""
    import dask.array as da

    axes = tuple(range(1, values.ndim))
    low = da.where(known, values, np.inf).min(axis=axes, keepdims=True)
    high = da.where(known, values, -np.inf).max(axis=axes, keepdims=True)
    return low.astype(values.dtype), high.astype(values.dtype)
