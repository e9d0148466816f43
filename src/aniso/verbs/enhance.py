"""enhance(): coherence enhancement of lines and flow-like patterns."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from aniso import checks, estimates
from aniso.arrays import Array, channels_back, channels_first, check_image, result_type
from aniso.checks import Auto, Spacing
from aniso.dispatch import takes_arrays
from aniso.evolve import EvolvingImage
from aniso.parameters import CONTRAST, NOISE, PLATES, TIME, About
from aniso.schemes import FED
from aniso.settings import EngineName, Progress, Settings, check_progress, report_progress
from aniso.stencil import DeltaStencil, Stencil
from aniso.verbs import chunked
from aniso.verbs.info import EnhanceInfo
from aniso.verbs.line_scales import CYCLES, LineScales

__all__ = ["enhance"]

# Scales of the corrections, as parts of the wavelength.
_COMPARED, _MEAN, _NEIGHBOURHOOD, _LOST = 0.12, 0.5, 0.25, 0.35
_PUT_BACK = (0.15, 0.1, 0.05, 0.025)
_ROUNDS = 3

_WAVELENGTH = About(
    unit="length",
    open_low=True,
    slider=(4.0, 40.0),
    meaning="distance between lines; all scales follow from it",
)
_COHERENCE = replace(CONTRAST, meaning="structures that are more coherent than this are enhanced")
_REFINE = About(switch=True, meaning="close gaps and put back lost structure, or diffuse only once")


@takes_arrays(dask=chunked.enhance)
def enhance(
    image: npt.ArrayLike,
    *,
    noise: Annotated[float | Auto, NOISE] = "auto",
    wavelength: Annotated[float | Auto, _WAVELENGTH] = "auto",
    contrast: Annotated[float | Auto, _COHERENCE] = "auto",
    time: Annotated[float | Auto, replace(TIME, auto="from the wavelength and the noise")] = "auto",
    plates: Annotated[bool, PLATES] = True,
    refine: Annotated[bool | None, _REFINE] = None,
    stencil: Stencil = DeltaStencil(alpha=0.45),  # noqa: B008 (frozen)
    spacing: Spacing | None = None,
    channel_axis: int | None = None,
    engine: EngineName | None = None,
    threads: int | None = None,
    progress: Progress = None,
    return_info: bool = False,
) -> Any:
    """Remove noise from lines, and in volumes from layers, and close their gaps.

    Coherence-enhancing diffusion, with scales that follow from the distance between the lines, and with three
    corrections:

    - The image is extended beyond its boundary along its lines, since mirroring would bend them.
    - Gaps weaken the lines next to them. Where the image is significantly fainter than the diffused one, a
      line is considered interrupted, and diffusion starts again with those pixels filled in, three times.
    - Diffusion removes strongly curved structures. Where the residual is significantly larger than
      elsewhere, it is added again, smoothed at scales from coarse to fine.

    Parameters
    ----------
    image : array
        An image (H, W) or a volume (D, H, W), with any number of channels along `channel_axis`. Never
        modified.
    noise : float or "auto"
        Standard deviation of the noise in grey values; by default :func:`aniso.estimates.noise_level`.
    wavelength : float or "auto"
        Distance between lines in units of length; :func:`aniso.estimates.wavelength` by default.
    contrast : float or "auto"
        λ in grey values per unit length: structures whose coherence exceeds it are enhanced. By default
        0.39 of :func:`aniso.estimates.contrast` (λ² is 0.15 of the typical coherence), in volumes 0.2 of it.
    time : float or "auto"
        Time of a diffusion, in squared units of length. By default 1.2 times the squared wavelength times
        noise over signal, but at least 0.1 and at most 1 of the squared wavelength; the first of the
        diffusions takes at least 0.35 of it. In volumes 0.1 (between 0.03 and 0.12, 0.05 for the first) with
        plates and 0.3 (0.1, 0.4, 0.2) without.
    plates : bool
        For volumes: if True, plates (layers, membranes) are structures too; False is for fibres and vessels,
        see :class:`aniso.CoherenceEnhancing`. Has no effect on images.
    refine : bool, optional
        If False, diffuse only once, without the three corrections. Dask arrays are never corrected.
    stencil : DeltaStencil or FreeStencil
        The spatial discretisation.
    spacing : float or one float per axis, optional
        Pixel spacing along each axis, without the channels.
    channel_axis : int, optional
        The axis of the channels.
    engine, threads, progress
        As for :func:`aniso.diffuse`.
    return_info : bool
        If True, also return the values used.

    Returns
    -------
    array
        An array of the same kind and shape. float32 and float64 are kept; integers and float16 are converted
        to float32, without rescaling.
    aniso.info.EnhanceInfo
        Only with ``return_info=True``.

    Examples
    --------
    >>> import aniso
    >>> rings = aniso.samples.rings(96)
    >>> result, info = aniso.enhance(rings.image, return_info=True)
    >>> bool(abs(result - rings.truth).mean() < 0.3 * abs(rings.image - rings.truth).mean())
    True
    >>> bool((result < 127.5)[rings.gaps].mean() > 0.9)
    True
    """
    check_progress(progress)
    checks.instance("plates", plates, (bool,), "True or False", "plates=False for fibres")
    refine = refine is not False
    array = check_image(image, channel_axis)
    dtype = result_type(array.dtype)
    channels = channels_first(array, channel_axis)
    if channels.ndim < 3:
        raise ValueError(
            f"image must have at least two axes besides the channels, got shape {array.shape}: a signal has "
            "no lines. Use denoise for signals."
        )
    settings = Settings.check(
        channels.ndim - 1,
        stencil=stencil,
        scheme=FED(CYCLES),
        spacing=spacing,
        engine=engine,
        threads=threads,
    )
    scales = LineScales.estimate(
        channels,
        settings.spacings,
        noise=noise,
        wavelength=wavelength,
        contrast=contrast,
        time=time,
        plates=plates,
    )
    channels = channels.astype(dtype)
    times = [max(scales.time, scales.first), *[scales.time] * (_ROUNDS if refine else 0)]
    with report_progress(progress, sum(times)) as report:

        def run(start: Array, number: int) -> Array:
            evolving = EvolvingImage.of_channels(start, settings.prepare(scales.model, start.shape[1:]))
            before = sum(times[:number])
            result: Array = evolving.diffuse(times[number], lambda done: report(before + done))
            return result

        shares = 0.0, 0.0
        if scales.flat:
            result = channels
        elif refine:
            result, shares = _refine(channels, scales, run)
        else:
            result = run(channels, 0)
    result = channels_back(result.astype(dtype, copy=False), channel_axis)
    if not return_info:
        return result
    model = scales.model
    return result, EnhanceInfo(
        noise=scales.noise,
        wavelength=scales.wavelength,
        contrast=model.contrast,
        sigma=model.sigma,
        rho=model.rho,
        time=scales.time,
        diffusions=len(times),
        interrupted=shares[0],
        put_back=shares[1],
    )


def _refine(
    channels: Array, scales: LineScales, diffuse: Callable[[Array, int], Array]
) -> tuple[Array, tuple[float, float]]:
    """Diffuse with all corrections; also return the shares of gaps and of structure that was put back."""
    margins = tuple(math.ceil(scales.wavelength / h) for h in scales.spacings)
    inner: Any = (..., *(slice(margin, -margin) for margin in margins))
    start = _extend(channels, scales, margins)
    result = diffuse(start, 0)
    for number in range(1, _ROUNDS + 1):
        trust = _trust(start, result, scales)
        result = diffuse(trust * start + (1 - trust) * result, number)
    share: Array = np.zeros(())
    for part in _PUT_BACK:
        lost = scales.smooth(trust * (start - result), part)
        energy = scales.smooth(np.mean(lost * lost, axis=0), _LOST)
        usual = 2 * np.median(energy)
        share = 1 - np.divide(usual, energy, out=np.ones_like(energy), where=energy > usual)
        result = result + share * lost
    return result[inner], (float(1 - trust[inner].mean()), float((share[inner] > 0.5).mean()))


def _trust(start: Array, result: Array, scales: LineScales) -> Array:
    """Return 1 where the image can be trusted, and less where a line is interrupted.

    There the image departs from the diffused one towards the mean, by more than 2.5 of the typical departure,
    and has less than ¾ of its energy around.
    """
    departure = scales.smooth(start - result, _COMPARED)
    typical = 1.4826 * float(np.median(np.abs(departure)))
    mean = scales.smooth(result, _MEAN)
    seen, wave = scales.smooth(start, _COMPARED) - mean, result - mean
    tiny = np.finfo(result.dtype).tiny
    towards_mean = -np.sum(departure * wave, axis=0) / np.sqrt(np.maximum(np.sum(wave * wave, axis=0), tiny))
    energies = (scales.smooth(np.sum(part * part, axis=0), _NEIGHBOURHOOD) for part in (seen, wave))
    left = np.divide(*(np.maximum(energy, tiny) for energy in energies))
    faint = np.clip(4 * (0.75 - left), 0, 1)
    excess = faint * np.maximum(towards_mean, 0) / max(2.5 * typical, tiny)
    # Beyond 1000 times the typical departure nothing changes, but powers may overflow.
    trust: Array = 1 / (1 + np.minimum(excess, 1e3) ** 6)
    return trust


def _extend(channels: Array, scales: LineScales, margins: tuple[int, ...]) -> Array:
    """Return the image with a margin around it, filled along its lines.

    Each new pixel takes the value of a pixel of the image in the direction of the lines at the nearest pixel
    inside: at the offset s·t with the least ∣s·t − way∣, where t is the direction and the way counts the axes
    on which the pixel lies outside. For lines parallel to the boundary that would be far away; the constant
    in the divisor makes it go straight instead.
    """
    from scipy import ndimage

    sigma, shape = scales.model.sigma, channels.shape[1:]
    trim = tuple(
        min(math.ceil(2 * sigma / h), (n - 1) // 4) for h, n in zip(scales.spacings, shape, strict=True)
    )
    tensor = estimates.structure_tensor(channels, sigma, scales.model.rho, scales.spacings, trim)
    result = np.pad(channels, [(0, 0), *((margin,) * 2 for margin in margins)])
    within = tuple(slice(margin, margin + n) for margin, n in zip(margins, shape, strict=True))
    outside = np.ones(result.shape[1:], bool)
    outside[within] = False
    place = np.argwhere(outside) - margins
    nearest = np.clip(place, trim, np.subtract(shape, trim) - 1) - trim
    _, vectors = np.linalg.eigh(np.moveaxis(tensor[:, :, *nearest.T], -1, 0))
    along, last = vectors[..., 0], np.subtract(shape, 1)
    way = (np.clip(place, 0, last) - place) * scales.spacings
    reach = np.sum(way * along, axis=1) / (np.sum(np.where(way != 0, along**2, 0), axis=1) + 0.02)
    source = np.clip(place + reach[:, np.newaxis] * along / scales.spacings, 0, last)
    for channel, inner in zip(result, channels, strict=True):
        channel[outside] = ndimage.map_coordinates(inner, source.T, order=1)
    return result
