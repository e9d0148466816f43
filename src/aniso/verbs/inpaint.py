"""inpaint(): unknown pixels from known ones, by diffusion that carries edges on."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from aniso import checks, engines
from aniso.arrays import channels_back, channels_first, checked_layout, result_type
from aniso.blocks.lazy import is_dask
from aniso.checks import Auto, Spacing
from aniso.estimates import pixel_size
from aniso.evolve import (
    EngineName,
    Image,
    Progress,
    check_progress,
    checked_threads,
    reporter,
)
from aniso.formulas.gaussian import gaussian_radius
from aniso.models import EdgeContinuing
from aniso.parameters import CONTRAST, RHO, SIGMA, About
from aniso.verbs.dispatch import takes_tensors
from aniso.verbs.edge_contrast import (
    check_sums,
    estimated_contrast,
    given_contrast,
    usual_difference,
)
from aniso.verbs.info import InpaintInfo
from aniso.verbs.inpaint_solver import LEAST, SHARE, STEPS, Course, Mask, Solver, edge_continuing, spread_of

__all__ = ["inpaint"]


_MOST_CYCLES = 100


_CONTRAST = replace(CONTRAST, auto="from the differences of known neighbours")
_MAX_CYCLES = About(
    low=1, whole=True, advanced=True, meaning="stop after this many cycles at the latest", auto="100"
)
_TOLERANCE = About(
    high=1.0,
    open_low=True,
    slider=(1e-4, 0.1),
    meaning="stop when a cycle changes the unknown pixels by less than this fraction of the spread",
)


@takes_tensors
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
    """The image with its unknown pixels filled in; known pixels keep their values bit for bit.

    Diffusion along edges (:class:`aniso.models.EdgeContinuing` with the Charbonnier diffusivity) runs from
    the known pixels into the unknown ones until it comes to rest. It begins on a coarse grid, whose pixels
    are means of the known ones, and each grid gives the next finer one its start. No new extremes
    arise: what is filled in stays between the least and the greatest known value of its channel.

    Parameters
    ----------
    image : array
        A signal (N,), an image (H, W) or a volume (D, H, W), with any number of channels along
        `channel_axis`. What it holds in unknown pixels does not matter. Never modified.
    mask : array of bool, optional
        True (or 1) where a pixel is unknown, as in scikit-image; of the shape of the image without channels.
        By default those pixels are unknown that are NaN in at least one channel.
    contrast : float or "auto"
        λ in grey values per unit length: stronger gradients are edges. "auto" takes ½·(mean of ∣d∣^¼)⁴ over
        the differences d of known neighbours, per unit length (for colours, their root mean square), and
        0.005 of the standard deviation of the known values at least. So the result scales with the image.
        Where too few known pixels are neighbours, pairs s = 2, 4, 8, … pixels apart serve, with d/√s.
    sigma, rho : float or "auto"
        Noise scale and integration scale, in the units of `spacing`; by default 0.7 and 0.8 times the
        (geometric) mean distance of pixels.
    tolerance : float
        When to stop: once the unknown pixels change in a cycle of 8 FSI steps by no more than this, as root
        mean square and as a fraction of the standard deviation of the known values.
    max_cycles : int, optional
        When to stop at the latest, 100 by default. A Dask array has this number of cycles, 20 by default,
        whatever the tolerance: how far it has come is not known before it is computed.
    spacing : float or one float per axis, optional
        Distance of the pixels, axis 0 first, without the channels.
    channel_axis : int, optional
        The axis of the channels. They share one diffusion tensor, so that their edges agree.
    engine, threads
        As for :func:`aniso.diffuse`.
    progress : bool or callable, optional
        True shows a bar on the terminal; a function is called as progress(done, 1.0), where `done` says how
        far the residual has come down to the tolerance.
    return_info : bool
        Whether to return also what was chosen.

    Returns
    -------
    array
        Of the shape of the image. float32 and float64 are kept; integers and float16 give float32, in the
        grey scale they have.
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
    wanted = given_contrast(contrast)
    tolerance = checks.within("tolerance", tolerance, 0.0, 1.0, "it is a fraction.", open_low=True)
    if max_cycles is not None:
        max_cycles = checks.whole("max_cycles", max_cycles, "A good choice is max_cycles=100.")
        if max_cycles < 1:
            raise ValueError(
                f"max_cycles must be at least 1, got {max_cycles}. A good choice is max_cycles=100."
            )
    check_progress(progress)
    engines.check_name(engine)
    checked_threads(threads)
    if is_dask(image):
        if return_info or progress:
            raise ValueError(
                "a Dask array is not computed before you say so: nothing is known to tell then. Leave "
                "return_info and progress out."
            )
        from aniso.verbs import chunked_inpaint as in_blocks

        lazy_image: Any = image
        return in_blocks.inpaint(
            lazy_image, mask, wanted, sigma, rho, max_cycles, spacing, channel_axis, engine, threads
        )
    if isinstance(image, np.ma.MaskedArray):
        raise TypeError(
            "image is a masked array; say which pixels are unknown by mask=, e.g. "
            "inpaint(image.filled(0), mask=numpy.ma.getmaskarray(image))."
        )
    given = checked_layout(checks.array_of("image", image), channel_axis)
    channels = channels_first(given, channel_axis)
    known = _known_pixels(channels, mask)
    spacings = checks.axis_spacing(spacing, known.ndim)
    pixel = pixel_size(spacings)

    filled = channels.astype(result_type(given.dtype))
    check_sums(filled[:, known])
    low, high, spread = _range_and_spread(filled, known)
    if wanted is None:
        usual = usual_difference(filled, spacings, known)
        wanted = estimated_contrast(SHARE * usual, LEAST * spread / pixel)
    model = edge_continuing(wanted, sigma, rho, pixel)
    course = Course(0, 0, 0.0)
    if not known.all():
        window = _surroundings(known, model, spacings)
        part, known_part = filled[:, *window], known[window]
        solver = Solver(model, spacings, engine, threads, spread, tolerance, max_cycles or _MOST_CYCLES)
        with reporter(progress, 1.0) as report:
            solution, course = solver.solution(part, known_part, report)
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


def _known_pixels(channels: Image, mask: npt.ArrayLike | None) -> Mask:
    """True where a pixel is known; of the shape of the image without channels."""
    shape = channels.shape[1:]
    if mask is None:
        known = np.ones(shape, np.bool_)
        if channels.dtype.kind == "f":
            for channel in channels:
                known &= ~np.isnan(channel)
    else:
        unknown = np.asarray(mask)
        if unknown.dtype.kind not in "biu" or (
            unknown.dtype.kind != "b" and not np.isin(unknown, (0, 1)).all()
        ):
            raise TypeError(
                f"mask must hold True and False (or 1 and 0), got dtype {unknown.dtype} with other "
                "values: it is True where a pixel is unknown. Use e.g. mask > 0."
            )
        if unknown.shape != shape:
            raise ValueError(
                f"mask has shape {unknown.shape}, the image without channels {shape}: they must be equal. "
                "Colours need channel_axis, e.g. channel_axis=-1."
            )
        known = unknown == 0
    if not known.any():
        raise checks.refusal(
            ValueError,
            "all pixels are unknown: there is nothing to fill in from.",
            python="The mask is True where a pixel is unknown; perhaps ~mask was meant.",
            command="A mask marks the unknown pixels; perhaps --invert was meant.",
        )
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


def _range_and_spread(image: Image, known: Mask) -> tuple[Image, Image, float]:
    """Least and greatest known value of each channel; their standard deviation, mean over the channels."""
    values = [channel[known] for channel in image]
    low, high = (np.array([end(channel) for channel in values]) for end in (np.min, np.max))
    return low, high, spread_of(image, known)


def _surroundings(known: Mask, model: EdgeContinuing, spacings: tuple[float, ...]) -> tuple[slice, ...]:
    """The smallest box around all unknown pixels outside which nothing matters to them."""
    box = []
    for axis, h in enumerate(spacings):
        others = tuple(other for other in range(known.ndim) if other != axis)
        (places,) = np.nonzero(~known.all(axis=others))
        reach = gaussian_radius(model.sigma / h) + gaussian_radius(model.rho / h) + 2
        box.append(slice(max(0, int(places[0]) - reach), int(places[-1]) + 1 + reach))
    return tuple(box)
