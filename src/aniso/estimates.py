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
from aniso.line_energy import COHERENT, SCALE, WINDOW, LineScale, coarse_grid
from aniso.noise.level import check_channels, choose_noise, gradient_energy, noise_level, slopes

__all__ = ["contrast", "noise_level", "wavelength"]

# Mean range of the eigenvalues of a random symmetric matrix (normal entries, off the diagonal of variance 1,
# on it of variance 2) over their number, by the number of axes; for images what fits smoothed noise, 1 in
# place of 1.25.
_RANGE = {1: 1.0, 2: 1.0, 3: 4.142 / 3}
# About this number of eigenvalues is computed.
_ENOUGH_VOXELS = 2**16
# Wavelengths at which lines are sought: how many to an octave, and their least length in joined pixels.
_PER_OCTAVE, _FINE = 2, 8
# In pixels: the shortest wavelength, and that of an image without lines.
_SHORTEST, _USUAL = 4.0, 8.0
# Power over that of the signal that may be rounding.
_ROUNDING = 1e-20
# Of several wavelengths in an image, the shortest one with this share of the votes of the most frequent one.
_ENOUGH_VOTES = 0.35


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
    """Estimate the typical strength of structures, in grey values per unit length.

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
    channels: Array, level: float, sigma: float, rho: float, spacings: tuple[float, ...], quantile: float
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

    Band-pass filters at half octaves show how much structure of each wavelength has a direction, around
    places all over the image. At each place the shortest wavelength counts that has more of it than shorter
    and longer ones, so that a background does not matter, however strong. The result is the most frequent
    wavelength, or a shorter one that is about as frequent (0.35 of its votes, weighted by amplitude).

    Parameters
    ----------
    noise : float or "auto"
        Not used any more: noise has no direction.
    image, spacing, channel_axis
        As for :func:`contrast`.

    Returns
    -------
    float
        At least 4 pixels, at most half of the largest side; 8 pixels if nothing has a direction. In
        noise without lines it has no meaning.

    Examples
    --------
    >>> import aniso
    >>> rings = aniso.samples.rings(128, period=10.0, noise=40.0)
    >>> round(aniso.estimates.wavelength(rings.image))
    10
    """
    channels = check_channels(image, channel_axis)
    spacings = checks.axis_spacing(spacing, channels.ndim - 1)
    choose_noise(noise, channels)
    return measure_wavelength(channels, spacings)


def measure_wavelength(channels: Array, spacings: tuple[float, ...]) -> float:
    """Return the wavelength of an array (channels, …) that is checked already."""
    if len(spacings) == 1:
        return _signal_wavelength(channels) * spacings[0]
    pixel = pixel_size(spacings)
    lengths, sizes, energies, certainties = _oriented_energies(channels, spacings)
    # The shortest waves that are stronger than shorter and longer ones: a slow background is stronger still.
    rising = np.diff(energies, axis=0, prepend=0.0, append=np.inf) > 0
    peaks = rising[:-1] & ~rising[1:]
    found = peaks.argmax(axis=0)
    certain = np.where(peaks.any(axis=0), np.take_along_axis(certainties, found[np.newaxis], 0)[0], 0)
    if not certain.any():
        return _USUAL * pixel
    # By areas, not by energies, so that few strong edges do not outweigh many lines. The area around a single
    # line grows with the wavelength.
    votes = np.bincount(found, certain, len(lengths)) / np.sqrt(lengths)
    votes = np.convolve(votes, [0.5, 1, 0.5], "same")
    tops = (votes >= np.append(votes[1:], 0)) & (votes >= _ENOUGH_VOTES * votes.max())
    near = (abs(found - int(tops.argmax())) <= 1) & (certain > 0)
    return _weighted_median(_refine(lengths, sizes, energies[:, near], found[near]), certain[near])


def _refine(lengths: Field, sizes: Field, energies: Field, found: Field) -> Field:
    """Return the wavelength at each place, from the energies at the strongest scale and the one below it.

    A wave of the wavenumber k has the energy s⁶·exp(−k²s²) at the scale s. Longer scales have more of the
    background.
    """
    low = np.maximum(found - 1, 0)
    high = np.minimum(low + 1, len(lengths) - 1)
    logs = []
    for scale in (low, high):
        one = np.take_along_axis(energies, scale[np.newaxis], 0)[0] / _passed(lengths[found], sizes[scale])
        logs.append(np.log(np.maximum(one, np.finfo(float).tiny)) - 6 * np.log(SCALE * lengths[scale]))
    rise = (SCALE * lengths[high]) ** 2 - (SCALE * lengths[low]) ** 2
    slope = np.divide(logs[1] - logs[0], rise, out=np.zeros_like(rise), where=rise > 0)
    places = np.where(slope < 0, 2 * math.pi / np.sqrt(np.maximum(-slope, 1e-300)), lengths[found])
    return np.clip(places, lengths[low], lengths[np.minimum(found + 1, len(lengths) - 1)])


def _weighted_median(values: Field, weights: Field) -> float:
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(total, 0.5 * total[-1])])


def _signal_wavelength(channels: Array) -> float:
    """Return the strongest wavelength of a signal (channels, samples): all of it has the same direction."""
    from scipy.signal import detrend

    count = channels.shape[1]
    if count < 2 * _SHORTEST:
        return _USUAL
    given, bell = channels.astype(np.float64), np.hanning(count + 2)[1:-1]
    power = (np.abs(np.fft.rfft(detrend(given) * bell)) ** 2).sum(axis=0)[2 : int(count / _SHORTEST) + 1]
    if power.max() <= _ROUNDING * (given**2).sum():
        return _USUAL
    return count / (2 + int(power.argmax()))


def _oriented_energies(channels: Array, spacings: tuple[float, ...]) -> tuple[Field, Field, Field, Field]:
    """Return wavelengths, the sizes of the pixels, and at some places the energies of lines that far apart.

    The last array says how certain lines are, from 0 to 1. All grids are symmetric, so that the results are
    the same for a mirrored image.
    """
    from scipy import ndimage

    images, ndim, smooth = list(channels.astype(np.float64)), len(spacings), ndimage.gaussian_filter
    sizes, blurred = list(spacings), [0.0] * ndim
    sides = [n * h for n, h in zip(channels.shape[1:], spacings, strict=True)]
    shortest = _SHORTEST * pixel_size(spacings)
    steps = math.floor(_PER_OCTAVE * math.log2(max(max(sides) / (2 * shortest), 1)) + 1e-9)
    lengths = shortest * 2 ** (np.arange(steps + 1) / _PER_OCTAVE)
    counts = [-(-n // 4) for n in channels.shape[1:]]
    # From the middle, in units of length.
    points = [(np.arange(n) - 0.5 * (n - 1)) * 4 * h for n, h in zip(counts, spacings, strict=True)]
    energies, certainties, pixels = [], [], []
    for length in lengths:
        for axis in range(ndim):
            while sizes[axis] * _FINE * 2 <= length:
                images = [_halve(image, axis) for image in images]
                blurred[axis] += sizes[axis] ** 2
                sizes[axis] *= 2
        here = images[0].shape
        lines = LineScale(length, sizes, smooth, coarse_grid(length, here, sizes))
        window = WINDOW[ndim] * SCALE * length
        tensor = lines.tensor(images, blurred)
        energy, coherence = lines.energy(tensor, window)
        own, share = lines.own_energy(tensor, energy)
        certain = share * lines.certainty(coherence, window)
        pair = [share * own * np.maximum(coherence - COHERENT[ndim][0], 0), certain]
        for axis, (place, point, n, h) in enumerate(zip(lines.places, points, here, sizes, strict=True)):
            middle = (np.array(place) - 0.5 * (n - 1)) * h
            pair = [_interpolate(one, axis, middle, point) for one in pair]
        energies.append(pair[0].ravel())
        certainties.append(pair[1].ravel())
        pixels.append(pixel_size(tuple(sizes)))
    return lengths, np.array(pixels), np.array(energies), np.array(certainties)


def _halve(image: Field, axis: int) -> Field:
    """Return an image with half as many pixels along an axis, after a Gaussian of one pixel."""
    from scipy import ndimage

    odd = image.shape[axis] % 2
    # The mean of two pixels has a variance of its own.
    seen = ndimage.gaussian_filter1d(image, math.sqrt(1.0 if odd else 0.75), axis, mode="reflect")
    first = seen.take(range(0, image.shape[axis], 2), axis)
    return first if odd else 0.5 * (first + seen.take(range(1, image.shape[axis], 2), axis))


def _interpolate(values: Field, axis: int, places: Field, points: Field) -> Field:
    """Interpolate linearly along an axis; beyond the last place the values are as there."""
    if len(places) == 1:
        return np.repeat(values, len(points), axis)
    inside, step = np.clip(points, places[0], places[-1]), places[1] - places[0]
    nearest = np.clip(np.rint((inside - places[0]) / step).astype(int), 1, max(len(places) - 2, 1))
    parts = []
    # In an order that is the same for a mirrored image. One of the outer weights is zero, up to rounding.
    for near in (nearest - 1, nearest + 1, nearest):
        weights = np.maximum(1 - np.abs(inside - places.take(near, mode="clip")) / step, 0)
        weights[near >= len(places)] = 0
        shape = [-1 if k == axis else 1 for k in range(values.ndim)]
        parts.append(values.take(near, axis, mode="clip") * weights.reshape(shape))
    left, right, middle = parts
    return left + right + middle


def _passed(lengths: Field, sizes: Field) -> Field:
    """Return the share of the energy of waves that differences of pixels of these sizes pass."""
    turns = 2 * sizes / lengths
    return (np.sinc(turns) * np.sinc(turns / 2) ** 2) ** 2


def pixel_size(spacings: tuple[float, ...]) -> float:
    """Return the geometric mean of the spacings: one length for pixels that need not be square."""
    return math.exp(sum(math.log(h) for h in spacings) / len(spacings))


def structure_tensor(
    channels: Field, sigma: float, rho: float, spacings: tuple[float, ...], inner: tuple[slice, ...] = ()
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
