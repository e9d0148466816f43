"""Checks of numbers and options. Errors say what was expected, what was given and how to fix it."""

from __future__ import annotations

import math
import numbers
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

#: A parameter that is to be estimated.
Auto = Literal["auto"] | None
Spacing = float | Sequence[float]
_Error = TypeVar("_Error", bound=Exception)
# Lengths whose squares single precision can represent, with a margin for their factors.
_SHORTEST, _LONGEST = 1e-15, 1e15
# The largest standard deviation of a Gaussian, in pixels along an axis.
_MOST_PIXELS = 1e4
_PACKAGE = str(Path(__file__).parent) + os.sep


def make_error(kind: type[_Error], fault: str, *, python: str, command: str) -> _Error:
    """Return an error with a remedy for Python, and another one for the command line."""
    error: Any = kind(f"{fault} {python}")
    error.on_command_line = f"{fault} {command}"
    return error


def on_command_line(error: Exception) -> str:
    """Return the message of an error for the command line; most errors have one message only."""
    return getattr(error, "on_command_line", None) or str(error)


def instance(name: str, value: Any, kinds: tuple[type, ...], what: str, example: str) -> None:
    """Reject values of other types, for example a class in place of an instance."""
    if not isinstance(value, kinds):
        raise TypeError(f"{name} must be {what}, got {value!r}. Try {example}.")


def whole(name: str, value: Any, remedy: str, what: str = "a whole number") -> int:
    """Return an integer as an int."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be {what}, got {value!r}. {remedy}".rstrip())
    return int(value)


def whole_within(name: str, value: Any, low: int, high: int, remedy: str) -> int:
    """Return an integer in [low, high] as an int."""
    number = whole(name, value, remedy)
    if not low <= number <= high:
        bound = f"at least {low}" if number < low else f"at most {high:,}"
        raise ValueError(f"{name} must be {bound}, got {value}. {remedy}")
    return number


def real(name: str, value: Any, remedy: str) -> float:
    """Return a real number that is not NaN as a float."""
    remedy = remedy[:1].upper() + remedy[1:]  # a sentence of its own here
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number, got {value!r} ({type(value).__name__}). {remedy}")
    try:
        number = float(value)
    except OverflowError:  # an integer, or a fraction of large ones
        raise ValueError(
            f"{name} must be a number that fits double precision, got {value!r}. {remedy}"
        ) from None
    if math.isnan(number):
        raise ValueError(f"{name} must be a number, got nan. {remedy}")
    return number


def within(name: str, value: Any, low: float, high: float, why: str, *, open_low: bool = False) -> float:
    """Return a number in [low, high], or in (low, high] if `open_low`, as a float."""
    number = real(name, value, why)
    if not low <= number <= high or (open_low and number == low):
        left, right = "(" if open_low else "[", ")" if high == math.inf else "]"
        raise ValueError(f"{name} must lie in {left}{low:g}, {high:g}{right}, got {value}: {why}")
    return number


def number_or_auto(name: str, value: Any, meaning: str, *, open_low: bool = True) -> float | None:
    """Return a finite number above 0 (or at least 0) as a float; None for "auto" and None."""
    if value is None:
        return None
    if isinstance(value, str):
        if value == "auto":
            return None
        raise ValueError(f'{name} must be a number or "auto", got {value!r}: it is {meaning}.')
    why = f'it is {meaning}. "auto" estimates it.'
    number = within(name, value, 0, math.inf, why, open_low=open_low)
    if number == math.inf:
        raise ValueError(f"{name} must be finite, got inf: {why}")
    return number


def warn(message: str) -> None:
    """Issue a warning that points at the first caller outside of this package."""
    # warnings.warn(skip_file_prefixes=...) does this from Python 3.12 on.
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, stacklevel=level)


def axis_spacing(spacing: Spacing | None, ndim: int) -> tuple[float, ...]:
    """Return the pixel spacing along each axis; one number applies to all axes, None means 1."""
    given = 1.0 if spacing is None else spacing
    several = isinstance(given, list | tuple) or np.ndim(given) > 0
    values = list(given) if several else [given] * ndim  # type: ignore[arg-type]
    if len(values) != ndim:
        raise make_error(
            ValueError,
            f"spacing must be a number or have one value per axis: got {len(values)} values, {spacing}, for "
            f"{ndim} axes.",
            python="Axis 0 comes first.",
            command="Give e.g. --spacing 2,1 for the pages of a file.",
        )
    for value in values:
        number = real("spacing", value, "Give the pixel spacing, e.g. spacing=1.0.")
        if number <= 0 or math.isinf(number):
            raise ValueError(
                f"spacing must be positive and finite, got {spacing}: it is the distance between "
                "neighbouring pixels. Use spacing=1.0 if it is not known."
            )
        if not _SHORTEST <= number <= _LONGEST:
            raise ValueError(
                f"spacing must lie in [{_SHORTEST:g}, {_LONGEST:g}], got {spacing}: squares of such lengths "
                "are too large or too small to compute with. Choose another unit of length."
            )
    return tuple(float(value) for value in values)  # type: ignore[arg-type]


def not_too_many_pixels(name: str, width: float, spacings: Sequence[float]) -> None:
    """Reject a Gaussian that is too wide for the image's spacing."""
    if width / min(spacings) > _MOST_PIXELS:
        raise ValueError(
            f"{name}={width:g} is the width of a Gaussian, got a spacing of {min(spacings):g} along "
            f"one axis: it would reach over {width / min(spacings):.3g} pixels. Give a width in the "
            "units of spacing."
        )


def ordinary(name: str, values: npt.ArrayLike, low: float, high: float, precision: str) -> None:
    """Reject values whose squares or sums exceed the range of this precision; 0 is allowed."""
    largest = max(float(np.max(values)), -float(np.min(values)))
    if largest and not low <= largest <= high:
        raise ValueError(
            f"{name} reaches {largest:g}: beyond {low:g} and {high:g}, {precision} is not enough to compute "
            "with. Rescale the image, or convert it to float64."
        )
