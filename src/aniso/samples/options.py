"""What the options of all synthetic images and volumes have in common: checks, and the noise."""

from __future__ import annotations

from typing import Any

import numpy as np

from aniso import checks
from aniso.arrays import Field

LONGEST_SIDE = 2**16
_LARGEST = 1e100
_MOST = 10**6


def side(name: str, value: Any, what: str) -> int:
    """A number of pixels along a side."""
    length = checks.whole(name, value, f"It is {what}.")
    if not 1 <= length <= LONGEST_SIDE:
        raise ValueError(f"{name} must be at least 1 and at most {LONGEST_SIDE}, got {value}: it is {what}.")
    return length


def positive(name: str, value: Any, what: str) -> float:
    """A positive number."""
    number = checks.real(name, value, f"It is {what}.")
    if not 1 / _LARGEST <= number <= _LARGEST:
        raise ValueError(f"{name} must be positive and at most {_LARGEST:g}, got {value}: it is {what}.")
    return number


def count(name: str, value: Any, what: str) -> int:
    """How many there are of something."""
    number = checks.whole(name, value, f"It is the number of {what}.")
    if not 0 <= number <= _MOST:
        raise ValueError(
            f"{name} must be at least 0 and at most {_MOST}, got {value}: it is the number of {what}."
        )
    return number


def source(seed: Any) -> np.random.Generator:
    """Where random numbers come from."""
    number = checks.whole("seed", seed, "The same seed gives the same numbers. Use seed=0 if any will do.")
    if number < 0:
        raise ValueError(f"seed must be at least 0, got {seed}: it begins a sequence of random numbers.")
    return np.random.default_rng(number)


def with_noise(image: Field, noise: Any, rng: np.random.Generator) -> Field:
    """The image under Gaussian noise."""
    level = checks.within(
        "noise", noise, 0, _LARGEST, "it is the standard deviation of the noise in grey values."
    )
    return image + rng.normal(0, abs(level), image.shape)  # NumPy refuses a negative zero
