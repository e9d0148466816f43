"""The loops over cells of a volume for models that are functions of the structure tensor's eigenvalues.

This text becomes part of the generated module of such a model, in place of the loop over whole formulas.
There are several short loops instead of one: a processor looks ahead a few hundred operations, and a formula
is about as long, so that hardly more than one vector would be at work at a time.
"""

from __future__ import annotations

from aniso.engines.cpu.arithmetic import load_entries, store_entries
from aniso.engines.cpu.placeholders import (
    SPACED,
    STRIDE,
    compiled,
    index,
    inlined,
    real,
    separate,
    unpack,
    values,
)
from aniso.formulas.symmetric import cleared, joined, normalized, parts, signed_root
from aniso.formulas.volume_weights import volume_scaled

# Of a row of cells, `spare` has the projection, and four numbers after it.


@inlined
def load_four(spare, k):
    """Four numbers of a cell, after its projection."""
    first, second = spare[k + index(6 * STRIDE)], spare[k + index(7 * STRIDE)]
    return first, second, spare[k + index(8 * STRIDE)], spare[k + index(9 * STRIDE)]


@inlined
def store_four(spare, k, first, second, third, fourth):
    """Write them."""
    spare[k + index(6 * STRIDE)], spare[k + index(7 * STRIDE)] = first, second
    spare[k + index(8 * STRIDE)], spare[k + index(9 * STRIDE)] = third, fourth


@separate
def roots_of_row(cells, at, spare, s, scale, n):
    """J becomes B; the four numbers are mean, size, root and one over the slope there."""
    for k in range(n):
        i, j = at + index(k), s + index(k)
        xx, xy, yy, xz, yz, zz = load_entries(cells, i)
        mean, size, half_determinant, xx, xy, yy, xz, yz, zz = normalized(
            scale * xx, scale * xy, scale * yy, scale * xz, scale * yz, scale * zz
        )
        store_entries(cells, i, xx, xy, yy, xz, yz, zz)
        store_four(spare, j, mean, size, half_determinant, half_determinant)
    for k in range(n):
        j = s + index(k)
        mean, size, half_determinant, _ = load_four(spare, j)
        root, per_slope = signed_root(half_determinant)
        store_four(spare, j, mean, size, root, per_slope)


@separate
def parts_of_row(cells, at, spare, s, n):
    """B becomes C, and the projection is stored; the four numbers are mean, size, root and half a gap."""
    for k in range(n):
        i, j = at + index(k), s + index(k)
        xx, xy, yy, xz, yz, zz = load_entries(cells, i)
        _, _, root, per_slope = load_four(spare, j)
        p_xx, p_xy, p_yy, p_xz, p_yz, p_zz, xx, xy, yy, xz, yz, zz = parts(
            root, per_slope, xx, xy, yy, xz, yz, zz
        )
        store_entries(spare, j, p_xx, p_xy, p_yy, p_xz, p_yz, p_zz)
        store_entries(cells, i, xx, xy, yy, xz, yz, zz)
    for k in range(n):
        i, j = at + index(k), s + index(k)
        xx, xy, yy, xz, yz, zz = load_entries(cells, i)
        p_xx, p_xy, p_yy, p_xz, p_yz, p_zz = load_entries(spare, j)
        half_gap, xx, xy, yy, xz, yz, zz = cleared(p_xx, p_xy, p_yy, p_xz, p_yz, p_zz, xx, xy, yy, xz, yz, zz)
        store_entries(cells, i, xx, xy, yy, xz, yz, zz)
        spare[j + index(9 * STRIDE)] = half_gap


@separate
def values_of_row(cells, at, spare, s, per_x, per_y, per_z, parameters, n):
    """The values of the function, and the tensor that they make of the projection and C."""
    numbers = unpack(parameters)
    for k in range(n):
        j = s + index(k)
        mean, size, root, half_gap = load_four(spare, j)
        at_isolated, at_pair, slope = values(
            mean + size * root, mean - size * (real(0.5) * root), size * half_gap, numbers
        )
        store_four(spare, j, at_isolated, at_pair, slope * size, half_gap)
    for k in range(n):
        i, j = at + index(k), s + index(k)
        at_isolated, at_pair, slope, _ = load_four(spare, j)
        xx, xy, yy, xz, yz, zz = joined(
            at_isolated, at_pair, slope, load_entries(spare, j), load_entries(cells, i)
        )
        if SPACED:
            xx, xy, yy, xz, yz, zz = volume_scaled(xx, xy, yy, xz, yz, zz, per_x, per_y, per_z)
        store_entries(cells, i, xx, xy, yy, xz, yz, zz)


@compiled
def tensor_cells(cells, at, spare, s, per_x, per_y, per_z, parameters, n, rows):
    """Rows of n cells: structure becomes the tensor, as a grid of unit spacing sees it."""
    for row in range(rows):
        begin = at + index(row * 6 * STRIDE)
        roots_of_row(cells, begin, spare, s, parameters[0], n)
        parts_of_row(cells, begin, spare, s, n)
        values_of_row(cells, begin, spare, s, per_x, per_y, per_z, parameters, n)
