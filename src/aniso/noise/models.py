"""Models of noise: how its variance follows the mean, and transforms that make it the same everywhere."""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from aniso.arrays import Field
from aniso.noise.correlation import blur_noise
from aniso.noise.functions import arcsinh, as_array, exp, interpolate, sqrt, where

__all__ = ["Gaussian", "NoiseModel", "PoissonGaussian", "Rician", "Speckle"]


def _normal_quadrature(count: int) -> tuple[Field, Field]:
    """Return values of a standard normal variable, and their weights."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(count)
    return nodes, weights / weights.sum()


_NODES, _WEIGHTS = _normal_quadrature(40)
# The same at equal distances, for functions that are constant below a threshold.
_GRID = np.linspace(-7, 7, 201)
_GRID_WEIGHTS = np.exp(-0.5 * _GRID**2) / np.exp(-0.5 * _GRID**2).sum()
# Quantiles of Gamma variables that stand for all of them.
_QUANTILES = (np.arange(600) + 0.5) / 600
# Poisson distributions of a larger mean are so close to normal ones that the asymptotic inverse is exact.
_LARGE_COUNT = 60.0
# Read noise in counts above which noise is normal.
_LARGE_READING = 30.0
# Mean and variance of the Rayleigh distribution: the magnitude of complex noise of level 1.
RAYLEIGH_MEAN, RAYLEIGH_VARIANCE = math.sqrt(math.pi / 2), 2 - math.pi / 2
# Signals, in noise levels, beyond which the magnitude of complex noise is practically normal.
_LARGE_SIGNAL = 30.0
# Signals, in noise levels, below which a magnitude carries hardly any information.
_WEAK_SIGNAL = 0.5


class NoiseModel(ABC):
    """A noisy image z of an image x without noise.

    The noise is independent from pixel to pixel, or has the `correlation` that white noise has after a
    Gaussian of this standard deviation, in pixels.

    Examples
    --------
    >>> from aniso import noise
    >>> [isinstance(model, noise.NoiseModel) for model in (noise.Gaussian(5.0), noise.Speckle(0.2))]
    [True, True]
    """

    #: Name of the kind, as on the command line.
    kind: ClassVar[str]
    correlation: float

    @property
    def unit(self) -> float:
        """The standard deviation of the noise after `stabilise`."""
        return 1.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not math.isfinite(value) or (value < 0 and name != "offset"):
                raise ValueError(
                    f"{name} of {type(self).__name__} must be at least 0 and finite, got {value}."
                )

    @abstractmethod
    def variance(self, mean: npt.ArrayLike) -> Field:
        """Return the variance of the noise where the noisy image has this mean."""

    @abstractmethod
    def stabilise(self, image: Any) -> Any:
        """Return an increasing function of the grey values, after which the noise has the level `unit`.

        It takes arrays and PyTorch tensors, as `restore` does.
        """

    def restore(self, image: Any) -> Any:
        """Return x from the mean of `stabilise(z)`: the exact unbiased inverse, not the algebraic one."""
        means, truths = self.table()
        return interpolate(as_array(image), means, truths)

    @abstractmethod
    def table(self) -> tuple[Field, Field]:
        """Return means of `stabilise(z)` and the x that they belong to, both increasing."""

    def stabilised_variance(self, image: Field) -> Field:
        """Return the variance of `stabilise(z)` where its mean is that of `image`: `unit`², or nearly so."""
        return np.full(np.shape(image), self.unit**2)

    def sample(self, truth: npt.ArrayLike, random: np.random.Generator) -> Field:
        """Return a noisy image of `truth`."""
        exact = np.asarray(truth, np.float64)
        noisy = self._sample_white(exact, random)
        if self.correlation == 0:
            return noisy
        mean = self._mean(exact)
        return mean + blur_noise(noisy - mean, self.correlation)

    @abstractmethod
    def _sample_white(self, truth: Field, random: np.random.Generator) -> Field: ...

    def _mean(self, truth: Field) -> Field:
        return truth

    def std_at(self, mean: float) -> float:
        """Return the standard deviation of the noise where the noisy image has this mean."""
        return math.sqrt(float(self.variance(mean)))


@dataclass(frozen=True)
class Gaussian(NoiseModel):
    """Additive noise of one level, in grey values.

    Parameters
    ----------
    level : float
        Standard deviation in grey values.
    correlation : float
        Standard deviation, in pixels, of the Gaussian filter that turns white noise into such noise; 0 for
        white noise.

    Examples
    --------
    >>> from aniso.noise import Gaussian
    >>> float(Gaussian(5.0).variance(100.0))
    25.0
    """

    kind: ClassVar[str] = "gaussian"

    level: float
    correlation: float = 0.0

    @property
    def unit(self) -> float:
        """The level itself: grey values are left as they are."""
        return self.level

    def variance(self, mean: npt.ArrayLike) -> Field:
        """Return the same variance everywhere."""
        return np.full(np.shape(mean), self.level**2)

    def stabilise(self, image: Any) -> Any:
        """Return the image as it is."""
        return as_array(image)

    def restore(self, image: Any) -> Any:
        """Return the image as it is."""
        return as_array(image)

    def table(self) -> tuple[Field, Field]:
        """Return two points of a straight line."""
        return np.array([0.0, 1.0]), np.array([0.0, 1.0])

    def _sample_white(self, truth: Field, random: np.random.Generator) -> Field:
        return truth + random.normal(0, self.level, truth.shape) if self.level > 0 else truth.copy()


@dataclass(frozen=True)
class PoissonGaussian(NoiseModel):
    """Counted photons, amplified, with an offset and the read noise of a camera.

    z = gain·Poisson((x − offset)/gain) + offset + N(0, read_noise²). The variance is
    gain·(mean − offset) + read_noise², and the generalised Anscombe transform makes it 1.

    Parameters
    ----------
    gain : float
        Grey values per photon.
    offset : float
        Grey value without light.
    read_noise : float
        Standard deviation of the read noise in grey values.
    correlation : float
        Standard deviation, in pixels, of the Gaussian filter that turns white noise into such noise; 0 for
        white noise.

    Examples
    --------
    >>> from aniso.noise import PoissonGaussian
    >>> camera = PoissonGaussian(gain=2.0, offset=100.0, read_noise=3.0)
    >>> float(camera.variance(150.0))
    109.0
    >>> stabilised = camera.stabilise([100.0, 150.0, 200.0])
    """

    kind: ClassVar[str] = "poisson"

    gain: float
    offset: float = 0.0
    read_noise: float = 0.0
    correlation: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.gain == 0:
            raise ValueError("gain of PoissonGaussian must be positive, got 0. Use Gaussian without photons.")

    def variance(self, mean: npt.ArrayLike) -> Field:
        """Return gain·(mean − offset) + read_noise², at least read_noise²."""
        return self.gain * np.maximum(np.asarray(mean, np.float64) - self.offset, 0.0) + self.read_noise**2

    def stabilise(self, image: Any) -> Any:
        """Return the generalised Anscombe transform, 2·√(counts + 3/8 + read_noise²/gain²)."""
        return self._transform((as_array(image) - self.offset) / self.gain)

    def _transform(self, counts: Any) -> Any:
        return 2 * sqrt((counts + (0.375 + self._reading**2)).clip(min=0))

    @property
    def _reading(self) -> float:
        """The read noise in counts."""
        return self.read_noise / self.gain

    def restore(self, image: Any) -> Any:
        """Return x from the mean of the transform: from a table, or asymptotically for large counts."""
        means, truths = self.table()
        values = as_array(image)
        far = self.offset + self.gain * (values * values / 4 - (0.125 + self._reading**2))
        return where(values > float(means[-1]), far, interpolate(values, means, truths))

    def table(self) -> tuple[Field, Field]:
        """Return the mean of the transform for counts up to where its asymptotic inverse is exact."""
        counts, means, _ = _poisson_table(self._reading)
        return means, self.offset + self.gain * counts

    def stabilised_variance(self, image: Field) -> Field:
        """Return what few photons vary less than many."""
        _, means, variances = _poisson_table(self._reading)
        return np.interp(image, means, variances)

    def _sample_white(self, truth: Field, random: np.random.Generator) -> Field:
        counts = random.poisson(np.maximum(truth - self.offset, 0.0) / self.gain).astype(np.float64)
        noisy: Field = self.gain * counts + self.offset
        return noisy + random.normal(0, self.read_noise, truth.shape) if self.read_noise > 0 else noisy


@functools.lru_cache(maxsize=64)
def _poisson_table(reading: float) -> tuple[Field, Field, Field]:
    """Return counts, and mean and variance of the Anscombe transform for each."""
    from scipy import stats

    last = _LARGE_COUNT + reading**2
    counts = np.linspace(0, math.sqrt(last), 240) ** 2
    if reading > _LARGE_READING:  # so strong that noise is normal for any count
        return counts, 2 * np.sqrt(counts + (0.125 + reading**2)), np.ones_like(counts)
    most = int(last + 10 * math.sqrt(last) + 20)
    found = np.arange(most + 1)
    model = PoissonGaussian(1.0, read_noise=reading)
    transformed = model._transform(found + reading * _GRID[:, np.newaxis])
    chances = stats.poisson.pmf(found, counts[:, np.newaxis])
    means, squares = (chances @ (_GRID_WEIGHTS @ each) for each in (transformed, transformed**2))
    return counts, means, np.maximum(squares - means**2, 0.0)  # 0 without photons, up to rounding


@dataclass(frozen=True)
class Rician(NoiseModel):
    """The magnitude of a complex signal with Gaussian noise of one level in both parts, as in MRI.

    `restore` returns the magnitude of the signal without noise, which is smaller than the mean of z: the mean
    of pure noise is 1.25 of its level.

    Parameters
    ----------
    level : float
        Standard deviation of the noise in each part of the signal, in grey values.
    correlation : float
        Standard deviation, in pixels, of the Gaussian filter that turns white noise into such noise; 0 for
        white noise.

    Examples
    --------
    >>> from aniso.noise import Rician
    >>> round(float(Rician(10.0).variance(12.5)), 1), round(float(Rician(10.0).variance(200.0)), 1)
    (42.9, 99.9)
    """

    kind: ClassVar[str] = "rician"

    level: float
    correlation: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.level == 0:
            raise ValueError("level of Rician must be positive, got 0.")

    def variance(self, mean: npt.ArrayLike) -> Field:
        """Return the variance for a mean of z, which is at least that of pure noise."""
        means, variances, _, _ = _rician_tables()
        return self.level**2 * np.interp(np.asarray(mean, np.float64) / self.level, means, variances)

    def stabilise(self, image: Any) -> Any:
        """Return the integral of 1/√variance."""
        _, _, places, stabilised = _rician_tables()
        return interpolate(as_array(image) / self.level, places, stabilised)

    def table(self) -> tuple[Field, Field]:
        """Return the mean of the stabilised magnitude for signals up to 30 noise levels.

        The mean hardly changes with a weak signal, so that an exact inverse would turn small errors of it
        into large signals. Those that are weaker than half a level are therefore reduced.
        """
        signals, means, _ = _rician_means()
        weakest = np.searchsorted(signals, _WEAK_SIGNAL)
        chord = (means - means[0]) * (signals[weakest] / (means[weakest] - means[0]))
        return means, self.level * np.where(signals < _WEAK_SIGNAL, chord, signals)

    def stabilised_variance(self, image: Field) -> Field:
        """Return the variance, which is a little smaller where there is no signal."""
        _, means, variances = _rician_means()
        return np.interp(image, means, variances)

    def restore(self, image: Any) -> Any:
        """Return the magnitude of the signal, at least 0."""
        return super().restore(image).clip(min=0)

    def _sample_white(self, truth: Field, random: np.random.Generator) -> Field:
        real, imaginary = random.normal(0, self.level, (2, *truth.shape))
        return np.hypot(truth + real, imaginary)

    def _mean(self, truth: Field) -> Field:
        signals, magnitudes = _magnitudes()
        means = _WEIGHTS @ magnitudes @ _WEIGHTS
        return self.level * interpolate(truth / self.level, signals, means)


@functools.lru_cache(maxsize=1)
def _magnitudes() -> tuple[Field, Field]:
    """Return signals in noise levels, and the magnitudes (signals, nodes, nodes) with complex noise."""
    signals = np.concatenate([np.linspace(0, 6, 181), np.linspace(6.1, _LARGE_SIGNAL, 240)])
    return signals, np.hypot(signals[:, np.newaxis, np.newaxis] + _NODES[:, np.newaxis], _NODES)


@functools.lru_cache(maxsize=1)
def _rician_tables() -> tuple[Field, Field, Field, Field]:
    """Return mean and variance of the magnitude, and magnitudes with their stabilised values."""
    from scipy.special import i0e, i1e

    signals, _ = _magnitudes()
    half = signals**2 / 2
    means = math.sqrt(math.pi / 2) * ((1 + half) * i0e(half / 2) + half * i1e(half / 2))
    variances = 2 + 2 * half - means**2
    places = np.concatenate([np.linspace(0, 8, 401), np.linspace(8.1, _LARGE_SIGNAL + 10, 320)])
    slopes = 1 / np.sqrt(np.interp(places, means, variances))
    rises = 0.5 * (slopes[1:] + slopes[:-1]) * np.diff(places)
    return means, variances, places, np.concatenate([[0.0], np.cumsum(rises)])


@functools.lru_cache(maxsize=1)
def _rician_means() -> tuple[Field, Field, Field]:
    """Return signals, and mean and variance of the stabilised magnitude."""
    signals, magnitudes = _magnitudes()
    _, _, places, stabilised = _rician_tables()
    found = interpolate(magnitudes, places, stabilised)
    means, squares = (_WEIGHTS @ each @ _WEIGHTS for each in (found, found**2))
    return signals, means, squares - means**2


@dataclass(frozen=True)
class Speckle(NoiseModel):
    """Noise that is a part of the signal, as in ultrasound, radar and OCT: z = x·n + N(0, floor²).

    n has the mean 1 and the standard deviation `level`; it is Gamma distributed. The variance is
    level²·mean² + floor²; far above the floor, the transform is a logarithm.

    Parameters
    ----------
    level : float
        Standard deviation of n: the noise as a part of the signal.
    floor : float
        Standard deviation of additive noise in grey values.
    correlation : float
        Standard deviation, in pixels, of the Gaussian filter that turns white noise into such noise; 0 for
        white noise.

    Examples
    --------
    >>> from aniso.noise import Speckle
    >>> float(Speckle(0.2, floor=3.0).variance(100.0))
    409.0
    """

    kind: ClassVar[str] = "speckle"

    level: float
    floor: float = 1.0
    correlation: float = 0.0

    @property
    def unit(self) -> float:
        """The standard deviation of the logarithm of n, over that of n: 1 if it is small."""
        from scipy import special

        return math.sqrt(float(special.polygamma(1, 1 / self.level**2))) / self.level

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.level == 0 or self.floor == 0:
            raise ValueError(
                f"level and floor of Speckle must be positive, got {self.level} and {self.floor}: without a "
                "floor, the transform of 0 would be infinite."
            )

    def variance(self, mean: npt.ArrayLike) -> Field:
        """Return level²·mean² + floor²."""
        return np.square(self.level * np.asarray(mean, np.float64)) + self.floor**2

    def stabilise(self, image: Any) -> Any:
        """Return arsinh(level·z/floor)/level."""
        return arcsinh(as_array(image) * (self.level / self.floor)) / self.level

    def table(self) -> tuple[Field, Field]:
        """Return the mean of the transform for signals up to 10⁶ floors."""
        signals, means = _speckle_table(self.level)
        return means, self.floor * signals

    def restore(self, image: Any) -> Any:
        """Return x from the mean of the transform."""
        means, truths = self.table()
        values, last = as_array(image), float(means[-1])
        # Exponential far above the floor, where a straight line from point to point would not do.
        far = float(truths[-1]) * exp(self.level * (values - last).clip(min=0))
        return where(values > last, far, interpolate(values, means, truths))

    def _sample_white(self, truth: Field, random: np.random.Generator) -> Field:
        shape = 1 / self.level**2
        noisy = truth * random.gamma(shape, 1 / shape, truth.shape)
        return noisy + random.normal(0, self.floor, truth.shape)


@functools.lru_cache(maxsize=64)
def _speckle_table(ratio: float) -> tuple[Field, Field]:
    """Return signals over the floor, and the mean of the transform for each."""
    from scipy import stats

    positive = np.sinh(np.linspace(0, math.asinh(1e6), 600))
    shape = 1 / ratio**2
    factors = stats.gamma.ppf(_QUANTILES, shape) / shape
    factors *= 1 / factors.mean()
    noisy, means = positive[:, np.newaxis] * factors, np.zeros_like(positive)
    for node, weight in zip(*_normal_quadrature(9), strict=True):  # one by one, to save memory
        means += weight * np.arcsinh(ratio * (noisy + node)).mean(axis=1) / ratio
    signals = np.concatenate([-positive[:0:-1], positive])
    return signals, np.concatenate([-means[:0:-1], means])


MODELS: dict[str, type[NoiseModel]] = {one.kind: one for one in (Gaussian, PoissonGaussian, Rician, Speckle)}
