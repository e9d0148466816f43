"""Fused loops over tiles of an image, for the compiler.

This text becomes part of the generated kernel modules for images, after the formulas and the loops over
rows that it calls. A tile is at most `STRIDE` − 2 pixels wide, so that the few rows at work stay in the
cache; rows are handled one after another. :mod:`aniso.engines.cpu.rows` says what makes the loops vectorise.
"""

from __future__ import annotations

import numpy as np

from aniso.engines.cpu.arithmetic import pair, unit_structure
from aniso.engines.cpu.placeholders import STRIDE, compiled, entry, index, inlined
from aniso.engines.cpu.rows import (
    across_rows,
    along_row,
    call_tensor_row,
    clear_row,
    copy_row,
    cut_row,
    first_row_needed,
    fold_line,
    full_vectors,
    next_smooth_row,
    restore_fixed,
)
from aniso.formulas.bounds import explicit_step, extrapolated_step
from aniso.formulas.cell import corner_shares, fluxes, modes
from aniso.formulas.weights import free_hourglass_weight, hourglass_weight

# Rows of cells ---------------------------------------------------------------------------------------


@inlined
def share_out(shares, j, pixels, top, bottom, a, b, c, zeta):
    """What cell j gives to its four corners."""
    u00, u01 = pair(pixels, top, j)
    u10, u11 = pair(pixels, bottom, j)
    x, y, z = modes(u00, u01, u10, u11)
    f_x, f_y, f_z = fluxes(x, y, z, a, b, c, zeta)
    s00, s01, s10, s11 = corner_shares(f_x, f_y, f_z)
    shares[j], shares[j + index(STRIDE)] = s00, s01
    shares[j + index(2 * STRIDE)], shares[j + index(3 * STRIDE)] = s10, s11


@compiled
def flux_cells(shares, pixels, top, bottom, cells, alpha, gamma, beta, n):
    """What one row of cells gives to its corners, from two rows of the image."""
    for k in range(n):
        j = index(k)
        a, b, c = cells[j], cells[j + index(STRIDE)], cells[j + index(2 * STRIDE)]
        zeta = hourglass_weight(a, b, c, alpha, gamma, beta)
        share_out(shares, j, pixels, top, bottom, a, b, c, zeta)


@compiled
def frozen_flux_cells(shares, pixels, top, bottom, a, b, c, at, alpha, gamma, beta, n):
    """The same with tensors that are stored."""
    for k in range(n):
        j = index(k)
        zeta = hourglass_weight(a[at + j], b[at + j], c[at + j], alpha, gamma, beta)
        share_out(shares, j, pixels, top, bottom, a[at + j], b[at + j], c[at + j], zeta)


@compiled
def free_flux_cells(shares, pixels, top, bottom, a, b, c, delta, at, n):
    """The same with tensors and δ that are stored."""
    for k in range(n):
        j = index(k)
        zeta = free_hourglass_weight(a[at + j], c[at + j], delta[at + j])
        share_out(shares, j, pixels, top, bottom, a[at + j], b[at + j], c[at + j], zeta)


@compiled
def structure_row(structures, smooth, top, bottom, per_x, per_y, share, n):
    """Adds the products of one channel's derivatives, times its share in the mean: three rows of n."""
    second, third = index(n), index(2 * n)
    for k in range(n):
        j = index(k)
        j_xx, j_xy, j_yy = unit_structure(smooth, top, bottom, j, per_x, per_y)
        structures[j] += share * j_xx
        structures[second + j] += share * j_xy
        structures[third + j] += share * j_yy


# Rows of pixels --------------------------------------------------------------------------------------


@compiled
def begin_row(rate, shares, n):
    """A row of pixels receives the lower shares of the cells above it."""
    for k in range(n):
        j = index(k)
        rate[j] = shares[j + index(3 * STRIDE)] + shares[j + index(2 * STRIDE + 1)]


@compiled
def finish_row(out, o, u, at, rate, shares, tau, n):
    """It receives the upper shares of the cells below it and makes an explicit step."""
    for k in range(n):
        j = index(k)
        whole = rate[j] + (shares[j + index(STRIDE)] + shares[j + index(1)])
        out[o + j] = explicit_step(u[at + j], whole, tau)


@inlined
def extrapolate_row(out, o, u, at, rate, shares, weight, tau, n):
    """The same with extrapolation; out holds the image before u."""
    # Inlined, because a copy of its own may be contracted to other fused operations: which copy is called
    # differs between a kernel that was just compiled and one that was loaded from the cache.
    for k in range(n):
        j = index(k)
        whole = rate[j] + (shares[j + index(STRIDE)] + shares[j + index(1)])
        out[o + j] = extrapolated_step(u[at + j], out[o + j], whole, weight, tau)


# Tiles -----------------------------------------------------------------------------------------------


@entry
def fused_step(
    u, out, shape, rows, columns, tau, numbers, parameters, tensor_row,
    kernel_x, fold_x, kernel_y, fold_y, fixed,
):  # fmt: skip
    """One explicit step of a tile: u is read once, out written once.

    `tensor_row` is the address of the model's function for a row of cells. It is called once per row, so that
    these loops are compiled once for all models.
    """
    (height, width), (start, stop), (left, right) = shape, rows, columns
    per_x, per_y, alpha, gamma, beta = numbers
    n = right - left
    many = full_vectors(n + 2)
    reach_x, reach_y = len(kernel_x) - 1, len(kernel_y) - 1
    ring = np.empty((2 * reach_y + 1) * many, u.dtype)
    line = np.zeros(many + 2 * reach_x, u.dtype)
    smooth = np.zeros(2 * STRIDE, u.dtype)
    pixels = np.zeros(2 * STRIDE, u.dtype)
    cells = np.empty(3 * STRIDE, u.dtype)
    shares = np.empty(4 * STRIDE, u.dtype)
    rate = np.empty(n, u.dtype)
    even = np.ones(len(fold_y), u.dtype)

    done = first_row_needed(max(start - 1, 0), reach_y, height) - 1
    for i in range(start - 1, stop + 1):
        top, bottom = index((i - start) % 2 * STRIDE), index((i - start + 1) % 2 * STRIDE)
        y = min(max(i, 0), height - 1)
        done = next_smooth_row(
            smooth, bottom, u, index(0), height, width, y, done, ring, line, left - 1, n + 2, many,
            kernel_x, fold_x, kernel_y, fold_y, even,
        )  # fmt: skip
        cut_row(pixels, bottom, u, index(y * width), width, left - 1, fold_x, n + 2)
        if i >= start:
            call_tensor_row(tensor_row, cells, smooth, top, bottom, per_x, per_y, parameters, many)
            flux_cells(shares, pixels, top, bottom, cells, alpha, gamma, beta, many)
            if i > start:
                at = index((i - 1) * width + left)
                finish_row(out, at, u, at, rate, shares, tau, n)
                if len(fixed) > 1:
                    restore_fixed(out, at, u, at, fixed, at, n)
            begin_row(rate, shares, n)


@compiled
def frozen_rows(
    source, s, s_stride, target, t, t_stride, shape, rows, columns, extrapolate, weight, tau,
    alpha, gamma, beta, a, b, c, delta, fixed, pixels, shares, rate,
):  # fmt: skip
    """One step with stored tensors, from one array into another.

    Pixel (y, x) stands at s + y·s_stride + x in the source, at t + y·t_stride + x in the target. With
    extrapolation the target holds the image before the source.
    """
    (height, width), (start, stop), (left, right) = shape, rows, columns
    n = right - left
    inside, outside = 1 if left == 0 else 0, 1 if right == width else 0
    for i in range(start - 1, stop + 1):
        top, bottom = index((i - start) % 2 * STRIDE), index((i - start + 1) % 2 * STRIDE)
        y = min(max(i, 0), height - 1)
        copy_row(
            pixels, bottom + index(inside), source, s + index(y * s_stride + left - 1 + inside),
            n + 2 - inside - outside,
        )  # fmt: skip
        if inside == 1:
            pixels[bottom] = pixels[bottom + index(1)]
        if outside == 1:
            pixels[bottom + index(n + 1)] = pixels[bottom + index(n)]
        if i >= start:
            cell = index(i * (width + 1) + left)
            if len(delta) > 1:
                free_flux_cells(shares, pixels, top, bottom, a, b, c, delta, cell, n + 1)
            else:
                frozen_flux_cells(shares, pixels, top, bottom, a, b, c, cell, alpha, gamma, beta, n + 1)
            if i > start:
                here = s + index((i - 1) * s_stride + left)
                there = t + index((i - 1) * t_stride + left)
                if extrapolate:
                    extrapolate_row(target, there, source, here, rate, shares, weight, tau, n)
                else:
                    finish_row(target, there, source, here, rate, shares, tau, n)
                if len(fixed) > 1:
                    restore_fixed(target, there, source, here, fixed, index((i - 1) * width + left), n)
            begin_row(rate, shares, n)


@compiled
def copy_block(target, t, t_stride, source, s, s_stride, rows, columns):
    """Copy a block of pixels."""
    for y in range(rows[0], rows[1]):
        copy_row(
            target, t + index(y * t_stride + columns[0]), source, s + index(y * s_stride + columns[0]),
            columns[1] - columns[0],
        )  # fmt: skip


@compiled
def widen(span, by, length):
    """A span of rows or columns with a margin, as far as the image reaches."""
    return max(0, span[0] - by), min(length, span[1] + by)


@entry
def frozen_steps(
    u, previous, out, out_previous, shape, channel, rows, columns, continued, to_be_continued, weights, taus,
    alpha, gamma, beta, a, b, c, delta, fixed,
):  # fmt: skip
    """Several steps of a tile of one channel with stored tensors, as many as there are `taus`.

    The tile is taken with a margin that shrinks by a pixel per step, so that the steps need nothing from
    its neighbours and the tensors come from memory once. `continued`: steps went before, with `previous`
    the image before u. `to_be_continued`: `out_previous` is to receive the image before out.
    """
    height, width = shape
    base, count = index(channel * height * width), len(taus)
    pixels = np.empty(2 * STRIDE, u.dtype)
    shares = np.empty(4 * STRIDE, u.dtype)
    rate = np.empty(STRIDE, u.dtype)
    if count == 1 and not continued and not to_be_continued:
        frozen_rows(
            u, base, width, out, base, width, shape, rows, columns, False, weights[0], taus[0],
            alpha, gamma, beta, a, b, c, delta, fixed, pixels, shares, rate,
        )  # fmt: skip
        return

    wide_rows, wide_columns = widen(rows, count, height), widen(columns, count, width)
    stride = wide_columns[1] - wide_columns[0]
    size = (wide_rows[1] - wide_rows[0]) * stride
    source, target = np.empty(size, u.dtype), np.empty(size, u.dtype)
    local = index(-(wide_rows[0] * stride + wide_columns[0]))
    copy_block(source, local, stride, u, base, width, wide_rows, wide_columns)
    if continued:
        copy_block(target, local, stride, previous, base, width, wide_rows, wide_columns)
    for k in range(count):
        margin = count - 1 - k
        frozen_rows(
            source, local, stride, target, local, stride, shape,
            widen(rows, margin, height), widen(columns, margin, width),
            k > 0 or continued, weights[k], taus[k],
            alpha, gamma, beta, a, b, c, delta, fixed, pixels, shares, rate,
        )  # fmt: skip
        source, target = target, source
    copy_block(out, base, width, source, local, stride, rows, columns)
    if to_be_continued:
        copy_block(out_previous, base, width, target, local, stride, rows, columns)


@entry
def structure_pass(
    u, channels, shape, rows, columns, per_x, per_y, share, j_xx, j_xy, j_yy,
    kernel_x, fold_x, kernel_y, fold_y, wide_x, wide_fold_x, sign_x, wide_y, wide_fold_y, sign_y,
):  # fmt: skip
    """Structure of a tile of cells: mean over the channels, averaged over the integration scale."""
    (height, width), (start, stop), (left, right) = shape, rows, columns
    n = right - left
    reach_x, reach_y = len(kernel_x) - 1, len(kernel_y) - 1
    wide_reach_x, wide_reach_y = len(wide_x) - 1, len(wide_y) - 1

    # Cells whose structure is needed: those under the wide kernel, after folding.
    first, last = width, 0
    for j in range(left, right + 2 * wide_reach_x):
        first, last = min(first, wide_fold_x[j]), max(last, wide_fold_x[j])
    m = last - first + 1
    rings = np.empty((channels, (2 * reach_y + 1) * (m + 1)), u.dtype)
    line = np.empty(m + 1 + 2 * reach_x, u.dtype)
    smooth = np.empty((channels, 2 * (m + 1)), u.dtype)
    even = np.ones(len(fold_y), u.dtype)
    structures = np.empty(3 * m, u.dtype)
    size = 2 * wide_reach_y + 1
    wide_line = np.empty(n + 2 * wide_reach_x, u.dtype)
    wide_rings = np.empty((3, size * n), u.dtype)
    means = np.empty((3, n), u.dtype)
    signs = np.ones((2, len(sign_y)), u.dtype)
    signs[1] = sign_y

    begin = first_row_needed(start, wide_reach_y, height + 1)
    done = now = first_row_needed(max(begin - 1, 0), reach_y, height) - 1
    row = begin - 2
    for i in range(start, stop):
        while row < min(i + wide_reach_y, height):
            row += 1
            y = min(max(row, 0), height - 1)
            top, bottom = index(row % 2 * (m + 1)), index((row + 1) % 2 * (m + 1))
            clear_row(structures, 3 * m)
            for channel in range(channels):
                now = next_smooth_row(
                    smooth[channel], bottom, u, index(channel * height * width), height, width, y, done,
                    rings[channel], line, first - 1, m + 1, m + 1, kernel_x, fold_x, kernel_y, fold_y, even,
                )  # fmt: skip
                if row >= begin:
                    structure_row(structures, smooth[channel], top, bottom, per_x, per_y, share, m)
            done = now
            if row >= begin and wide_reach_x > 0:
                for field in range(3):
                    fold_line(
                        wide_line, structures, index(field * m), first, left, wide_fold_x, sign_x, field == 1,
                        n + 2 * wide_reach_x,
                    )  # fmt: skip
                    along_row(wide_rings[field], index(row % size * n), wide_line, wide_x, n)
        at = index(i * (width + 1) + left)
        if wide_reach_x > 0:
            for field in range(3):
                odd = field == 1
                across_rows(
                    means[field], index(0), wide_rings[field], size, i, wide_y, wide_fold_y,
                    signs[1 if odd else 0], n,
                )  # fmt: skip
            # An odd quantity vanishes on the boundary: exactly, not but for rounding.
            for j in range(n):
                if i == 0 or i == height or left + j == 0 or left + j == width:
                    means[1, j] = 0
            copy_row(j_xx, at, means[0], index(0), n)
            copy_row(j_xy, at, means[1], index(0), n)
            copy_row(j_yy, at, means[2], index(0), n)
        else:
            copy_row(j_xx, at, structures, index(0), n)
            copy_row(j_xy, at, structures, index(m), n)
            copy_row(j_yy, at, structures, index(2 * m), n)
