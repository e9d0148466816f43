"""What the choice of flat blocks changes: those that are less steep than a limit also have less noise.

Steepness and the mean squares of differences are quadratic forms of the same noise. All filters are
separable, so that their covariances are products of sums along the axes.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator

import numpy as np

from aniso.arrays import Field
from aniso.noise.correlation import ACROSS, AVERAGED, FLAT_ORDERS, SEEN, SIDES, Probe, gain, kernel, stencil

# Limits, over the mean steepness of noise, beyond which practically all blocks are taken; and the least one.
_ALL, _LEAST = 30.0, 0.02


def kept_part(correlation: float, probe: Probe, ndim: int, limit: float) -> float:
    """Return the part of the mean square of differences that noise has in blocks up to a steepness.

    `limit` is relative to the mean steepness of this noise. Steepness is taken to be Gamma distributed, and
    the mean square to depend linearly on it.
    """
    from scipy import special

    if limit >= _ALL:
        return 1.0
    half, slope = _dependence(correlation, probe, ndim)
    limit = max(limit, _LEAST)
    below, all_below = special.gammainc([half + 1, half], half * limit)
    return 1 + slope * (float(below / all_below) - 1)


def steepness_gain(correlation: float, ndim: int) -> float:
    """Return the mean steepness of noise of variance 1."""
    return _moments(correlation, ndim)[0]


def steepness_axes(ndim: int) -> Iterator[tuple[tuple[int, ...], int]]:
    """Return along which axes derivatives are taken, and how often their squares count."""
    for axes in itertools.combinations_with_replacement(range(ndim), FLAT_ORDERS[ndim]):
        yield axes, len(set(axes))  # mixed ones count twice


@functools.lru_cache(maxsize=1024)
def _dependence(correlation: float, probe: Probe, ndim: int) -> tuple[float, float]:
    """Return half the degrees of freedom of steepness, and how mean squares depend on it, both relative."""
    mean, variance = _moments(correlation, ndim)
    order, step = probe
    spread = np.zeros(order * step + 1)
    spread[::step] = stencil(order)
    seen = np.convolve(spread, kernel(correlation))
    sums = [_sum(seen, _derivative(correlation, count, ndim), False, ndim) for count in range(3)]
    covariance = 2 * sum(
        weight * math.prod(sums[axes.count(axis)] for axis in range(ndim))
        for axes, weight in steepness_axes(ndim)
    )
    return mean**2 / variance, covariance / variance * mean / gain(correlation, probe, ndim)


@functools.lru_cache(maxsize=256)
def _moments(correlation: float, ndim: int) -> tuple[float, float]:
    """Return mean and variance of the steepness of blocks of noise of variance 1."""
    filters = [_derivative(correlation, count, ndim) for count in range(3)]
    powers = [float(one @ one) for one in filters]
    sums = [[_sum(one, other, True, ndim) for other in filters] for one in filters]
    terms = list(steepness_axes(ndim))
    mean = sum(weight * math.prod(powers[axes.count(axis)] for axis in range(ndim)) for axes, weight in terms)
    variance = 2 * sum(
        weight * more * math.prod(sums[axes.count(axis)][others.count(axis)] for axis in range(ndim))
        for axes, weight in terms
        for others, more in terms
    )
    return mean, variance


def _derivative(correlation: float, count: int, ndim: int) -> Field:
    """Return the filter along an axis that makes a derivative, seen through a Gaussian, of white noise."""
    smooth = kernel(SEEN[ndim]) / kernel(SEEN[ndim]).sum()
    found = np.convolve(smooth, kernel(correlation))
    for _ in range(count):
        found = np.convolve(found, ACROSS)
    return found


def _sum(one: Field, other: Field, both: bool, ndim: int) -> float:
    """Return the sum along an axis of squared covariances of two filters, weighted by a block.

    The second one is averaged by a Gaussian in addition; if `both`, the first one is, too.
    """
    covariances = np.square(np.correlate(one, other, "full"))
    block = np.full(SIDES[ndim], 1 / SIDES[ndim])
    average = kernel(AVERAGED) / kernel(AVERAGED).sum()
    weights = np.convolve(np.convolve(block, block), average)
    weights = np.convolve(weights, average) if both else weights
    return float(np.convolve(covariances, weights, "full")[(len(covariances) + len(weights) - 2) // 2])
