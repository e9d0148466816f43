"""upsample(): a finer image whose block means are the given one, by diffusion along edges."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from aniso import checks
from aniso.arrays import channels_back, channels_first, checked_image, result_type
from aniso.checks import Auto, Spacing
from aniso.estimates import pixel_size
from aniso.evolve import (
    EngineName,
    Image,
    Journey,
    Progress,
    check_progress,
    reporter,
)
from aniso.models import EdgeContinuing
from aniso.parameters import CONTRAST, RHO, SIGMA, TIME, About
from aniso.schemes import FSI, Cycle
from aniso.stencil import DeltaStencil
from aniso.verbs.dispatch import takes_tensors
from aniso.verbs.edge_contrast import (
    check_sums,
    estimated_contrast,
    given_contrast,
    given_scale,
    usual_difference,
)
from aniso.verbs.info import UpsampleInfo

__all__ = ["upsample"]

# As dissipative as the longest steps allow.
_STENCIL = DeltaStencil(alpha=0.25, gamma=0.0)
# Of what neighbours usually differ by, this is taken as contrast; it is at least so much of their spread.
_SHARE, _LEAST = 0.3, 0.003
# In how many FSI cycles the time is spent.
_CYCLES = 2


_TIME = replace(TIME, open_low=False, auto="8 squared pixels of the input")
_FACTOR = About(
    unit="×", low=1, high=8, whole=True, choices=(2, 3, 4, 6, 8), meaning="how many times finer the result is"
)


@takes_tensors
def upsample(
    image: npt.ArrayLike,
    factor: Annotated[int, _FACTOR],
    *,
    contrast: Annotated[float | Auto, replace(CONTRAST, auto="from the differences of neighbours")] = "auto",
    sigma: Annotated[float | Auto, replace(SIGMA, auto="0.45·√factor finer pixels")] = "auto",
    rho: Annotated[float | Auto, replace(RHO, auto="as σ")] = "auto",
    time: Annotated[
        float | Auto, replace(TIME, open_low=False, auto="8 squared pixels of the input")
    ] = "auto",
    spacing: Spacing | None = None,
    channel_axis: int | None = None,
    engine: EngineName | None = None,
    threads: int | None = None,
    progress: Progress = None,
    return_info: bool = False,
) -> Any:
    """The image on a grid that is `factor` times finer, with sharper and smoother edges than splines give.

    Every pixel of the image is taken as the mean of a block of factor × factor finer ones (in a volume
    factor × factor × factor). Cubic splines give
    the start; then the finer image diffuses along its edges (:class:`aniso.models.EdgeContinuing` with the
    Charbonnier diffusivity), and each step is projected back to the images with these block means.

    Parameters
    ----------
    image : array
        A signal (N,), an image (H, W) or a volume (D, H, W), with any number of channels along
        `channel_axis`. Never modified.
    factor : int
        From 1 (a copy) to 8.
    contrast : float or "auto"
        λ in grey values per unit length: stronger gradients are edges. "auto" takes 0.3·(mean of ∣d∣^¼)⁴ over
        the differences d of neighbours in the image, per unit length (for colours, their root mean square),
        and 0.003 of the standard deviation of the image at least. So the result scales with the image.
    sigma, rho : float or "auto"
        Noise scale and integration scale, in the units of `spacing`; by default 0.45·√factor times the
        (geometric) mean distance of the finer pixels.
    time : float or "auto"
        How long to diffuse; by default 8 times the squared mean distance of the pixels of the image.
    spacing : float or one float per axis, optional
        Distance of the pixels of the image, axis 0 first, without the channels.
    channel_axis : int, optional
        The axis of the channels. They share one diffusion tensor, so that their edges agree.
    engine, threads, progress
        As for :func:`aniso.diffuse`.
    return_info : bool
        Whether to return also what was chosen.

    Returns
    -------
    array
        `factor` times as long along all axes but that of the channels. float32 and float64 are kept;
        integers and float16 give float32, in the grey scale they have.
    aniso.info.UpsampleInfo
        Only with ``return_info=True``.

    Examples
    --------
    >>> import numpy as np, aniso
    >>> coarse = aniso.samples.shapes(size=32, noise=0).truth
    >>> fine, info = aniso.upsample(coarse, 4, return_info=True)
    >>> fine.shape, info.mismatch < 1e-10
    ((128, 128), True)
    """
    factor = _checked_factor(factor)
    wanted = given_contrast(contrast)
    duration = checks.number_or_auto("time", time, "the diffusion time", open_low=False)
    check_progress(progress)
    given = checked_image(image, channel_axis)
    channels = channels_first(given, channel_axis)
    coarse = channels.astype(result_type(given.dtype))
    check_sums(coarse)
    spacings = checks.axis_spacing(spacing, coarse.ndim - 1)
    pixel = pixel_size(spacings)
    scale = 0.45 * pixel / math.sqrt(factor)
    if wanted is None:
        spread = float(coarse.std(axis=tuple(range(1, coarse.ndim)), dtype=np.float64).max())
        wanted = estimated_contrast(_SHARE * usual_difference(coarse, spacings), _LEAST * spread / pixel)
    scales = given_scale("sigma", sigma, scale), given_scale("rho", rho, scale)
    model = EdgeContinuing(wanted, *scales, "charbonnier")
    end = 8 * pixel**2 if duration is None else duration

    fine_spacings = tuple(h / factor for h in spacings)
    # Made even for factor 1, so that its options are checked alike.
    journey = Journey.of(
        _splined(coarse, factor), model, _STENCIL, FSI(_CYCLES), fine_spacings, 0, None, engine, threads
    )
    steps = 0
    with contextlib.closing(journey.evolution), reporter(progress, end) as report:
        _project(journey.pixels(), coarse, factor)
        if factor > 1:
            for number, cycle in enumerate(journey.scheme.plan(end, journey.limit)):
                for k, _ in enumerate(_projected_steps(journey, cycle, coarse, factor), 1):
                    report(end * (number + k / len(cycle.steps)) / _CYCLES)
                    steps += 1
            # Sums in single precision miss the mean of a block by a few digits too many.
            _project(journey.pixels(), coarse, factor, np.float64)
    fine = coarse if factor == 1 else journey.image()
    result = channels_back(fine, channel_axis)
    if not return_info:
        return result
    mismatch = float(abs(_block_means(fine, factor, np.float64) - coarse).max())
    return result, UpsampleInfo(factor, model.contrast, model.sigma, model.rho, end, steps, mismatch)


def _checked_factor(factor: Any) -> int:
    remedy = "Give a whole number from 1 to 8; for other sizes, resample the result."
    whole = checks.whole("factor", factor, remedy)
    if not 1 <= whole <= 8:
        raise ValueError(f"factor must lie in [1, 8], got {factor}: beyond it, too little is known. {remedy}")
    return whole


def _projected_steps(journey: Journey, cycle: Cycle, coarse: Image, factor: int) -> Iterator[None]:
    """FSI for the diffusion within the images of these block means, a tensor for each step.

    Projection is orthogonal, so that it makes no eigenvalue larger, and FSI is as stable as without it.
    """
    before = None
    for weight, tau in cycle.steps:
        start = journey.pixels().copy()
        journey.evolution.advance(Cycle(tau, ((1.0, tau),)))
        image = journey.pixels()
        np.multiply(image, weight, out=image)
        np.add(image, (1 - weight) * (start if before is None else before), out=image)
        # After extrapolation, which keeps block means but for rounding.
        _project(image, coarse, factor)
        before = start
        yield


def _project(image: Image, coarse: Image, factor: int, dtype: Any = None) -> None:
    """Shift each block so that its mean is right."""
    shift: Image = coarse - _block_means(image, factor, dtype)
    for axis in range(1, coarse.ndim):
        shift = np.repeat(shift, factor, axis=axis)
    np.add(image, shift, out=image, casting="same_kind")


def _block_means(image: Image, factor: int, dtype: Any) -> Image:
    """Means over blocks of `factor` pixels along each axis but the first."""
    for axis in range(1, image.ndim):
        shape = image.shape
        blocks = image.reshape(*shape[:axis], shape[axis] // factor, factor, *shape[axis + 1 :])
        image = blocks.mean(axis=axis + 1, dtype=dtype)
    return image


def _splined(coarse: Image, factor: int) -> Image:
    """Cubic splines between the centres of pixels, mirrored at the edges of the image."""
    from scipy import ndimage

    if factor == 1:
        return coarse
    return np.stack(
        [ndimage.zoom(channel, factor, order=3, mode="reflect", grid_mode=True) for channel in coarse]
    )
