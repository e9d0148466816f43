"""Variance of the noise as a function of the mean, from blocks of which many, but not all, are flat.

The mean square of second differences in a flat block follows a χ² distribution of known width; blocks with
texture or edges have more, of any size. Expectation and maximisation of this mixture give the share of flat
blocks and the curve.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from aniso.arrays import Field
from aniso.noise.models import Rician

_ROUNDS = 60
# Energies of blocks that are not flat: uniform in the logarithm, over a range of this factor.
_RANGE = math.log(300)
# Factors by which texture that looks like noise multiplies the energies of blocks; how many blocks are too
# few to tell; and the part of the blocks that were taken for flat ones with which the search for it begins.
_TEXTURES, _FEW, _FLAT_AT_FIRST = tuple(math.exp(0.4 * k) for k in range(1, 9)), 3.0, 0.6
# Part of the degrees of freedom that several differences have; and the gain in log-likelihood that texture
# needs, in all and per block.
_COMMON, _CLEAR_GAIN, _LEAST_GAIN = 0.85, 25.0, 0.08
# Log of energy over variance below which blocks are hardly ever textured.
_CERTAINLY_FLAT = -0.3
# The smallest variance of a curve, as a part of the median energy.
_LEAST = 1e-4
# Where the search begins: a quantile of the energies.
_START_QUANTILE = 0.3
# The least variance of a beginning that follows the mean.
_START_FLOOR = 0.01
# Share of a normal distribution below one standard deviation; how many flat blocks must be there to look at
# their distribution; and the least part of the degrees of freedom of normal noise that it may have.
_BELOW, _ENOUGH_FLAT, _LEAST_FREEDOM = 0.1587, 30, 0.7
# Levels of magnitudes that are tried, over the root mean square of what is seen; and parts of the ratio of
# two of them, within which better ones are looked for.
_LEVELS, _FINER = np.geomspace(0.7, 2.0, 16), (1.0, 0.4, 0.15, 0.06)
# Powers of the mean that curves have.
_POWERS = {"gaussian": 0, "poisson": 1, "speckle": 2}


@dataclass(frozen=True)
class Curve:
    """Variances of the noise at the means of blocks: coefficients, values, and how well they explain them."""

    kind: str
    coefficients: tuple[float, ...]
    variances: Field
    share: float  # of the blocks that are flat
    likelihood: float  # log
    width: float = 1.0  # degrees of freedom over those of normal noise

    @property
    def level(self) -> float:
        """The first coefficient: the variance of noise of one level."""
        return self.coefficients[0]

    def at(self, means: Field) -> Field:
        """Return the variances at other means."""
        if self.kind == "rician":
            return Rician(self.coefficients[0]).variance(means)
        power = _POWERS[self.kind]
        slope = self.coefficients[1] if power else 0.0
        return np.maximum(self.coefficients[0] + slope * means**power, self.variances.min())


def fit_curve(
    kind: str, means: Field, energies: Field, freedoms: Sequence[float], *, wide: bool | None = None
) -> Curve:
    """Return the likeliest curve of a kind: "gaussian", "poisson", "speckle" or "rician".

    `energies` has the variances that one or more differences see in all blocks, and `freedoms` their degrees
    of freedom. The first of them gives the curve; all of them tell which blocks are flat. If `wide`, energies
    may vary more than those of normal noise; by default, all except Gaussian noise may.
    """
    wide = kind != "gaussian" if wide is None else wide
    found = _fit_shape(kind, np.ones_like(means), means, energies, freedoms, wide)
    power = _POWERS.get(kind)
    if power:
        # Levels that differ a hundredfold are not found from one level: the search begins with such a curve.
        above = means - means.min() if power == 1 else np.abs(means)
        shape = (above + _START_FLOOR * above.max()) ** power
        other = _fit_shape(kind, shape, means, energies, freedoms, wide) if above.max() > 0 else found
        return max(found, other, key=lambda curve: curve.likelihood)
    return found


def separate_texture(
    curve: Curve, means: Field, energies: Field, freedoms: Sequence[float], weight: float
) -> Curve:
    """Return a curve of the same kind without the texture that looks like noise, but not in all blocks.

    Such texture multiplies the energies of a block, for all differences alike, by one of several factors.
    The search begins with the curve that was fitted to noise and texture together.
    """
    # Differences see the same noise: together, they have fewer degrees of freedom.
    fewer = [_COMMON * each for each in freedoms] if len(freedoms) > 1 else freedoms
    together = np.array([curve.share, 1 - curve.share])
    flat = _FLAT_AT_FIRST * curve.share
    factors = [0.5 * (1 - flat) / len(_TEXTURES)] * len(_TEXTURES)
    apart = np.array([flat, *factors, 0.5 * (1 - flat)])
    before, after = (
        _fit_from(curve.kind, curve.variances, shares, means, energies, fewer, False, _FEW / weight)
        for shares in (together, apart)
    )
    gain = after.likelihood - before.likelihood
    return after if weight * gain > _CLEAR_GAIN and gain > _LEAST_GAIN * len(means) else before


def _fit_shape(
    kind: str, shape: Field, means: Field, energies: Field, freedoms: Sequence[float], wide: bool
) -> Curve:
    """Return the curve to which the search leads that begins with variances of this shape."""
    # Textured blocks must not decide.
    start = shape * np.quantile(energies[0] / shape, _START_QUANTILE)
    return _fit_from(kind, start, np.array([0.5, 0.5]), means, energies, freedoms, wide)


def _fit_from(
    kind: str,
    start: Field,
    shares: Field,
    means: Field,
    energies: Field,
    freedoms: Sequence[float],
    wide: bool,
    few: float = 0.0,
) -> Curve:
    """Return the curve to which the search leads that begins with these variances and shares of blocks."""
    sharpest = energies[0]
    floor = max(_LEAST * float(np.median(sharpest)), 1e-300)
    fit = _FITS[kind]
    variances = np.maximum(start, floor)
    coefficients: tuple[float, ...] = ()
    width = 1.0
    for _ in range(_ROUNDS):
        parts = _densities(energies / variances, shares, width * np.asarray(freedoms))
        parts /= parts.sum(axis=0)
        if wide:
            width = _relative_freedom(energies / variances, parts[0], freedoms)
        shares = _new_shares(parts, few)
        coefficients, found = fit(means, sharpest, parts[0], variances)
        found = np.maximum(found, floor)
        change = float(np.max(np.abs(np.log(found / variances))))
        variances = found
        if change < 1e-3:
            break
    parts = _densities(energies / variances, shares, width * np.asarray(freedoms))
    likelihood = float(np.sum(np.log(parts.sum(axis=0))))
    return Curve(kind, coefficients, variances, float(shares[0]), likelihood, width)


def _new_shares(parts: Field, few: float) -> Field:
    """Return the shares of blocks; factors of texture that explain only a few blocks are not used."""
    counts = parts.sum(axis=1)
    counts[1:-1] = np.maximum(counts[1:-1] - few, 0.0)
    flat = float(np.clip(counts[0] / counts.sum(), 0.02, 0.999))
    rest = counts[1:] / counts[1:].sum() if counts[1:].any() else np.eye(len(counts) - 1)[-1]
    return np.array([flat, *((1 - flat) * rest)])


def _relative_freedom(ratios: Field, flat: Field, freedoms: Sequence[float]) -> float:
    """Return by which factor degrees of freedom are fewer than those of normal noise of one variance.

    Noise of few photons or speckle is not normal, and varies within blocks. The width of the distribution is
    seen below its median, where texture changes nothing.
    """
    if flat.sum() < _ENOUGH_FLAT:
        return 1.0
    found = []
    for each, freedom in zip(np.log(np.clip(ratios, 1e-12, 1e9)), freedoms, strict=True):
        order = np.argsort(each)
        parts = np.cumsum(flat[order])
        low, middle = np.interp([_BELOW * parts[-1], 0.5 * parts[-1]], parts, each[order])
        # The variance of the logarithm of χ² is about 2 over its degrees of freedom.
        found.append(2 / max((middle - low) ** 2, 1e-12) / freedom)
    return float(np.clip(np.mean(found), _LEAST_FREEDOM, 1.0))


def _densities(ratios: Field, shares: Field, freedoms: Field) -> Field:
    """Return the densities of the logarithms of energies over variances, times the shares of blocks.

    The first row is for flat blocks, the last one for others. Rows between them are for blocks in which
    texture multiplies all energies by one of several factors.
    """
    from scipy import special

    ratios = np.clip(ratios, 1e-12, 1e9)
    logs = np.log(ratios)
    half = 0.5 * freedoms
    first = half @ logs + float(np.sum(half * np.log(half) - special.gammaln(half)))
    energy = half @ ratios
    found = np.empty((len(shares), len(first)))
    for row, factor in zip(found[:-1], (1.0, *_TEXTURES), strict=False):
        row[...] = np.exp(first - math.log(factor) * half.sum() - energy / factor)
    found[-1] = np.prod(np.where(logs > _CERTAINLY_FLAT, 1 / _RANGE, 1e-3), axis=0)
    return shares[:, np.newaxis] * found + 1e-300


_Fit = Callable[[Field, Field, Field, Field], tuple[tuple[float, ...], Field]]


def _fit_constant(
    means: Field, energies: Field, flat: Field, before: Field
) -> tuple[tuple[float, ...], Field]:
    level = float(flat @ energies / flat.sum())
    return (level,), np.full_like(energies, level)


def _fit_power(power: int) -> _Fit:
    """Return the fit of a + b·mean^power with b ≥ 0; for squares also a ≥ 0."""

    def fit(means: Field, energies: Field, flat: Field, before: Field) -> tuple[tuple[float, ...], Field]:
        weights = flat * np.square(before.min() / before)
        terms = np.stack([np.ones_like(means), means**power])
        matrix = (terms * weights) @ terms.T
        right = (terms * weights) @ energies
        first, slope = np.linalg.lstsq(matrix, right, rcond=1e-12)[0]
        if slope <= 0:
            (first,), found = _fit_constant(means, energies, flat, before)
            return (first, 0.0), found
        if power == 2 and first < 0:
            first, slope = 0.0, right[1] / matrix[1, 1]
        return (float(first), float(slope)), first + slope * terms[1]

    return fit


def _fit_rician(means: Field, energies: Field, flat: Field, before: Field) -> tuple[tuple[float, ...], Field]:
    """Return the likeliest level.

    Averaging the ratios of energies and variances is not enough: with a level that is too low, a background
    looks like a weak signal, whose larger variance explains that level.
    """
    largest = math.sqrt(max(float(flat @ energies / flat.sum()), 1e-300))

    def loss(level: float) -> float:
        variances = Rician(level).variance(means)
        return float(flat @ (np.log(variances) + energies / variances))

    level, step = largest, _LEVELS[1] / _LEVELS[0]
    for factors in (_LEVELS, *(step ** (part * np.linspace(-1, 1, 5)) for part in _FINER)):
        level = min((float(level * factor) for factor in factors), key=loss)
    return (level,), Rician(level).variance(means)


_FITS: dict[str, _Fit] = {
    "gaussian": _fit_constant,
    "poisson": _fit_power(1),
    "speckle": _fit_power(2),
    "rician": _fit_rician,
}
