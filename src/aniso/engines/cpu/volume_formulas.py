"""The loop over cells of a volume for models that are any formula of the entries of the structure tensor.

This text becomes part of the generated module of such a model, after the formulas it calls.
"""

from __future__ import annotations

from aniso.engines.cpu.arithmetic import load_entries, store_entries
from aniso.engines.cpu.placeholders import SPACED, STRIDE, index, separate, tensor, unpack
from aniso.formulas.volume_weights import volume_scaled


@separate
def tensor_cells(cells, at, spare, s, per_x, per_y, per_z, parameters, n, rows):
    """Rows of n cells: structure becomes the tensor, as a grid of unit spacing sees it.

    Nothing is stored in `spare`.
    """
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
