"""The correlation of noise, from what differences over several distances see in flat blocks."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from aniso.noise.correlation import freedom, gain
from aniso.noise.fitting import Curve, fit_curve
from aniso.noise.kinds import COARSER, join_probes
from aniso.noise.spectrum import Spectrum, explain
from aniso.noise.statistics import Blocks

# Correlations that are tried, in pixels.
_CORRELATIONS = (0.0, *(round(0.3 + 0.05 * k, 2) for k in range(35)))
# Errors of the logarithm of a variance: of all, and of those among textured blocks only.
_ERROR, _ERROR_OF_TEXTURE = 0.03, 0.8
# Share of flat blocks from which on what the finest differences see is the noise.
_SURELY_SEEN = 0.5
# Gain in squared errors that a correlation needs, below and above a least one; above, a gain in
# log-likelihood will do.
_CLEAR_MISFITS, _CLEAR_CORRELATION, _LEAST_CORRELATION = (8.0, 3.3), 10.0, 0.4
# Part of the variance of correlated noise that may be white.
_WHITE_PART = 0.01
# Variance over that of rounding from which on differences are seen.
_ABOVE_ROUNDING = 1.5


def find_correlation(flat: Blocks, curve: Curve, before: float, rounding: float) -> Spectrum:
    """Return the correlation with which noise, and a rest of texture, explain what all differences see.

    The distribution of energies is that of noise with the correlation that was found `before`. Rounding to
    whole numbers adds white noise of the variance `rounding`.
    """
    added = rounding / float(np.median(curve.variances))
    relative = {probe: energies / curve.variances for probe, energies in flat.energies.items()}
    levels, shares = {}, {}
    for probe, energies in relative.items():
        free = freedom(before, probe, flat.side, flat.ndim)
        fit = fit_curve("gaussian", flat.means, energies[np.newaxis], [free])
        if fit.level <= _ABOVE_ROUNDING * added:
            continue
        levels[probe], shares[probe] = fit.level - added, fit.share
    if len(levels) < 3:
        return Spectrum(0.0, 1.0, 0.0, 1.0, 0.0)
    # Of strongly correlated noise, fine differences see less than of a little white noise in addition.
    most = max((levels[probe] for probe in levels if shares[probe] > 0.5), default=0.0)
    errors = {
        probe: _ERROR + _ERROR_OF_TEXTURE * (1 - shares[probe]) + _WHITE_PART * most / levels[probe]
        for probe in levels
    }
    limit = math.inf if flat.limits is None else float(np.median(flat.limits / curve.variances))
    sharpest = next(iter(flat.energies))
    finest = levels[sharpest] if shares.get(sharpest, 0.0) > _SURELY_SEEN else 0.0
    found = [
        replace(explain(levels, errors, each, flat.ndim, limit), finest=finest) for each in _CORRELATIONS
    ]
    white, best = found[0], min(found, key=lambda one: one.misfit)
    clear = white.misfit - 2 * best.misfit > _CLEAR_MISFITS[best.correlation >= _LEAST_CORRELATION]
    if clear or best.correlation < _LEAST_CORRELATION:
        return best if clear else white
    # Noise of this correlation, or white noise with more texture?
    seen = tuple(probe for probe in levels if levels[probe] >= 3 * _WHITE_PART * most)
    probes = join_probes(seen[0], seen, COARSER)
    likelihoods = []
    for correlation in (0.0, best.correlation):
        logs = [math.log(levels[probe] / gain(correlation, probe, flat.ndim)) for probe in probes]
        variance = math.exp(min(logs))
        expected = [variance * gain(correlation, probe, flat.ndim) + added for probe in probes]
        energies = np.stack([relative[probe] / each for probe, each in zip(probes, expected, strict=True)])
        freedoms = [freedom(correlation, probe, flat.side, flat.ndim) for probe in probes]
        likelihoods.append(fit_curve("gaussian", flat.means, energies, freedoms).likelihood)
    return best if flat.weight * (likelihoods[1] - likelihoods[0]) > _CLEAR_CORRELATION else white
