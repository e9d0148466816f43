"""Loops over single rows of voxels and cells of a volume, for the compiler.

This text becomes part of the generated kernel modules for volumes, see :mod:`aniso.engines.cpu.rows`. Of the
four rows at the corners of a row of cells, a, b, c and d are the offsets: first plane, first and second row,
then second plane. Quantities of cells and shares of corners are rows at the constant distance `STRIDE`.
"""

from __future__ import annotations

from aniso.engines.cpu.placeholders import SPACED, STRIDE, compiled, index, inlined
from aniso.engines.cpu.rows import five_rows, four_more_rows
from aniso.formulas.steps import explicit_step, extrapolated_step
from aniso.formulas.structure import volume_structure
from aniso.formulas.volume_cell import corner_shares, fluxes, modes
from aniso.formulas.volume_weights import hourglass_weights

# Smoothing -------------------------------------------------------------------------------------------


@compiled
def across_planes(out, o, u, at, plane, z, kernel, fold, n):
    """Gaussian across planes of a volume. Plane z + k is plane fold[reach + z + k]; they are `plane` apart."""
    reach = len(kernel) - 1
    here = z + reach
    for k in range(1, reach, 2):
        a, b = at + index(fold[here - k] * plane), at + index(fold[here + k] * plane)
        c, d = at + index(fold[here - k - 1] * plane), at + index(fold[here + k + 1] * plane)
        near, far = kernel[k], kernel[k + 1]
        if k == 1:
            m = at + index(fold[here] * plane)
            five_rows(out, o, u, m, a, b, c, d, kernel[0], near, near, far, far, n)
        else:
            four_more_rows(out, o, u, a, b, c, d, near, near, far, far, n)


# Rows of cells ---------------------------------------------------------------------------------------


@inlined
def cell_structure(smooth, a, b, c, d, j, per_x, per_y, per_z):
    """Products of derivatives in cell j, per unit of length."""
    x, y, z, _, _, _, _ = modes(
        smooth[a + j],
        smooth[a + j + index(1)],
        smooth[b + j],
        smooth[b + j + index(1)],
        smooth[c + j],
        smooth[c + j + index(1)],
        smooth[d + j],
        smooth[d + j + index(1)],
    )
    if SPACED:
        x, y, z = x * per_x, y * per_y, z * per_z
    return volume_structure(x, y, z)


@compiled
def structure_cells(cells, smooth, a, b, c, d, per_x, per_y, per_z, n):
    """The structure of a row of cells, from four smoothed rows."""
    for k in range(n):
        j = index(k)
        xx, xy, yy, xz, yz, zz = cell_structure(smooth, a, b, c, d, j, per_x, per_y, per_z)
        cells[j] = xx
        cells[j + index(STRIDE)] = xy
        cells[j + index(2 * STRIDE)] = yy
        cells[j + index(3 * STRIDE)] = xz
        cells[j + index(4 * STRIDE)] = yz
        cells[j + index(5 * STRIDE)] = zz


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
        x, y, z, r_x, r_y, r_z, t = modes(
            pixels[a + j],
            pixels[a + j + index(1)],
            pixels[b + j],
            pixels[b + j + index(1)],
            pixels[c + j],
            pixels[c + j + index(1)],
            pixels[d + j],
            pixels[d + j + index(1)],
        )
        f_x, f_y, f_z, h_x, h_y, h_z, h_t = fluxes(
            x, y, z, r_x, r_y, r_z, t, xx, xy, yy, xz, yz, zz, zeta_x, zeta_y, zeta_z, kappa
        )
        s000, s001, s010, s011, s100, s101, s110, s111 = corner_shares(f_x, f_y, f_z, h_x, h_y, h_z, h_t)
        shares[j] = s000
        shares[j + index(STRIDE)] = s001
        shares[j + index(2 * STRIDE)] = s010
        shares[j + index(3 * STRIDE)] = s011
        shares[j + index(4 * STRIDE)] = s100
        shares[j + index(5 * STRIDE)] = s101
        shares[j + index(6 * STRIDE)] = s110
        shares[j + index(7 * STRIDE)] = s111


# Rows of voxels --------------------------------------------------------------------------------------


@compiled
def begun_rows(begun, shares, n):
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
def finished_row(out, o, u, at, rate, r, begun, shares, tau, n):
    """The explicit step for a row in the first plane."""
    for k in range(n):
        j = index(k)
        out[o + j] = explicit_step(u[at + j], near_rate(rate, r, begun, shares, j), tau)


@compiled
def extrapolated_row(out, o, u, at, rate, r, begun, shares, weight, tau, n):
    """The same with extrapolation; out holds the volume before u."""
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
