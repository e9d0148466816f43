"""Checks of diffusion tensors that are given over the cells of an image."""

from __future__ import annotations

from typing import Any

import numpy as np

from aniso.arrays import Array, Field, as_array, check_finite, limit_to_doubles

# Entries of tensors whose products double precision can represent.
_LARGEST_ENTRY = 1e100


def check_tensor_field(a: Any, b: Any, c: Any) -> tuple[Field, Field, Field]:
    """Return the entries of positive semidefinite 2×2 tensors over cells as float64 arrays of one shape."""
    # Entries that were stored as float32 may miss semidefiniteness by their own rounding.
    precision = max(_precision(entry) for entry in (a, b, c))
    entries = {name: _check_entry(name, entry) for name, entry in (("a", a), ("b", b), ("c", c))}
    shapes = {name: entry.shape for name, entry in entries.items()}
    if len(set(shapes.values())) > 1:
        listed = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ValueError(
            f"a, b and c must have the same shape, got {listed}: they are the entries of one tensor per "
            "cell. For a constant tensor use aniso.FixedTensor.from_matrix(D, shape)."
        )
    a, b, c = entries.values()
    if a.ndim != 2 or min(a.shape) < 2:
        raise ValueError(
            f"a, b and c must be given over the cells of an image, shape (H+1, W+1) with at least "
            f"2 × 2 cells, got {a.shape}. For a constant tensor use "
            "aniso.FixedTensor.from_matrix(D, shape)."
        )
    check_semidefinite(a, b, c, precision)
    if precision > np.finfo(np.float64).eps:
        # Remove the rounding, so that they are semidefinite in double precision too.
        a, c = np.maximum(a, 0), np.maximum(c, 0)
        reach = np.sqrt(a * c)
        b = np.clip(b, -reach, reach)
    return a, b, c


def check_entries(name: str, tensors: Array) -> None:
    """Reject tensors whose entries have products outside the range of double precision."""
    largest = float(np.abs(tensors).max(initial=0))
    if largest > _LARGEST_ENTRY:
        raise ValueError(
            f"{name} contains {largest:g}; diffusivities above {_LARGEST_ENTRY:g} are too large to compute "
            "with. Choose another unit of time."
        )


def check_semidefinite(a: Field, b: Field, c: Field, precision: float) -> None:
    """Reject tensors with a negative eigenvalue; the error names the worst cell and its eigenvalue."""
    smallest = 0.5 * (a + c) - np.hypot(0.5 * (a - c), b)
    excess = smallest + 8 * precision * (abs(a) + abs(c))
    if (excess < 0).any():
        worst = tuple(int(i) for i in np.unravel_index(np.argmin(excess), excess.shape))
        raise ValueError(
            f"the tensor in cell {worst} is not positive semidefinite: its smallest eigenvalue is "
            f"{smallest[worst]:.6g} (a={a[worst]:.6g}, b={b[worst]:.6g}, c={c[worst]:.6g}). Diffusion "
            "against a gradient is unstable; set negative eigenvalues to 0 first."
        )


def symmetrize(tensor: Array) -> Array:
    """Return tensors over cells, exactly symmetric; only rounding errors are removed."""
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


def _precision(entry: Any) -> float:
    dtype = as_array("a tensor's entry", entry).dtype
    return float(np.finfo(dtype if dtype.kind == "f" else np.float64).eps)


def _check_entry(name: str, entry: Any) -> Field:
    array = as_array(name, entry)
    if array.dtype.kind not in "iuf":
        raise TypeError(
            f"{name} must have a real numeric dtype, got {array.dtype}: it is an entry of a diffusion "
            "tensor. Convert it with numpy.asarray(..., dtype=float)."
        )
    array = limit_to_doubles(array).astype(np.float64)
    check_finite(f"{name}", array, "tensors must be known in every cell")
    check_entries(name, array)
    return array
