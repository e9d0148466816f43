"""What differences over several distances see: correlated noise, and a rest of texture."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from aniso.arrays import Field
from aniso.noise.correlation import Probe, gain, stencil
from aniso.noise.selection import kept_part, steepness_gain

#: Least part of the variance of correlated noise that differences must see.
SEEN_PART = 0.3
_ROUNDS = 3
# Powers of the distance with which the energy of differences of texture grows: rough to smooth.
_ROUGHNESSES = (0.25, 0.5, 1.0, 2.0)
# Frequencies per axis at which spectra of texture are summed, by the number of axes.
_FREQUENCIES = {1: 512, 2: 64, 3: 24}


@dataclass(frozen=True)
class Spectrum:
    """The noise and the texture that together explain what differences see.

    `misfit` is the sum of squared errors, in units of their expected size. `limit` is the largest steepness
    of the blocks, over the mean steepness of the noise. `finest` is what the finest differences surely
    see, except rounding.
    """

    correlation: float
    variance: float
    texture: float
    roughness: float
    misfit: float
    limit: float = math.inf
    finest: float = 0.0

    def seen(self, probe: Probe, ndim: int) -> float:
        """Return the variance of differences of the noise in the blocks, over that of the noise."""
        return gain(self.correlation, probe, ndim) * kept_part(self.correlation, probe, ndim, self.limit)

    def noise_part(self, probe: Probe, ndim: int) -> float:
        """Return the part of the variance of differences that is noise."""
        noise = self.variance * self.seen(probe, ndim)
        texture = self.texture * texture_gain(self.roughness, probe, ndim)
        return noise / (noise + texture) if noise > 0 else 0.0


def explain(
    levels: Mapping[Probe, float],
    errors: Mapping[Probe, float],
    correlation: float,
    ndim: int,
    limit: float = math.inf,
) -> Spectrum:
    """Return the likeliest noise of a correlation, with texture, for the variances that differences see.

    `errors` are relative, and `limit` is the largest steepness of the blocks.
    """
    gains = {probe: gain(correlation, probe, ndim) for probe in levels}
    sharpest = next((probe for probe in levels if gains[probe] >= SEEN_PART), next(iter(levels)))
    relative, kept = math.inf, 1.0
    if math.isfinite(limit):
        for _ in range(_ROUNDS):  # the limit depends on the variance, which depends on the limit
            variance = levels[sharpest] / (gains[sharpest] * kept)
            relative = limit / (variance * steepness_gain(correlation, ndim))
            kept = kept_part(correlation, sharpest, ndim, relative)
    none = Spectrum(correlation, 0.0, 0.0, _ROUGHNESSES[0], math.inf, relative)
    scales = np.array([1 / (errors[probe] * level) for probe, level in levels.items()])
    seen = scales * np.array(list(levels.values()))
    noise = scales * np.array([none.seen(probe, ndim) for probe in levels])
    found = [none]
    for roughness in _ROUGHNESSES:
        texture = scales * np.array([texture_gain(roughness, probe, ndim) for probe in levels])
        both = np.array([[noise @ noise, noise @ texture], [noise @ texture, texture @ texture]])
        variance, rest = np.linalg.lstsq(both, np.array([noise @ seen, texture @ seen]), rcond=1e-12)[0]
        if rest < 0:
            variance, rest = (noise @ seen) / (noise @ noise), 0.0
        elif variance < 0:
            variance, rest = 0.0, (texture @ seen) / (texture @ texture)
        misfit = float(np.sum(np.square(variance * noise + rest * texture - seen)))
        found.append(
            replace(none, variance=float(variance), texture=float(rest), roughness=roughness, misfit=misfit)
        )
    return min(found, key=lambda one: one.misfit)


@functools.lru_cache(maxsize=256)
def texture_gain(roughness: float, probe: Probe, ndim: int) -> float:
    """Return the variance of differences of texture, over that of direct second differences.

    The power of natural images falls as |frequency|^(−ndim − roughness), so that the energy of differences
    grows with a power of their distance.
    """
    return _seen_of_texture(roughness, probe, ndim) / _seen_of_texture(roughness, (2, 1), ndim)


def _seen_of_texture(roughness: float, probe: Probe, ndim: int) -> float:
    count = _FREQUENCIES[ndim]
    frequencies = (np.arange(count) + 0.5) * (math.pi / count)
    order, step = probe
    phases = np.exp(1j * np.outer(frequencies, step * np.arange(order + 1)))
    response: Field = np.abs(phases @ stencil(order)) ** 2
    square = np.zeros((count,) * ndim)
    weights = np.ones((count,) * ndim)
    for axis in range(ndim):
        shape = tuple(count if other == axis else 1 for other in range(ndim))
        square = square + np.reshape(frequencies**2, shape)
        weights = weights * np.reshape(response, shape)
    return float(np.mean(weights * square ** (-0.5 * (ndim + roughness))))
