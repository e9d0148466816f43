"""Fused loops over tiles of an image, for the compiler.

This text becomes part of the generated kernel modules for images, after the formulas and the loops over
rows that it calls. A tile is at most `STRIDE` − 2 pixels wide, so that the few rows at work stay in the
cache; rows are handled one after another. :mod:`aniso.engines.cpu.rows` says what makes the loops vectorise.
"""

from __future__ import annotations

import numpy as np

from aniso.engines.cpu.arithmetic import unit_structure
from aniso.engines.cpu.means import means_of_rows
from aniso.engines.cpu.placeholders import STRIDE, compiled, entry, index, inlined, real, separate
from aniso.engines.cpu.rows import (
    along_row,
    call_tensor_row,
    clear_row,
    copy_row,
    cut_row,
    fetch_row,
    first_row_needed,
    full_vectors,
    next_row_of_channel,
    ones,
    restore_fixed,
    rows_of_ring,
    workspace,
)
from aniso.formulas.bounds import explicit_step, extrapolated_step
from aniso.formulas.cell import corner_shares, fluxes, modes
from aniso.formulas.weights import free_hourglass_weight, hourglass_weight

# Rows of cells ---------------------------------------------------------------------------------------


@inlined
def cell_shares(pixels, top, bottom, cells, j):
    """What a cell gives to its four corners, and the first one of them."""
    u00, u01 = pixels[top], pixels[top + index(1)]
    u10, u11 = pixels[bottom], pixels[bottom + index(1)]
    x, y, z = modes(u00, u01, u10, u11)
    a, b, c = cells[j], cells[j + index(STRIDE)], cells[j + index(2 * STRIDE)]
    f_x, f_y, f_z = fluxes(x, y, z, a, b, c, cells[j + index(3 * STRIDE)])
    s00, s01, s10, s11 = corner_shares(f_x, f_y, f_z)
    return u00, s00, s01, s10, s11


# Loops carry what a cell gives to the pixels after it over to the next iteration, so that shares need not be
# stored. Compilers vectorise this if all that is carried is computed before anything is stored.


@separate
def advance_row(out, o, pixels, top, bottom, cells, at, rate, r, tau, n):
    """A row of cells: the pixels above it have received all and make an explicit step.

    What the pixels below it have received goes to `rate`.
    """
    above, below = real(0.0), real(0.0)
    for k in range(n):
        j = index(k)
        u, s00, s01, s10, s11 = cell_shares(pixels, top + j, bottom + j, cells, at + j)
        whole, half = rate[r + j] + (above + s00), below + s10
        above, below = s01, s11
        out[o + j] = explicit_step(u, whole, tau)
        rate[r + j] = half


@separate
def extrapolate_row(out, o, pixels, top, bottom, previous, cells, at, rate, r, weight, tau, n):
    """The same with extrapolation; the image before is at `previous` in its array."""
    above, below = real(0.0), real(0.0)
    for k in range(n):
        j = index(k)
        u, s00, s01, s10, s11 = cell_shares(pixels, top + j, bottom + j, cells, at + j)
        whole, half = rate[r + j] + (above + s00), below + s10
        above, below = s01, s11
        out[o + j] = extrapolated_step(u, pixels[previous + j], whole, weight, tau)
        rate[r + j] = half


@separate
def hourglass_row(cells, at, alpha, gamma, beta, n):
    """The ζ of a row of cells, from its tensors."""
    for k in range(n):
        j = at + index(k)
        a, b, c = cells[j], cells[j + index(STRIDE)], cells[j + index(2 * STRIDE)]
        cells[j + index(3 * STRIDE)] = hourglass_weight(a, b, c, alpha, gamma, beta)


@separate
def free_hourglass_row(cells, at, delta, d, n):
    """The same with a δ that is stored."""
    for k in range(n):
        j = index(k)
        zeta = free_hourglass_weight(cells[at + j], cells[at + index(2 * STRIDE) + j], delta[d + j])
        cells[at + index(3 * STRIDE) + j] = zeta


@separate
def structure_row(structures, at, distance, smooth, top, bottom, per_x, per_y, share, n):
    """Products of derivatives of a channel, times its share in the mean: three rows, `distance` apart."""
    for k in range(n):
        j = index(k)
        j_xx, j_xy, j_yy = unit_structure(smooth, top, bottom, j, per_x, per_y)
        structures[at + j] = share * j_xx
        structures[at + distance + j] = share * j_xy
        structures[at + distance + distance + j] = share * j_yy


@separate
def more_structure_row(structures, at, distance, smooth, top, bottom, per_x, per_y, share, n):
    """Adds those of another channel."""
    for k in range(n):
        j = index(k)
        j_xx, j_xy, j_yy = unit_structure(smooth, top, bottom, j, per_x, per_y)
        structures[at + j] += share * j_xx
        structures[at + distance + j] += share * j_xy
        structures[at + distance + distance + j] += share * j_yy


# Tiles -----------------------------------------------------------------------------------------------


@compiled
def next_structure_row(
    structures, at, distance, u, channels, shape, row, needed, done, smooth, rings, line, left, n,
    per_x, per_y, kernel_x, fold_x, kernel_y, fold_y, even,
):  # fmt: skip
    """N pixels from `left` on of row `row` of the smoothed image; if needed, structures of the cells above.

    Structures are means over the channels. Rows up to `done` are in the rings of smoothed rows already.
    """
    (height, width), many, share = shape, full_vectors(n), real(1.0) / real(channels)
    y, above = min(max(row, 0), height - 1), min(max(row - 1, 0), height - 1)
    ring_size, now = rows_of_ring(len(kernel_y) - 1, height) * many, done
    for channel in range(channels):
        base = 2 * channel * (many + 1)
        top, bottom = index(base + above % 2 * (many + 1)), index(base + y % 2 * (many + 1))
        now = next_row_of_channel(
            smooth, bottom, u, index(channel * height * width), height, width, y, done, rings,
            index(channel * ring_size), many, line, left, n, many, kernel_x, fold_x, kernel_y, fold_y, even,
        )  # fmt: skip
        if needed and channel == 0:
            structure_row(structures, at, distance, smooth, top, bottom, per_x, per_y, share, many)
        elif needed:
            more_structure_row(structures, at, distance, smooth, top, bottom, per_x, per_y, share, many)
    return now


@compiled
def stored_row(cells, slot, tensors, shape, row, begin, n):
    """Stored tensors of n cells from column `begin` on, without those beyond the image."""
    (height, width), first, last = shape, max(begin, 0), min(begin + n - 1, shape[1])
    for field in range(3):
        at, count = index((field * (height + 1) + row) * (width + 1) + first), last - first + 1
        copy_row(cells, slot + index(field * STRIDE + first - begin), tensors, at, count)
        if row < height:
            fetch_row(tensors, at + index(width + 1), count)


@compiled
def store_row(tensors, shape, row, columns, cells, at):
    """Store the tensors of these columns, and at the right border those of the last one."""
    (height, width), (left, right) = shape, columns
    for field in range(3):
        copy_row(
            tensors, index((field * (height + 1) + row) * (width + 1) + left),
            cells, at + index(field * STRIDE), right - left + (1 if right == width else 0),
        )  # fmt: skip


@compiled
def free_row(cells, slot, delta, shape, row, begin, n):
    """The ζ of n cells from column `begin` on for a stored δ."""
    width, first, last = shape[1], max(begin, 0), min(begin + n - 1, shape[1])
    at = slot + index(first - begin)
    free_hourglass_row(cells, at, delta, index(row * (width + 1) + first), last - first + 1)


@entry
def image_steps(
    u, previous, out, out_previous, channels, shape, rows, columns, continued, to_be_continued, weights, taus,
    numbers, parameters, tensor_row, computes, stores, tensors, delta, fixed,
    kernel_x, fold_x, kernel_y, fold_y, wide_x, wide_y, wide_fold_y, sign_y,
):  # fmt: skip
    """Steps of a tile with the same tensors, as many as there are `taus`: u is read once, out written once.

    Each step follows one row behind the step before it, so that few rows are at work. The tile is taken with
    a margin of a pixel per step: each step spoils another pixel of it, and nothing is needed from neighbours.

    `computes`: the tensors are those of u, by the model's function at the address `tensor_row`, which is
    called once per row, so that these loops are compiled once for all models; `stores`: they are written to
    `tensors`. Otherwise they are read from there. `continued`: steps went before, with `previous` the image
    before u. `to_be_continued`: `out_previous` is to receive the image before out.
    """
    (height, width), (start, stop), (left, right) = shape, rows, columns
    per_x, per_y, alpha, gamma, beta = numbers
    count, area = len(taus), height * width
    # Pixels of the tile and its margin, from column `begin` on; cell j has pixels j and j + 1 at its corners.
    begin, n = left - count, right - left + 2 * count
    many = full_vectors(n)
    # Of each channel and step, three rows of the image that it starts from; those of `previous` come first.
    # After the last one there is a row for the result.
    image = 3 * STRIDE
    result = (count + 1) * channels * image
    pixels = workspace(result + STRIDE, u)
    rate = workspace(count * channels * STRIDE, u)

    # Cells whose structure is needed: those of the tile, or those under the wide kernel. Beyond the image
    # they are those of the mirrored image.
    reach_y, wide_reach_x, wide_reach_y = len(kernel_y) - 1, len(wide_x) - 1, len(wide_y) - 1
    averages = wide_reach_x > 0
    first, last = begin + 1 - wide_reach_x, begin + n - 1 + wide_reach_x
    structure_n = full_vectors(last - first + 2)
    # A row of cells for each step: a, b, c and ζ. Those of averages are computed four at a time.
    slots = (count + 6) // 4 * 4 if averages else count
    cells = workspace(slots * 4 * STRIDE, u)
    ring_size = 2 * wide_reach_y + 4
    row_at = np.empty(4 * len(wide_y) + 4, np.uint64)
    smooth = workspace(2 * channels * (structure_n + 1) if computes else 1, u)
    rings = workspace(rows_of_ring(reach_y, height) * channels * structure_n if computes else 1, u)
    line = workspace(structure_n + 2 * len(kernel_x) - 2, u)
    even = ones(len(fold_y), u)
    structures = workspace(3 * structure_n + 16 if averages else 1, u)
    wide_rings = workspace(4 * ring_size * many if averages else 1, u)

    top_row, bottom_row = max(0, start - count + 1), min(height, stop + count - 1)
    top_structure = first_row_needed(top_row, wide_reach_y, height + 1)
    row = top_structure - 2
    done = first_row_needed(max(top_structure - 1, 0), reach_y, height) - 1
    for now in range(top_row - 1, stop + count):
        slot = index((now - top_row) % slots * 4 * STRIDE)
        if now <= bottom_row:
            y = min(max(now, 0), height - 1)
            for channel in range(channels):
                at, source = channel * (count + 1) * image + y % 3 * STRIDE, index(channel * area + y * width)
                if continued:
                    cut_row(pixels, index(at), previous, source, width, begin, fold_x, n)
                cut_row(pixels, index(at + image), u, source, width, begin, fold_x, n)
        if now <= bottom_row and computes:
            ahead = wide_reach_y + (3 if averages else 0)
            while row < (min(now + ahead, height) if now >= top_row else top_structure - 1):
                row += 1
                if not averages:
                    done = next_structure_row(
                        cells, slot, index(STRIDE), u, channels, shape, row, row >= top_structure, done,
                        smooth, rings, line, first - 1, last - first + 2, per_x, per_y,
                        kernel_x, fold_x, kernel_y, fold_y, even,
                    )  # fmt: skip
                    continue
                done = next_structure_row(
                    structures, index(0), index(structure_n), u, channels, shape, row, row >= top_structure,
                    done, smooth, rings, line, first - 1, last - first + 2, per_x, per_y,
                    kernel_x, fold_x, kernel_y, fold_y, even,
                )  # fmt: skip
                if row >= top_structure:
                    for field in range(3):
                        at = index((field * ring_size + row % ring_size) * many)
                        along_row(wide_rings, at, structures, index(field * structure_n), wide_x, many)
        if top_row <= now <= bottom_row:
            if computes and averages:
                if (now - top_row) % 4 == 0:
                    means_of_rows(
                        cells, slot, 3, wide_rings, index(0), many, ring_size, now, 4, bottom_row, wide_y,
                        row_at, wide_fold_y, sign_y, 1, 1, many,
                    )  # fmt: skip
                # An odd quantity vanishes on the boundary: exactly, not but for rounding.
                odd = slot + index(STRIDE)
                if now == 0 or now == height:
                    clear_row(cells, odd, many)
                if begin < 0:
                    cells[odd + index(-begin - 1)] = 0
                if begin + n > width:
                    cells[odd + index(width - begin - 1)] = 0
            if computes:
                call_tensor_row(tensor_row, cells, slot, per_x, per_y, alpha, gamma, beta, parameters, many)
                if stores and start <= now and (now < stop or now == height):
                    store_row(tensors, shape, now, columns, cells, slot + index(count - 1))
            else:
                stored_row(cells, slot, tensors, shape, now, begin + 1, n - 1)
                hourglass_row(cells, slot, alpha, gamma, beta, many)
            if len(delta) > 1:
                free_row(cells, slot, delta, shape, now, begin + 1, n - 1)
        for step in range(count):
            i, margin = now - step, count - 1 - step
            low, high = max(0, start - margin), min(height, stop + margin)
            if i < low or i > high:
                continue
            at = index((i - top_row) % slots * 4 * STRIDE)
            weight, tau = weights[step], taus[step]
            extrapolate = weight != 1 and (continued or step > 0)
            for channel in range(channels):
                origin = (channel * (count + 1) + step + 1) * image
                top = index(origin + max(i - 1, 0) % 3 * STRIDE)
                bottom = index(origin + min(i, height - 1) % 3 * STRIDE)
                r = index((channel * count + step) * STRIDE)
                # The row above the first one is spoiled, or not in the image: nothing reads it.
                here = index(origin + (i - 1) % 3 * STRIDE)
                there = here + index(image) if margin > 0 else index(result)
                if margin == 0 and i > low:
                    fetch_row(out, index(channel * area + (i - 1) * width + left), right - left)
                if extrapolate:
                    extrapolate_row(
                        pixels, there, pixels, top, bottom, here - index(image), cells, at, rate, r, weight,
                        tau, many,
                    )  # fmt: skip
                else:
                    advance_row(pixels, there, pixels, top, bottom, cells, at, rate, r, tau, many)
                if i == low:
                    continue
                if len(fixed) > 1:
                    x, end = max(begin, 0), min(begin + n, width)
                    skip = index(x - begin)
                    pixel = index((i - 1) * width + x)
                    restore_fixed(pixels, there + skip, pixels, here + skip, fixed, pixel, end - x)
                if margin > 0:
                    if begin < 0:
                        pixels[there + index(-begin - 1)] = pixels[there + index(-begin)]
                    if begin + n > width:
                        edge = there + index(width - begin)
                        pixels[edge] = pixels[edge - index(1)]
                else:
                    pixel = index(channel * area + (i - 1) * width + left)
                    copy_row(out, pixel, pixels, there + index(count), right - left)
                    if to_be_continued:
                        copy_row(out_previous, pixel, pixels, here + index(count), right - left)
