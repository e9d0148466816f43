"""Diffusion tensors that are given over the cells of an image: checks, mirror boundary, assembly of A."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from aniso.arrays import Array, Field, as_array, check_finite, limit_to_doubles
from aniso.formulas import dimensions, views, weights

if TYPE_CHECKING:  # only matrices need it, and it takes longer to import than all the rest
    import scipy.sparse

# Entries of tensors whose products double precision can represent.
_LARGEST_ENTRY = 1e100


def check_tensor_field(a: Any, b: Any, c: Any) -> tuple[Field, Field, Field]:
    """Return the entries of positive semidefinite 2×2 tensors over cells as float64 arrays of one shape."""
    # Entries that were stored as float32 may miss semidefiniteness by their own rounding.
    precision = max(precision_of(as_array("a tensor's entry", entry)) for entry in (a, b, c))
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
    smallest = 0.5 * (a + c) - np.hypot(0.5 * (a - c), b)
    check_semidefinite(smallest, 8 * precision * (abs(a) + abs(c)), entries)
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


def check_semidefinite(smallest: Field, rounding: Field, entries: Mapping[str, Field]) -> None:
    """Reject tensors with a negative eigenvalue; the error names the worst cell, and some entries there."""
    excess = smallest + rounding
    if (excess < 0).any():
        worst = tuple(int(i) for i in np.unravel_index(np.argmin(excess), excess.shape))
        named = ", ".join(f"{name}={entry[worst]:.6g}" for name, entry in entries.items())
        raise ValueError(
            f"the tensor in cell {worst} is not positive semidefinite: its smallest eigenvalue is "
            f"{smallest[worst]:.6g}{f' ({named})' if named else ''}. Diffusion against a gradient is "
            "unstable; set negative eigenvalues to 0 first."
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


def precision_of(entries: Array) -> float:
    """Return the relative rounding error of floating-point numbers; others count as double precision."""
    return float(np.finfo(entries.dtype if entries.dtype.kind == "f" else np.float64).eps)


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


def collapse_ghost_cells(a: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike) -> tuple[Field, Field, Field]:
    """Adapt tensors over cells to the mirror boundary, so that no flux leaves the image.

    The boundary passes through the outer ring of cells, where b must be exactly 0. Where it is not, the
    tangential entry becomes the Schur complement for zero normal flux: c − b²/a on the left and right,
    a − b²/c at the top and bottom. This preserves second order and semidefiniteness; setting b to 0 alone
    would not preserve the order.

    Parameters
    ----------
    a, b, c : array, shape (H+1, W+1)
        Entries of the diffusion tensors over the cells of an H × W image.

    Returns
    -------
    a, b, c : array, shape (H+1, W+1)
        New arrays; inner cells are unchanged.

    Examples
    --------
    >>> import numpy as np, aniso
    >>> a, b, c = (np.full((4, 4), entry) for entry in (2.0, 1.0, 1.0))
    >>> a, b, c = aniso.stencil.collapse_ghost_cells(a, b, c)
    >>> float(c[1, 0]), float(a[0, 1]), float(b[1, 0]), float(b[1, 1])
    (0.5, 1.0, 0.0, 1.0)
    """
    a, b, c = (np.array(entry) for entry in check_tensor_field(a, b, c))
    inside = slice(1, -1)
    for side in (0, -1):
        c[inside, side] = weights.without_normal_flux(c[inside, side], b[inside, side], a[inside, side])
        a[side, inside] = weights.without_normal_flux(a[side, inside], b[side, inside], c[side, inside])
    b[[0, -1], :] = 0.0
    b[:, [0, -1]] = 0.0
    return a, b, c


def assemble(fields: Sequence[Field], *, coupled: bool = False) -> scipy.sparse.csr_array:
    """Assemble A from the entries of the tensors and ζ (or ζ_x, ζ_y, ζ_z, κ) over the cells."""
    import scipy.sparse

    formulas = dimensions.of(fields[0].ndim)
    shape = tuple(n - 1 for n in fields[0].shape)
    # The formulas of the cell are linear, so they act on selections of pixels as on pixel values.
    numbers = np.arange(math.prod(shape)).reshape(shape)
    mirrored = views.corners(np.pad(numbers, 1, mode="edge"), formulas.ndim)
    inside = views.corners(np.pad(np.ones_like(numbers), 1), formulas.ndim)
    pick = [_selection(index, numbers.size) for index in mirrored]
    drop = [scipy.sparse.diags_array(kept.ravel().astype(float)) for kept in inside]
    columns = (field.reshape(-1, 1) for field in fields)
    shares = formulas.cell_shares(pick, columns, coupled=coupled)
    total = sum((keep @ selected).T @ share for selected, keep, share in zip(pick, drop, shares, strict=True))
    result = scipy.sparse.csr_array(total)
    result.sum_duplicates()
    return result


def _selection(index: npt.NDArray[np.intp], pixels: int) -> scipy.sparse.csr_array:
    """Return the matrix that selects the pixel of this number for each cell."""
    import scipy.sparse

    cells = index.size
    return scipy.sparse.csr_array(
        (np.ones(cells), index.ravel(), np.arange(cells + 1)), shape=(cells, pixels)
    )
