"""Fused loops over tiles of a volume, for the compiler.

This text becomes part of the generated kernel modules for volumes, after the loops over rows that it calls. A
tile is marched through plane by plane: two planes of it are at work, and of cells a single row. Tensors that
are stored lie row by row, the six entries of a row one after another.
"""

from __future__ import annotations

import numpy as np

from aniso.engines.cpu.placeholders import STRIDE, compiled, entry, index
from aniso.engines.cpu.rows import (
    along_row,
    call_volume_tensor_row,
    clear_row,
    copy_row,
    cut_row,
    first_row_needed,
    fold_line,
    full_vectors,
    next_smooth_row,
    restore_fixed,
)
from aniso.engines.cpu.volume_rows import (
    begin_rows,
    extrapolate_row,
    finish_row,
    flux_cells,
    half_rate,
    more_structure_cells,
    plane_offsets,
    ring_offsets,
    structure_cells,
    weighted_rows,
)


@compiled
def smooth_plane(
    out, o, u, at, shape, z, rows, left, n, many, blurred, offsets, ring, line, even,
    kernel_x, fold_x, kernel_y, fold_y, weights_z, fold_z,
):  # fmt: skip
    """Rows of plane z of the smoothed volume, n voxels from `left` on; they are `many` apart.

    The volume starts at `at`. Across planes it is smoothed first, straight from u: this takes no buffer but
    `blurred`, for the part of one plane.
    """
    _, height, width = shape
    reach_x, reach_y = len(kernel_x) - 1, len(kernel_y) - 1
    first, last = first_row_needed(rows[0], reach_y, height), min(rows[1] - 1 + reach_y, height - 1)
    source, start = u, at + index(z * height * width)
    if reach_x > 0:
        begin, end = max(0, left - reach_x), min(width, left + n + reach_x)
        plane_offsets(offsets, z, height * width, fold_z)
        for y in range(first, last + 1):
            weighted_rows(
                blurred, index((y - first) * width + begin), u, at + index(y * width + begin), offsets,
                weights_z, 0, end - begin,
            )  # fmt: skip
        source, start = blurred, index(-first * width)
    done = first - 1
    for y in range(rows[0], rows[1]):
        done = next_smooth_row(
            out, o + index((y - rows[0]) * many), source, start, height, width, y, done, ring, line,
            left, n, many, kernel_x, fold_x, kernel_y, fold_y, even,
        )  # fmt: skip


@compiled
def blur_size(shape, rows, reach):
    """How many voxels of a plane have to be smoothed across planes first."""
    _, height, width = shape
    if reach == 0:
        return 1
    return (min(rows[1] - 1 + reach, height - 1) - first_row_needed(rows[0], reach, height) + 1) * width


@entry
def volume_step(
    u, out, shape, channel, planes, rows, columns, extrapolate, weight, tau, numbers, parameters, tensor_row,
    tensors, kernel_x, fold_x, kernel_y, fold_y, weights_z, fold_z, fixed,
):  # fmt: skip
    """One step of a tile of one channel: u is read once, out written once.

    With a single entry in `tensors`, they are computed on the way, by the model's function at the address
    `tensor_row`. With extrapolation out holds the volume before u.
    """
    (depth, height, width), (front, back), (start, stop), (left, right) = shape, planes, rows, columns
    per_x, per_y, per_z, alpha, gamma, beta = numbers
    fused = len(tensors) == 1
    n = right - left
    many = full_vectors(n + 2)
    reach_x, reach_y = len(kernel_x) - 1, len(kernel_y) - 1
    first, last = max(start - 1, 0), min(stop, height - 1)
    size = (last - first + 1) * many
    base = index(channel * depth * height * width)

    smooth = np.zeros(2 * size + 1 if fused else 1, u.dtype)
    blurred = np.empty(blur_size(shape, (first, last + 1), reach_y) if fused else 1, u.dtype)
    offsets = np.zeros(len(weights_z), np.uint64)
    ring = np.empty((2 * reach_y + 1) * many, u.dtype)
    line = np.zeros(many + 2 * reach_x, u.dtype)
    even = np.ones(len(fold_y), u.dtype)
    pixels = np.zeros(2 * size + 1, u.dtype)
    cells = np.zeros(6 * STRIDE, u.dtype)
    shares = np.empty(8 * STRIDE, u.dtype)
    begun = np.empty(2 * STRIDE, u.dtype)
    rate = np.empty((stop - start) * n, u.dtype)

    for k in range(front - 1, back + 1):
        z, before = min(max(k, 0), depth - 1), min(max(k - 1, 0), depth - 1)
        if k == front - 1 or z != before:
            if fused:
                smooth_plane(
                    smooth, index(z % 2 * size), u, base, shape, z, (first, last + 1), left - 1, n + 2, many,
                    blurred, offsets, ring, line, even, kernel_x, fold_x, kernel_y, fold_y, weights_z, fold_z,
                )  # fmt: skip
            for y in range(first, last + 1):
                cut_row(
                    pixels, index(z % 2 * size + (y - first) * many),
                    u, base + index((z * height + y) * width), width, left - 1, fold_x, n + 2,
                )  # fmt: skip
        if k == front - 1:
            continue
        for i in range(start, stop + 1):
            top, bottom = (max(i - 1, 0) - first) * many, (min(i, height - 1) - first) * many
            a, b = index(before % 2 * size + top), index(before % 2 * size + bottom)
            c, d = index(z % 2 * size + top), index(z % 2 * size + bottom)
            if fused:
                structure_cells(cells, smooth, a, b, c, d, per_x, per_y, per_z, many)
                call_volume_tensor_row(tensor_row, cells, per_x, per_y, per_z, parameters, many)
            else:
                for field in range(6):
                    stored = ((k * (height + 1) + i) * 6 + field) * (width + 1) + left
                    copy_row(cells, index(field * STRIDE), tensors, index(stored), n + 1)
            flux_cells(shares, pixels, a, b, c, d, cells, alpha, gamma, beta, many)
            if i > start:
                half = index((i - 1 - start) * n)
                if k > front:
                    voxel = index(((k - 1) * height + i - 1) * width + left)
                    at = base + voxel
                    if extrapolate:
                        extrapolate_row(out, at, u, at, rate, half, begun, shares, weight, tau, n)
                    else:
                        finish_row(out, at, u, at, rate, half, begun, shares, tau, n)
                    if len(fixed) > 1:
                        restore_fixed(out, at, u, at, fixed, voxel, n)
                half_rate(rate, half, begun, shares, n)
            begin_rows(begun, shares, n)


@compiled
def average_entries(out, o, ring, slots, even, odd, i, last, one, other, n):
    """Row i of all six entries, averaged across rows in the ring: n of each entry, one after another.

    The entries `one` and `other` are odd about the boundary. Far from it, all have the same weights.
    """
    size = len(slots)
    if i >= size // 2 and i + size // 2 <= last:
        weighted_rows(out, o, ring, index(0), slots, even, i * size, 6 * n)
    else:
        for field in range(6):
            at = index(field * n)
            is_odd = field in (one, other)
            weighted_rows(out, o + at, ring, at, slots, odd if is_odd else even, i * size, n)


@entry
def structure_layers(
    u, channels, share, shape, layers, rows, numbers, parameters, tensor_row, tensors,
    kernel_x, fold_x, kernel_y, fold_y, weights_z, fold_z, wide_x, wide_fold_x, sign_x,
    even_y, odd_y, first_y,
):  # fmt: skip
    """Layers of cells: their structure, mean over the channels.

    Without integration scale it becomes the tensor at once; else it is averaged within the layer.
    """
    (depth, height, width), (front, back), (start, stop) = shape, layers, rows
    per_x, per_y, per_z, _, _, _ = numbers
    n = width + 1
    many = full_vectors(width + 2)
    reach_x, reach_y = len(kernel_x) - 1, len(kernel_y) - 1
    wide_reach_x, ring_size = len(wide_x) - 1, len(even_y) // (height + 1)
    averages = ring_size > 1
    # Rows of cells whose structure is needed, and rows of voxels for them.
    begin, end = first_y[start], min(first_y[stop - 1] + ring_size - 1, height)
    first, last = max(begin - 1, 0), min(end, height - 1)
    size = (last - first + 1) * many

    smooth = np.zeros(2 * channels * size, u.dtype)
    blurred = np.empty(blur_size(shape, (first, last + 1), reach_y), u.dtype)
    offsets = np.zeros(len(weights_z), np.uint64)
    ring = np.empty((2 * reach_y + 1) * many, u.dtype)
    line = np.zeros(many + 2 * reach_x, u.dtype)
    even = np.ones(len(fold_y), u.dtype)
    cells = np.empty(6 * STRIDE, u.dtype)
    slots = np.zeros(ring_size, np.uint64)
    structures = np.empty(6 * n if averages and n > STRIDE else 1, u.dtype)
    wide_line = np.empty(n + 2 * wide_reach_x, u.dtype)
    wide_ring = np.empty(ring_size * 6 * n if averages else 1, u.dtype)

    for k in range(front - 1, back):
        z, before = min(max(k, 0), depth - 1), min(max(k - 1, 0), depth - 1)
        if k == front - 1 or z != before:
            for channel in range(channels):
                smooth_plane(
                    smooth, index((2 * channel + z % 2) * size), u, index(channel * depth * height * width),
                    shape, z, (first, last + 1), -1, width + 2, many, blurred, offsets, ring, line, even,
                    kernel_x, fold_x, kernel_y, fold_y, weights_z, fold_z,
                )  # fmt: skip
        if k == front - 1:
            continue
        done = begin - 1
        for i in range(start, stop):
            stored = (k * (height + 1) + i) * 6 * n
            while done < min(first_y[i] + ring_size - 1, height):
                done += 1
                top, bottom = (max(done - 1, 0) - first) * many, (min(done, height - 1) - first) * many
                for left in range(0, n, STRIDE):
                    count = min(STRIDE, n - left)
                    if channels > 1:
                        clear_row(cells, index(0), 6 * STRIDE)
                    for channel in range(channels):
                        near = (2 * channel + before % 2) * size + left
                        far = (2 * channel + z % 2) * size + left
                        a, b = index(near + top), index(near + bottom)
                        c, d = index(far + top), index(far + bottom)
                        if channels > 1:
                            more_structure_cells(cells, smooth, a, b, c, d, per_x, per_y, per_z, share, count)
                        else:
                            structure_cells(cells, smooth, a, b, c, d, per_x, per_y, per_z, count)
                    if not averages:
                        call_volume_tensor_row(tensor_row, cells, per_x, per_y, per_z, parameters, count)
                    target, at = (structures, left) if averages else (tensors, stored + left)
                    # A row that fits the buffer of cells is averaged from there.
                    if not averages or n > STRIDE:
                        for field in range(6):
                            copy_row(target, index(at + field * n), cells, index(field * STRIDE), count)
                if averages:
                    source, distance = (structures, n) if n > STRIDE else (cells, STRIDE)
                    for field in range(6):
                        fold_line(
                            wide_line, source, index(field * distance), 0, 0, wide_fold_x, sign_x,
                            field == 1 or field == 3, len(wide_line),
                        )  # fmt: skip
                        slot = done % ring_size * 6 + field
                        along_row(wide_ring, index(slot * n), wide_line, wide_x, n)
            if averages:
                ring_offsets(slots, first_y[i], height + 1, 6 * n)
                average_entries(tensors, index(stored), wide_ring, slots, even_y, odd_y, i, height, 1, 4, n)
                # An odd quantity vanishes on the boundary: exactly, not but for rounding.
                for field in (1, 3):
                    tensors[stored + field * n], tensors[stored + field * n + width] = 0, 0


@entry
def average_layers(tensors, shape, row, columns, numbers, parameters, tensor_row, even_z, odd_z, first_z):
    """Part of a row of cells in all layers: structure, averaged across the layers, becomes the tensor."""
    (depth, height, width), (left, right) = shape, columns
    per_x, per_y, per_z, _, _, _ = numbers
    n = right - left
    size = len(even_z) // (depth + 1)
    ring = np.empty(size * 6 * n, tensors.dtype)
    slots = np.zeros(size, np.uint64)
    means = np.empty(6 * n, tensors.dtype)
    cells = np.empty(6 * STRIDE, tensors.dtype)
    layer, start = (height + 1) * 6 * (width + 1), row * 6 * (width + 1) + left
    done = -1
    for k in range(depth + 1):
        while done < min(first_z[k] + size - 1, depth):
            done += 1
            for field in range(6):
                at = index(done * layer + start + field * (width + 1))
                copy_row(ring, index((done % size * 6 + field) * n), tensors, at, n)
        ring_offsets(slots, first_z[k], depth + 1, 6 * n)
        average_entries(means, index(0), ring, slots, even_z, odd_z, k, depth, 3, 4, n)
        for field in range(6):
            copy_row(cells, index(field * STRIDE), means, index(field * n), n)
        call_volume_tensor_row(tensor_row, cells, per_x, per_y, per_z, parameters, n)
        for field in range(6):
            at = index(k * layer + start + field * (width + 1))
            copy_row(tensors, at, cells, index(field * STRIDE), n)
