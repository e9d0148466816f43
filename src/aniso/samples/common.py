"""Parts that all samples share: the result, checks of parameters, coordinates and noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from aniso import checks
from aniso.arrays import Field

LONGEST_SIDE = 2**16
_LARGEST = 1e100
_MOST = 10**6


@dataclass(frozen=True, eq=False)
class Sample:
    """A degraded image and its ground truth."""

    #: The input of a filter, shape (H, W), (H, W, 3) for colours, or (D, H, W) for volumes.
    image: Field
    #: The ideal output, of the same shape.
    truth: Field
    #: True where a line or layer is interrupted, shape (H, W) or (D, H, W).
    gaps: npt.NDArray[np.bool_]


def check_side(name: str, value: Any) -> int:
    """Return a number of pixels along a side."""
    return checks.whole_within(name, value, 1, LONGEST_SIDE, "It is the number of pixels along each side.")


def check_positive(name: str, value: Any, what: str) -> float:
    """Return a positive number."""
    number = checks.real(name, value, f"It is {what}.")
    if not 1 / _LARGEST <= number <= _LARGEST:
        raise ValueError(f"{name} must be positive and at most {_LARGEST:g}, got {value}: it is {what}.")
    return number


def check_count(name: str, value: Any, what: str) -> int:
    """Return a number of things, which may be 0."""
    return checks.whole_within(name, value, 0, _MOST, f"It is the number of {what}.")


def generator(seed: Any) -> np.random.Generator:
    """Return a random number generator."""
    number = checks.whole("seed", seed, "The same seed gives the same numbers. Use seed=0 if any will do.")
    if number < 0:
        raise ValueError(f"seed must be at least 0, got {seed}: it initialises the random generator.")
    return np.random.default_rng(number)


def with_noise(image: Field, noise: Any, rng: np.random.Generator) -> Field:
    """Return the image with additive Gaussian noise."""
    level = checks.within(
        "noise", noise, 0, _LARGEST, "it is the standard deviation of the noise in grey values."
    )
    return image + rng.normal(0, abs(level), image.shape)  # NumPy rejects a negative zero


def centred_grid(size: int, ndim: int, extra: int = 0) -> Field:
    """Return the coordinates of pixels around the centre of a square or cube, axis 0 first."""
    size = check_side("size", size) + extra
    axis = np.arange(size, dtype=np.float64) - 0.5 * (size - 1)
    return np.array(np.meshgrid(*[axis] * ndim, indexing="ij"))


def fading_wave(r: Field, k_max: float, radius: float, width: float) -> Field:
    """Return a wave whose frequency grows with r, up to `k_max` at this radius, where it fades out."""
    k_max = checks.within("k_max", k_max, 0, 1e3, "it is a frequency in radians per pixel.")
    radius = check_positive("radius", radius, "where the wave fades out")
    width = check_positive("width", width, "the distance over which the wave fades out")
    return np.sin(k_max * r**2 / (2 * radius)) * (0.5 * np.tanh((radius - r) / width) + 0.5)
