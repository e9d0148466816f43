"""upsample(): a finer image with given block means, by diffusion along edges."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from aniso import checks
from aniso.arrays import Array, channels_back, channels_first, check_image, result_type
from aniso.checks import Auto, Spacing
from aniso.dispatch import takes_arrays
from aniso.estimates import pixel_size
from aniso.evolving import EvolvingImage
from aniso.models import EdgeContinuing
from aniso.parameters import CONTRAST, RHO, SIGMA, TIME, About
from aniso.schemes import FSI, Cycle
from aniso.settings import EngineName, Progress, Settings, check_progress, report_progress
from aniso.stencil import DeltaStencil
from aniso.verbs.edge_contrast import (
    check_contrast,
    check_sums,
    choose_contrast,
    choose_scale,
    usual_difference,
)
from aniso.verbs.info import UpsampleInfo

__all__ = ["upsample"]

# As dissipative as the longest steps allow.
_STENCIL = DeltaStencil(alpha=0.25, gamma=0.0)
# The contrast, as a part of the usual difference between neighbours, and at least as a part of the spread.
_SHARE, _LEAST = 0.3, 0.003
# Number of FSI cycles.
_CYCLES = 2
_TIME = replace(TIME, open_low=False, auto="8 squared pixels of the input")
_FACTOR = About(
    unit="×", low=1, high=8, whole=True, choices=(2, 3, 4, 6, 8), meaning="how many times finer the result is"
)


@takes_arrays(
    dask="image.compute(), if it fits in memory: Dask arrays cannot be upsampled yet",
    labelled="image.to_numpy(): the coordinates of the finer grid are not known",
)
def upsample(
    image: npt.ArrayLike,
    factor: Annotated[int, _FACTOR],
    *,
    contrast: Annotated[float | Auto, replace(CONTRAST, auto="from the differences of neighbours")] = "auto",
    sigma: Annotated[float | Auto, replace(SIGMA, auto="0.45·√factor finer pixels")] = "auto",
    rho: Annotated[float | Auto, replace(RHO, auto="as σ")] = "auto",
    time: Annotated[float | Auto, _TIME] = "auto",
    spacing: Spacing | None = None,
    channel_axis: int | None = None,
    engine: EngineName | None = None,
    threads: int | None = None,
    progress: Progress = None,
    return_info: bool = False,
) -> Any:
    """Increase the resolution of an image, with sharper and smoother edges than splines.

    Each pixel of the image is the mean of a block of factor × factor finer pixels (in a volume
    factor × factor × factor). The start is a cubic spline; then the finer image diffuses along its edges
    (:class:`aniso.models.EdgeContinuing` with the Charbonnier diffusivity), and each step is projected onto
    the images with these block means.

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
        Standard deviations of the Gaussians for presmoothing and integration, in the units of `spacing`; by
        default 0.45·√factor times the geometric mean of the spacing of the finer pixels.
    time : float or "auto"
        The diffusion time; by default 8 times the squared geometric mean of the spacing of the image.
    spacing : float or one float per axis, optional
        Pixel spacing of the image along each axis, without the channels.
    channel_axis : int, optional
        The axis of the channels. They share one diffusion tensor, so that their edges agree.
    engine, threads, progress
        As for :func:`aniso.diffuse`.
    return_info : bool
        If True, also return the values used.

    Returns
    -------
    array
        An array of the same kind, `factor` times as long along all axes except that of the channels. float32
        and float64 are kept; integers and float16 are converted to float32, without rescaling.
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
    factor = _check_factor(factor)
    wanted = check_contrast(contrast)
    duration = checks.number_or_auto("time", time, "the diffusion time", open_low=False)
    check_progress(progress)
    given = check_image(image, channel_axis)
    channels = channels_first(given, channel_axis)
    settings = Settings.check(
        channels.ndim - 1,
        stencil=_STENCIL,
        scheme=FSI(_CYCLES),
        spacing=spacing,
        engine=engine,
        threads=threads,
    )
    coarse = channels.astype(result_type(given.dtype))
    check_sums(coarse)
    spacings = settings.spacings
    pixel = pixel_size(spacings)
    scale = 0.45 * pixel / math.sqrt(factor)
    if wanted is None:
        spread = float(coarse.std(axis=tuple(range(1, coarse.ndim)), dtype=np.float64).max())
        wanted = choose_contrast(_SHARE * usual_difference(coarse, spacings), _LEAST * spread / pixel)
    scales = choose_scale("sigma", sigma, scale), choose_scale("rho", rho, scale)
    model = EdgeContinuing(wanted, *scales, "charbonnier")
    end = 8 * pixel**2 if duration is None else duration

    settings = replace(settings, spacings=tuple(h / factor for h in spacings))
    start = _interpolate(coarse, factor)
    # Also for factor 1, so that all options are checked.
    evolving = EvolvingImage.of_channels(start, settings.prepare(model, start.shape[1:]))
    steps = 0
    with contextlib.closing(evolving.evolution), report_progress(progress, end) as report:
        _project(evolving.pixels(), coarse, factor)
        if factor > 1:
            for number, cycle in enumerate(evolving.prepared.plan(end)):
                for k, _ in enumerate(_projected_steps(evolving, cycle, coarse, factor), 1):
                    report(end * (number + k / len(cycle.steps)) / _CYCLES)
                    steps += 1
            # Sums in single precision are not accurate enough for the means of blocks.
            _project(evolving.pixels(), coarse, factor, np.float64)
    fine = coarse if factor == 1 else evolving.image()
    result = channels_back(fine, channel_axis)
    if not return_info:
        return result
    mismatch = float(abs(_block_means(fine, factor, np.float64) - coarse).max())
    return result, UpsampleInfo(factor, model.contrast, model.sigma, model.rho, end, steps, mismatch)


def _check_factor(factor: Any) -> int:
    remedy = "Give a whole number from 1 to 8; for other sizes, resample the result."
    whole = checks.whole("factor", factor, remedy)
    if not 1 <= whole <= 8:
        raise ValueError(f"factor must lie in [1, 8], got {factor}. {remedy}")
    return whole


def _projected_steps(evolving: EvolvingImage, cycle: Cycle, coarse: Array, factor: int) -> Iterator[None]:
    """Run FSI steps within the images with these block means, with a new tensor for each step.

    The projection is orthogonal and does not increase eigenvalues, so that FSI is as stable as without it.
    """
    before = None
    for weight, tau in cycle.steps:
        start = evolving.pixels().copy()
        evolving.evolution.advance(Cycle(tau, ((1.0, tau),)))
        image = evolving.pixels()
        np.multiply(image, weight, out=image)
        np.add(image, (1 - weight) * (start if before is None else before), out=image)
        # After extrapolation, which keeps block means except for rounding.
        _project(image, coarse, factor)
        before = start
        yield


def _project(image: Array, coarse: Array, factor: int, dtype: Any = None) -> None:
    """Shift each block so that its mean is right."""
    shift: Array = coarse - _block_means(image, factor, dtype)
    for axis in range(1, coarse.ndim):
        shift = np.repeat(shift, factor, axis=axis)
    np.add(image, shift, out=image, casting="same_kind")


def _block_means(image: Array, factor: int, dtype: Any) -> Array:
    """Return means over blocks of `factor` pixels along each axis except the first."""
    for axis in range(1, image.ndim):
        shape = image.shape
        blocks = image.reshape(*shape[:axis], shape[axis] // factor, factor, *shape[axis + 1 :])
        image = blocks.mean(axis=axis + 1, dtype=dtype)
    return image


def _interpolate(coarse: Array, factor: int) -> Array:
    """Return cubic splines between the centres of pixels, mirrored at the edges of the image."""
    from scipy import ndimage

    if factor == 1:
        return coarse
    return np.stack(
        [ndimage.zoom(channel, factor, order=3, mode="reflect", grid_mode=True) for channel in coarse]
    )
