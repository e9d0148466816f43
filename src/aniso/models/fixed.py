"""The model with tensors that are given."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from aniso import arrays, stability, tensor_fields
from aniso.arrays import Field
from aniso.formulas.dimensions import ENTRY_AXES
from aniso.models.base import Model
from aniso.stencil import ImageStencil, Stencil, check_stencil, collapse_ghost_cells
from aniso.volumes import cell_bound, check_tensor, collapse_entries


@dataclass(frozen=True, eq=False, repr=False)
class FixedTensor(Model):
    """Diffusion with tensors that you give, one per cell.

    Parameters
    ----------
    tensor : array, shape (2, 2, H+1, W+1), (3, 3, D+1, H+1, W+1) for a volume, or (1, 1, N+1) for a signal
        Symmetric and positive semidefinite, in the order of the array's axes: ``tensor[0, 0]`` along
        axis 0 (y), ``tensor[1, 1]`` along axis 1 (x). Cell (i, j) has pixel (i, j) at its lower right
        corner; the outer ring lies on the boundary of the image, where the tensors are replaced so
        that there is no flux across it (see :func:`aniso.stencil.collapse_ghost_cells`).

    Examples
    --------
    >>> import numpy as np, aniso
    >>> aniso.FixedTensor.from_matrix([[0.0, 0.0], [0.0, 1.0]], shape=(32, 32))   # along x only
    FixedTensor(<2 × 2 tensors over 33 × 33 cells>)
    """

    tensor: Field

    def __post_init__(self) -> None:
        given = arrays.as_array("tensor", self.tensor)
        ndim = given.shape[0] if given.ndim else 0
        if ndim not in (1, 2, 3) or given.shape[:2] != (ndim, ndim) or given.ndim != ndim + 2:
            raise ValueError(
                f"tensor must have shape (2, 2, H+1, W+1), one 2 × 2 tensor per cell of an H × W image, or "
                f"(3, 3, D+1, H+1, W+1) for a volume, got {given.shape}. For a constant tensor use "
                "FixedTensor.from_matrix(D, shape)."
            )
        if ndim == 3:
            tensor = check_tensor(given)
        elif ndim == 2:
            if given.dtype.kind == "f":
                arrays.check_finite("tensor", given, "tensors must be known in every cell")
                tensor_fields.check_entries("tensor", given)
            symmetric = tensor_fields.symmetrize(given) if given.dtype.kind in "iuf" else given
            a, b, c = tensor_fields.check_tensor_field(symmetric[1, 1], symmetric[0, 1], symmetric[0, 0])
            tensor = np.array([[c, b], [b, a]])
        else:
            along = np.broadcast_to(given[0, 0], (2, given.shape[-1]))
            nothing = np.zeros(along.shape)
            a, _, _ = tensor_fields.check_tensor_field(along, nothing, nothing)
            tensor = a[np.newaxis, :1]
        tensor.flags.writeable = False
        object.__setattr__(self, "tensor", tensor)

    @classmethod
    def from_entries(cls, a: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike) -> FixedTensor:
        """Make a model from the entries of its tensors.

        Parameters
        ----------
        a, b, c : array, shape (H+1, W+1)
            Entries over the cells of an H × W image, a along x (axis 1), c along y (axis 0).

        Examples
        --------
        >>> import numpy as np, aniso
        >>> one, zero = np.ones((5, 5)), np.zeros((5, 5))
        >>> aniso.FixedTensor.from_entries(one, zero, zero).tensor[1, 1, 0, 0]
        np.float64(1.0)
        """
        a, b, c = tensor_fields.check_tensor_field(a, b, c)
        return cls(np.array([[c, b], [b, a]]))

    @classmethod
    def from_matrix(cls, matrix: npt.ArrayLike, shape: tuple[int, ...]) -> FixedTensor:
        """Make a model with one constant tensor.

        Parameters
        ----------
        matrix : array, shape (2, 2), (3, 3) for a volume, or (1, 1) for a signal
            The tensor, symmetric and positive semidefinite, in the order of the image's axes.
        shape : tuple of int
            Shape of the image, without channels.

        Examples
        --------
        >>> import aniso
        >>> aniso.FixedTensor.from_matrix([[1.0, 0.0], [0.0, 0.1]], (8, 8)).tensor.shape
        (2, 2, 9, 9)
        """
        constant, lengths = arrays.as_array("matrix", matrix), arrays.as_array("shape", shape)
        whole = lengths.dtype.kind in "iu" and lengths.ndim <= 1
        if not whole or (lengths < 1).any() or (lengths > 2**31).any():
            raise ValueError(
                f"shape must be that of an image, whole numbers from 1 up, got {shape!r}. Give image.shape, "
                "without the channels."
            )
        shape = tuple(int(n) for n in np.atleast_1d(lengths))
        if constant.shape != (len(shape),) * 2:
            raise ValueError(
                f"a constant tensor for an image of shape {shape} must be a {len(shape)} × {len(shape)} "
                f"matrix, got shape {constant.shape}."
            )
        everywhere = constant.reshape(constant.shape + (1,) * len(shape))
        return cls(np.broadcast_to(everywhere, constant.shape + tuple(n + 1 for n in shape)))

    def part(self, cells: tuple[slice, ...]) -> FixedTensor:
        """Return the tensors in some of the cells, without checking them again."""
        tensor = self.tensor[(slice(None), slice(None), *cells)]
        part = object.__new__(FixedTensor)
        object.__setattr__(part, "tensor", tensor)
        return part

    @property
    def image_shape(self) -> tuple[int, ...]:
        """Shape of the images that these tensors fit, without channels."""
        return tuple(n - 1 for n in self.tensor.shape[2:])

    @functools.cached_property
    def entries(self) -> tuple[Field, ...]:
        """xx, xy, yy and for volumes xz, yz, zz over the cells, fit for the mirror boundary.

        A signal is an image of one row.
        """
        found: tuple[Field, ...]
        if len(self.tensor) == 3:
            found = collapse_entries(tuple(self.tensor[axes] for axes in ENTRY_AXES))
        elif len(self.tensor) == 2:
            found = collapse_ghost_cells(self.tensor[1, 1], self.tensor[0, 1], self.tensor[0, 0])
        else:
            a = np.broadcast_to(self.tensor[0, 0], (2, self.tensor.shape[-1]))
            found = a, 0 * a, 0 * a
        for entry in found:
            entry.flags.writeable = False
        return found

    def spectral_bound(self, stencil: Stencil, spacings: tuple[float, ...]) -> float:
        """Return an upper bound of ρ(A) for these tensors."""
        if len(spacings) == 3:
            return cell_bound(self.tensor, stencil, spacings)
        finite = tuple(h if np.isfinite(h) else 1.0 for h in spacings)
        check_stencil(stencil)
        a, b, c = self.entries
        return stability.image_bound(a, b, c, cast(ImageStencil, stencil), finite)

    def __repr__(self) -> str:
        """Short, since the tensors are an array."""
        ndim, cells = len(self.tensor), " × ".join(map(str, self.tensor.shape[2:]))
        return f"FixedTensor(<{ndim} × {ndim} tensors over {cells} cells>)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FixedTensor) and np.array_equal(self.tensor, other.tensor)

    def __reduce__(self) -> tuple[Any, ...]:
        """Rebuild from the tensors, so that a copy is read-only too."""
        return FixedTensor, (self.tensor,)
