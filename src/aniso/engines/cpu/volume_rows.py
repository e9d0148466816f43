"""Loops over single rows of voxels and cells of a volume, for the compiler.

This text becomes part of the generated kernel modules for volumes, see :mod:`aniso.engines.cpu.rows`. Of the
four rows at the corners of a row of cells, a, b, c and d are the offsets: first plane, first and second row,
then second plane. Quantities of cells and shares of corners are rows at the constant distance `STRIDE`.
"""

from __future__ import annotations

from aniso.engines.cpu.arithmetic import pair, store_entries
from aniso.engines.cpu.placeholders import SPACED, STRIDE, compiled, index, inlined
from aniso.engines.cpu.rows import eight_more_rows, five_rows, four_more_rows, nine_rows
from aniso.formulas.bounds import explicit_step, extrapolated_step
from aniso.formulas.volume_cell import corner_shares, fluxes, modes, volume_structure
from aniso.formulas.volume_weights import hourglass_weights

# Smoothing -------------------------------------------------------------------------------------------


@compiled
def weighted_rows(out, o, rows, at, offsets, weights, w, n):
    """Sum of rows at at + offsets[i], times weights[w + i]: five of them, or nine, thirteen, …."""
    count = len(offsets)
    if count == 5:
        five_rows(
            out, o, rows, at + offsets[0], at + offsets[1], at + offsets[2], at + offsets[3], at + offsets[4],
            weights[w], weights[w + 1], weights[w + 2], weights[w + 3], weights[w + 4], n,
        )  # fmt: skip
        return
    nine_rows(
        out, o, rows, at + offsets[0], at + offsets[1], at + offsets[2], at + offsets[3], at + offsets[4],
        at + offsets[5], at + offsets[6], at + offsets[7], at + offsets[8],
        weights[w], weights[w + 1], weights[w + 2], weights[w + 3], weights[w + 4],
        weights[w + 5], weights[w + 6], weights[w + 7], weights[w + 8], n,
    )  # fmt: skip
    i = 9
    while i + 8 <= count:
        eight_more_rows(
            out, o, rows, at + offsets[i], at + offsets[i + 1], at + offsets[i + 2], at + offsets[i + 3],
            at + offsets[i + 4], at + offsets[i + 5], at + offsets[i + 6], at + offsets[i + 7],
            weights[w + i], weights[w + i + 1], weights[w + i + 2], weights[w + i + 3],
            weights[w + i + 4], weights[w + i + 5], weights[w + i + 6], weights[w + i + 7], n,
        )  # fmt: skip
        i += 8
    if i < count:
        four_more_rows(
            out, o, rows, at + offsets[i], at + offsets[i + 1], at + offsets[i + 2], at + offsets[i + 3],
            weights[w + i], weights[w + i + 1], weights[w + i + 2], weights[w + i + 3], n,
        )  # fmt: skip


@compiled
def plane_offsets(offsets, z, plane, fold):
    """Where the planes around z start; those beyond the faces are mirrored ones."""
    for i in range(len(offsets)):
        offsets[i] = index(fold[z + i] * plane)


@compiled
def ring_offsets(offsets, start, length, n):
    """Where rows of a ring start, from row `start` on, and the first one for those that there are not."""
    size = len(offsets)
    for i in range(size):
        offsets[i] = index((start + i if start + i < length else start) % size * n)


# Rows of cells ---------------------------------------------------------------------------------------


@inlined
def cell_modes(rows, a, b, c, d, j):
    """The modes of the eight values at the corners of cell j."""
    u000, u001 = pair(rows, a, j)
    u010, u011 = pair(rows, b, j)
    u100, u101 = pair(rows, c, j)
    u110, u111 = pair(rows, d, j)
    return modes(u000, u001, u010, u011, u100, u101, u110, u111)


@inlined
def cell_structure(smooth, a, b, c, d, j, per_x, per_y, per_z):
    """Products of derivatives in cell j, per unit of length."""
    x, y, z, _, _, _, _ = cell_modes(smooth, a, b, c, d, j)
    if SPACED:
        x, y, z = x * per_x, y * per_y, z * per_z
    return volume_structure(x, y, z)


@compiled
def structure_cells(cells, smooth, a, b, c, d, per_x, per_y, per_z, n):
    """The structure of a row of cells, from four smoothed rows."""
    for k in range(n):
        j = index(k)
        xx, xy, yy, xz, yz, zz = cell_structure(smooth, a, b, c, d, j, per_x, per_y, per_z)
        store_entries(cells, j, xx, xy, yy, xz, yz, zz)


@compiled
def more_structure_cells(cells, smooth, a, b, c, d, per_x, per_y, per_z, share, n):
    """Adds the structure of one of several channels, times its share in the mean."""
    for k in range(n):
        j = index(k)
        xx, xy, yy, xz, yz, zz = cell_structure(smooth, a, b, c, d, j, per_x, per_y, per_z)
        cells[j] += share * xx
        cells[j + index(STRIDE)] += share * xy
        cells[j + index(2 * STRIDE)] += share * yy
        cells[j + index(3 * STRIDE)] += share * xz
        cells[j + index(4 * STRIDE)] += share * yz
        cells[j + index(5 * STRIDE)] += share * zz


@compiled
def flux_cells(shares, pixels, a, b, c, d, cells, alpha, gamma, beta, n):
    """What one row of cells gives to its eight corners, from four rows of the volume."""
    for k in range(n):
        j = index(k)
        xx, xy, yy = cells[j], cells[j + index(STRIDE)], cells[j + index(2 * STRIDE)]
        xz, yz, zz = cells[j + index(3 * STRIDE)], cells[j + index(4 * STRIDE)], cells[j + index(5 * STRIDE)]
        zeta_x, zeta_y, zeta_z, kappa = hourglass_weights(xx, xy, yy, xz, yz, zz, alpha, gamma, beta)
        x, y, z, r_x, r_y, r_z, t = cell_modes(pixels, a, b, c, d, j)
        f_x, f_y, f_z, h_x, h_y, h_z, h_t = fluxes(
            x, y, z, r_x, r_y, r_z, t, xx, xy, yy, xz, yz, zz, zeta_x, zeta_y, zeta_z, kappa
        )
        s000, s001, s010, s011, s100, s101, s110, s111 = corner_shares(f_x, f_y, f_z, h_x, h_y, h_z, h_t)
        shares[j], shares[j + index(STRIDE)] = s000, s001
        shares[j + index(2 * STRIDE)], shares[j + index(3 * STRIDE)] = s010, s011
        shares[j + index(4 * STRIDE)], shares[j + index(5 * STRIDE)] = s100, s101
        shares[j + index(6 * STRIDE)], shares[j + index(7 * STRIDE)] = s110, s111


# Rows of voxels --------------------------------------------------------------------------------------


@compiled
def begin_rows(begun, shares, n):
    """What the voxels after a row of cells receive from it, in its first and in its second plane."""
    for k in range(n):
        j = index(k)
        begun[j] = shares[j + index(2 * STRIDE + 1)] + shares[j + index(3 * STRIDE)]
        begun[j + index(STRIDE)] = shares[j + index(6 * STRIDE + 1)] + shares[j + index(7 * STRIDE)]


@inlined
def near_rate(rate, r, begun, shares, j):
    """What voxel j of the first plane, before a row of cells, has received in all: its Au."""
    return rate[r + j] + (begun[j] + (shares[j + index(1)] + shares[j + index(STRIDE)]))


@compiled
def finish_row(out, o, u, at, rate, r, begun, shares, tau, n):
    """The explicit step for a row in the first plane."""
    for k in range(n):
        j = index(k)
        out[o + j] = explicit_step(u[at + j], near_rate(rate, r, begun, shares, j), tau)


@inlined
def extrapolate_row(out, o, u, at, rate, r, begun, shares, weight, tau, n):
    """The same with extrapolation; out holds the volume before u."""
    # Inlined, because a copy of its own may be contracted to other fused operations: which copy is called
    # differs between a kernel that was just compiled and one that was loaded from the cache.
    for k in range(n):
        j = index(k)
        whole = near_rate(rate, r, begun, shares, j)
        out[o + j] = extrapolated_step(u[at + j], out[o + j], whole, weight, tau)


@compiled
def half_rate(rate, r, begun, shares, n):
    """What a row in the second plane has received so far."""
    for k in range(n):
        j = index(k)
        rate[r + j] = begun[j + index(STRIDE)] + (
            shares[j + index(4 * STRIDE + 1)] + shares[j + index(5 * STRIDE)]
        )
