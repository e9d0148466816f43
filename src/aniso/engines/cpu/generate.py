"""Kernel modules: the formulas and the loops joined into one text per precision and model.

Numba caches compiled functions of a module. So each combination becomes a module of its own, named by the
hash of its text: a changed formula makes another module and can never meet a stale kernel.

A bare 0.5 would turn single precision into double. Therefore the numbers in the formulas are wrapped,
0.5 becoming real(0.5).
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import linecache
import math
import sys
import threading
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numba
import numba.core.errors
import numpy as np

from aniso.engines.cpu import (
    arithmetic,
    indirect,
    kernels,
    rows,
    spacing,
    tensors,
    volume_kernels,
    volume_rows,
    volume_tensors,
)
from aniso.engines.cpu.cache import KernelCache
from aniso.engines.cpu.function_texts import body_text, formula_text, formulas_text
from aniso.engines.cpu.placeholders import STRIDE
from aniso.engines.cpu.threads import uninterrupted
from aniso.engines.cpu.user_functions import first_alike
from aniso.formulas import (
    cell,
    coherence,
    diffusivities,
    steps,
    structure,
    symmetric,
    volume_cell,
    volume_weights,
    weights,
)
from aniso.models import SecantDecline, SecantSlope, TensorFormula

_OPTIONS = 'nogil=True, fastmath={"contract"}, error_model="numpy", no_cfunc_wrapper=True'


# Several threads need the same module once.
_ONE_AT_A_TIME = threading.RLock()


def loops(dtype: np.dtype[Any], spaced: bool, ndim: int = 2) -> ModuleType:
    """The loops that are the same for all models, for this precision and for unit or other spacing."""
    with _ONE_AT_A_TIME:
        return _loops(dtype, spaced, ndim)


@functools.cache
@uninterrupted
def _loops(dtype: np.dtype[Any], spaced: bool, ndim: int) -> ModuleType:
    if ndim == 2:
        formulas, texts = (structure, weights, cell, steps), (rows, spacing, kernels)
    else:
        formulas = (structure, weights, volume_weights, volume_cell, steps)
        texts = (rows, volume_rows, volume_kernels)
    parts = [_header(dtype, spaced, ndim, cache=True), body_text(arithmetic), body_text(indirect)]
    parts += [formulas_text(module) for module in formulas] + [body_text(module) for module in texts]
    return _imported("loops" if ndim == 2 else "volume_loops", "\n\n".join(parts) + "\n")


def tensor_loops(formula: TensorFormula, dtype: np.dtype[Any], spaced: bool, ndim: int = 2) -> ModuleType:
    """The loops of one tensor formula, whatever its numbers."""
    with _ONE_AT_A_TIME, _explained(formula):
        functions = tuple(map(_first_alike, formula.functions))
        return _tensor_loops(formula.function, functions, len(formula.parameters), dtype, spaced, ndim)


def _first_alike(function: Callable[..., Any]) -> Callable[..., Any]:
    if isinstance(function, SecantDecline | SecantSlope):
        return type(function)(first_alike(function.diffusivity))
    return first_alike(function)


@functools.lru_cache(maxsize=128)
@uninterrupted
def _tensor_loops(
    function: Callable[..., Any],
    functions: tuple[Callable[..., Any], ...],
    count: int,
    dtype: np.dtype[Any],
    spaced: bool,
    ndim: int,
) -> ModuleType:
    user = _user_diffusivity(functions)
    parts = [_header(dtype, spaced, ndim, cache=user is None), body_text(arithmetic)]
    if ndim == 2:
        formulas, texts = (structure, diffusivities, coherence, weights, cell), (spacing, tensors)
    else:
        formulas, texts = (diffusivities, coherence, symmetric, weights, volume_weights), (volume_tensors,)
    parts += [formulas_text(module) for module in formulas]
    parts += [_binding(function, functions, count), *(body_text(module) for module in texts)]
    text = "\n\n".join(parts) + "\n"
    if user is None:
        return _imported("tensors" if ndim == 2 else "volume_tensors", text)
    module = ModuleType("aniso_user_diffusivity")
    module.__dict__["given_diffusivity"] = (
        user if hasattr(user, "py_func") else numba.njit(error_model="numpy")(user)
    )
    _execute(text, "<user diffusivity>", module)
    return module


@contextlib.contextmanager
def _explained(formula: TensorFormula) -> Iterator[None]:
    """Say what to do if the diffusivity that the user gave cannot be compiled."""
    try:
        yield
    except (numba.core.errors.NumbaError, TypeError) as error:
        user = _user_diffusivity(formula.functions)
        if user is None:
            raise
        told = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = next((line for line in told if not line.startswith("Failed in nopython")), "no reason")
        raise TypeError(
            f"the diffusivity {user!r} cannot be compiled by Numba, which the cpu engine needs. Give a plain "
            "function of arithmetic and simple numpy functions, or use engine='reference', which takes any "
            f"function, or engine='torch', which takes one that works on tensors. Numba says: {reason}"
        ) from error


def compile_first(kernel: Any, first_call: Callable[[], object]) -> None:
    """Make the first call of a kernel, which compiles it or loads it from the cache."""
    announce: contextlib.AbstractContextManager[object] = contextlib.nullcontext()
    stored = isinstance(kernel._cache, KernelCache) and kernel._cache.holds_any()
    if not stored and sys.stderr is not None and sys.stderr.isatty():
        from rich.console import Console

        announce = Console(stderr=True).status(f"aniso compiles {kernel.__name__}, once for this machine …")
    with announce:
        first_call()


def _header(dtype: np.dtype[Any], spaced: bool, ndim: int, cache: bool) -> str:
    single = dtype == np.float32
    # Below `lowest` an exponential is far below rounding; going on to denormal numbers would be slow.
    degree, lowest = (7, -40.0) if single else (13, -120.0)
    # The high part keeps so few digits that its product with n is exact in either precision.
    high = 0.693145751953125
    # What the function of a model for a row of cells takes, see `indirect`.
    row = "*_rows, *_rows, *[types.uint64] * 2, *[_number] * 4" if ndim == 2 else "*_rows, *[_number] * 5"
    series = _polynomial([1 / math.factorial(term) for term in range(1, degree + 1)])
    entry, address = ("keep_entry", "keep_address") if cache else ("numba.njit", "numba.cfunc")
    return "\n".join(
        [
            "import math",
            "import numba",
            "import numpy as np",
            "from llvmlite import ir",
            "from numba.core import types",
            "from numba.extending import intrinsic",
            "from aniso.engines.cpu.cache import keep_address, keep_entry",
            f"real, index, STRIDE, SPACED = np.{dtype.name}, np.uint64, {STRIDE}, {spaced}",
            f"LOWEST, LN2_HIGH, LN2_LOW = real({lowest}), real({high!r}), real({math.log(2) - high!r})",
            f"EPSILON = real({float(np.finfo(dtype).eps)!r})",
            f"compiled = numba.njit({_OPTIONS}, no_cpython_wrapper=True)",
            # A call that is not inlined keeps a loop from being vectorised.
            f"inlined = numba.njit({_OPTIONS}, no_cpython_wrapper=True, forceinline=True)",
            f"entry = {entry}({_OPTIONS})",
            "_rows = types.CPointer(numba.from_dtype(np.dtype(real))), types.int64",
            "_number = numba.from_dtype(np.dtype(real))",
            f"_row = types.void({row}, types.int64)",
            f'address = {address}(_row, fastmath={{"contract"}}, error_model="numpy")',
            "@inlined\ndef exponential_series(f):",
            "    f2 = f * f",
            "    f4 = f2 * f2",
            "    f8 = f4 * f4",
            f"    return f * {series}",
        ]
    )


def _polynomial(coefficients: list[float], power: int = 1) -> str:
    """Pairs, pairs of pairs, … (Estrin's scheme): more of it can be computed at the same time."""
    terms = [f"real({coefficient!r})" for coefficient in coefficients]
    while len(terms) > 1:
        factor = "f" if power == 1 else f"f{power}"
        pairs = [
            " + ".join([low, *(f"{factor} * ({high})" for high in rest)]) for low, *rest in _in_pairs(terms)
        ]
        terms, power = [f"({pair})" for pair in pairs], 2 * power
    return terms[0]


def _in_pairs(terms: list[str]) -> list[list[str]]:
    return [terms[i : i + 2] for i in range(0, len(terms), 2)]


def _binding(function: Callable[..., Any], functions: tuple[Callable[..., Any], ...], count: int) -> str:
    """The model's formula as a function of structure and two numbers.

    The functions that it takes as arguments become globals: Numba does not cache what is handed over.
    """
    lines = []
    if _user_diffusivity(functions) is not None:
        lines += [
            "@inlined\ndef diffusivity(r):\n    return real(given_diffusivity(r))",
            _formula(diffusivities.secant_decline),
            _formula(diffusivities.secant_slope),
        ]
    names = list(inspect.signature(function).parameters)
    entries = [name for name in names if name.startswith("j_")]
    for name, given in zip(names[len(entries) : len(entries) + len(functions)], functions, strict=True):
        if isinstance(given, SecantDecline | SecantSlope):
            lines.append(f"{name} = secant_{name}")
        elif getattr(given, "__module__", None) == diffusivities.__name__:
            lines.append(f"{name} = {given.__name__}")
    lines.append(_formula(function))
    own = "tensor" if len(entries) == 3 else "volume_tensor"
    call = f"{function.__name__}({', '.join([*entries, *'pq'[:count]])})"
    lines.append(f"@inlined\ndef {own}({', '.join(entries)}, p, q):\n    return {call}")
    return "\n\n".join(lines)


_FUNCTION_ARGUMENTS = ("decline", "diffusivity", "slope")


def _formula(function: Callable[..., Any]) -> str:
    """A formula without the arguments that are functions."""
    return formula_text(sys.modules[function.__module__], function.__name__, _FUNCTION_ARGUMENTS)


def _user_diffusivity(functions: tuple[Callable[..., Any], ...]) -> Any:
    for function in functions:
        if isinstance(function, SecantDecline | SecantSlope):
            return function.diffusivity
        if getattr(function, "__module__", None) != diffusivities.__name__:
            return function
    return None


def _imported(kind: str, text: str) -> ModuleType:
    """The module with this text; Numba finds it by its name."""
    name = f"aniso_{kind}_{hashlib.sha256(text.encode()).hexdigest()[:20]}"
    module = ModuleType(name)
    sys.modules[name] = module
    try:
        _execute(text, f"<{name}>", module)
    except BaseException:  # interrupted, say
        del sys.modules[name]
        raise
    return module


def _execute(text: str, filename: str, module: ModuleType) -> None:
    exec(compile(text, filename, "exec"), module.__dict__)
    # Messages of the compiler and tracebacks can show the lines.
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
