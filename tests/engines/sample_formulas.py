"""A module for the tests of texts of functions."""

# mypy: ignore-errors

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

maximum: Any = max


def formula(
    x: Any,  # 1
    slope: Callable[[Any], Any],
    y: Any,
) -> tuple[Any, Any]:
    """Half of x³, 0.5."""
    half = 0.5 * x  # not 1
    return maximum(slope(half) * x[0] - 1e-12, -2 + y)


# A comment between two functions.
@dataclass
class Decorated:
    """A class is not a function."""

    value: int = 1

    def method(self) -> int:
        return 2


def with_default(x: Any, y: Any = 1) -> Any:
    return x + y


@cache
def last() -> int:
    return 1


def three_numbers(first: Any, mixed: Any, second: Any, fall: Any, scale: Any, most: Any, rest: Any) -> Any:
    """Isotropic diffusion between two diffusivities: arguments of any name, more than two numbers."""
    g = rest + (most - rest) * fall((first + second) * scale)
    return g, 0 * mixed, g
