"""Stein's unbiased risk estimate: the error of a diffused image without a reference."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from aniso.arrays import Array
from aniso.models import ImageDriven
from aniso.noise.correlation import blur_noise
from aniso.noise.estimate import NoiseEstimate
from aniso.noise.level import measure_noise
from aniso.verbs.flatness import flatness

# The change of the image that measures the divergence, as a part of the noise level.
_PROBE = 0.05
# The part of an estimated level to which it may be lowered.
_LOWEST_LEVEL = 0.85
# Relative error of the variance of noise that was estimated: of levels, of curves over the grey value, and of
# noise that was changed by compression.
_DOUBT, _DOUBT_OF_CURVES, _DOUBT_OF_COMPRESSED = 0.03, 0.12, 0.5
# And at least this multiple of a negative risk.
_DOUBT_OF_NEGATIVE = 2.0


#: The number of a window, and rows and columns of it.
Part = tuple[int, tuple[slice, ...]]


def variance_doubt(*, known: bool, gaussian: bool, compressed: bool) -> float:
    """Return the relative error of the variance of the noise, from how it was found."""
    if known:
        return 0.0
    return _DOUBT_OF_COMPRESSED if compressed else _DOUBT if gaussian else _DOUBT_OF_CURVES


def expected_square(risk: float, least: float, doubt: float) -> float:
    """Return the mean of an error that is at least `least`, and whose estimate has a standard deviation.

    Errors of an estimated noise level do not average out: small risks may even be estimated as negative,
    which shows how large these errors are.
    """
    if doubt == 0:
        return max(risk, least)
    doubt = max(doubt, -_DOUBT_OF_NEGATIVE * risk)
    place = (risk - least) / doubt
    chance = 0.5 * math.erfc(-place / math.sqrt(2))
    density = math.exp(-0.5 * place**2) / math.sqrt(2 * math.pi)
    return least + (risk - least) * chance + doubt * density


def rejected_variance(found: NoiseEstimate) -> float:
    """Return the expected variance of noise that was taken for texture: either may be true."""
    return 0.0 if found.rejected is None else 0.5 * max(found.rejected.level**2 - found.level**2, 0.0)


@dataclass(frozen=True, eq=False)
class Stop:
    """Diffused windows and the diffused changed windows, with what the estimate of their error needs.

    `change` is the mean squared difference from the windows before, and `divergence` the mean derivative of a
    pixel by itself, or by all that noise at it is correlated with. Flatness is relative to `unit`.
    """

    time: float
    image: list[Array]
    changed: list[Array]
    change: float
    divergence: float
    model: ImageDriven | None
    unit: float

    @cached_property
    def flat(self) -> tuple[list[Array], list[Array]]:
        """The flatness of the windows, and of the changed windows."""
        first, second = ([flatness(one, self.unit) for one in each] for each in (self.image, self.changed))
        return first, second

    def error(self, level: float) -> float:
        """Return the expected mean squared error for a noise level; it may be negative by chance."""
        return self.change + (2 * self.divergence - 1) * level**2

    def highest_variance(self, remaining: float) -> float:
        """Return the noise variance above which the error would be less than what remains of the noise."""
        rest = 1 - (2 - remaining) * self.divergence
        return self.change / rest if rest > 0 else math.inf


class Judge:
    """Stein's unbiased risk estimate for windows (channels, …) of an image."""

    def __init__(
        self, windows: list[Array], level: float, correlation: float = 0.0, levels: list[Array] | None = None
    ) -> None:
        """Take the noise level, or one for each pixel; and the correlation of the noise."""
        self.image = windows
        #: The level as it was found, which is not lowered.
        self.unit = level
        #: The level where there is noise; `level` is the root mean square, also over pixels that have none.
        self.noise = level
        self.size = sum(window.size for window in windows)
        self.uneven = levels is not None
        if levels is not None:
            level = math.sqrt(sum(float(np.vdot(one, one)) for one in levels) / self.size)
        self.level, self.correlation = level, correlation
        random = np.random.default_rng(0)
        # With the covariance of the noise, for which the estimate holds.
        self.probe = [
            blur_noise(
                (2 * random.integers(0, 2, window.shape, dtype=np.int8) - 1).astype(window.dtype),
                correlation,
                first_axis=1,
            )
            for window in windows
        ]
        if levels is not None and level > 0:
            self.probe = [probe * (each / level) for probe, each in zip(self.probe, levels, strict=True)]
        self.step = _PROBE * level
        self.changed = [
            window + window.dtype.type(self.step) * probe
            for window, probe in zip(windows, self.probe, strict=True)
        ]
        self.start = Stop(0.0, self.image, self.changed, 0.0, 1.0, None, self.unit)

    @cached_property
    def axes(self) -> Array:
        """Orthonormal axes on which the channels are uncorrelated, one per row."""
        channels = np.concatenate([window.reshape(len(window), -1) for window in self.image], axis=1)
        return _principal_axes(channels)

    @cached_property
    def along_axes(self) -> list[tuple[float, float]]:
        """The standard deviation and the noise of the windows along each axis."""
        found = []
        for axis in self.axes:
            along = [np.tensordot(axis, window, 1) for window in self.image]
            spread = float(np.concatenate([window.ravel() for window in along]).std())
            noise = float(np.median([measure_noise(window[np.newaxis]) for window in along]))
            found.append((spread, noise))
        return found

    @property
    def remaining(self) -> float:
        """What remains at least of the variance of the noise, over the divergence.

        It is that of Gaussian averages: one that leaves a part d of each pixel leaves d/2 of the variance in
        images, and less in volumes.
        """
        return min(0.5, 2 ** (-0.5 * (self.image[0].ndim - 1)))

    def part(self, parts: list[Part]) -> Judge:
        """Return the judge of parts of the windows."""
        few = copy.copy(self)
        for name in ("image", "probe", "changed"):
            setattr(few, name, _cut(getattr(self, name), parts))
        few.size = sum(window.size for window in few.image)
        few.start = Stop(0.0, few.image, few.changed, 0.0, 1.0, None, few.unit)
        for name in ("axes", "along_axes"):
            few.__dict__.pop(name, None)
        return few

    def risk_in_parts(self, stop: Stop, parts: list[Part]) -> float:
        """Return the expected mean squared error of diffused windows in parts of them."""
        few = self.part(parts)
        return few.risk(few.stop(stop.time, _cut(stop.image, parts), _cut(stop.changed, parts), stop.model))

    def stop(self, time: float, image: list[Array], changed: list[Array], model: ImageDriven | None) -> Stop:
        """Return diffused windows with their change and divergence."""
        square = total = 0.0
        for start, probe, one, other in zip(self.image, self.probe, image, changed, strict=True):
            difference = one - start
            square += float(np.vdot(difference, difference))
            total += float(np.vdot(probe, other - one))
        divergence = total / (self.step * self.size) if self.step > 0 else 0.0
        return Stop(time, image, changed, square / self.size, divergence, model, self.unit)

    def risk(self, stop: Stop) -> float:
        """Return the expected mean squared error of diffused windows."""
        return stop.error(self.level)

    def weighted_risk(self, stop: Stop, weights: list[Array]) -> float:
        """Return the expected weighted mean squared error of diffused windows."""
        total = 0.0
        for start, probe, one, other, weight in zip(
            self.image, self.probe, stop.image, stop.changed, weights, strict=True
        ):
            difference = one - start
            total += float(np.vdot(weight * difference, difference))
            if self.step > 0:
                noise = 2 * (other - one) / self.step - probe
                total += self.level**2 * float(np.vdot(weight * probe, noise))
        return total / self.size

    def lower_level(self, stops: list[Stop]) -> None:
        """Lower a noise level with which the error of a diffused image would be impossibly small."""
        variance = min((stop.highest_variance(self.remaining) for stop in stops), default=math.inf)
        lowered = min(self.level, max(math.sqrt(max(variance, 0.0)), _LOWEST_LEVEL * self.level))
        if self.level > 0:
            self.noise *= lowered / self.level
        self.level = lowered


def _principal_axes(flat: Array) -> Array:
    """Return an orthonormal basis of the channels in which they are uncorrelated, one axis per row."""
    if len(flat) == 1:
        return np.ones((1, 1), flat.dtype)
    _, vectors = np.linalg.eigh(np.cov(flat.astype(np.float64)).reshape(len(flat), len(flat)))
    return vectors.T.astype(flat.dtype)


def _cut(windows: list[Array], parts: list[Part]) -> list[Array]:
    return [windows[number][(slice(None), *part)] for number, part in parts]
