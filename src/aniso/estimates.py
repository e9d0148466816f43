"""Estimate the noise, the contrast and the distance between lines of an image.

Noise is meant to be additive, white and Gaussian. Noise and contrast are proportional to the image, and the
wavelength does not depend on its grey scale.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from aniso import checks
from aniso.arrays import Array, Field
from aniso.checks import Auto, Spacing
from aniso.noise.level import check_channels, choose_noise, gradient_energy, noise_level, slopes

__all__ = ["contrast", "noise_level", "wavelength"]

# Mean range of the eigenvalues of a random symmetric matrix (normal entries, off the diagonal of variance 1,
# on it of variance 2) over their number, by the number of axes; for images what fits smoothed noise, 1 in
# place of 1.25.
_RANGE = {1: 1.0, 2: 1.0, 3: 4.142 / 3}
# About this number of eigenvalues is computed.
_ENOUGH_VOXELS = 2**16


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
    channels = check_channels(image, channel_axis)
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
    """Estimate the typical distance between lines, in units of length.

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
    channels = check_channels(image, channel_axis)
    spacings = checks.axis_spacing(spacing, channels.ndim - 1)
    return measure_wavelength(channels, choose_noise(noise, channels), spacings)


def measure_wavelength(channels: Array, level: float, spacings: tuple[float, ...]) -> float:
    """Return the wavelength of an array (channels, …) that is checked already."""
    from scipy import ndimage

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


def pixel_size(spacings: tuple[float, ...]) -> float:
    """Return the geometric mean of the spacings: one length for pixels that need not be square."""
    return math.exp(sum(math.log(h) for h in spacings) / len(spacings))


def structure_tensor(
    channels: Field,
    sigma: float,
    rho: float,
    spacings: tuple[float, ...],
    inner: tuple[slice, ...] = (),
) -> Field:
    """Compute the structure tensor, shape (ndim, ndim, …), per unit length: mean over channels and over rho.

    Gradients outside of `inner` are not used, since those at the boundary are those of a mirrored image, and
    the result has its shape.
    """
    from scipy import ndimage

    narrow, wide = (tuple(scale / h for h in spacings) for scale in (sigma, rho))
    ndim = len(spacings)
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


def _noise_gap(sigma: float, rho: float, spacings: tuple[float, ...], channels: int) -> float:
    """Return the mean of μ1 − μ2 for white noise of variance 1.

    Without averaging it is the mean squared gradient. Averaging over about (1 + 2ρ²/σ²)^(ndim/2) independent
    gradients, and over the channels, lowers it by the root of their number. In volumes, where it is the range
    of three eigenvalues, it is larger: as long as there is an average at all.
    """
    gradient = gradient_energy(sigma, spacings)
    # A gradient of the sampled image is independent of those some half a pixel away, at best.
    own = max(sigma, 0.5 * pixel_size(spacings))
    number = channels * (1 + 2 * rho**2 / own**2) ** (0.5 * len(spacings))
    return gradient * min(_RANGE[len(spacings)] / math.sqrt(number), 1.0)
