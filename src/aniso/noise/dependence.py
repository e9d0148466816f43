"""What neighbouring blocks have in common: of noise nothing, of texture its strength."""

from __future__ import annotations

import math

import numpy as np

from aniso.arrays import Field
from aniso.noise.correlation import Probe, freedom, shared_freedom
from aniso.noise.statistics import Blocks, next_place

# Energies over the variance of the noise that count, and the least number of pairs of neighbours.
_RANGE, _LEAST_PAIRS = (1e-3, 3.0), 30
# Degree of the polynomial that explains energies by the mean.
_DEGREE = 2
# By how many standard errors a correlation must exceed 0.
_CLEAR = 3.0


def shared_spread(blocks: Blocks, variances: Field, probe: Probe, correlation: float) -> float:
    """Return the spread of the strength of what is seen in flat blocks, as far as neighbours share it.

    It is the standard deviation of the natural logarithm of energies over the expected `variances` of the
    differences of a `probe`. In one block, the energy of noise is large or small by chance, and that of the
    next one is not larger for this reason. Texture, though, is strong in some parts of an image and weak in
    others. It is 0 if there are too few flat blocks to tell.
    """
    ratios = blocks.energies[probe] / np.maximum(variances, 1e-300)
    inside = (ratios > _RANGE[0]) & (ratios < _RANGE[1])
    order = np.argsort(blocks.places[inside])
    places, logs = blocks.places[inside][order], np.log(ratios[inside][order])
    if len(places) < _LEAST_PAIRS:
        return 0.0
    # What depends on the mean may be an error of the curve of variances.
    ranks = np.empty(len(logs))
    ranks[np.argsort(blocks.means[inside][order], kind="stable")] = np.linspace(-1, 1, len(logs))
    logs -= np.polynomial.legendre.legval(ranks, np.polynomial.legendre.legfit(ranks, logs, _DEGREE))
    products = []
    for axis in range(blocks.ndim):
        beside = np.searchsorted(places, places + next_place(axis, blocks.ndim))
        beside = np.minimum(beside, len(places) - 1)
        found = places[beside] == places + next_place(axis, blocks.ndim)
        products.append(logs[found] * logs[beside[found]])
    pairs = np.concatenate(products)
    variance = float(np.mean(logs**2))
    if len(pairs) * blocks.weight < _LEAST_PAIRS or variance == 0:
        return 0.0
    # The variance of the logarithm of a mean square is about 2 over its degrees of freedom.
    expected = 2 / freedom(correlation, probe, blocks.side, blocks.ndim)
    expected *= shared_freedom(correlation, probe, blocks.side, blocks.ndim)
    excess = float(pairs.mean()) - expected
    error = variance / math.sqrt(len(pairs) * blocks.weight)
    return math.sqrt(excess) if excess > _CLEAR * error else 0.0
