"""The δ-stencil for volumes: its matrix, its boundary, and a bound on its spectral norm.

This is the counterpart of :mod:`aniso.stencil` and :mod:`aniso.stability` for tensors over the cells of a
volume, shape (3, 3, D+1, H+1, W+1), in the order of the array's axes. See the theory page of the
documentation for the derivation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from aniso import arrays, checks, tensor_fields
from aniso.arrays import Field
from aniso.checks import Spacing
from aniso.formulas import dimensions, views, volume_weights
from aniso.formulas.dimensions import ENTRY_AXES
from aniso.stencil import DeltaStencil, Stencil, check_stencil

if TYPE_CHECKING:  # only matrix() needs it, and it takes longer to import than all the rest
    import scipy.sparse

__all__ = ["cell_bound", "collapse_ghost_cells", "matrix"]

Entries = tuple[Field, ...]
_AXES = tuple((first % 3, second % 3) for first, second in ENTRY_AXES)
# Where the entries zz, yy, xx stand, in the order of the axes.
_DIAGONAL = (5, 2, 0)


def collapse_ghost_cells(tensor: npt.ArrayLike) -> Field:
    """Adapt tensors over cells to the mirror boundary, so that no flux leaves the volume.

    The boundary passes through the outer cells. There the tangential block becomes the Schur complement for
    zero normal flux, D_tt − D_tN D_NN⁺ D_Nt with N the normal axes, and the entries that mix tangential and
    normal axes become 0: one normal axis on faces, two on edges.

    Parameters
    ----------
    tensor : array, shape (3, 3, D+1, H+1, W+1)
        Symmetric, positive semidefinite tensors over the cells of a volume.

    Returns
    -------
    array, shape (3, 3, D+1, H+1, W+1)
        A new array; inner cells are unchanged.

    Examples
    --------
    >>> import numpy as np, aniso
    >>> matrix = np.array([[2.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 1.0]])
    >>> field = np.broadcast_to(matrix[..., None, None, None], (3, 3, 4, 4, 4))
    >>> aniso.volumes.collapse_ghost_cells(field)[2, 2, 0, 1, 1]        # at the top, whose normal is z
    np.float64(0.5)
    """
    field = check_tensor(tensor)
    return _as_tensor(collapse_entries(tuple(field[axes] for axes in ENTRY_AXES)))


def matrix(
    tensor: npt.ArrayLike, stencil: Stencil | None = None, spacing: Spacing = 1.0
) -> scipy.sparse.csr_array:
    """Return the sparse matrix A of the evolution du/dt = A u of a volume, with mirror boundary.

    Parameters
    ----------
    tensor : array, shape (3, 3, D+1, H+1, W+1)
        Symmetric, positive semidefinite tensors over the cells: cell (i, j, k) has voxel (i, j, k) at its
        last corner, the outer layers lie on the boundary, see :func:`collapse_ghost_cells`.
    stencil : DeltaStencil or SplitStencil, optional
        27 points, or 19 for comparison.
    spacing : float or (float, float, float)
        Voxel spacing along each axis.

    Returns
    -------
    scipy.sparse.csr_array, shape (D·H·W, D·H·W)
        Symmetric, row sums 0, negative semidefinite. Voxels are numbered in the order of the array.

    Examples
    --------
    >>> import numpy as np, aniso
    >>> tensor = np.broadcast_to(np.eye(3)[..., None, None, None], (3, 3, 2, 2, 4))
    >>> aniso.volumes.matrix(tensor).toarray()
    array([[-1.,  1.,  0.],
           [ 1., -2.,  1.],
           [ 0.,  1., -1.]])
    """
    stencil = DeltaStencil() if stencil is None else stencil
    entries, inner = _weights(tensor, stencil, spacing)
    return tensor_fields.assemble((*entries, *inner), coupled=stencil.coupled)


def cell_bound(tensor: npt.ArrayLike, stencil: Stencil | None = None, spacing: Spacing = 1.0) -> float:
    """Return the largest sum of the spectral norms of cells over the eight cells of a voxel.

    Parameters
    ----------
    tensor, stencil, spacing
        As for :func:`matrix`.

    Returns
    -------
    float
        An upper bound of ρ(A), in units of 1/time. It never exceeds :func:`aniso.stability.spectral_bound`.

    Examples
    --------
    >>> import numpy as np, aniso
    >>> tensor = np.broadcast_to(np.eye(3)[..., None, None, None], (3, 3, 5, 5, 5))
    >>> aniso.volumes.cell_bound(tensor), aniso.volumes.cell_bound(tensor, aniso.DeltaStencil(0.0, 0.0))
    (4.0, 8.0)
    """
    stencil = DeltaStencil() if stencil is None else stencil
    entries, inner = _weights(tensor, stencil, spacing)
    gradient, hourglass = [entry.copy() for entry in entries], [weight.copy() for weight in inner]
    # In a cell on the boundary all modes that vary along the normal vanish.
    for axis, diagonal in enumerate(_DIAGONAL):
        face = (slice(None),) * axis + ([0, -1],)
        gradient[diagonal][face] = 0.0
        for number, weight in enumerate(hourglass):
            if number != 2 - axis:  # ζ_x comes first
                weight[face] = 0.0
    *zeta, kappa = hourglass
    coupling = list(gradient) if stencil.coupled else [np.zeros_like(kappa)] * 6
    for diagonal, weight in zip(reversed(_DIAGONAL), zeta, strict=True):
        coupling[diagonal] = weight
    largest = [
        np.linalg.eigvalsh(np.moveaxis(_as_tensor(block), (0, 1), (-2, -1)))[..., -1]
        for block in (gradient, coupling)
    ]
    norms = np.maximum.reduce([*largest, kappa])
    return float(0.5 * sum(views.corners(norms, 3)).max())


def check_tensor(tensor: npt.ArrayLike) -> Field:
    """Return tensors over the cells of a volume as float64; check that they are positive semidefinite."""
    given = arrays.as_array("tensor", tensor)
    if given.ndim != 5 or given.shape[:2] != (3, 3) or min(given.shape[2:]) < 2:
        raise ValueError(
            f"tensor must have shape (3, 3, D+1, H+1, W+1), one 3 × 3 tensor per cell of a volume, got "
            f"{given.shape}. For a constant tensor use aniso.FixedTensor.from_matrix(D, shape)."
        )
    if given.dtype.kind not in "iuf":
        raise TypeError(
            f"tensor must hold real numbers, got dtype {given.dtype}. Convert it with "
            "numpy.asarray(..., dtype=float)."
        )
    arrays.check_finite("tensor", given, "tensors must be known in every cell")
    tensor_fields.check_entries("tensor", given)
    field = tensor_fields.symmetrize(given).astype(np.float64)
    stacked = np.moveaxis(field, (0, 1), (-2, -1))
    values, vectors = np.linalg.eigh(stacked)
    smallest = values[..., 0]
    rounding = 16 * tensor_fields.precision_of(given) * abs(values).max(axis=-1)
    tensor_fields.check_semidefinite(smallest, rounding, {})
    # Eigenvalues that are negative by rounding, usually in single precision, become 0.
    negative = smallest < 0
    repaired = np.einsum("nij,nj,nkj->nik", vectors[negative], values[negative].clip(0), vectors[negative])
    stacked = stacked.copy()
    stacked[negative] = 0.5 * (repaired + repaired.swapaxes(1, 2))
    return np.ascontiguousarray(np.moveaxis(stacked, (-2, -1), (0, 1)))


def collapse_entries(entries: Entries) -> Entries:
    """Return the six entries with outer cells adapted to the mirror boundary, in new arrays."""
    field = {frozenset(axes): np.array(entry) for axes, entry in zip(_AXES, entries, strict=True)}
    for normal in range(3):
        first, second = (axis for axis in range(3) if axis != normal)
        face = (slice(None),) * normal + ([0, -1],)
        plane = [field[frozenset(axes)] for axes in ((first,), (first, second), (second,))]
        mixed = [field[frozenset([normal, axis])] for axis in (first, second)]
        left = volume_weights.plane_without_normal_flux(
            *(entry[face] for entry in (*plane, *mixed, field[frozenset([normal])]))
        )
        for entry, remainder in zip((*plane, *mixed), (*left, 0.0, 0.0), strict=True):
            entry[face] = remainder
    return tuple(field[frozenset(axes)] for axes in _AXES)


def _weights(tensor: npt.ArrayLike, stencil: Stencil, spacing: Spacing) -> tuple[Entries, Entries]:
    """Return the checked and collapsed entries, scaled to unit spacing, and ζ_x, ζ_y, ζ_z and κ."""
    check_stencil(stencil, 3)
    field = check_tensor(tensor)
    per_z, per_y, per_x = (1 / h for h in checks.axis_spacing(spacing, 3))
    entries = collapse_entries(tuple(field[axes] for axes in ENTRY_AXES))
    scaled = dimensions.of(3).scaled(*entries, per_x, per_y, per_z)
    return scaled, stencil.hourglass_weights(scaled)


def _as_tensor(entries: Sequence[Field]) -> Field:
    """Return entries as (3, 3, …), in the order of the array's axes."""
    field = np.empty((3, 3, *entries[0].shape))
    for (first, second), entry in zip(ENTRY_AXES, entries, strict=True):
        field[first, second] = field[second, first] = entry
    return field
