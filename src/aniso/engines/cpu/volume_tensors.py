"""The function for rows of cells of a volume that depends on the model: structure in, tensors out.

This text becomes part of the generated module of each model, after its loops over cells, which are those of
:mod:`aniso.engines.cpu.volume_formulas` or :mod:`aniso.engines.cpu.volume_spectra`.
"""

from __future__ import annotations

import numba

from aniso.engines.cpu.placeholders import SPARE, STRIDE, address, index
from aniso.engines.cpu.volume_formulas import tensor_cells


@address
def tensor_row(cells, cells_length, at, per_x, per_y, per_z, parameters, count, n, rows):
    """Rows of n cells, called by its address; `SPARE` rows at the end of the buffer are for what is between.

    The length is that of the buffer.
    """
    tensor_cells(
        numba.carray(cells, (cells_length,)),
        at,
        numba.carray(cells, (cells_length,)),
        index(cells_length - SPARE * STRIDE),
        per_x,
        per_y,
        per_z,
        numba.carray(parameters, (count,)),
        n,
        rows,
    )
