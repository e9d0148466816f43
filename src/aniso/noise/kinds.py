"""The kind of noise: the likeliest curve of the variance over the mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from aniso.arrays import Field
from aniso.noise.correlation import Probe, freedom, gain
from aniso.noise.fitting import Curve, fit_curve, separate_texture
from aniso.noise.statistics import Blocks

# Gain in log-likelihood over noise of one level that another kind needs: with flat blocks only, and for each
# textured block among a hundred.
_CLEAR_GAIN, _GAIN_PER_TEXTURE, _GAIN_OF_CORRELATED = 12.0, 0.2, 1.0
# Further gains that less common kinds need over photons; range of variances below which there is one level.
_RARE_GAINS, _LEAST_RANGE = {"speckle": 8.0, "rician": 3.0}, 1.1
# Share of flat blocks below which noise is Gaussian, and from which on the finest differences are enough.
_SURE_KIND, _SURELY_FLAT = 0.25, 0.95
# Largest loss because negative pixels are missing, and how many times more must be expected than there are.
_MOST_MISSING, _CLEARLY_MORE = 25.0, 3.0
# Distance of grey values over that of photons from which on there are few of them; the least read noise in
# photons that makes them many; read noise in photons that is normal for any count.
_FEW_VALUES, _LEAST_READING, _MANY_READINGS = 0.5, 0.3, 4.0
# Quantiles of a distribution that stand for all of it.
_QUANTILES = (np.arange(200) + 0.5) / 200
# Offset over the median that is large; variance of a floor over that of speckle; and the gain that photons
# with such an offset need over speckle without such a floor, which explains the same curve.
_LARGE_OFFSET, _LARGE_FLOOR, _OFFSET_GAIN = 0.2, 0.05, 1.5
# Share of blocks that may have less energy than 95 in 100 flat ones, where a kind has more than one level.
# The second share holds for a large gain, since the energies of few photons vary more.
_LOW_QUANTILE, _LOW_SHARES, _LARGE_GAIN = 0.05, (0.065, 0.12), 80.0
# Share of pixels that may be negative in images of intensities; and of magnitudes, because of weak stripes or
# of those that were removed.
_NEGATIVE_SHARE, _NEGATIVE_MAGNITUDES = 0.05, (0.006, 0.03)
# Share of pixels that may be 0 next to another value in images of magnitudes.
_MOST_ZEROS = 0.004
#: How many coarser differences tell with the finest ones which blocks are flat.
COARSER = 2


def possible_kinds(windows: Sequence[Field], striped: bool) -> tuple[str, ...]:
    """Return the kinds that are possible: magnitudes are not negative, and intensities hardly ever."""
    allowed = _NEGATIVE_MAGNITUDES[int(striped)]
    low, least = np.quantile(
        np.concatenate([window.ravel() for window in windows]), [_NEGATIVE_SHARE, allowed]
    )
    found = ["gaussian", "poisson"]
    found += ["speckle"] if low >= 0 else []
    # Magnitudes of noise are hardly ever 0, unlike counts and clipped values; constant regions may be.
    zeros = np.mean([np.mean((window[..., 1:] == 0) & (window[..., :-1] != 0)) for window in windows])
    found += ["rician"] if least >= 0 and zeros < _MOST_ZEROS else []
    return tuple(found)


def choose_curve(
    blocks: Blocks, flat: Blocks, probe: Probe, correlation: float, kinds: Sequence[str], joined: int
) -> Curve:
    """Return the likeliest curve; without a clear gain, that of one level.

    The number of coarser differences that are looked at as well is `joined`.
    """
    energies, freedoms, seen = _seen_energies(flat, probe, correlation, joined)
    fits = {name: fit_curve(name, flat.greys(name), energies, freedoms) for name in kinds}
    if "gaussian" not in fits or len(fits) == 1:
        return next(iter(fits.values()))
    plain = fits["gaussian"]
    wide = fit_curve("gaussian", flat.means, energies, freedoms, wide=True)
    # Energies that vary more must not count as a curve: like is compared with like.
    narrow = {name: fit_curve(name, flat.greys(name), energies, freedoms, wide=False) for name in kinds}
    # Curves are fitted to the finest differences. Coarser ones tell more about textured blocks.
    finest = {
        name: fit_curve(name, flat.greys(name), energies[:1], freedoms[:1], wide=False) for name in kinds
    }
    best, most = plain, 0.0
    for name, curve in fits.items():
        low, high = np.quantile(curve.variances, [0.01, 0.99])
        wanted = _CLEAR_GAIN + _GAIN_PER_TEXTURE * 100 * (1 - curve.share)
        wanted *= 1 + _GAIN_OF_CORRELATED * correlation**2
        gains = [curve.likelihood - wide.likelihood, narrow[name].likelihood - plain.likelihood]
        if finest[name].share > _SURELY_FLAT:
            gains.append(finest[name].likelihood - finest["gaussian"].likelihood)
        missing = 0.0
        if correlation == 0:
            missing = _missing_negative(plain, blocks, seen) - _missing_negative(curve, blocks, seen)
        won = flat.weight * max(gains) + missing
        if name != "gaussian" and (
            won < wanted
            or curve.share < _SURE_KIND
            or (high < _LEAST_RANGE * low and name != "rician")  # which has one level except in the dark
            or _low_share(blocks, probe, freedoms[0], curve, plain) > _LOW_SHARES[int(won > _LARGE_GAIN)]
        ):
            continue
        # Kinds are compared by all differences, too: the finest ones alone may favour any curve that rises.
        won = 0.5 * flat.weight * (max(gains) + gains[1]) + missing - _handicap(name, fits, blocks)
        if won > most:
            best, most = curve, won
    return best


def _seen_energies(
    flat: Blocks, probe: Probe, correlation: float, joined: int
) -> tuple[Field, list[float], float]:
    """Return the energies of a difference and of coarser ones, their degrees of freedom, and its gain.

    All of them are as large as the first one sees them, if they are those of the noise.
    """
    probes = join_probes(probe, tuple(flat.energies), joined)
    freedoms = [freedom(correlation, one, flat.side, flat.ndim) for one in probes]
    seen = gain(correlation, probe, flat.ndim)
    energies = [flat.energies[one] * (seen / gain(correlation, one, flat.ndim)) for one in probes]
    return np.stack(energies), freedoms, seen


def remove_texture(
    curve: Curve,
    blocks: Blocks,
    flat: Blocks,
    probe: Probe,
    correlation: float,
    kinds: Sequence[str],
    joined: int,
) -> Curve:
    """Return the curve without texture that has the correlation of the noise, in some of the blocks.

    Such texture is seen in the distribution of energies only. It makes speckle look like photons.
    """
    if curve.kind == "rician":
        return curve
    energies, freedoms, _ = _seen_energies(flat, probe, correlation, joined)
    names = [name for name in ("poisson", "speckle") if name in kinds] if curve.kind != "gaussian" else []
    fits = {
        name: separate_texture(
            curve if name == curve.kind else fit_curve(name, flat.greys(name), energies, freedoms),
            flat.greys(name),
            energies,
            freedoms,
            flat.weight,
        )
        for name in names or ["gaussian"]
    }

    def won(name: str) -> float:
        return flat.weight * fits[name].likelihood - _handicap(name, fits, blocks)

    best = fits[max(fits, key=won)]
    return best if best.share >= _SURE_KIND else curve


def _handicap(name: str, fits: dict[str, Curve], blocks: Blocks) -> float:
    """Return the further gain that less common kinds need over photons, whose curve is similar.

    It is negative for speckle without a floor over photons with a large offset, which are one parameter more.
    """
    photons = fits.get("poisson")
    if name not in _RARE_GAINS or photons is None:
        return 0.0
    if name == "speckle":
        middle = float(np.median(blocks.means))
        first, slope = photons.coefficients
        floor, square = fits[name].coefficients
        if -first > _LARGE_OFFSET * slope * middle and floor <= _LARGE_FLOOR * square * middle**2:
            return -_OFFSET_GAIN
    return _RARE_GAINS[name]


def _missing_negative(curve: Curve, blocks: Blocks, seen: float) -> float:
    """Return the loss of log-likelihood because negative pixels are missing that noise would have.

    Photons, speckle and magnitudes are positive, but not with normal noise in addition. Without it, photons
    have few grey values.
    """
    from scipy import special

    first, means = curve.coefficients[0] / seen, np.maximum(blocks.means, 0)
    chances: Any
    if curve.kind == "rician":
        return 0.0
    if curve.kind == "poisson" and curve.coefficients[1] > 0:
        photon = curve.coefficients[1] / seen
        offset = max(-first / photon, 0.0)
        reading = math.sqrt(max(first, 0.0))
        if blocks.quantum < _FEW_VALUES * photon:
            reading = max(reading, _LEAST_READING * photon)
        if reading == 0:
            return 0.0
        if reading > _MANY_READINGS * photon:
            chances = special.ndtr(-means / np.sqrt(curve.at(means) / seen))
        else:
            counts = np.maximum(means - offset, 1e-9 * photon) / photon
            chances = sum(
                np.exp(k * np.log(counts) - counts - special.gammaln(k + 1))
                * special.ndtr(-(offset + k * photon) / reading)
                for k in range(math.ceil(3 * _MANY_READINGS))
            )
    elif first > 0 and curve.kind == "speckle":
        # Only the floor makes pixels negative: quantiles of the factors, for quantiles of the means.
        shape = max(seen / max(curve.coefficients[1], 1e-12), 1e-3)
        factors = special.gammaincinv(shape, _QUANTILES) / shape
        chances = special.ndtr(-np.quantile(means, _QUANTILES)[:, np.newaxis] * factors / math.sqrt(first))
    elif first > 0:
        chances = special.ndtr(-means / np.sqrt(curve.at(means) / seen))
    else:
        return 0.0
    expected = float(np.mean(chances)) * len(blocks) * blocks.side**blocks.ndim * blocks.weight**2
    return min(max(expected - _CLEARLY_MORE * blocks.dark, 0.0), _MOST_MISSING)


def join_probes(probe: Probe, probes: tuple[Probe, ...], count: int) -> tuple[Probe, ...]:
    """Return a probe, and coarser ones that see other frequencies, and with them more of texture."""
    coarser = [one for one in probes if one[0] == 2 and one[1] >= 2 * probe[1]]
    return (probe, *coarser[:count])


def _low_share(blocks: Blocks, probe: Probe, free: float, curve: Curve, plain: Curve) -> float:
    """Return the share of blocks with little energy for a curve, where it lies above one level.

    Texture can only add energy, so that this is seen in all blocks.
    """
    from scipy import stats

    variances = curve.at(blocks.greys(curve.kind))
    above = variances > plain.at(blocks.means)
    free *= curve.width
    limit = float(stats.chi2.ppf(_LOW_QUANTILE, free)) / free
    low = blocks.energies[probe] < limit * variances
    return float(low[above].mean()) if above.any() else 0.0
