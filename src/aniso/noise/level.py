"""The level of the noise in an image.

Noise is meant to be additive, white and Gaussian.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from aniso import checks
from aniso.arrays import Array, Field, Mask, channels_first, check_image, result_type
from aniso.checks import Auto
from aniso.formulas.gaussian import gaussian_radius

__all__ = ["noise_level"]

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
# A grey value at the end of the scale that this share of the pixels has is taken for a clipped one.
_CLIPPED_SHARE = 0.01


def noise_level(image: npt.ArrayLike, *, channel_axis: int | None = None) -> float:
    """Estimate the standard deviation of the noise, in grey values.

    A second difference along every axis removes smooth structure and keeps white noise at its strength. Its
    median deviation is taken over the flattest quarter of the image: the pixels around which the gradient,
    after a Gaussian of 1.5 pixels, is smallest. Flatness is judged at low and noise at high
    frequencies, so that the choice hardly favours pixels where the noise happens to be weak. Pixels next
    to clipped ones (the least and the largest grey value, if 1 % of the pixels have it) are excluded, and
    so are those at the boundary.

    In volumes, this Gaussian has 1 voxel, and the flattest 0.15 of the voxels give the first estimate.
    It is refined by the root mean square over them and over all places that are not clearly steeper than
    noise alone makes them (1.3 times), without values beyond 2.5 standard deviations: what remains after
    denoising a volume is a small part of the noise, and can be judged only if the level is exact.

    Fine texture that fills the whole image is indistinguishable from noise and counted with it.

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
    return measure_noise(check_channels(image, channel_axis))


def measure_noise(channels: Array) -> float:
    """Return the noise level of an array (channels, …) that is checked already."""
    doubles = channels.astype(np.float64)
    return math.sqrt(sum(_channel_noise(channel) ** 2 for channel in doubles) / len(channels))


def check_channels(image: npt.ArrayLike, channel_axis: int | None) -> Array:
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
    check_level(level, result_type(channels.dtype))
    return level


def check_level(level: float, precision: np.dtype[Any]) -> None:
    """Reject a level whose square exceeds the range of the type that is computed in."""
    _check_squares_of("noise", level, precision)


def slopes(channel: Field, widths: tuple[float, ...]) -> Iterator[Field]:
    """Compute the derivatives of a Gaussian-smoothed channel along its axes, per pixel.

    They are central differences, which are exact for ramps.
    """
    from scipy import ndimage

    seen = ndimage.gaussian_filter(channel, widths, mode="reflect")
    for axis in range(channel.ndim):
        yield ndimage.correlate1d(seen, [-0.5, 0.0, 0.5], axis, mode="reflect")


def _channel_noise(channel: Field) -> float:
    """Estimate the noise level of one channel."""
    from scipy import ndimage

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
    # Diffusion removes most of the noise of a volume, and estimating its error requires an accurate level: it
    # is refined by the root mean square over all voxels that are not steeper than expected for noise.
    for _ in range(_NOISE_ROUNDS):
        among = flat | (steepness <= _NOISE_STEEPNESS * deviation**2 * gradient_energy(seen, (1.0,) * 3))
        values = fine[among]
        values = values[abs(values) <= 2.5 * deviation]
        deviation = math.sqrt(float(np.mean(values * values)) / _VARIANCE_WITHIN)
    return deviation


def _near_clipped(channel: Field) -> Mask:
    from scipy import ndimage

    clipped = np.zeros(channel.shape, bool)
    for end in (channel.min(), channel.max()):
        at_end = channel == end
        if at_end.mean() > _CLIPPED_SHARE:
            clipped |= at_end
    return ndimage.maximum_filter(clipped, 3, mode="reflect")


@functools.lru_cache(maxsize=64)
def _kernel_energies(width: float) -> tuple[float, float]:
    """Return Σk² of the Gaussian and of its central difference along one axis: their gain for white noise."""
    from scipy import ndimage

    pulse = np.zeros(2 * gaussian_radius(width) + 5)
    pulse[len(pulse) // 2] = 1.0
    kernel = ndimage.gaussian_filter1d(pulse, width, mode="constant") if width > 0 else pulse
    slope = np.convolve(kernel, [0.5, 0.0, -0.5])
    return float(kernel @ kernel), float(slope @ slope)


def gradient_energy(sigma: float, spacings: tuple[float, ...]) -> float:
    """Return the mean squared gradient of white noise of variance 1 after a Gaussian."""
    energies = [_kernel_energies(sigma / h) for h in spacings]
    return sum(
        math.prod(slope if axis == other else plain for other, (plain, slope) in enumerate(energies)) / h**2
        for axis, h in enumerate(spacings)
    )
