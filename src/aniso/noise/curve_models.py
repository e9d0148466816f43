"""The model of a fitted curve: its parameters, in grey values."""

from __future__ import annotations

import math

import numpy as np

from aniso.noise.fitting import Curve
from aniso.noise.models import (
    RAYLEIGH_MEAN,
    RAYLEIGH_VARIANCE,
    Gaussian,
    NoiseModel,
    PoissonGaussian,
    Rician,
    Speckle,
)
from aniso.noise.statistics import Blocks

# Read noise, in photons, that is not seen beside that of the photons.
_UNSEEN_READING = 0.25
# Error of the level of magnitudes that the mean of a background may correct; the largest mean of blocks that
# may belong to it, in levels; the share of blocks that must; the half width of the distribution of their
# means, in standard deviations; and the largest spread over that, which is 0.58 if no mean is preferred.
_LEVEL_ERROR, _LARGEST_DARK, _LEAST_DARK, _WIDTH, _PEAK = 0.22, 1.6, 0.03, 2.0, 0.41
_ROUNDS = 8
# The least floor of speckle, over its level at the median; and that of images in which many pixels are 0.
_LEAST_FLOOR, _FLOOR_OF_ZEROS = 0.05, 0.5


def make_model(
    curve: Curve, factor: float, correlation: float, flat: Blocks, lowest: float, mean: float
) -> NoiseModel:
    """Return the model of a curve whose variances are multiplied by a factor.

    No offset is above the lowest grey values; the `mean` is that of the image.
    """
    first, *rest = (factor * value for value in curve.coefficients)
    if curve.kind == "rician":
        return Rician(_level_of_background(curve.coefficients[0] * math.sqrt(factor), flat), correlation)
    if curve.kind == "gaussian" or rest[0] == 0:
        return Gaussian(math.sqrt(max(first, 0.0)), correlation)
    if curve.kind == "poisson":
        slope = rest[0]
        least = min(float(flat.means.min()), 0.0)  # what a camera counts from, unless it is above
        read = first + slope * least
        if read < 0:
            offset = min(-first / slope, lowest)
            # The mean variance must not change with the offset.
            return PoissonGaussian((first + slope * mean) / (mean - offset), offset, 0.0, correlation)
        reading = math.sqrt(read)
        return PoissonGaussian(
            slope, least, reading if reading > _UNSEEN_READING * slope else 0.0, correlation
        )
    level, middle = math.sqrt(rest[0]), float(np.median(flat.means))
    floor = max(math.sqrt(first), _LEAST_FLOOR * level * middle)
    if lowest <= 0 and floor < _FLOOR_OF_ZEROS * level * middle:
        # The logarithm of zeros would be that of outliers. The variance at the median does not change.
        level = math.hypot(level, floor / middle) / math.hypot(1.0, _FLOOR_OF_ZEROS)
        floor = _FLOOR_OF_ZEROS * level * middle
    return Speckle(level, floor, correlation)


def _level_of_background(level: float, flat: Blocks) -> float:
    """Return a more exact level of magnitudes, from the mean of blocks without signal, if there are any.

    Their mean is 1.25 levels, and an error of a few percent would leave a grey background. A background is a
    peak of the distribution of means: weak signals, which raise the mean a little, have all values.
    """
    dark = flat.means[flat.means < _LARGEST_DARK * level]
    spread = _WIDTH * level * math.sqrt(RAYLEIGH_VARIANCE / flat.side**flat.ndim)
    if not len(dark):
        return level
    centre = float(np.quantile(dark, 0.3))  # signals can only add to the mean
    for _ in range(_ROUNDS):
        near = flat.means[np.abs(flat.means - centre) <= spread]
        if len(near) < max(_LEAST_DARK * len(flat), 5):
            return level
        centre = float(near.mean())
    if float(np.std(near)) > _PEAK * spread:
        return level
    found = centre / RAYLEIGH_MEAN
    return found if abs(found / level - 1) <= _LEVEL_ERROR else level
