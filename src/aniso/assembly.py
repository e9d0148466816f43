"""Assembly of A as a sparse matrix, and tensors at the mirror boundary."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from aniso import tensor_fields
from aniso.arrays import Field
from aniso.formulas import dimensions, views, weights

if TYPE_CHECKING:  # only matrices need it, and it takes longer to import than all the rest
    import scipy.sparse


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
    a, b, c = (np.array(entry) for entry in tensor_fields.check_tensor_field(a, b, c))
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
