"""Loops over cells that depend on the model, for the compiler: structure in, tensors out.

This text becomes part of the generated module of each model, after the formulas it calls.
"""

from __future__ import annotations

import numba

from aniso.engines.cpu.arithmetic import unit_structure
from aniso.engines.cpu.placeholders import (
    SPACED,
    STRIDE,
    address,
    compiled,
    entry,
    index,
    inlined,
    tensor,
    unpack,
)
from aniso.formulas.weights import scaled


@inlined
def unit_tensor(j_xx, j_xy, j_yy, per_x, per_y, numbers):
    """The model's tensor, as a grid of unit spacing sees it."""
    a, b, c = tensor(j_xx, j_xy, j_yy, numbers)
    if SPACED:
        a, b, c = scaled(a, b, c, per_x, per_y)
    return a, b, c


@compiled
def tensor_cells(cells, smooth, top, bottom, per_x, per_y, parameters, n):
    """Compute one row of tensors a, b, c from two smoothed rows."""
    numbers = unpack(parameters)
    for k in range(n):
        j = index(k)
        j_xx, j_xy, j_yy = unit_structure(smooth, top, bottom, j, per_x, per_y)
        a, b, c = unit_tensor(j_xx, j_xy, j_yy, per_x, per_y, numbers)
        cells[j] = a
        cells[j + index(STRIDE)] = b
        cells[j + index(2 * STRIDE)] = c


@address
def tensor_row(cells, cells_length, smooth, smooth_length, top, bottom, per_x, per_y, parameters, count, n):
    """The same, to be called by its address. The lengths are those of the buffers, for bounds checking."""
    tensor_cells(
        numba.carray(cells, (cells_length,)),
        numba.carray(smooth, (smooth_length,)),
        top,
        bottom,
        per_x,
        per_y,
        numba.carray(parameters, (count,)),
        n,
    )


@entry
def tensors_in_place(a, b, c, start, stop, per_x, per_y, parameters):
    """Cells start … stop−1: structure j_xx, j_xy, j_yy becomes the tensor a, b, c."""
    numbers = unpack(parameters)
    first = index(start)
    for k in range(stop - start):
        j = first + index(k)
        a[j], b[j], c[j] = unit_tensor(a[j], b[j], c[j], per_x, per_y, numbers)
