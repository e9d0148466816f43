"""Averages over the integration scale, across rows of cells in a ring, for images and volumes.

This text becomes part of the generated kernel modules, see :mod:`aniso.engines.cpu.rows`.
"""

from __future__ import annotations

from aniso.engines.cpu.placeholders import ENTRIES, STRIDE, compiled, index, inlined, real, separate_inlined
from aniso.engines.cpu.rows import negate_row

# Four means, each one row further than the last, are computed together, so that a row is read less often. The
# rows at equal distances from a mean are added before they are multiplied by their weight, the nearest ones
# first, so that a mean does not depend on which of the four it is. Additions and multiply-adds can be
# executed by different units of a processor.


@separate_inlined
def begin_means(out, o, rows, at, centre, shift, kernel, n):
    """Begin four means with up to four pairs of rows; row p from the first centre on is at at[centre + p]."""
    zero = real(0.0)
    k0, k1, k2 = kernel[0], kernel[1], kernel[2]
    b, c, d, e = at[centre - 2] + shift, at[centre - 1] + shift, at[centre] + shift, at[centre + 1] + shift
    f, g, h = at[centre + 2] + shift, at[centre + 3] + shift, at[centre + 4] + shift
    i = at[centre + 5] + shift
    if len(kernel) == 3:
        for k in range(n):
            j = index(k)
            p, q, r, s = rows[b + j], rows[c + j], rows[d + j], rows[e + j]
            t, u, v, w = rows[f + j], rows[g + j], rows[h + j], rows[i + j]
            store_means(
                out, o + j,
                zero + k0 * r + k1 * (q + s) + k2 * (p + t), zero + k0 * s + k1 * (r + t) + k2 * (q + u),
                zero + k0 * t + k1 * (s + u) + k2 * (r + v), zero + k0 * u + k1 * (t + v) + k2 * (s + w),
            )  # fmt: skip
        return
    k3, k4 = kernel[3], kernel[4]
    y, z = at[centre - 4] + shift, at[centre - 3] + shift
    x, m = at[centre + 6] + shift, at[centre + 7] + shift
    for k in range(n):
        j = index(k)
        near = rows[y + j], rows[z + j], rows[b + j], rows[c + j], rows[d + j], rows[e + j]
        far = rows[f + j], rows[g + j], rows[h + j], rows[i + j], rows[x + j], rows[m + j]
        r0, r1, r2, r3, r4, r5 = near
        r6, r7, r8, r9, r10, r11 = far
        store_means(
            out, o + j,
            zero + k0 * r4 + k1 * (r3 + r5) + k2 * (r2 + r6) + k3 * (r1 + r7) + k4 * (r0 + r8),
            zero + k0 * r5 + k1 * (r4 + r6) + k2 * (r3 + r7) + k3 * (r2 + r8) + k4 * (r1 + r9),
            zero + k0 * r6 + k1 * (r5 + r7) + k2 * (r4 + r8) + k3 * (r3 + r9) + k4 * (r2 + r10),
            zero + k0 * r7 + k1 * (r6 + r8) + k2 * (r5 + r9) + k3 * (r4 + r10) + k4 * (r3 + r11),
        )  # fmt: skip


@separate_inlined
def add_four_pairs(out, o, rows, at, centre, shift, p, kernel, n):
    """Add the pairs p … p+3 to four means."""
    left, right = centre - p, centre + p
    a, b, c, d = at[left - 3] + shift, at[left - 2] + shift, at[left - 1] + shift, at[left] + shift
    e, f, g = at[left + 1] + shift, at[left + 2] + shift, at[left + 3] + shift
    h, i, t, m = at[right] + shift, at[right + 1] + shift, at[right + 2] + shift, at[right + 3] + shift
    q, r, s = at[right + 4] + shift, at[right + 5] + shift, at[right + 6] + shift
    k1, k2, k3, k4 = kernel[p], kernel[p + 1], kernel[p + 2], kernel[p + 3]
    for k in range(n):
        j = index(k)
        l0, l1, l2, l3 = rows[a + j], rows[b + j], rows[c + j], rows[d + j]
        l4, l5, l6 = rows[e + j], rows[f + j], rows[g + j]
        r0, r1, r2, r3 = rows[h + j], rows[i + j], rows[t + j], rows[m + j]
        r4, r5, r6 = rows[q + j], rows[r + j], rows[s + j]
        w, x, y, z = load_means(out, o + j)
        store_means(
            out, o + j,
            w + k1 * (l3 + r0) + k2 * (l2 + r1) + k3 * (l1 + r2) + k4 * (l0 + r3),
            x + k1 * (l4 + r1) + k2 * (l3 + r2) + k3 * (l2 + r3) + k4 * (l1 + r4),
            y + k1 * (l5 + r2) + k2 * (l4 + r3) + k3 * (l3 + r4) + k4 * (l2 + r5),
            z + k1 * (l6 + r3) + k2 * (l5 + r4) + k3 * (l4 + r5) + k4 * (l3 + r6),
        )  # fmt: skip


@separate_inlined
def add_two_pairs(out, o, rows, at, centre, shift, p, kernel, n):
    """Add the pairs p and p+1 to four means."""
    left, right = centre - p, centre + p
    a, b, c = at[left - 1] + shift, at[left] + shift, at[left + 1] + shift
    d, e = at[left + 2] + shift, at[left + 3] + shift
    h, i, t = at[right] + shift, at[right + 1] + shift, at[right + 2] + shift
    m, q = at[right + 3] + shift, at[right + 4] + shift
    k1, k2 = kernel[p], kernel[p + 1]
    for k in range(n):
        j = index(k)
        l0, l1, l2, l3, l4 = rows[a + j], rows[b + j], rows[c + j], rows[d + j], rows[e + j]
        r0, r1, r2, r3, r4 = rows[h + j], rows[i + j], rows[t + j], rows[m + j], rows[q + j]
        w, x, y, z = load_means(out, o + j)
        store_means(
            out, o + j,
            w + k1 * (l1 + r0) + k2 * (l0 + r1), x + k1 * (l2 + r1) + k2 * (l1 + r2),
            y + k1 * (l3 + r2) + k2 * (l2 + r3), z + k1 * (l4 + r3) + k2 * (l3 + r4),
        )  # fmt: skip


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


@compiled
def means_of_rows(
    cells, slot, fields, rings, begin, length, size, row, many, last, kernel, at, fold, sign, odd, odd_too, n
):
    """Gaussian across rows: entries of `many` rows of cells from `row` on, or of those up to `last`.

    Rows come in fours. More of them find a part of the ring in the first-level cache.

    The kernel is given from its centre outwards. The ring of each of the fields holds `size` rows, `length`
    apart; n values from `begin` on are averaged. `at` has room for two numbers per row under the four
    kernels. The fields `odd` and `odd_too` are odd about the boundary: rows beyond it are written with the
    opposite sign to another ring behind those of the fields.
    """
    reach, per_field = len(kernel) - 1, size * length
    count, limit, mirrors = 2 * reach + many, min(row + many - 1, last) + reach + reach, False
    here = fold[row]
    slot_here = here % size
    for p in range(count):
        place = min(row + p, limit)
        # Not by division, which takes as long as a part of the row: all rows are within one turn of the ring.
        found = slot_here + (fold[place] - here)
        found += size if found < 0 else 0
        at[p] = begin + index((found - size if found >= size else found) * length)
        mirrors |= sign[place] < 0
    for field in range(fields):
        o, shift, centre = slot + index(field * STRIDE), index(field * per_field), reach
        if mirrors and field in (odd, odd_too):
            centre += count
            for p in range(count):
                at[count + p] = at[p]
                if sign[min(row + p, limit)] < 0:
                    mirrored = index((fields * size + p) * length)
                    negate_row(rings, mirrored, rings, at[p] + shift, n)
                    at[count + p] = mirrored - shift
        for _ in range(0, min(many, last - row + 1), 4):
            begin_means(cells, o, rings, at, centre, shift, kernel, n)
            p = 5
            while p + 3 <= reach:
                add_four_pairs(cells, o, rings, at, centre, shift, p, kernel, n)
                p += 4
            if p < reach:
                add_two_pairs(cells, o, rings, at, centre, shift, p, kernel, n)
            o, centre = o + index(4 * ENTRIES * STRIDE), centre + 4
