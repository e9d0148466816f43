"""Kernel modules: the formulas and the loops joined into one text per precision and model.

Numba caches a compiled function on disk if it is a plain function of a module, and takes the module's
file for its identity. So each combination becomes a module of its own, named by the hash of its text: a
changed formula makes another module and can never meet a stale kernel.

A bare 0.5 would turn single precision into double. Therefore the numbers in the formulas are wrapped,
0.5 becoming real(0.5).
"""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import importlib.util
import inspect
import logging
import math
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
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
from aniso.engines.cpu.placeholders import STRIDE
from aniso.engines.cpu.threads import uninterrupted
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

_log = logging.getLogger("aniso")

_OPTIONS = 'nogil=True, fastmath={"contract"}, error_model="numpy", no_cfunc_wrapper=True'


# Python's parser is not safe to be used by several threads at once (before 3.12), nor is one module written
# twice at the same time.
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
    parts = [_header(dtype, spaced, ndim, cache=True), _body(arithmetic), _body(indirect)]
    parts += [_formulas(module) for module in formulas] + [_body(module) for module in texts]
    return _imported("loops" if ndim == 2 else "volume_loops", "\n\n".join(parts) + "\n")


def tensor_loops(formula: TensorFormula, dtype: np.dtype[Any], spaced: bool, ndim: int = 2) -> ModuleType:
    """The loops of one tensor formula, whatever its numbers."""
    with _ONE_AT_A_TIME, _explained(formula):
        return _tensor_loops(
            formula.function, formula.functions, len(formula.parameters), dtype, spaced, ndim
        )


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
    parts = [_header(dtype, spaced, ndim, cache=user is None), _body(arithmetic)]
    if ndim == 2:
        formulas, texts = (structure, diffusivities, coherence, weights, cell), (spacing, tensors)
    else:
        formulas, texts = (diffusivities, coherence, symmetric, weights, volume_weights), (volume_tensors,)
    parts += [_formulas(module) for module in formulas]
    parts += [_binding(function, functions, count), *(_body(module) for module in texts)]
    text = "\n\n".join(parts) + "\n"
    if user is None:
        return _imported("tensors" if ndim == 2 else "volume_tensors", text)
    module = ModuleType("aniso_user_diffusivity")
    module.__dict__["given_diffusivity"] = (
        user if hasattr(user, "py_func") else numba.njit(error_model="numpy")(user)
    )
    exec(compile(text, "<user diffusivity>", "exec"), module.__dict__)
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
    module, name = kernel.py_func.__module__, kernel.__name__
    announce: contextlib.AbstractContextManager[object] = contextlib.nullcontext()
    stored = any(cache_folder().glob(f"__pycache__/{module}.{name}-*.nbi"))
    if not stored and sys.stderr is not None and sys.stderr.isatty():
        from rich.console import Console

        announce = Console(stderr=True).status(f"aniso compiles {name}, once for this machine …")
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
    return "\n".join(
        [
            "import math",
            "import numba",
            "import numpy as np",
            "from llvmlite import ir",
            "from numba.core import types",
            "from numba.extending import intrinsic",
            f"real, index, STRIDE, SPACED = np.{dtype.name}, np.uint64, {STRIDE}, {spaced}",
            f"LOWEST, LN2_HIGH, LN2_LOW = real({lowest}), real({high!r}), real({math.log(2) - high!r})",
            f"EPSILON = real({float(np.finfo(dtype).eps)!r})",
            f"compiled = numba.njit({_OPTIONS}, no_cpython_wrapper=True)",
            # A call that is not inlined keeps a loop from being vectorised.
            f"inlined = numba.njit({_OPTIONS}, no_cpython_wrapper=True, forceinline=True)",
            f"entry = numba.njit({_OPTIONS}, cache={cache})",
            "_rows = types.CPointer(numba.from_dtype(np.dtype(real))), types.int64",
            "_number = numba.from_dtype(np.dtype(real))",
            f"_row = types.void({row}, types.int64)",
            f'address = numba.cfunc(_row, fastmath={{"contract"}}, error_model="numpy", cache={cache})',
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
    (node,) = ast.parse(inspect.getsource(function)).body
    assert isinstance(node, ast.FunctionDef)
    node.args.args = [argument for argument in node.args.args if argument.arg not in _FUNCTION_ARGUMENTS]
    return "@inlined\n" + ast.unparse(_Plain().visit(node))


def _user_diffusivity(functions: tuple[Callable[..., Any], ...]) -> Any:
    for function in functions:
        if isinstance(function, SecantDecline | SecantSlope):
            return function.diffusivity
        if getattr(function, "__module__", None) != diffusivities.__name__:
            return function
    return None


@functools.cache
def _formulas(module: ModuleType) -> str:
    tree = ast.parse(inspect.getsource(module))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return "\n\n".join("@inlined\n" + ast.unparse(_Plain().visit(node)) for node in functions)


@functools.cache
def _body(module: ModuleType) -> str:
    tree = ast.parse(inspect.getsource(module))
    return "\n\n".join(ast.unparse(node) for node in tree.body if isinstance(node, ast.FunctionDef))


class _Plain(ast.NodeTransformer):
    """A formula without docstring and annotations, its numbers in the kernel's precision."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.returns = None
        for argument in node.args.args:
            argument.annotation = None
        if ast.get_docstring(node) is not None:
            node.body = node.body[1:]
        self.generic_visit(node)
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if isinstance(node.value, int | float) and not isinstance(node.value, bool):
            return ast.Call(ast.Name("real", ast.Load()), [ast.Constant(float(node.value))], [])
        return node


def _imported(kind: str, text: str) -> ModuleType:
    name = f"aniso_{kind}_{hashlib.sha256(text.encode()).hexdigest()[:20]}"
    path = cache_folder() / f"{name}.py"
    if not path.exists() or path.read_text("utf-8") != text:
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, delete=False) as file:
            file.write(text)
        os.chmod(file.name, 0o644)
        os.replace(file.name, path)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@functools.cache
def cache_folder() -> Path:
    """Where kernel modules are kept between processes; a temporary folder if nothing else can be written."""
    wanted = os.environ.get("ANISO_CACHE_DIR")
    folder = Path(wanted).absolute() if wanted else _user_cache() / "aniso"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        _log.warning(
            "aniso cannot keep compiled kernels in %s (%s): it will compile anew in each process. Set "
            "ANISO_CACHE_DIR to a folder that can be written.",
            folder,
            error.strerror or error,
        )
        return Path(_temporary_folder().name)
    return folder


@functools.cache
def _temporary_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="aniso-", ignore_cleanup_errors=True)


def _user_cache() -> Path:
    try:
        Path.home()
    except RuntimeError:  # a user without a home
        return Path(tempfile.gettempdir()) / f"aniso-{os.getuid() if hasattr(os, 'getuid') else 'user'}"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
