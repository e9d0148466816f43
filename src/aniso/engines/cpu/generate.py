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
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any

import numba
import numba.core.errors
import numpy as np

from aniso.engines.cpu import (
    arithmetic,
    kernels,
    means,
    net_kernels,
    rows,
    similar_kernels,
    tensors,
    volume_formulas,
    volume_kernels,
    volume_rows,
    volume_spectra,
    volume_tensors,
)
from aniso.engines.cpu.cache import KernelCache
from aniso.engines.cpu.function_texts import body_text, check_names, formula_text, formulas_text
from aniso.engines.cpu.placeholders import AVERAGED, SPARE, STRIDE, VOLUME_STRIDE
from aniso.engines.cpu.threads import uninterrupted
from aniso.engines.cpu.user_functions import first_alike
from aniso.formulas import (
    bounds,
    cell,
    diffusivities,
    learned,
    similarity,
    symmetric,
    volume_cell,
    volume_weights,
    weights,
)
from aniso.formulas.volume_tensors import VALUES
from aniso.models import TensorFormula
from aniso.models.diffusivity import SecantDecline, SecantSlope

_OPTIONS = 'nogil=True, fastmath={"contract"}, error_model="numpy", no_cfunc_wrapper=True'
#: Of functions that are called by compiled code only.
_INNER = "no_cpython_wrapper=True, pipeline_class=InnerCompiler"
_ROW = "no_cpython_wrapper=True, pipeline_class=RowCompiler"


# Several threads need the same module once.
_ONE_AT_A_TIME = threading.RLock()


def _renew_lock() -> None:
    """Replace the lock in a forked child: the thread that may hold it does not exist there."""
    global _ONE_AT_A_TIME
    _ONE_AT_A_TIME = threading.RLock()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_renew_lock)


def loops(dtype: np.dtype[Any], spaced: bool, ndim: int = 2) -> ModuleType:
    """Return the loops that are the same for all models, for this precision and unit or other spacing."""
    with _ONE_AT_A_TIME:
        return _loops(dtype, spaced, ndim)


@functools.cache
@uninterrupted
def _loops(dtype: np.dtype[Any], spaced: bool, ndim: int) -> ModuleType:
    if ndim == 2:
        formulas, texts = (weights, cell, bounds), (rows, means, kernels)
    else:
        formulas, texts = (
            (weights, volume_weights, volume_cell, bounds),
            (rows, means, volume_rows, volume_kernels),
        )
    check_names(arithmetic, *formulas, *texts)
    parts = [_header(dtype, spaced, ndim, cache=True), body_text(arithmetic)]
    parts += [formulas_text(module) for module in formulas] + [body_text(module) for module in texts]
    return _import("loops" if ndim == 2 else "volume_loops", "\n\n".join(parts) + "\n")


def tensor_loops(formula: TensorFormula, dtype: np.dtype[Any], spaced: bool, ndim: int = 2) -> ModuleType:
    """Return the loops of one tensor formula, for all values of its numbers."""
    with _ONE_AT_A_TIME, _explain(formula):
        functions = tuple(map(_first_alike, formula.functions))
        return _tensor_loops(formula.function, functions, len(formula.parameters), dtype, spaced, ndim)


def _first_alike(function: Callable[..., Any]) -> Callable[..., Any]:
    if isinstance(function, SecantDecline | SecantSlope):
        return type(function)(_first_alike(function.diffusivity))
    return function if _is_known(function) else first_alike(function)


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
    if ndim == 2:
        formulas, texts = (diffusivities, symmetric, weights, cell), (tensors,)
    else:
        loop = volume_spectra if function in VALUES else volume_formulas
        formulas, texts = (diffusivities, symmetric, weights, volume_weights), (loop, volume_tensors)
    check_names(arithmetic, *formulas, *texts)
    parts = [_header(dtype, spaced, ndim, cache=user is None), body_text(arithmetic)]
    parts += [formulas_text(module) for module in formulas]
    parts += [_model_text(function, functions, count, ndim), *map(body_text, texts)]
    text = "\n\n".join(parts) + "\n"
    if user is None:
        return _import("tensors" if ndim == 2 else "volume_tensors", text)
    module = ModuleType("aniso_user_diffusivity")
    module.__dict__["given_diffusivity"] = (
        user if hasattr(user, "py_func") else numba.njit(error_model="numpy")(user)
    )
    _execute(text, "<user diffusivity>", module)
    return module


@contextlib.contextmanager
def _explain(formula: TensorFormula) -> Iterator[None]:
    """Explain what to do if the diffusivity that the user gave cannot be compiled."""
    try:
        yield
    except (numba.core.errors.NumbaError, TypeError) as error:
        user = _user_diffusivity(formula.functions)
        if user is None:
            raise
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = next((line for line in lines if not line.startswith("Failed in nopython")), "no reason")
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


def net_loops(dtype: np.dtype[Any], counts: tuple[int, ...], stride: int) -> ModuleType:
    """Return the loops of a learned diffusion: the numbers of rows that it adds up, and their distance."""
    with _ONE_AT_A_TIME:
        return _net_loops(dtype, counts, stride)


@functools.cache
@uninterrupted
def _net_loops(dtype: np.dtype[Any], counts: tuple[int, ...], stride: int) -> ModuleType:
    formulas, texts = (cell, learned), (rows, net_kernels)
    check_names(arithmetic, *formulas, *texts)
    parts = [_header(dtype, False, 2, cache=True, stride=stride), body_text(arithmetic)]
    parts += [formulas_text(module) for module in formulas]
    parts += [_weighted_sums(counts), *map(body_text, texts)]
    return _import("net_loops", "\n\n".join(parts) + "\n")


def similar_loops(dtype: np.dtype[Any]) -> ModuleType:
    """Return the loops that average similar voxels."""
    with _ONE_AT_A_TIME:
        return _similar_loops(dtype)


@functools.cache
@uninterrupted
def _similar_loops(dtype: np.dtype[Any]) -> ModuleType:
    formulas, texts = (similarity,), (rows, similar_kernels)
    check_names(arithmetic, *formulas, *texts)
    parts = [_header(dtype, False, 3, cache=True), body_text(arithmetic)]
    parts += [formulas_text(module) for module in formulas] + [body_text(module) for module in texts]
    return _import("similar_loops", "\n\n".join(parts) + "\n")


def _weighted_sums(counts: tuple[int, ...]) -> str:
    """Return a function that adds up weighted rows, with a loop for each number of them.

    The weights stay in registers. The sum begins with 0, since compilers may fuse either one of two products
    that are added.
    """
    lines, choices = [], []
    for count in counts:
        weights = ", ".join(f"w{k}" for k in range(count))
        given = ", ".join(f"numbers[at + index({k})]" for k in range(count))
        terms = "".join(f" + w{k} * rows[r + j + index({k} * STRIDE)]" for k in range(count))
        lines += [
            f"@compiled\ndef sum_of_{count}(out, o, rows, r, numbers, at, n):",
            f"    {weights}, _ = {given}, 0" if count else "    pass",
            "    for k in range(n):\n        j = index(k)",
            f"        out[o + j] = real(0.0){terms}",
        ]
        choices += [
            f"    if count == {count}:",
            f"        sum_of_{count}(out, o, rows, r, numbers, at, n)",
        ]
    head = "@compiled\ndef weighted_sum(out, o, rows, r, numbers, at, count, n):"
    return "\n".join([*lines, head, *choices])


def _header(dtype: np.dtype[Any], spaced: bool, ndim: int, cache: bool, stride: int = 0) -> str:
    stride = stride or (STRIDE if ndim == 2 else VOLUME_STRIDE)
    single = dtype == np.float32
    # Below `lowest` an exponential is far below rounding; going on to denormal numbers would be slow.
    degree, lowest = (7, -40.0) if single else (13, -120.0)
    # The high part keeps so few digits that its product with n is exact in either precision.
    high = 0.693145751953125
    # What the function of a model for a row of cells takes, see `call_tensor_row`.
    row = f"*_rows, types.uint64, *[_number] * {5 if ndim == 2 else 3}"
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
            "from aniso.engines.cpu.inner import InnerCompiler, RowCompiler",
            f"real, index, STRIDE, SPACED = np.{dtype.name}, np.uint64, {stride}, {spaced}",
            f"ENTRIES, AVERAGED, SPARE = {4 if ndim == 2 else 6}, {AVERAGED}, {SPARE}",
            f"LOWEST, LN2_HIGH, LN2_LOW = real({lowest}), real({high!r}), real({math.log(2) - high!r})",
            f"EPSILON = real({float(np.finfo(dtype).eps)!r})",
            # Functions that allocate nothing need not count references to arrays, which is done atomically.
            f"allocating = numba.njit({_OPTIONS}, {_INNER})",
            f"compiled = numba.njit({_OPTIONS}, {_INNER}, _nrt=False)",
            f"separate = numba.njit({_OPTIONS}, {_ROW}, _nrt=False)",
            f"separate_inlined = numba.njit({_OPTIONS}, {_ROW}, _nrt=False, forceinline=True)",
            # A call that is not inlined keeps a loop from being vectorised.
            f"inlined = numba.njit({_OPTIONS}, {_INNER}, _nrt=False, forceinline=True)",
            f"entry = {entry}({_OPTIONS})",
            "_rows = types.CPointer(numba.from_dtype(np.dtype(real))), types.int64",
            "_number = numba.from_dtype(np.dtype(real))",
            f"_row = types.void({row}, *_rows, *[types.int64] * {1 if ndim == 2 else 2})",
            f'address = {address}(_row, fastmath={{"contract"}}, error_model="numpy")',
            "@inlined\ndef exponential_series(f):",
            f"    return f * {series}",
            "@inlined\ndef logarithm_series(f):",
            f"    return {_polynomial([2 / (2 * term + 1) for term in range(5 if single else 11)])}",
        ]
    )


def _polynomial(coefficients: list[float]) -> str:
    """Horner's scheme: no powers, which would become denormal numbers and slow for small arguments."""
    terms = [f"real({coefficient!r})" for coefficient in coefficients]
    return functools.reduce(lambda inner, term: f"({term} + f * {inner})", reversed(terms))


def _model_text(
    function: Callable[..., Any], functions: tuple[Callable[..., Any], ...], count: int, ndim: int
) -> str:
    """Return the text of the model's formula as a function of structure and a tuple of numbers.

    The functions that it takes as arguments are called by their names: Numba does not cache what is passed.
    """
    names = list(inspect.signature(function).parameters)
    entries = ndim * (ndim + 1) // 2
    if len(names) != entries + len(functions) + count:
        raise TypeError(
            f"{function.__module__}.{function.__name__} must take {entries} entries of the structure tensor, "
            f"{len(functions)} functions and {count} numbers, in this order, got {len(names)} arguments: "
            f"{', '.join(names)}."
        )
    lines = []
    if _user_diffusivity(functions) is not None:
        user = {"diffusivity": "user_diffusivity"}
        lines = [
            "@inlined\ndef user_diffusivity(r):\n    return real(given_diffusivity(r))",
            _formula(diffusivities.secant_decline, user),
            _formula(diffusivities.secant_slope, user),
        ]
    bound = dict(zip(names[entries:], map(_name, functions), strict=False))
    given, first, called, arguments = "tensor", 0, function, [f"j{number}" for number in range(entries)]
    if function in VALUES:
        given, first, called, arguments = "values", 1, VALUES[function], ["isolated", "pair", "half_gap"]
    taken, numbers = ", ".join(arguments), "".join(f", numbers[{number}]" for number in range(first, count))
    unpacked = ", ".join(f"parameters[{number}]" for number in range(count)) or "real(0.0)"
    lines += [
        _formula(called, bound),
        f"@inlined\ndef {given}({taken}, numbers):\n    return {called.__name__}({taken}{numbers})",
        f"@inlined\ndef unpack(parameters):\n    return ({unpacked},)",
    ]
    return "\n\n".join(lines)


def _name(function: Callable[..., Any]) -> str:
    """Return the name that a function has in the kernel."""
    if isinstance(function, SecantDecline):
        return "secant_decline"
    if isinstance(function, SecantSlope):
        return "secant_slope"
    return function.__name__ if _is_known(function) else "user_diffusivity"


def _is_known(function: Callable[..., Any]) -> bool:
    return getattr(function, "__module__", None) == diffusivities.__name__


def _formula(function: Callable[..., Any], bound: Mapping[str, str]) -> str:
    return formula_text(sys.modules[function.__module__], function.__name__, bound)


def _user_diffusivity(functions: tuple[Callable[..., Any], ...]) -> Any:
    for function in functions:
        if isinstance(function, SecantDecline | SecantSlope):
            return function.diffusivity
        if not _is_known(function):
            return function
    return None


def _import(kind: str, text: str) -> ModuleType:
    """Make the module with this text; Numba finds it by its name."""
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
