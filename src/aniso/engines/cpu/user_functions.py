"""Diffusivities of the user: which of them are the same function.

Numba never frees what it has compiled, about 4 MB for each diffusivity. A lambda in a loop or in a function
is another object each time, but mostly the same code with the same numbers: it is compiled once.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from types import BuiltinFunctionType, CodeType, FunctionType
from typing import Any

import numpy as np

_NUMBERS = (bool, int, float, np.generic)

#: What is compared by identity, and does not change.
_FIXED = (BuiltinFunctionType, np.ufunc, type)


@dataclass(frozen=True)
class _Keyed:
    key: tuple[Any, ...]
    function: Callable[..., Any] = field(compare=False)


@functools.lru_cache(maxsize=128)
def _first(keyed: _Keyed) -> Callable[..., Any]:
    return keyed.function


def first_alike(function: Callable[..., Any]) -> Callable[..., Any]:
    """The first function with the same code, defaults, and values from outside; else the function itself."""
    key = _key(function)
    return function if key is None else _first(_Keyed(key, function))


def _key(function: Callable[..., Any]) -> tuple[Any, ...] | None:
    """What the compiled function depends on; None if that may change or cannot be compared."""
    if not isinstance(function, FunctionType) or function.__kwdefaults__:
        return None
    code = function.__code__
    if any(isinstance(constant, CodeType) for constant in code.co_consts):
        return None
    outside = function.__globals__
    try:
        values = [
            *(function.__defaults__ or ()),
            *(cell.cell_contents for cell in function.__closure__ or ()),
            *(outside[name] for name in code.co_names if name in outside),
        ]
    except ValueError:  # a cell that is still empty
        return None
    if not all(isinstance(value, (*_NUMBERS, *_FIXED)) or value is np or value is math for value in values):
        return None
    # 1, 1.0 and True are equal, as are 0.0 and -0.0, but they do not compile to the same.
    numbers = ((type(v), repr(v)) if isinstance(v, _NUMBERS) else v for v in values)
    return (code, len(function.__defaults__ or ()), *numbers)
