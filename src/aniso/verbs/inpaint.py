"""inpaint(): fill in unknown pixels by diffusion along edges."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from aniso import checks
from aniso.arrays import Array, Mask, channels_back, channels_first, check_layout, check_mask, result_type
from aniso.checks import Auto, Spacing
from aniso.dispatch import takes_arrays
from aniso.estimates import pixel_size
from aniso.formulas.gaussian import gaussian_radius
from aniso.models import EdgeContinuing
from aniso.parameters import CONTRAST, RHO, SIGMA, About
from aniso.settings import EngineName, Progress, check_progress, report_progress
from aniso.verbs import chunked_inpaint
from aniso.verbs.edge_contrast import check_contrast, check_sums, choose_contrast, usual_difference
from aniso.verbs.info import InpaintInfo
from aniso.verbs.inpaint_solver import (
    LEAST,
    SHARE,
    STEPS,
    UNKNOWN,
    Course,
    Solver,
    check_stopping,
    edge_continuing,
    nothing_known,
    solver_settings,
    spread_of,
)

__all__ = ["inpaint"]

_MOST_CYCLES = 100
_MAX_CYCLES = About(
    low=1, whole=True, advanced=True, meaning="stop after this many cycles at the latest", auto="100"
)
_TOLERANCE = About(
    high=1.0,
    open_low=True,
    slider=(1e-4, 0.1),
    meaning="stop when a cycle changes the unknown pixels by less than this fraction of the spread",
)


@takes_arrays(dask=chunked_inpaint.inpaint)
def inpaint(
    image: npt.ArrayLike,
    mask: npt.ArrayLike | None = None,
    *,
    contrast: Annotated[
        float | Auto, replace(CONTRAST, auto="from the differences of known neighbours")
    ] = "auto",
    sigma: Annotated[float | Auto, replace(SIGMA, auto="0.7 pixels")] = "auto",
    rho: Annotated[float | Auto, replace(RHO, auto="0.8 pixels")] = "auto",
    tolerance: Annotated[float, _TOLERANCE] = 5e-3,
    max_cycles: Annotated[int | None, _MAX_CYCLES] = None,
    spacing: Spacing | None = None,
    channel_axis: int | None = None,
    engine: EngineName | None = None,
    threads: int | None = None,
    progress: Progress = None,
    return_info: bool = False,
) -> Any:
    """Fill in unknown pixels; known pixels are returned unchanged.

    Diffusion along edges (:class:`aniso.models.EdgeContinuing` with the Charbonnier diffusivity) runs from
    the known pixels into the unknown ones until it converges. It begins on a coarse grid, whose pixels are
    means of the known ones, and each grid gives the start of the next finer one. New values lie between the
    least and the greatest known value of their channel.

    Parameters
    ----------
    image : array
        A signal (N,), an image (H, W) or a volume (D, H, W), with any number of channels along
        `channel_axis`. The values of unknown pixels do not matter. Never modified.
    mask : array of bool, optional
        True (or 1) where a pixel is unknown, as in scikit-image, with the shape of the image without
        channels. By default pixels that are NaN in at least one channel are unknown.
    contrast : float or "auto"
        λ in grey values per unit length: stronger gradients are edges. "auto" takes ½·(mean of ∣d∣^¼)⁴ over
        the differences d of known neighbours, per unit length (for colours, their root mean square), and
        0.005 of the standard deviation of the known values at least. So the result scales with the image.
        If too few known pixels are neighbours, pairs s = 2, 4, 8, … pixels apart are used, with d/√s.
    sigma, rho : float or "auto"
        Standard deviations of the Gaussians for presmoothing and integration, in the units of `spacing`; by
        default 0.7 and 0.8 times the geometric mean of the spacing.
    tolerance : float
        Stop when the unknown pixels change in a cycle of 8 FSI steps by at most this, as root mean square and
        as a fraction of the standard deviation of the known values.
    max_cycles : int, optional
        The maximum number of cycles, 100 by default. Dask arrays always have this number of cycles, 20 by
        default, whatever the tolerance: the residual is not known before they are computed.
    spacing : float or one float per axis, optional
        Pixel spacing along each axis, without the channels.
    channel_axis : int, optional
        The axis of the channels. They share one diffusion tensor, so that their edges agree.
    engine, threads
        As for :func:`aniso.diffuse`.
    progress : bool or callable, optional
        True shows a bar on the terminal; a function is called as progress(done, 1.0), where `done` is how
        far the residual has decreased to the tolerance, on a logarithmic scale.
    return_info : bool
        If True, also return the values used.

    Returns
    -------
    array
        An array of the same kind and shape. float32 and float64 are kept; integers and float16 are converted
        to float32, without rescaling.
    aniso.info.InpaintInfo
        Only with ``return_info=True``.

    Examples
    --------
    >>> import numpy as np, aniso
    >>> truth = aniso.samples.shapes(size=64, noise=0).truth
    >>> unknown = np.random.default_rng(0).random(truth.shape) > 0.2
    >>> filled, info = aniso.inpaint(truth, unknown, return_info=True)
    >>> bool((filled[~unknown] == truth[~unknown]).all()), info.converged
    (True, True)
    """
    wanted = check_contrast(contrast)
    tolerance, max_cycles = check_stopping(tolerance, max_cycles)
    check_progress(progress)
    given = check_layout(image, channel_axis)
    channels = channels_first(given, channel_axis)
    known = _known_pixels(channels, mask)
    settings = solver_settings(known.ndim, spacing=spacing, engine=engine, threads=threads)
    pixel = pixel_size(settings.spacings)

    filled = channels.astype(result_type(given.dtype))
    check_sums(filled[:, known])
    low, high, spread = _range_and_spread(filled, known)
    if wanted is None:
        usual = usual_difference(filled, settings.spacings, known)
        wanted = choose_contrast(SHARE * usual, LEAST * spread / pixel)
    model = edge_continuing(wanted, sigma, rho, pixel)
    course = Course(0, 0, 0.0)
    if not known.all():
        window = _surroundings(known, model, settings.spacings)
        part, known_part = filled[:, *window], known[window]
        prepared = settings.prepare(model, known.shape)
        solver = Solver(prepared, spread, tolerance, max_cycles or _MOST_CYCLES)
        with report_progress(progress, 1.0) as report:
            solution, course = solver.solve(part, known_part, report)
        for channel, values, least, greatest in zip(part, solution, low, high, strict=True):
            np.copyto(channel, np.clip(values, least, greatest), where=~known_part)
    result = channels_back(filled, channel_axis)
    if not return_info:
        return result
    return result, InpaintInfo(
        unknown=int(known.size - np.count_nonzero(known)),
        contrast=model.contrast,
        sigma=model.sigma,
        rho=model.rho,
        grids=course.grids,
        cycles=course.cycles,
        steps=course.cycles * STEPS,
        residual=course.residual,
        tolerance=tolerance,
    )


def _known_pixels(channels: Array, mask: npt.ArrayLike | None) -> Mask:
    """Return a mask that is True where a pixel is known, with the shape of the image without channels."""
    shape = channels.shape[1:]
    if mask is None:
        known = np.ones(shape, np.bool_)
        if channels.dtype.kind == "f":
            for channel in channels:
                known &= ~np.isnan(channel)
    else:
        known = ~check_mask("mask", mask, shape, UNKNOWN)
    if not known.any():
        raise nothing_known()
    if channels.dtype.kind == "f":
        for number, channel in enumerate(channels):
            bad = known & ~np.isfinite(channel)
            if bad.any():
                first = tuple(int(i) for i in np.argwhere(bad)[0])
                raise checks.refusal(
                    ValueError,
                    f"image holds {int(bad.sum())} known pixels that are NaN or infinite, the first at index "
                    f"{first} of channel {number}: they would spread into the unknown ones.",
                    python="Make them True in the mask.",
                    command="Mark them in the mask, too.",
                )
    return known


def _range_and_spread(image: Array, known: Mask) -> tuple[Array, Array, float]:
    """Return the least and greatest known value of each channel, and their standard deviation."""
    values = [channel[known] for channel in image]
    low, high = (np.array([end(channel) for channel in values]) for end in (np.min, np.max))
    return low, high, spread_of(image, known)


def _surroundings(known: Mask, model: EdgeContinuing, spacings: tuple[float, ...]) -> tuple[slice, ...]:
    """Return a box around all unknown pixels that contains all pixels they depend on."""
    box = []
    for axis, h in enumerate(spacings):
        others = tuple(other for other in range(known.ndim) if other != axis)
        (places,) = np.nonzero(~known.all(axis=others))
        reach = gaussian_radius(model.sigma / h) + gaussian_radius(model.rho / h) + 2
        box.append(slice(max(0, int(places[0]) - reach), int(places[-1]) + 1 + reach))
    return tuple(box)
