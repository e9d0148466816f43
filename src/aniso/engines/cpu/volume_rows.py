"""Loops over single rows of voxels and cells of a volume, for the compiler.

This text becomes part of the generated kernel modules for volumes, see :mod:`aniso.engines.cpu.rows`. Of the
four rows at the corners of a row of cells, a, b, c and d are the offsets: first plane, first and second row,
then second plane. Quantities of cells and shares of corners are rows at the constant distance `STRIDE`.
"""

from __future__ import annotations

from aniso.engines.cpu.arithmetic import load_entries, store_entries
from aniso.engines.cpu.placeholders import SPACED, STRIDE, compiled, index, inlined, real, separate
from aniso.engines.cpu.rows import eight_more_rows, five_rows, four_more_rows, nine_rows
from aniso.formulas.bounds import explicit_step, extrapolated_step
from aniso.formulas.volume_cell import (
    face_fluxes,
    face_modes,
    face_shares,
    fluxes,
    modes_between,
    volume_structure,
)
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


# Rows of cells ---------------------------------------------------------------------------------------

# Cell j lies between the voxels j − 1 and j. Loops carry what it has of the first of them over from the
# iteration before, so that nothing is loaded or computed twice; cell 0 means nothing. Compilers vectorise
# this if all that is carried is computed before anything is stored.


@inlined
def cell_structure(x, y, z, per_x, per_y, per_z, share):
    """Products of derivatives per unit of length, times a share."""
    if SPACED:
        x, y, z = x * per_x, y * per_y, z * per_z
    xx, xy, yy, xz, yz, zz = volume_structure(x, y, z)
    return share * xx, share * xy, share * yy, share * xz, share * yz, share * zz


@separate
def structure_cells(cells, at, smooth, a, b, c, d, per_x, per_y, per_z, share, n):
    """The structure of a row of cells, from four smoothed rows of a channel, times its share in the mean."""
    s0, y0, z0 = real(0.0), real(0.0), real(0.0)
    for k in range(n):
        j = index(k)
        s1, y1, z1, _ = face_modes(smooth[a + j], smooth[b + j], smooth[c + j], smooth[d + j])
        x, y, z, _, _, _, _ = modes_between(s0, y0, z0, z0, s1, y1, z1, z1)
        xx, xy, yy, xz, yz, zz = cell_structure(x, y, z, per_x, per_y, per_z, share)
        s0, y0, z0 = s1, y1, z1
        store_entries(cells, at + j, xx, xy, yy, xz, yz, zz)


@separate
def more_structure_cells(cells, at, smooth, a, b, c, d, per_x, per_y, per_z, share, n):
    """Adds the structure of another channel."""
    s0, y0, z0 = real(0.0), real(0.0), real(0.0)
    for k in range(n):
        j = index(k)
        s1, y1, z1, _ = face_modes(smooth[a + j], smooth[b + j], smooth[c + j], smooth[d + j])
        x, y, z, _, _, _, _ = modes_between(s0, y0, z0, z0, s1, y1, z1, z1)
        xx, xy, yy, xz, yz, zz = cell_structure(x, y, z, per_x, per_y, per_z, share)
        s0, y0, z0 = s1, y1, z1
        o_xx, o_xy, o_yy, o_xz, o_yz, o_zz = load_entries(cells, at + j)
        store_entries(cells, at + j, o_xx + xx, o_xy + xy, o_yy + yy, o_xz + xz, o_yz + yz, o_zz + zz)


@compiled
def add_structure(cells, at, channel, smooth, a, b, c, d, per_x, per_y, per_z, share, n):
    """Begin with the structure of the first channel, or add that of another one."""
    if channel == 0:
        structure_cells(cells, at, smooth, a, b, c, d, per_x, per_y, per_z, share, n)
    else:
        more_structure_cells(cells, at, smooth, a, b, c, d, per_x, per_y, per_z, share, n)


# Rows of voxels --------------------------------------------------------------------------------------


@separate
def advance_row(out, o, u, a, b, c, d, cells, at, rate, r, begun, g, alpha, gamma, beta, tau, n):
    """A row of cells: the voxels at its first edge, which receive nothing more, make an explicit step.

    What the voxels at the three other edges have received so far goes to `rate` (second plane, first row) and
    to two rows of `begun` (second row, first and second plane). Entry j of all these belongs to voxel j − 1.
    """
    s0, y0, z0, yz0 = real(0.0), real(0.0), real(0.0), real(0.0)
    ls, ly, lz, lyz = real(0.0), real(0.0), real(0.0), real(0.0)
    for k in range(n):
        j = index(k)
        s1, y1, z1, yz1 = face_modes(u[a + j], u[b + j], u[c + j], u[d + j])
        gs, gy, gz, gyz, ns, ny, nz, nyz = cell_fluxes(
            s0, y0, z0, yz0, s1, y1, z1, yz1, cells, at + j, alpha, gamma, beta
        )
        first, second, far_first, far_second = face_shares(gs - ls, gy - ly, gz - lz, gyz - lyz)
        whole = rate[r + j] + (begun[g + j] + first)
        half = begun[g + index(STRIDE) + j] + far_first
        s0, y0, z0, yz0 = s1, y1, z1, yz1
        ls, ly, lz, lyz = ns, ny, nz, nyz
        out[o + j - index(1)] = explicit_step(u[a + j - index(1)], whole, tau)
        rate[r + j] = half
        begun[g + j], begun[g + index(STRIDE) + j] = second, far_second


@separate
def extrapolate_row(
    out, o, u, a, b, c, d, previous, cells, at, rate, r, begun, g, alpha, gamma, beta, weight, tau, n
):
    """The same with extrapolation; the volume before u is at `previous` in its array."""
    s0, y0, z0, yz0 = real(0.0), real(0.0), real(0.0), real(0.0)
    ls, ly, lz, lyz = real(0.0), real(0.0), real(0.0), real(0.0)
    for k in range(n):
        j = index(k)
        s1, y1, z1, yz1 = face_modes(u[a + j], u[b + j], u[c + j], u[d + j])
        gs, gy, gz, gyz, ns, ny, nz, nyz = cell_fluxes(
            s0, y0, z0, yz0, s1, y1, z1, yz1, cells, at + j, alpha, gamma, beta
        )
        first, second, far_first, far_second = face_shares(gs - ls, gy - ly, gz - lz, gyz - lyz)
        whole = rate[r + j] + (begun[g + j] + first)
        half = begun[g + index(STRIDE) + j] + far_first
        s0, y0, z0, yz0 = s1, y1, z1, yz1
        ls, ly, lz, lyz = ns, ny, nz, nyz
        here, before = u[a + j - index(1)], u[previous + j - index(1)]
        out[o + j - index(1)] = extrapolated_step(here, before, whole, weight, tau)
        rate[r + j] = half
        begun[g + j], begun[g + index(STRIDE) + j] = second, far_second


@inlined
def cell_fluxes(s0, y0, z0, yz0, s1, y1, z1, yz1, cells, j, alpha, gamma, beta):
    """What a cell between two faces gives to the first and takes from the second."""
    x, y, z, r_x, r_y, r_z, t = modes_between(s0, y0, z0, yz0, s1, y1, z1, yz1)
    xx, xy, yy, xz, yz, zz = load_entries(cells, j)
    zeta_x, zeta_y, zeta_z, kappa = hourglass_weights(xx, xy, yy, xz, yz, zz, alpha, gamma, beta)
    f_x, f_y, f_z, h_x, h_y, h_z, h_t = fluxes(
        x, y, z, r_x, r_y, r_z, t, xx, xy, yy, xz, yz, zz, zeta_x, zeta_y, zeta_z, kappa
    )
    return face_fluxes(f_x, f_y, f_z, h_x, h_y, h_z, h_t)
