"""Formulas as functions that kernels call: their text without annotations, with Triton's operations."""

from __future__ import annotations

import functools
import hashlib
import inspect
import linecache
import sys
from collections.abc import Callable
from typing import Any

import triton.language as tl

from aniso.engines.cpu.function_texts import formula_text
from aniso.engines.triton import arithmetic
from aniso.formulas import diffusivities, operations
from aniso.models import TensorFormula


@functools.cache
def device_function(
    function: Callable[..., Any], functions: tuple[Callable[..., Any], ...] = (), first: int = 0
) -> Any:
    """Return a formula as a function for kernels.

    If it takes functions as arguments, these are `functions`, and `first` is the position of the first one.
    """
    names = list(inspect.signature(function).parameters)[first : first + len(functions)]
    bound = {name: f"given_{number}" for number, name in enumerate(names)}
    text = formula_text(sys.modules[function.__module__], function.__name__, bound, wrap_numbers=False)
    scope = {
        **{name: _counterpart(value) for name, value in _used_functions(function)},
        **{f"given_{number}": device_function(given) for number, given in enumerate(functions)},
        "abs": arithmetic.absolute,
    }
    return _make(text, function.__name__, scope)


def tensor_function(formula: TensorFormula, ndim: int) -> Any:
    """Return a function of the entries of the structure tensor and a pointer to the formula's numbers."""
    return _tensor_function(formula.function, formula.functions, len(formula.parameters), ndim)


@functools.cache
def _tensor_function(
    function: Callable[..., Any], functions: tuple[Callable[..., Any], ...], count: int, ndim: int
) -> Any:
    length = ndim * (ndim + 1) // 2
    entries = ", ".join(f"j{number}" for number in range(length))
    numbers = "".join(f", tl.load(numbers + {number})" for number in range(count))
    text = f"@inlined\ndef tensor({entries}, numbers):\n    return formula({entries}{numbers})\n"
    return _make(text, "tensor", {"formula": device_function(function, functions, length)})


def is_compilable(formula: TensorFormula) -> bool:
    """Return whether all functions of a formula are the package's own, and not ones of the user's."""
    return all(
        getattr(function, "__module__", None) == diffusivities.__name__ for function in formula.functions
    )


def _used_functions(function: Callable[..., Any]) -> list[tuple[str, Any]]:
    code, scope = function.__code__, function.__globals__
    return [(name, scope[name]) for name in code.co_names if inspect.isfunction(scope.get(name))]


def _counterpart(function: Callable[..., Any]) -> Any:
    if function.__module__ == operations.__name__:
        return getattr(arithmetic, function.__name__)
    return device_function(function)


def _make(text: str, name: str, scope: dict[str, Any]) -> Any:
    """Execute the text of a function. Triton reads it again through `linecache`."""
    filename = f"<aniso {name} {hashlib.sha256(text.encode()).hexdigest()[:20]}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    # Triton wants `tl` in all scopes.
    scope |= {"__name__": __name__, "tl": tl, "inlined": arithmetic.inlined}
    exec(compile(text, filename, "exec"), scope)
    return scope[name]
