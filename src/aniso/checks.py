"""Questions asked of every input, answered in one sentence: what is wrong, why, what to do."""

from __future__ import annotations

import math
import numbers
import sys
from collections.abc import Sequence
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

#: What leaves a number to be estimated.
Auto = Literal["auto"] | None
Spacing = float | Sequence[float]
Field = npt.NDArray[np.float64]
_Error = TypeVar("_Error", bound=Exception)
# Lengths whose squares single precision can hold, with room for what they are multiplied by.
_SHORTEST, _LONGEST = 1e-15, 1e15
# How many pixels along an axis a Gaussian may be wide.
_MOST_PIXELS = 1e4
# Entries of tensors whose products double precision can hold.
_LARGEST_ENTRY = 1e100


def refusal(kind: type[_Error], fault: str, *, python: str, command: str) -> _Error:
    """An error that says what to do in Python, and carries what to do on the command line instead.

    Examples
    --------
    >>> from aniso import checks
    >>> error = checks.refusal(ValueError, "It is there.", python="Use force=True.", command="Add --force.")
    >>> error
    ValueError('It is there. Use force=True.')
    >>> checks.on_command_line(error)
    'It is there. Add --force.'
    """
    error: Any = kind(f"{fault} {python}")
    error.on_command_line = f"{fault} {command}"
    return error


def on_command_line(error: Exception) -> str:
    """What an error says there; most say the same everywhere."""
    return getattr(error, "on_command_line", None) or str(error)


def instance(name: str, value: Any, kinds: tuple[type, ...], what: str, example: str) -> None:
    """Refuse what is not of one of these kinds: a class in place of an instance, a string, …."""
    if not isinstance(value, kinds):
        raise TypeError(f"{name} must be {what}, got {value!r}. Try {example}.")


def whole(name: str, value: Any, remedy: str, what: str = "a whole number") -> int:
    """The value as an int, if it is a whole number."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be {what}, got {value!r}. {remedy}".rstrip())
    return int(value)


def real(name: str, value: Any, remedy: str) -> float:
    """The value as a float, if it is a real number and not NaN."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number, got {value!r} ({type(value).__name__}). {remedy}")
    if isinstance(value, int | np.integer) and abs(int(value)) > sys.float_info.max:
        raise ValueError(f"{name} must be a number that fits double precision, got {value!r}. {remedy}")
    if math.isnan(value):
        raise ValueError(f"{name} must be a number, got nan. {remedy}")
    try:
        return float(value)
    except OverflowError:  # a fraction of large numbers
        raise ValueError(
            f"{name} must be a number that fits double precision, got {value!r}. {remedy}"
        ) from None


def is_tensor(value: Any) -> bool:
    """Whether this is a PyTorch tensor; PyTorch is not imported to find out."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def plain_tensor(name: str, tensor: Any) -> None:
    """Refuse tensors that hold no values, or not one ordinary number per element."""
    import torch

    # Those that NumPy knows, and bfloat16; others are for storage, and PyTorch hardly computes with them.
    known = (
        *(torch.bool, torch.uint8, torch.uint16, torch.uint32, torch.uint64),
        *(torch.int8, torch.int16, torch.int32, torch.int64),
        *(torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128),
    )
    if tensor.is_nested:
        fault, remedy = "a nested tensor", "Give its parts one by one, or pad them to one shape"
    elif tensor.is_quantized:
        fault, remedy = f"a quantized tensor ({tensor.dtype})", "Give tensor.dequantize()"
    elif tensor.layout != torch.strided:
        fault, remedy = f"a tensor of layout {tensor.layout}", "Give tensor.to_dense()"
    elif tensor.device.type == "meta":
        fault, remedy = "a tensor on the device meta, which has no values", "Load the values first"
    elif tensor.dtype not in known:
        fault, remedy = f"a tensor of dtype {tensor.dtype}", "Give tensor.float()"
    else:
        return
    raise TypeError(f"{name} must be a dense tensor of ordinary numbers, got {fault}. {remedy}.")


def array_of(name: str, value: Any) -> npt.NDArray[Any]:
    """The value as an array, if its rows are equally long."""
    if is_tensor(value):
        plain_tensor(name, value)
    try:
        return np.asarray(value)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must be an array, got a {type(value).__name__} that cannot be made one ({error}). "
            "Give rows of equal length."
        ) from error


def within(name: str, value: Any, low: float, high: float, why: str, *, open_low: bool = False) -> float:
    """The value as a float, if it lies in [low, high] (or in (low, high])."""
    number = real(name, value, why)
    if not low <= number <= high or (open_low and number == low):
        left, right = "(" if open_low else "[", ")" if high == math.inf else "]"
        raise ValueError(f"{name} must lie in {left}{low:g}, {high:g}{right}, got {value}: {why}")
    return number


def number_or_auto(name: str, value: Any, meaning: str, *, open_low: bool = True) -> float | None:
    """The value as a finite float above 0 (or from 0 on); None for "auto" and None, which estimate it.

    Examples
    --------
    >>> from aniso import checks
    >>> checks.number_or_auto("time", 2, "the stopping time")
    2.0
    >>> checks.number_or_auto("time", "auto", "the stopping time") is None
    True
    """
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


def axis_spacing(spacing: Spacing | None, ndim: int) -> tuple[float, ...]:
    """One positive spacing per axis, axis 0 first; a number serves all axes, None is 1."""
    given = 1.0 if spacing is None else spacing
    several = isinstance(given, list | tuple) or np.ndim(given) > 0
    values = list(given) if several else [given] * ndim  # type: ignore[arg-type]
    if len(values) != ndim:
        raise refusal(
            ValueError,
            f"spacing has {len(values)} values, got {spacing} for {ndim} axes:",
            python="give one number, or one per axis, axis 0 first.",
            command="give one number, or one per axis of a page, such as --spacing 2,1 for an image.",
        )
    for value in values:
        number = real("spacing", value, "Give the distance between pixels, e.g. spacing=1.0.")
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
    """Refuse a Gaussian whose kernel would hardly fit into memory."""
    if width / min(spacings) > _MOST_PIXELS:
        raise ValueError(
            f"{name}={width:g} is the width of a Gaussian, got a spacing of {min(spacings):g} along "
            f"one axis: it would reach over {width / min(spacings):.3g} pixels. Give a width in the "
            "units of spacing."
        )


def tensor_field(a: Any, b: Any, c: Any) -> tuple[Field, Field, Field]:
    """Entries of positive semidefinite 2×2 tensors over cells, as float64 arrays of one shape."""
    # Entries that went through float32 may miss semidefiniteness by their own rounding.
    precision = max(_precision(entry) for entry in (a, b, c))
    entries = {name: _entry(name, entry) for name, entry in (("a", a), ("b", b), ("c", c))}
    shapes = {name: entry.shape for name, entry in entries.items()}
    if len(set(shapes.values())) > 1:
        listed = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ValueError(
            f"a, b and c must have one shape, got {listed}: they are the entries of one tensor per "
            "cell. For a constant tensor use aniso.FixedTensor.from_matrix(D, shape)."
        )
    a, b, c = entries.values()
    if a.ndim != 2 or min(a.shape) < 2:
        raise ValueError(
            f"a, b and c must be given over the cells of an image, shape (H+1, W+1) with at least "
            f"2 × 2 cells, got {a.shape}. For a constant tensor use "
            "aniso.FixedTensor.from_matrix(D, shape)."
        )
    semidefinite(a, b, c, precision)
    if precision > np.finfo(np.float64).eps:
        # Make up for the rounding, so that in double precision they are semidefinite too.
        a, c = np.maximum(a, 0), np.maximum(c, 0)
        reach = np.sqrt(a * c)
        b = np.clip(b, -reach, reach)
    return a, b, c


def _precision(entry: Any) -> float:
    dtype = array_of("a tensor's entry", entry).dtype
    return float(np.finfo(dtype if dtype.kind == "f" else np.float64).eps)


def _entry(name: str, entry: Any) -> Field:
    array = array_of(name, entry)
    if array.dtype.kind not in "iuf":
        raise TypeError(
            f"{name} must hold real numbers, got dtype {array.dtype}: it is an entry of a diffusion "
            "tensor. Convert it with numpy.asarray(..., dtype=float)."
        )
    array = doubles_at_most(array).astype(np.float64)
    finite(f"{name}", array, "tensors must be known in every cell")
    not_too_large(name, array)
    return array


def not_too_large(name: str, tensors: npt.NDArray[Any]) -> None:
    """Refuse entries of tensors whose products would leave the range of numbers."""
    largest = float(np.abs(tensors).max(initial=0))
    if largest > _LARGEST_ENTRY:
        raise ValueError(
            f"{name} holds {largest:g}, diffusivities beyond {_LARGEST_ENTRY:g} are too large to compute "
            "with. Choose another unit of time."
        )


def finite(name: str, array: npt.NDArray[Any], why: str) -> None:
    """Refuse NaN and infinity, with their number and the first place."""
    bad = ~np.isfinite(array)
    if bad.any():
        first = tuple(int(i) for i in np.argwhere(bad)[0])
        raise refusal(
            ValueError,
            f"{name} holds {int(bad.sum())} values that are NaN or infinite, the first at index {first} "
            f"({array[first]}): {why}.",
            python="Replace them first, e.g. with numpy.nan_to_num.",
            command="Fill them in first, with aniso inpaint.",
        )


def doubles_at_most(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array in double precision if it has more, where larger numbers become infinite."""
    if array.dtype.itemsize <= 8:
        return array
    with np.errstate(over="ignore"):
        return array.astype(np.float64)


def ordinary(name: str, values: npt.NDArray[Any] | float, low: float, high: float, precision: str) -> None:
    """Refuse numbers whose squares, or sums, this precision could not hold; 0 is ordinary."""
    largest = max(float(np.max(values)), -float(np.min(values)))
    if largest and not low <= largest <= high:
        raise ValueError(
            f"{name} reaches {largest:g}: beyond {low:g} and {high:g}, {precision} is not enough to compute "
            "with. Scale the image to ordinary numbers, or convert it to float64."
        )


def semidefinite(a: Field, b: Field, c: Field, precision: float) -> None:
    """Refuse tensors with a negative eigenvalue, naming the worst cell and its eigenvalue."""
    smallest = 0.5 * (a + c) - np.hypot(0.5 * (a - c), b)
    excess = smallest + 8 * precision * (abs(a) + abs(c))
    if (excess < 0).any():
        worst = tuple(int(i) for i in np.unravel_index(np.argmin(excess), excess.shape))
        raise ValueError(
            f"the tensor in cell {worst} is not positive semidefinite: its smallest eigenvalue is "
            f"{smallest[worst]:.6g} (a={a[worst]:.6g}, b={b[worst]:.6g}, c={c[worst]:.6g}). Diffusion "
            "against a gradient is unstable; set negative eigenvalues to 0 first."
        )


def symmetric(tensor: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Tensors over cells, made symmetric to the last bit if they are so but for rounding."""
    other = tensor.swapaxes(0, 1)
    precision = np.finfo(np.result_type(tensor, np.float32)).eps
    size = sum(abs(tensor[axis, axis]) for axis in range(len(tensor)))
    excess = abs(tensor - other) - 8 * precision * size
    if (excess > 0).any():
        row, column, *cell = (int(i) for i in np.argwhere(excess > 0)[0])
        first = tuple(cell)
        raise ValueError(
            f"the tensor in cell {first} is not symmetric: {tensor[(row, column, *first)]} against "
            f"{tensor[(column, row, *first)]}. A diffusion tensor is symmetric; use "
            "(D + D.swapaxes(0, 1)) / 2."
        )
    return 0.5 * (tensor + other)
