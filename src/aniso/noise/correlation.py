"""Noise that is correlated like white noise after a Gaussian: its kernel, and what second differences see."""

from __future__ import annotations

import functools
import math

import numpy as np

from aniso.arrays import Array, Field

# Radius of the kernel in standard deviations.
_RADIUS = 5.0
#: The order of differences, and the distance in pixels between the values that they take.
Probe = tuple[int, int]
#: The order of derivatives that are small in flat blocks, by the number of axes. Ramps are flat, except in
#: volumes: layers of a few voxels look like ramps in their small blocks.
FLAT_ORDERS = {1: 2, 2: 2, 3: 1}
#: Sides of the blocks in pixels, by the number of axes.
SIDES = {1: 64, 2: 8, 3: 4}
#: Flatness is seen through a Gaussian of this width, by the number of axes; and averaged by another one.
SEEN, AVERAGED = {1: 2.0, 2: 2.0, 3: 1.5}, 2.0
#: Weights of central differences.
ACROSS = (-0.5, 0.0, 0.5)
# Weights of differences; they are scaled to leave the variance of white noise.
_STENCILS = {2: (1.0, -2.0, 1.0), 4: (1.0, -4.0, 6.0, -4.0, 1.0)}


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


def stencil(order: int) -> Field:
    """Return the weights of differences of an order, with the sum of squares 1."""
    weights = np.array(_STENCILS[order])
    return weights / math.sqrt(float(weights @ weights))


@functools.lru_cache(maxsize=1024)
def _seen(correlation: float, probe: Probe, lag: int) -> float:
    """Return the covariance, at a lag, of differences of correlated noise of variance 1."""
    order, step = probe
    products = np.correlate(kernel(correlation), kernel(correlation), "full")
    centre = len(products) // 2
    factors = np.correlate(stencil(order), stencil(order), "full")
    places = np.abs(lag + step * np.arange(-order, order + 1))
    return float(factors @ np.where(places <= centre, products[centre + np.minimum(places, centre)], 0.0))


@functools.lru_cache(maxsize=1024)
def gain(correlation: float, probe: Probe, ndim: int) -> float:
    """Return the variance of differences along all axes of noise of variance 1."""
    return _seen(correlation, probe, 0) ** ndim


@functools.lru_cache(maxsize=1024)
def freedom(correlation: float, probe: Probe, side: int, ndim: int) -> float:
    """Return the degrees of freedom of the mean square of differences in a cube of this side."""
    lags = range(1 - side, side)
    variance = _seen(correlation, probe, 0)
    width = sum((1 - abs(lag) / side) * (_seen(correlation, probe, lag) / variance) ** 2 for lag in lags)
    return (side / width) ** ndim


@functools.lru_cache(maxsize=256)
def shared_freedom(correlation: float, probe: Probe, side: int, ndim: int) -> float:
    """Return the covariance of the mean squares in neighbouring cubes, over the variance in each."""
    squares = {lag: _seen(correlation, probe, lag) ** 2 for lag in range(2 * side)}
    own = sum((1 - abs(lag) / side) * squares[abs(lag)] for lag in range(1 - side, side))
    return sum((1 - abs(lag - side) / side) * squares[lag] for lag in range(1, 2 * side)) / own
