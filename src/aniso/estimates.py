"""What the verbs find out about an image by themselves: its noise, its contrast, the distance of its lines.

Noise is meant to be additive, white and Gaussian. Noise and contrast are proportional to the image, and the
wavelength does not depend on its grey scale.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import ndimage

from aniso import checks
from aniso.arrays import Array, Field, Mask, channels_first, check_image, result_type
from aniso.checks import Auto, Spacing

__all__ = ["contrast", "noise_level", "wavelength"]

# The high-pass filter along each axis: blind to linear ramps, and it leaves the variance of white noise.
_HIGH_PASS = np.array([1.0, -2.0, 1.0]) / math.sqrt(6)
# Median of |x| for a standard normal x.
_MEDIAN_DEVIATION = 0.6744897501960817
# Variance of a standard normal x given |x| ≤ 2.5: 1 − 2·2.5·φ(2.5)/(2·Φ(2.5) − 1).
_VARIANCE_WITHIN = 0.9112563609353919
# Steepness over that of noise alone up to which a place in a volume is flat; how often the level is refined.
_NOISE_STEEPNESS, _NOISE_ROUNDS = 1.3, 5
# Where is it flat? Seen through a Gaussian of this width in pixels, in this share of them, by the number of
# axes: volumes have more pixels to choose from. And the width of the Gaussian that averages.
_FLAT = {1: (1.5, 0.25), 2: (1.5, 0.25), 3: (1.0, 0.15)}
_FLAT_AVERAGED = 2.0
# Mean range of the eigenvalues of a random symmetric matrix (normal entries, off the diagonal of variance 1,
# on it of variance 2) over their number, by the number of axes; for images what fits smoothed noise, 1 in
# place of 1.25.
_RANGE = {1: 1.0, 2: 1.0, 3: 4.142 / 3}
# About so many eigenvalues are looked at.
_ENOUGH_VOXELS = 2**16
# A grey value at the end of the scale that this share of the pixels has is taken for a clipped one.
_CLIPPED_SHARE = 0.01


def noise_level(image: npt.ArrayLike, *, channel_axis: int | None = None) -> float:
    """Standard deviation of the noise, in grey values.

    A second difference along every axis removes smooth structure and keeps white noise at its strength. Its
    median deviation is taken over the flattest quarter of the image: the pixels around which the gradient,
    seen through a Gaussian of 1.5 pixels, is smallest. Flatness is judged at low and noise at high
    frequencies, so that the choice hardly favours pixels where the noise happens to be weak. Pixels next
    to clipped ones (the least and the largest grey value, if 1 % of the pixels have it) do not count, nor
    those at the boundary.

    In volumes flatness is seen through a Gaussian of 1 voxel, and the flattest 0.15 give the first estimate.
    It is refined by the root mean square over them and over all places that are not clearly steeper than
    noise alone makes them (1.3 times), without values beyond 2.5 standard deviations: what remains after
    denoising a volume is a small part of the noise, and can be judged only if the level is exact.

    Fine texture that fills the whole image cannot be told from noise and is counted with it.

    Parameters
    ----------
    image : array
        A signal, an image or a volume.
    channel_axis : int, optional
        The axis of the channels, whose variances are averaged.

    Returns
    -------
    float
        At least 0.

    Examples
    --------
    >>> import numpy as np, aniso
    >>> noisy = np.linspace(0, 200, 128) + np.random.default_rng(0).normal(0, 10, (128, 128))
    >>> bool(9 < aniso.estimates.noise_level(noisy) < 11)
    True
    """
    return measure_noise(_check_channels(image, channel_axis))


def contrast(
    image: npt.ArrayLike,
    *,
    noise: float | Auto = "auto",
    sigma: float = 1.0,
    rho: float = 0.0,
    quantile: float = 0.5,
    spacing: Spacing | None = None,
    channel_axis: int | None = None,
) -> float:
    """Typical strength of structures, in grey values per unit length.

    The root of a quantile of μ1 − μ2, the gap between the largest and the smallest eigenvalue of the
    structure tensor. Noise has no direction: its share in the gap, which averaging over `rho` lowers, is
    subtracted, and the result never falls below it. With ``rho=0`` the gap is the squared gradient.

    Parameters
    ----------
    image : array
        A signal, an image or a volume.
    noise : float or "auto"
        Its noise level in grey values; by default :func:`noise_level`.
    sigma, rho : float
        Noise scale and integration scale, in units of length.
    quantile : float
        Which quantile over the pixels: 0.5 is the median, 0.9 the strength of marked edges.
    spacing : float or one float per axis, optional
        Pixel spacing along each axis.
    channel_axis : int, optional
        The axis of the channels; their structure tensors are averaged.

    Returns
    -------
    float
        At least 0; 0 only for an image without noise and, up to the quantile, without structure.

    Examples
    --------
    >>> import numpy as np, aniso
    >>> ramp = np.linspace(0, 5 * 63, 64) + np.zeros((64, 1))
    >>> round(aniso.estimates.contrast(ramp), 2)
    5.0
    """
    channels = _check_channels(image, channel_axis)
    spacings = checks.axis_spacing(spacing, channels.ndim - 1)
    level = choose_noise(noise, channels)
    for name, width in (("sigma", sigma), ("rho", rho)):
        number = checks.within(name, width, 0, math.inf, "it is the width of a Gaussian.")
        checks.not_too_many_pixels(name, number, spacings)
    checks.within("quantile", quantile, 0, 1, "it is a share of the pixels.")
    return measure_contrast(channels, level, sigma, rho, spacings, quantile)


def measure_contrast(
    channels: Array,
    level: float,
    sigma: float,
    rho: float,
    spacings: tuple[float, ...],
    quantile: float = 0.5,
) -> float:
    """Return the contrast of an array (channels, …) that is checked already."""
    tensor = structure_tensor(channels.astype(np.float64), sigma, rho, spacings)
    gap = float(np.quantile(_eigenvalue_gap(tensor), quantile))
    share = level**2 * _noise_gap(sigma, rho, spacings, len(channels))
    return math.sqrt(max(gap - share, share))


def wavelength(
    image: npt.ArrayLike,
    *,
    noise: float | Auto = "auto",
    spacing: Spacing | None = None,
    channel_axis: int | None = None,
) -> float:
    """Typical distance from line to line, in units of length.

    In a wave, gradient and deviation from the mean are in the ratio of 2π to the wavelength. Both are
    measured behind a Gaussian of one pixel, and what the noise contributes to them is subtracted.

    Parameters
    ----------
    image : array
        A signal, an image or a volume.
    noise : float or "auto"
        Its noise level in grey values; by default :func:`noise_level`.
    spacing : float or one float per axis, optional
        Pixel spacing along each axis.
    channel_axis : int, optional
        The axis of the channels.

    Returns
    -------
    float
        Between 4 pixels and the largest side of the image. Where there is nothing but noise, 8 pixels.

    Examples
    --------
    >>> import aniso
    >>> rings = aniso.samples.rings(128, period=10.0, noise=40.0)
    >>> round(aniso.estimates.wavelength(rings.image))
    10
    """
    channels = _check_channels(image, channel_axis)
    spacings = checks.axis_spacing(spacing, channels.ndim - 1)
    return measure_wavelength(channels, choose_noise(noise, channels), spacings)


def measure_wavelength(channels: Array, level: float, spacings: tuple[float, ...]) -> float:
    """Return the wavelength of an array (channels, …) that is checked already."""
    channels, variance = channels.astype(np.float64), level**2
    ndim, pixel = len(spacings), pixel_size(spacings)
    # Not differences of neighbours, which see short waves too weak, but derivatives of the Gaussian.
    pulse = np.eye(1, 15, 7)[0]
    plain, slope = (float(np.sum(ndimage.gaussian_filter1d(pulse, 1.0, order=n) ** 2)) for n in (0, 1))
    deviation = -variance * plain**ndim
    steepness = 0.0
    for channel in channels:
        deviation += float(ndimage.gaussian_filter(channel, 1.0).var()) / len(channels)
        for axis, h in enumerate(spacings):
            order = [int(axis == other) for other in range(ndim)]
            energy = float(np.mean(ndimage.gaussian_filter(channel, 1.0, order=order) ** 2))
            steepness += (energy - variance * slope * plain ** (ndim - 1)) / h**2 / len(channels)
    negligible = 1e-12 * float(np.mean(channels * channels))
    if deviation <= negligible or steepness <= negligible / pixel**2:
        return 8.0 * pixel
    longest = max(n * h for n, h in zip(channels.shape[1:], spacings, strict=True))
    found = 2 * math.pi * math.sqrt(deviation / steepness)
    return max(min(found, longest), 4.0 * pixel)


def measure_noise(channels: Array) -> float:
    """Return the noise level of an array (channels, …) that is checked already."""
    doubles = channels.astype(np.float64)
    return math.sqrt(sum(_channel_noise(channel) ** 2 for channel in doubles) / len(channels))


def _check_channels(image: npt.ArrayLike, channel_axis: int | None) -> Array:
    """Return a checked image as (channels, …)."""
    array = check_image(image, channel_axis)
    _check_squares_of("image", array, np.dtype(np.float64))
    channels: Array = channels_first(array, channel_axis)
    return channels


def check_squares(image: Array) -> None:
    """Reject grey values whose squares exceed the range of the type that is computed in."""
    _check_squares_of("image", image, result_type(image.dtype))


def _check_squares_of(name: str, values: npt.ArrayLike, precision: np.dtype[Any]) -> None:
    size = 140 if precision == np.float64 else 15
    checks.ordinary(name, values, 10.0**-size, 10.0**size, precision.name)


def choose_noise(noise: float | Auto, channels: Array) -> float:
    """Return the given noise level, or else that of a checked array (channels, …)."""
    meaning = "the standard deviation of the noise in grey values"
    level = checks.number_or_auto("noise", noise, meaning, open_low=False)
    if level is None:
        return measure_noise(channels)
    _check_squares_of("noise", level, result_type(channels.dtype))
    return level


def pixel_size(spacings: tuple[float, ...]) -> float:
    """One length for pixels that may be longer along one axis than along another: the geometric mean."""
    return math.exp(sum(math.log(h) for h in spacings) / len(spacings))


def slopes(channel: Field, widths: tuple[float, ...]) -> Iterator[Field]:
    """Derivatives of a Gaussian-smoothed channel along its axes, per pixel.

    They are central differences, which see ramps as they are.
    """
    seen = ndimage.gaussian_filter(channel, widths, mode="reflect")
    for axis in range(channel.ndim):
        yield ndimage.correlate1d(seen, [-0.5, 0.0, 0.5], axis, mode="reflect")


def structure_tensor(
    channels: Field,
    sigma: float,
    rho: float,
    spacings: tuple[float, ...],
    trim: tuple[int, ...] | None = None,
) -> Field:
    """Over the pixels, shape (ndim, ndim, …), per unit length: mean over the channels, averaged over rho.

    `trim` leaves out so many pixels at the ends of each axis, where the smoothed image is mirrored.
    """
    narrow, wide = (tuple(scale / h for h in spacings) for scale in (sigma, rho))
    ndim, shape = len(spacings), channels.shape[1:]
    inner = tuple(slice(cut, n - cut) for cut, n in zip(trim or (0,) * ndim, shape, strict=True))
    pairs = list(itertools.combinations_with_replacement(range(ndim), 2))
    sums: dict[tuple[int, int], Any] = dict.fromkeys(pairs, 0.0)
    for channel in channels:
        rates = [slope[inner] / h for slope, h in zip(slopes(channel, narrow), spacings, strict=True)]
        for i, j in pairs:
            sums[i, j] = sums[i, j] + rates[i] * rates[j] / len(channels)
    # Beyond the boundary it goes on as at it: mirroring would turn the direction.
    for pair in pairs:
        sums[pair] = ndimage.gaussian_filter(sums[pair], wide, mode="nearest")
    return np.array([[sums[min(i, j), max(i, j)] for j in range(ndim)] for i in range(ndim)])


def _eigenvalue_gap(tensor: Field) -> Field:
    if len(tensor) == 1:
        return tensor[0, 0]
    if len(tensor) == 2:
        return np.hypot(tensor[0, 0] - tensor[1, 1], 2 * tensor[0, 1])
    # In a volume a part of the voxels, evenly spread, is enough for a quantile.
    step = max(1, math.floor((tensor[0, 0].size / _ENOUGH_VOXELS) ** (1 / 3)))
    values = np.linalg.eigvalsh(np.moveaxis(tensor[:, :, ::step, ::step, ::step], (0, 1), (-2, -1)))
    return values[..., -1] - values[..., 0]


def _channel_noise(channel: Field) -> float:
    """The noise level of one channel."""
    if channel.size == 1:
        return 0.0
    fine = channel
    steepness = np.zeros_like(channel)
    inside = tuple(slice(1, -1) if n > 2 else slice(None) for n in channel.shape)
    for axis, n in enumerate(channel.shape):
        if n == 1:  # nothing varies along it
            continue
        # Beyond two pixels there is a mirror, and their difference is all that is known.
        fine = ndimage.correlate1d(fine, _HIGH_PASS * (1 if n > 2 else math.sqrt(3)), axis, mode="reflect")
    seen, share = _FLAT[channel.ndim]
    for slope in slopes(channel, (seen,) * channel.ndim):
        steepness += np.square(slope, out=slope)
    steepness = ndimage.gaussian_filter(steepness, _FLAT_AVERAGED, mode="reflect")
    trusted = ~_near_clipped(channel)[inside]
    # At the boundary, where the image is mirrored, there is less of everything.
    fine, steepness = fine[inside], steepness[inside]
    if trusted.mean() < 0.01:
        trusted[...] = True
    fine, steepness = fine[trusted], steepness[trusted]
    flat = steepness <= np.quantile(steepness, share)
    deviation = float(np.median(abs(fine[flat]))) / _MEDIAN_DEVIATION
    if channel.ndim < 3:
        return deviation
    # Diffusion leaves so little of the noise in a volume that its error is judged well only if the level is
    # known well: whatever is no steeper than noise makes it is taken too, and not by its median.
    for _ in range(_NOISE_ROUNDS):
        among = flat | (steepness <= _NOISE_STEEPNESS * deviation**2 * _gradient_energy(seen, (1.0,) * 3))
        values = fine[among]
        values = values[abs(values) <= 2.5 * deviation]
        deviation = math.sqrt(float(np.mean(values * values)) / _VARIANCE_WITHIN)
    return deviation


def _near_clipped(channel: Field) -> Mask:
    clipped = np.zeros(channel.shape, bool)
    for end in (channel.min(), channel.max()):
        at_end = channel == end
        if at_end.mean() > _CLIPPED_SHARE:
            clipped |= at_end
    return ndimage.maximum_filter(clipped, 3, mode="reflect")


@functools.lru_cache(maxsize=64)
def _kernel_energies(width: float) -> tuple[float, float]:
    """Σk² of the Gaussian and of its central difference, along one axis: what they leave of white noise."""
    pulse = np.zeros(2 * int(4 * width + 0.5) + 5)
    pulse[len(pulse) // 2] = 1.0
    kernel = ndimage.gaussian_filter1d(pulse, width, mode="constant") if width > 0 else pulse
    slope = np.convolve(kernel, [0.5, 0.0, -0.5])
    return float(kernel @ kernel), float(slope @ slope)


def _gradient_energy(sigma: float, spacings: tuple[float, ...]) -> float:
    """Mean squared gradient of white noise of variance 1, seen through a Gaussian."""
    energies = [_kernel_energies(sigma / h) for h in spacings]
    return sum(
        math.prod(slope if axis == other else plain for other, (plain, slope) in enumerate(energies)) / h**2
        for axis, h in enumerate(spacings)
    )


def _noise_gap(sigma: float, rho: float, spacings: tuple[float, ...], channels: int) -> float:
    """Mean of μ1 − μ2 for white noise of variance 1.

    Without averaging it is the mean squared gradient. Averaging over about (1 + 2ρ²/σ²)^(ndim/2) independent
    gradients, and over the channels, lowers it by the root of their number. In volumes, where it is the range
    of three eigenvalues, it is larger: as long as there is an average at all.
    """
    gradient = _gradient_energy(sigma, spacings)
    # A gradient of the sampled image is independent of those some half a pixel away, at best.
    own = max(sigma, 0.5 * pixel_size(spacings))
    number = channels * (1 + 2 * rho**2 / own**2) ** (0.5 * len(spacings))
    return gradient * min(_RANGE[len(spacings)] / math.sqrt(number), 1.0)
