"""Noise that is correlated like white noise after a Gaussian: its kernel, and what second differences see."""

from __future__ import annotations

import functools
import math

import numpy as np

from aniso.arrays import Array, Field

# Radius of the kernel in standard deviations.
_RADIUS = 5.0
#: The second difference z(x − k) − 2·z(x) + z(x + k), which leaves the variance of white noise.
_SECOND = {0: 6.0, 1: -4.0, 2: 1.0}


@functools.lru_cache(maxsize=256)
def kernel(correlation: float) -> Field:
    """Return a sampled Gaussian with the sum of squares 1, which keeps the variance of white noise."""
    if correlation == 0:
        return np.ones(1)
    radius = max(math.ceil(_RADIUS * correlation), 1)
    values = np.exp(-0.5 * np.square(np.arange(-radius, radius + 1) / correlation))
    return values / math.sqrt(float(values @ values))


def blur_noise(noise: Array, correlation: float, *, first_axis: int = 0) -> Array:
    """Return white noise with a correlation along all axes from `first_axis` on, at the same level."""
    from scipy import ndimage

    if correlation == 0:
        return noise
    weights = kernel(correlation)
    for axis in range(first_axis, noise.ndim):
        noise = ndimage.convolve1d(noise, weights, axis, mode="wrap")
    return noise


def power_at_zero(correlation: float, ndim: int) -> float:
    """Return the power of the noise at low frequencies, over that of white noise of the same level."""
    return float(kernel(correlation).sum() ** 2) ** ndim


@functools.lru_cache(maxsize=1024)
def _seen(correlation: float, step: int, lag: int) -> float:
    """Return the covariance, at a lag, of second differences of correlated noise of variance 1."""
    weights = kernel(correlation)
    products = np.correlate(weights, weights, "full")
    centre = len(products) // 2

    def correlate(distance: int) -> float:
        return float(products[centre + abs(distance)]) if abs(distance) <= centre else 0.0

    shifts = {sign * k: factor for k, factor in _SECOND.items() for sign in (1, -1)}
    return sum(factor * correlate(lag + step * k) for k, factor in shifts.items()) / 6


@functools.lru_cache(maxsize=1024)
def gain(correlation: float, step: int, ndim: int) -> float:
    """Return the variance of second differences along all axes of noise of variance 1."""
    return _seen(correlation, step, 0) ** ndim


@functools.lru_cache(maxsize=1024)
def freedom(correlation: float, step: int, side: int, ndim: int) -> float:
    """Return the degrees of freedom of the mean square of second differences in a cube of this side."""
    lags = range(1 - side, side)
    variance = _seen(correlation, step, 0)
    width = sum((1 - abs(lag) / side) * (_seen(correlation, step, lag) / variance) ** 2 for lag in lags)
    return (side / width) ** ndim


@functools.lru_cache(maxsize=256)
def slope_gain(correlation: float, width: float, ndim: int) -> float:
    """Return the mean squared gradient, through a Gaussian of this width, of noise of variance 1."""
    smooth = kernel(width) / kernel(width).sum()
    seen = np.convolve(smooth, kernel(correlation))
    slope = np.convolve(seen, [0.5, 0.0, -0.5])
    return ndim * float(slope @ slope) * float(seen @ seen) ** (ndim - 1)
