"""enhance(): lines and flow-like patterns, freed from noise and closed where they are interrupted."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from scipy import ndimage

from aniso import checks, estimates
from aniso.arrays import channels_back, channels_first, checked_image, result_type
from aniso.blocks.lazy import is_dask
from aniso.checks import Auto, Spacing
from aniso.evolve import EngineName, Progress, check_progress, diffuse, reporter
from aniso.parameters import CONTRAST, NOISE, PLATES, TIME, About
from aniso.schemes import FED
from aniso.stencil import DeltaStencil, Stencil
from aniso.verbs.dispatch import takes_tensors
from aniso.verbs.info import EnhanceInfo
from aniso.verbs.line_scales import CYCLES, LineScales

__all__ = ["enhance"]

Image = npt.NDArray[Any]


# Scales of the remedies, as parts of the wavelength.
_COMPARED, _MEAN, _NEIGHBOURHOOD, _LOST = 0.12, 0.5, 0.25, 0.35
_PUT_BACK = (0.15, 0.1, 0.05, 0.025)
_ROUNDS = 3


_WAVELENGTH = About(
    unit="length",
    open_low=True,
    slider=(4.0, 40.0),
    meaning="distance from line to line; all scales follow from it",
)
_COHERENCE = replace(CONTRAST, meaning="structures that are more coherent than this are enhanced")
_REFINE = About(switch=True, meaning="close gaps and put back lost structure, or diffuse only once")


@takes_tensors
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
    """Coherence enhancement: lines, and in volumes layers, are freed from noise, and their gaps close.

    Coherence-enhancing diffusion, with scales that follow the distance of the lines, and with three remedies
    for what it does wrong by itself:

    - The image goes on beyond its boundary along its lines, where a mirror would bend them.
    - Gaps dilute the lines beside them. Where the image is significantly fainter than the diffused one, it
      is taken to be interrupted, and diffusion starts again with those pixels filled in, three times.
    - Diffusion wears off what is strongly curved. Where the residual is significantly larger than
      elsewhere, it is put back, smoothed at scales from coarse to fine.

    Parameters
    ----------
    image : array
        An image (H, W) or a volume (D, H, W), with any number of channels along `channel_axis`. Never
        modified.
    noise : float or "auto"
        Standard deviation of the noise in grey values; by default :func:`aniso.estimates.noise_level`.
    wavelength : float or "auto"
        Distance from line to line in units of length; :func:`aniso.estimates.wavelength` by default.
    contrast : float or "auto"
        λ in grey values per unit length: structures whose coherence exceeds it are enhanced. By default
        0.39 of what :func:`aniso.estimates.contrast` finds typical (λ² is 0.15 of the typical coherence), in
        volumes 0.2 of it.
    time : float or "auto"
        Time of a diffusion, in squared units of length. By default 1.2 times the squared wavelength times
        noise over signal, but at least 0.1 and at most 1 of the squared wavelength; the first of the
        diffusions takes at least 0.35 of it. In volumes 0.1 (between 0.03 and 0.12, 0.05 for the first) with
        plates and 0.3 (0.1, 0.4, 0.2) without.
    plates : bool
        For volumes: whether plates (layers, membranes) are structures too. False, for fibres and vessels,
        takes only lines for structure, see :class:`aniso.CoherenceEnhancing`. Images do not depend on it.
    refine : bool, optional
        False: only one diffusion, without the three remedies, which Dask arrays never have.
    stencil : DeltaStencil or FreeStencil
        How the diffusion is discretised.
    spacing : float or one float per axis, optional
        Distance of the pixels, axis 0 first, without the channels.
    channel_axis : int, optional
        The axis of the channels.
    engine, threads, progress
        As for :func:`aniso.diffuse`.
    return_info : bool
        Whether to return also what was chosen.

    Returns
    -------
    array
        Of the shape of the image. float32 and float64 are kept; integers and float16 give float32, in the
        grey scale they have.
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
    if is_dask(image):
        from aniso.verbs.chunked import filter_by_recipe

        return filter_by_recipe(
            "enhance", image, noise=noise, wavelength=wavelength, contrast=contrast, time=time, plates=plates,
            refine=refine, stencil=stencil, spacing=spacing, channel_axis=channel_axis, engine=engine,
            threads=threads, progress=progress, return_info=return_info,
        )  # fmt: skip
    refine = refine is not False
    array = checked_image(image, channel_axis)
    dtype = result_type(array.dtype)
    if array.ndim - (channel_axis is not None) < 2:
        raise ValueError(
            f"image must have at least two axes besides the channels, got shape {array.shape}: a signal has "
            "no lines. Use denoise for signals."
        )
    scene = LineScales.of(array, noise, wavelength, contrast, time, plates, spacing, channel_axis)
    channels = channels_first(array, channel_axis)
    channels = channels.astype(dtype)
    times = [max(scene.time, scene.first), *[scene.time] * (_ROUNDS if refine else 0)]
    with reporter(progress, sum(times)) as report:

        def diffused(start: Image, number: int) -> Image:
            return diffuse(
                start,
                scene.model,
                times[number],
                stencil=stencil,
                scheme=FED(CYCLES),
                spacing=scene.spacings,
                channel_axis=0,
                engine=engine,
                threads=threads,
                progress=lambda done, _: report(sum(times[:number]) + done),
            )

        if scene.flat:
            result, told_shares = channels, (0.0, 0.0)
        elif refine:
            result, told_shares = _refined(channels, scene, diffused)
        else:
            result, told_shares = diffused(channels, 0), (0.0, 0.0)
    result = result.astype(dtype, copy=False)
    result = channels_back(result, channel_axis)
    if not return_info:
        return result
    model = scene.model
    return result, EnhanceInfo(
        scene.noise,
        scene.wavelength,
        model.contrast,
        model.sigma,
        model.rho,
        scene.time,
        len(times),
        *told_shares,
    )


def _refined(
    channels: Image, scene: LineScales, diffused: Callable[[Image, int], Image]
) -> tuple[Image, tuple[float, float]]:
    margins = tuple(math.ceil(scene.wavelength / h) for h in scene.spacings)
    inner: Any = (..., *(slice(margin, -margin) for margin in margins))
    start = _continued(channels, scene, margins)
    result = diffused(start, 0)
    for number in range(1, _ROUNDS + 1):
        trust = _uninterrupted(start, result, scene)
        result = diffused(trust * start + (1 - trust) * result, number)
    share: Image = np.zeros(())
    for part in _PUT_BACK:
        lost = scene.smooth(trust * (start - result), part)
        energy = scene.smooth(np.mean(lost * lost, axis=0), _LOST)
        usual = 2 * np.median(energy)
        share = 1 - np.divide(usual, energy, out=np.ones_like(energy), where=energy > usual)
        result = result + share * lost
    return result[inner], (float(1 - trust[inner].mean()), float((share[inner] > 0.5).mean()))


def _uninterrupted(start: Image, result: Image, scene: LineScales) -> Image:
    """1 where the image is to be trusted, towards 0 where a line is interrupted.

    There the image departs from the diffused one towards the mean, by more than 2.5 of the typical departure,
    and has less than ¾ of its energy around.
    """
    departure = scene.smooth(start - result, _COMPARED)
    typical = 1.4826 * float(np.median(np.abs(departure)))
    mean = scene.smooth(result, _MEAN)
    seen, wave = scene.smooth(start, _COMPARED) - mean, result - mean
    tiny = np.finfo(result.dtype).tiny
    towards_mean = -np.sum(departure * wave, axis=0) / np.sqrt(np.maximum(np.sum(wave * wave, axis=0), tiny))
    energies = (scene.smooth(np.sum(part * part, axis=0), _NEIGHBOURHOOD) for part in (seen, wave))
    left = np.divide(*(np.maximum(energy, tiny) for energy in energies))
    faint = np.clip(4 * (0.75 - left), 0, 1)
    excess = faint * np.maximum(towards_mean, 0) / max(2.5 * typical, tiny)
    # Beyond 1000 times the typical departure nothing changes, but powers may overflow.
    trust: Image = 1 / (1 + np.minimum(excess, 1e3) ** 6)
    return trust


def _continued(channels: Image, scene: LineScales, margins: tuple[int, ...]) -> Image:
    """The image with a margin around it, filled along its lines.

    Each new pixel takes the value found by going along the direction of the lines, as it is at the nearest
    pixel inside, back to the image: s·t with the least ∣s·t − way∣, t the direction, and the way counted
    along the axes on which the pixel lies outside. Along lines parallel to the boundary that would be far;
    the constant in the divisor makes it go straight instead.
    """
    sigma, shape = scene.model.sigma, channels.shape[1:]
    trim = tuple(
        min(math.ceil(2 * sigma / h), (n - 1) // 4) for h, n in zip(scene.spacings, shape, strict=True)
    )
    tensor = estimates.structure_tensor(channels, sigma, scene.model.rho, scene.spacings, trim)
    result = np.pad(channels, [(0, 0), *((margin,) * 2 for margin in margins)])
    within = tuple(slice(margin, margin + n) for margin, n in zip(margins, shape, strict=True))
    outside = np.ones(result.shape[1:], bool)
    outside[within] = False
    place = np.argwhere(outside) - margins
    nearest = np.clip(place, trim, np.subtract(shape, trim) - 1) - trim
    _, vectors = np.linalg.eigh(np.moveaxis(tensor[:, :, *nearest.T], -1, 0))
    along, last = vectors[..., 0], np.subtract(shape, 1)
    way = (np.clip(place, 0, last) - place) * scene.spacings
    reach = np.sum(way * along, axis=1) / (np.sum(np.where(way != 0, along**2, 0), axis=1) + 0.02)
    source = np.clip(place + reach[:, np.newaxis] * along / scene.spacings, 0, last)
    for channel, inner in zip(result, channels, strict=True):
        channel[outside] = ndimage.map_coordinates(inner, source.T, order=1)
    return result
