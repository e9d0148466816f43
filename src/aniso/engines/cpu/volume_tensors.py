"""The loop over cells of a volume that depends on the model, for the compiler: structure in, tensors out.

This text becomes part of the generated module of each model, after the formulas it calls.
"""

from __future__ import annotations

import numba

from aniso.engines.cpu.arithmetic import load_entries, store_entries
from aniso.engines.cpu.placeholders import SPACED, STRIDE, address, compiled, index, tensor, unpack
from aniso.formulas.volume_weights import volume_scaled


@compiled
def tensor_cells(cells, at, per_x, per_y, per_z, parameters, n, rows):
    """Rows of n cells: structure becomes the tensor, as a grid of unit spacing sees it."""
    numbers = unpack(parameters)
    for row in range(rows):
        begin = at + index(row * 6 * STRIDE)
        for k in range(n):
            j = begin + index(k)
            xx, xy, yy, xz, yz, zz = load_entries(cells, j)
            xx, xy, yy, xz, yz, zz = tensor(xx, xy, yy, xz, yz, zz, numbers)
            if SPACED:
                xx, xy, yy, xz, yz, zz = volume_scaled(xx, xy, yy, xz, yz, zz, per_x, per_y, per_z)
            store_entries(cells, j, xx, xy, yy, xz, yz, zz)


@address
def tensor_row(cells, cells_length, at, per_x, per_y, per_z, parameters, count, n, rows):
    """The same, to be called by its address. The length is that of the buffer, for bounds checking."""
    tensor_cells(
        numba.carray(cells, (cells_length,)),
        at,
        per_x,
        per_y,
        per_z,
        numba.carray(parameters, (count,)),
        n,
        rows,
    )
