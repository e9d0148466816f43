"""Loops over single rows, for images and volumes: smoothing, copying, mirroring.

This text becomes part of every generated kernel module. Images are flat arrays, and rows in them are named
by the offset at which they start.

What makes the loops vectorise: indices are unsigned (a negative one would wrap around), arrays that are
written together lie in one array at constant distances, and no views are made (they are counted, atomically).
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from aniso.engines.cpu.placeholders import allocating, compiled, index, inlined, real, separate

# Smoothing -------------------------------------------------------------------------------------------


# Vectors that cross cache lines are slow to load. So values at even distances are carried over from the
# iteration before, which turns them into shuffles of registers. A sum begins with 0 and goes on term by term:
# of two products that are added, compilers may fuse either one, and a value would depend on its place.


@separate
def four_pairs(out, o, row, r, k0, k1, k2, k3, k4, n):
    """Weighted sum of nine neighbours in a row."""
    v0, v2, v4, v6 = row[r], row[r + index(2)], row[r + index(4)], row[r + index(6)]
    for k in range(n):
        j = index(k)
        v1, v3, v5, v7 = next_values(row, r + j)
        v8 = row[r + j + index(8)]
        total = real(0.0) + k0 * v4 + k1 * (v3 + v5) + k2 * (v2 + v6) + k3 * (v1 + v7) + k4 * (v0 + v8)
        v0, v2, v4, v6 = v1, v3, v5, v7
        out[o + j] = total


@inlined
def next_values(row, r):
    """Values at odd distances."""
    return row[r + index(1)], row[r + index(3)], row[r + index(5)], row[r + index(7)]


@separate
def two_pairs(out, o, row, r, k0, k1, k2, n):
    """Weighted sum of five neighbours in a row."""
    v0, v2 = row[r], row[r + index(2)]
    for k in range(n):
        j = index(k)
        v1, v3, v4 = row[r + j + index(1)], row[r + j + index(3)], row[r + j + index(4)]
        total = real(0.0) + k0 * v2 + k1 * (v1 + v3) + k2 * (v0 + v4)
        v0, v2 = v1, v3
        out[o + j] = total


@separate
def two_more_pairs(out, o, row, left, right, k1, k2, n):
    """Adds two pairs further out."""
    v0, w0 = row[left], row[right]
    for k in range(n):
        j = index(k)
        v1, w1 = row[left + j + index(1)], row[right + j + index(1)]
        total = out[o + j] + k1 * (v1 + w0) + k2 * (v0 + w1)
        v0, w0 = v1, w1
        out[o + j] = total


@separate
def four_more_pairs(out, o, row, left, right, k1, k2, k3, k4, n):
    """Adds four pairs further out."""
    v0, v2, w0, w2 = row[left], row[left + index(2)], row[right], row[right + index(2)]
    for k in range(n):
        j = index(k)
        v1, v3 = row[left + j + index(1)], row[left + j + index(3)]
        w1, w3 = row[right + j + index(1)], row[right + j + index(3)]
        total = out[o + j] + k1 * (v3 + w0) + k2 * (v2 + w1) + k3 * (v1 + w2) + k4 * (v0 + w3)
        v0, v2, w0, w2 = v1, v3, w1, w3
        out[o + j] = total


@separate
def eight_more_pairs(out, o, row, left, right, k1, k2, k3, k4, k5, k6, k7, k8, n):
    """Adds eight pairs further out."""
    v0, v2, v4, v6 = row[left], row[left + index(2)], row[left + index(4)], row[left + index(6)]
    w0, w2, w4, w6 = row[right], row[right + index(2)], row[right + index(4)], row[right + index(6)]
    for k in range(n):
        j = index(k)
        v1, v3, v5, v7 = next_values(row, left + j)
        w1, w3, w5, w7 = next_values(row, right + j)
        total = out[o + j] + k1 * (v7 + w0) + k2 * (v6 + w1) + k3 * (v5 + w2) + k4 * (v4 + w3)
        total = total + k5 * (v3 + w4) + k6 * (v2 + w5) + k7 * (v1 + w6) + k8 * (v0 + w7)
        v0, v2, v4, v6 = v1, v3, v5, v7
        w0, w2, w4, w6 = w1, w3, w5, w7
        out[o + j] = total


@compiled
def along_row(out, o, row, r, kernel, n):
    """Gaussian along a row, which starts at r, one reach before the result.

    The kernel is given from its centre outwards, padded by zeros to 2, 4, 6, … pairs.
    """
    reach = len(kernel) - 1
    if reach == 2:
        two_pairs(out, o, row, r, kernel[0], kernel[1], kernel[2], n)
    else:
        four_pairs(
            out, o, row, r + index(reach - 4), kernel[0], kernel[1], kernel[2], kernel[3], kernel[4], n
        )
    k = 5
    while k + 7 <= reach:
        eight_more_pairs(
            out, o, row, r + index(reach - k - 7), r + index(reach + k),
            kernel[k], kernel[k + 1], kernel[k + 2], kernel[k + 3],
            kernel[k + 4], kernel[k + 5], kernel[k + 6], kernel[k + 7], n,
        )  # fmt: skip
        k += 8
    if k + 3 <= reach:
        four_more_pairs(
            out, o, row, r + index(reach - k - 3), r + index(reach + k),
            kernel[k], kernel[k + 1], kernel[k + 2], kernel[k + 3], n,
        )  # fmt: skip
        k += 4
    if k < reach:
        left, right = r + index(reach - k - 1), r + index(reach + k)
        two_more_pairs(out, o, row, left, right, kernel[k], kernel[k + 1], n)


@separate
def five_rows(out, o, rows, m, a, b, c, d, k0, ka, kb, kc, kd, n):
    """Weighted sum of five rows."""
    for k in range(n):
        j = index(k)
        out[o + j] = (
            k0 * rows[m + j] + ka * rows[a + j] + kb * rows[b + j] + kc * rows[c + j] + kd * rows[d + j]
        )


@separate
def four_more_rows(out, o, rows, a, b, c, d, ka, kb, kc, kd, n):
    """Adds a weighted sum of four rows."""
    for k in range(n):
        j = index(k)
        out[o + j] += ka * rows[a + j] + kb * rows[b + j] + kc * rows[c + j] + kd * rows[d + j]


@separate
def nine_rows(out, o, rows, a, b, c, d, e, f, g, h, i, ka, kb, kc, kd, ke, kf, kg, kh, ki, n):
    """Weighted sum of nine rows."""
    for k in range(n):
        j = index(k)
        first = ka * rows[a + j] + kb * rows[b + j] + kc * rows[c + j] + kd * rows[d + j] + ke * rows[e + j]
        out[o + j] = first + kf * rows[f + j] + kg * rows[g + j] + kh * rows[h + j] + ki * rows[i + j]


@separate
def eight_more_rows(out, o, rows, a, b, c, d, e, f, g, h, ka, kb, kc, kd, ke, kf, kg, kh, n):
    """Adds a weighted sum of eight rows."""
    for k in range(n):
        j = index(k)
        first = out[o + j] + ka * rows[a + j] + kb * rows[b + j] + kc * rows[c + j] + kd * rows[d + j]
        out[o + j] = first + ke * rows[e + j] + kf * rows[f + j] + kg * rows[g + j] + kh * rows[h + j]


@inlined
def ring_row(fold, sign, place, here, slot, size, length):
    """Where a ring has the row at a place of `fold`, and its sign; the one at `here` is in `slot`."""
    # Not by division, which takes as long as a part of the row.
    found = slot + (fold[place] - fold[here])
    if found < 0:
        found += size
    elif found >= size:
        found -= size
    return index(found * length), sign[place]


@compiled
def across_rows(out, o, ring, r, length, size, y, kernel, fold, sign, n):
    """Gaussian across rows in the ring at r, `length` apart: row y + k is fold[reach + y + k] times sign.

    The ring has `size` rows. The kernel is given as in `along_row`.
    """
    reach = len(kernel) - 1
    here = y + reach
    slot, k = fold[here] % size, 0
    while k < reach:
        first, second, third, fourth = k + 1, k + 2, min(k + 3, reach), min(k + 4, reach)
        a, sa = ring_row(fold, sign, here - first, here, slot, size, length)
        b, sb = ring_row(fold, sign, here + first, here, slot, size, length)
        c, sc = ring_row(fold, sign, here - second, here, slot, size, length)
        d, sd = ring_row(fold, sign, here + second, here, slot, size, length)
        e, se = ring_row(fold, sign, here - third, here, slot, size, length)
        f, sf = ring_row(fold, sign, here + third, here, slot, size, length)
        g, sg = ring_row(fold, sign, here - fourth, here, slot, size, length)
        h, sh = ring_row(fold, sign, here + fourth, here, slot, size, length)
        k1, k2, k3, k4 = kernel[first], kernel[second], kernel[third], kernel[fourth]
        if k == 0:
            m, sm = ring_row(fold, sign, here, here, slot, size, length)
            if reach == 2:
                five_rows(
                    out, o, ring, r + m, r + a, r + b, r + c, r + d,
                    kernel[0] * sm, k1 * sa, k1 * sb, k2 * sc, k2 * sd, n,
                )  # fmt: skip
            else:
                nine_rows(
                    out, o, ring, r + m, r + a, r + b, r + c, r + d, r + e, r + f, r + g, r + h,
                    kernel[0] * sm, k1 * sa, k1 * sb, k2 * sc, k2 * sd, k3 * se, k3 * sf, k4 * sg, k4 * sh, n,
                )  # fmt: skip
        elif k + 2 == reach:
            four_more_rows(out, o, ring, r + a, r + b, r + c, r + d, k1 * sa, k1 * sb, k2 * sc, k2 * sd, n)
        else:
            eight_more_rows(
                out, o, ring, r + a, r + b, r + c, r + d, r + e, r + f, r + g, r + h,
                k1 * sa, k1 * sb, k2 * sc, k2 * sd, k3 * se, k3 * sf, k4 * sg, k4 * sh, n,
            )  # fmt: skip
        k += 4


@compiled
def rows_of_ring(reach, height):
    """How many rows a ring has: those under a kernel, or all rows if the kernel folds more than once."""
    return min(2 * reach + 1, height)


@compiled
def first_row_needed(y, reach, height):
    """Where a ring has to start for row y: at the top if the kernel folds more than once."""
    return 0 if height <= 2 * reach + 1 else max(0, y - reach)


# Rows of the image -----------------------------------------------------------------------------------


@separate
def copy_row(out, o, row, r, n):
    """Copy a row."""
    for k in range(n):
        j = index(k)
        out[o + j] = row[r + j]


@compiled
def cut_row(out, o, image, r, width, start, fold, n):
    """N values of a mirrored row from `start` on; fold[margin + x] says where position x is found."""
    margin = (len(fold) - width) // 2
    inside, outside = max(0, -start), min(n, width - start)
    for j in range(inside):
        out[o + index(j)] = image[r + index(fold[margin + start + j])]
    copy_row(out, o + index(inside), image, r + index(start + inside), outside - inside)
    for j in range(outside, n):
        out[o + index(j)] = image[r + index(fold[margin + start + j])]


@compiled
def next_smooth_row(
    out, o, u, at, height, width, y, done, ring, line, left, n, many, kernel_x, fold_x, kernel_y, fold_y, even
):
    """N pixels from `left` on of row y of the smoothed image; rows up to `done` are in the ring already.

    `many` ≥ n values are computed; those after n mean nothing.
    """
    return next_row_of_channel(
        out, o, u, at, height, width, y, done, ring, index(0),
        len(ring) // rows_of_ring(len(kernel_y) - 1, height), line, left, n, many,
        kernel_x, fold_x, kernel_y, fold_y, even,
    )  # fmt: skip


@compiled
def next_row_of_channel(
    out, o, u, at, height, width, y, done, ring, r, length, line, left, n, many,
    kernel_x, fold_x, kernel_y, fold_y, even,
):  # fmt: skip
    """The same for one of several rings in an array: it begins at r, and its rows are `length` apart."""
    reach_x, reach_y = len(kernel_x) - 1, len(kernel_y) - 1
    if reach_x == 0:
        cut_row(out, o, u, at + index(y * width), width, left, fold_x, n)
    else:
        size = rows_of_ring(reach_y, height)
        while done < min(y + reach_y, height - 1):
            done += 1
            cut_row(
                line, index(0), u, at + index(done * width), width, left - reach_x, fold_x, n + 2 * reach_x
            )
            if done < height - 1:
                begin = max(left, 0)
                fetch_row(u, at + index((done + 1) * width + begin), min(left + n, width) - begin)
            along_row(ring, r + index(done % size * length), line, index(0), kernel_x, many)
        across_rows(out, o, ring, r, length, size, y, kernel_y, fold_y, even, many)
    # Pixels beyond the border equal those before it to the last bit: then no flux crosses it.
    if left < 0:
        out[o + index(-left - 1)] = out[o + index(-left)]
    if left + n > width:
        out[o + index(width - left)] = out[o + index(width - left - 1)]
    return done


@intrinsic
def fetch_line(typing_context, array, at):
    """Ask for the cache line of an entry, which is needed soon."""

    def build(context, builder, signature, arguments):
        kind = context.make_array(signature.args[0])(context, builder, arguments[0])
        address = builder.gep(kind.data, [arguments[1]])
        function = builder.module.declare_intrinsic(
            "llvm.prefetch",
            [address.type],
            ir.FunctionType(ir.VoidType(), [address.type] + [ir.IntType(32)] * 3),
        )
        # To be read, kept in all caches, data.
        builder.call(function, [address, *(ir.Constant(ir.IntType(32), n) for n in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(array, at), build


@compiled
def fetch_row(array, at, n):
    """Ask for a row that is needed soon: the processor does not see by itself which one comes next."""
    for k in range(0, n, 16):
        fetch_line(array, at + index(k))


@compiled
def clear_row(row, at, n):
    """Zeros."""
    for k in range(n):
        row[at + index(k)] = 0


@separate
def negate_row(out, o, row, r, n):
    """Copy a row with the opposite sign."""
    for k in range(n):
        j = index(k)
        out[o + j] = -row[r + j]


@separate
def restore_fixed(out, o, u, at, fixed, pixel, n):
    """Fixed pixels get their old value back."""
    for k in range(n):
        j = index(k)
        out[o + j] = u[at + j] if fixed[pixel + j] else out[o + j]


@allocating
def workspace(count, image):
    """Zeros of the image's type that begin at a cache line: aligned vectors are loaded faster."""
    whole = np.empty(count + 16, image.dtype)
    clear_row(whole, index(0), count + 16)
    skip = whole.ctypes.data % 64 // whole.itemsize
    begin = 16 - skip if skip > 0 else 0
    return whole[begin : begin + count]


@allocating
def ones(count, image):
    """Ones of the image's type."""
    row = workspace(count, image)
    for k in range(count):
        row[k] = 1
    return row


@compiled
def full_vectors(n):
    """A little more than n, so that no loop over rows at work ends in single steps."""
    return (n + 15) // 16 * 16


# Calls by address: loops that are compiled once for all models reach the function of a model so. ------


def call_address(context, builder, signature, arguments):
    """Call the function at the first argument with the others; of an array, with its address and length."""
    values = []
    for kind, value in zip(signature.args[1:], arguments[1:], strict=True):
        if isinstance(kind, types.Array):
            array = context.make_array(kind)(context, builder, value)
            values += [array.data, array.nitems]
        else:
            values.append(value)
    function = ir.FunctionType(ir.VoidType(), [value.type for value in values])
    builder.call(builder.inttoptr(arguments[0], function.as_pointer()), values)
    return context.get_dummy_value()


@intrinsic
def call_tensor_row(typing_context, where, cells, at, per_x, per_y, alpha, gamma, beta, parameters, n):
    """Call the function at `where`: void (real*, i64, u64, real × 5, real*, i64, i64)."""
    return types.void(where, cells, at, per_x, per_y, alpha, gamma, beta, parameters, n), call_address


@intrinsic
def call_volume_tensor_row(typing_context, where, cells, at, per_x, per_y, per_z, parameters, n, rows):
    """Call the function at `where`: void (real*, i64, u64, real × 3, real*, i64, i64, i64)."""
    return types.void(where, cells, at, per_x, per_y, per_z, parameters, n, rows), call_address
