"""Averages over the integration scale, across rows of cells in a ring, for images and volumes.

This text becomes part of the generated kernel modules, see :mod:`aniso.engines.cpu.rows`.
"""

from __future__ import annotations

from aniso.engines.cpu.placeholders import ENTRIES, STRIDE, allocating, compiled, index, inlined, real
from aniso.engines.cpu.rows import negate_row, workspace

# Rows under a kernel are added to four means, each one row further than the last, one after another from the
# first to the last, so that a mean does not depend on which of the four it is.


@compiled
def begin_means(out, o, rows, at, taps, n):
    """Begin four means with rows 0 … 7; row p is at at[p]."""
    a, b, c, d, e, f, g, h = at[0], at[1], at[2], at[3], at[4], at[5], at[6], at[7]
    near, far = seven_taps(taps, index(0)), seven_taps(taps, index(4))
    for k in range(n):
        j = index(k)
        zero = real(0.0)
        values = rows[a + j], rows[b + j], rows[c + j], rows[d + j]
        w, x, y, z = add_four_to_means(zero, zero, zero, zero, values, near)
        values = rows[e + j], rows[f + j], rows[g + j], rows[h + j]
        w, x, y, z = add_four_to_means(w, x, y, z, values, far)
        store_means(out, o + j, w, x, y, z)


@compiled
def add_eight_rows(out, o, rows, at, p, taps, n):
    """Adds rows p … p+7 to four means."""
    a, b, c, d = at[p], at[p + 1], at[p + 2], at[p + 3]
    e, f, g, h = at[p + 4], at[p + 5], at[p + 6], at[p + 7]
    near, far = seven_taps(taps, index(p)), seven_taps(taps, index(p + 4))
    for k in range(n):
        j = index(k)
        w, x, y, z = load_means(out, o + j)
        values = rows[a + j], rows[b + j], rows[c + j], rows[d + j]
        w, x, y, z = add_four_to_means(w, x, y, z, values, near)
        values = rows[e + j], rows[f + j], rows[g + j], rows[h + j]
        w, x, y, z = add_four_to_means(w, x, y, z, values, far)
        store_means(out, o + j, w, x, y, z)


@compiled
def add_four_rows(out, o, rows, at, p, taps, n):
    """Adds rows p … p+3 to four means."""
    a, b, c, d = at[p], at[p + 1], at[p + 2], at[p + 3]
    near = seven_taps(taps, index(p))
    for k in range(n):
        j = index(k)
        w, x, y, z = load_means(out, o + j)
        values = rows[a + j], rows[b + j], rows[c + j], rows[d + j]
        w, x, y, z = add_four_to_means(w, x, y, z, values, near)
        store_means(out, o + j, w, x, y, z)


@inlined
def seven_taps(taps, t):
    """The taps that four rows have in four means."""
    a, b, c, d = taps[t], taps[t + index(1)], taps[t + index(2)], taps[t + index(3)]
    return a, b, c, d, taps[t + index(4)], taps[t + index(5)], taps[t + index(6)]


@inlined
def load_means(out, j):
    """Four means, in rows of cells that follow each other."""
    w, x = out[j], out[j + index(ENTRIES * STRIDE)]
    return w, x, out[j + index(2 * ENTRIES * STRIDE)], out[j + index(3 * ENTRIES * STRIDE)]


@inlined
def store_means(out, j, w, x, y, z):
    """Write them."""
    out[j], out[j + index(ENTRIES * STRIDE)] = w, x
    out[j + index(2 * ENTRIES * STRIDE)], out[j + index(3 * ENTRIES * STRIDE)] = y, z


@inlined
def add_four_to_means(w, x, y, z, values, taps):
    """Adds four values to four means; between them they have seven taps."""
    k0, k1, k2, k3, k4, k5, k6 = taps
    a, b, c, d = values
    w, x, y, z = w + k3 * a, x + k2 * a, y + k1 * a, z + k0 * a
    w, x, y, z = w + k4 * b, x + k3 * b, y + k2 * b, z + k1 * b
    w, x, y, z = w + k5 * c, x + k4 * c, y + k3 * c, z + k2 * c
    return w + k6 * d, x + k5 * d, y + k4 * d, z + k3 * d


@allocating
def taps_of_means(kernel):
    """A kernel that is given from its centre outwards, with three zeros on either side.

    Rows under four means are three fewer than these, and a multiple of four.
    """
    reach = len(kernel) - 1
    taps = workspace(2 * reach + 7, kernel)
    for k in range(2 * reach + 1):
        taps[3 + k] = kernel[abs(k - reach)]
    return taps


@compiled
def four_means(
    cells, slot, fields, rings, begin, length, size, row, last, reach, taps, at, fold, sign, odd, odd_too, n
):
    """Gaussian across rows: entries of four rows of cells from `row` on, or of those up to `last`.

    The ring of each of the fields holds `size` rows, `length` apart; n values from `begin` on are averaged. A
    row is read once for four means. The fields `odd` and `odd_too` are odd about the boundary: rows beyond it
    are written with the opposite sign to another ring behind those of the fields.
    """
    count, limit = 2 * reach + 4, min(row + 3, last) + reach + reach
    for field in range(fields):
        o, r = slot + index(field * STRIDE), begin + index(field * size * length)
        is_odd = field in (odd, odd_too)
        for p in range(count):
            place = min(row + p, limit)
            at[p] = r + index(fold[place] % size * length)
            if is_odd and sign[place] < 0:
                mirrored = index((fields * size + p) * length)
                negate_row(rings, mirrored, rings, at[p], n)
                at[p] = mirrored
        begin_means(cells, o, rings, at, taps, n)
        for p in range(8, count - 7, 8):
            add_eight_rows(cells, o, rings, at, p, taps, n)
        if count % 8 > 0:
            add_four_rows(cells, o, rings, at, count - 4, taps, n)
