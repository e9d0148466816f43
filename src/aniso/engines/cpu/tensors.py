"""Loops over cells that depend on the model, for the compiler: structure in, tensors out.

This text becomes part of the generated module of each model, after the formulas it calls.
"""

from __future__ import annotations

import numba

from aniso.engines.cpu.placeholders import SPACED, STRIDE, address, index, inlined, separate, tensor, unpack
from aniso.formulas.weights import hourglass_weight, scaled


@inlined
def unit_tensor(j_xx, j_xy, j_yy, per_x, per_y, numbers):
    """The model's tensor, as a grid of unit spacing sees it."""
    a, b, c = tensor(j_xx, j_xy, j_yy, numbers)
    if SPACED:
        a, b, c = scaled(a, b, c, per_x, per_y)
    return a, b, c


@separate
def tensor_cells(cells, at, per_x, per_y, alpha, gamma, beta, parameters, n):
    """One row of cells: structure j_xx, j_xy, j_yy becomes the tensor a, b, c, and ζ."""
    numbers = unpack(parameters)
    for k in range(n):
        j = at + index(k)
        j_xx, j_xy, j_yy = cells[j], cells[j + index(STRIDE)], cells[j + index(2 * STRIDE)]
        a, b, c = unit_tensor(j_xx, j_xy, j_yy, per_x, per_y, numbers)
        cells[j], cells[j + index(STRIDE)], cells[j + index(2 * STRIDE)] = a, b, c
        cells[j + index(3 * STRIDE)] = hourglass_weight(a, b, c, alpha, gamma, beta)


@address
def tensor_row(cells, cells_length, at, per_x, per_y, alpha, gamma, beta, parameters, count, n):
    """The same, to be called by its address. The length is that of the buffer, for bounds checking."""
    tensor_cells(
        numba.carray(cells, (cells_length,)),
        at,
        per_x,
        per_y,
        alpha,
        gamma,
        beta,
        numba.carray(parameters, (count,)),
        n,
    )
