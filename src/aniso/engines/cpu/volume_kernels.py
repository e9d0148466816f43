"""Fused loops over tiles of a volume, for the compiler.

This text becomes part of the generated kernel modules for volumes, after the loops over rows that it calls. A
tile is at most `STRIDE` − 16 voxels wide with its margin, and is marched through plane by plane. Tensors that
are stored lie row by row, the six entries of a row one after another, in a ring of layers: all of them, or
those that are needed at a time.
"""

from __future__ import annotations

import numpy as np

from aniso.engines.cpu.means import means_of_rows
from aniso.engines.cpu.placeholders import AVERAGED, SPARE, STRIDE, compiled, entry, index, real
from aniso.engines.cpu.rows import (
    along_row,
    call_volume_tensor_row,
    clear_row,
    copy_row,
    cut_row,
    fetch_row,
    first_row_needed,
    full_vectors,
    next_smooth_row,
    ones,
    restore_fixed,
    rows_of_ring,
    workspace,
)
from aniso.engines.cpu.volume_rows import (
    add_structure,
    advance_row,
    extrapolate_row,
    plane_offsets,
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


@compiled
def layers_of_ring(tensors, shape):
    """Return how many layers of cells there is room for; layer k is at k modulo this number."""
    _, height, width = shape
    return max(len(tensors) // (6 * (height + 1) * (width + 1)), 1)


@compiled
def stored_cells(cells, at, tensors, shape, layer, row, begin, n):
    """Stored tensors of cells 1 … n − 1 of a row, from column `begin` on, without those beyond the volume.

    The layer is that of the ring.
    """
    _, height, width = shape
    first, last = max(begin + 1, 0), min(begin + n - 1, width)
    for field in range(6):
        source = ((layer * (height + 1) + row) * 6 + field) * (width + 1) + first
        copy_row(cells, at + index(field * STRIDE + first - begin), tensors, index(source), last - first + 1)


@compiled
def store_cells(tensors, shape, layer, row, columns, cells, at):
    """Store the tensors of these columns, and at the right face those of the last one.

    The layer is that of the ring.
    """
    (_, height, width), (left, right) = shape, columns
    for field in range(6):
        target = index(((layer * (height + 1) + row) * 6 + field) * (width + 1) + left)
        count = right - left + (1 if right == width else 0)
        copy_row(tensors, target, cells, at + index(field * STRIDE), count)


@compiled
def clear_odd(cells, at, odd, odd_too, n):
    """Zeros for the odd entries of a row of cells on the boundary: exactly, not but for rounding."""
    clear_row(cells, at + index(odd * STRIDE), n)
    clear_row(cells, at + index(odd_too * STRIDE), n)


@compiled
def structures_row(rings, slot, distance, tensors, layers, shape, layer, row, begin, n):
    """Stored structures of cells 1 … n − 1 of a row from column `begin` on, axes y and z interchanged.

    The next rows, which are needed soon, are asked for. There is room for this number of `layers` of the
    volume, which are rows here.
    """
    depth, height, width = shape
    first, last = max(begin + 1, 0), min(begin + n - 1, width)
    for field, stored in enumerate((0, 3, 5, 1, 4, 2)):
        source = ((row % layers * (depth + 1) + layer) * 6 + stored) * (width + 1) + first
        copy_row(
            rings, slot + index(field * distance + first - begin), tensors, index(source), last - first + 1
        )
    if row + AVERAGED <= height:
        ahead = ((row + AVERAGED) % layers * (depth + 1) + layer) * 6 * (width + 1) + first
        fetch_row(tensors, index(ahead), 5 * (width + 1) + last - first + 1)


@entry
def volume_steps(
    u, previous, out, out_previous, channels, shape, planes, rows, columns, continued, to_be_continued,
    weights, taus, numbers, parameters, tensor_row, computes, stores, tensors, fixed,
    kernel_x, fold_x, kernel_y, fold_y, weights_z, fold_z, wide_z, wide_fold_z, sign_z,
):  # fmt: skip
    """Steps of a tile with the same tensors, as many as there are `taus`: u is read once, out written once.

    As `image_steps`, with planes instead of rows: each step follows one plane behind the step before it, and
    the tile is taken with a margin of a voxel per step.

    With an integration scale, `tensors` has structures that still have to be averaged along z. Then the axes
    y and z are interchanged, here and in the spans of the tile: averages are those across rows.
    """
    (depth, height, width), (front, back), (start, stop), (left, right) = shape, planes, rows, columns
    per_x, per_y, per_z, alpha, gamma, beta = numbers
    count, volume, share = len(taus), depth * height * width, real(1.0) / real(channels)
    # Distances of rows and planes in u, out and fixed.
    row_pitch, plane_pitch = width, height * width
    wide_reach = len(wide_z) - 1
    averages = computes and wide_reach > 0
    smooths = computes and not averages
    if averages:
        depth, height, per_y, per_z = height, depth, per_z, per_y
        row_pitch, plane_pitch = plane_pitch, row_pitch
    # Voxels of the tile and its margin, from column `begin` on; cell j lies between the voxels j − 1 and j.
    begin, n = left - count, right - left + 2 * count
    many = full_vectors(n)
    first, last = max(start - count, 0), min(stop + count, height) - 1
    top, bottom = max(start - count + 1, 0), min(stop + count - 1, height)
    # Of each channel and step, three planes of the volume that it starts from; those of `previous` come
    # first. A plane begins with a row that nothing reads. After the last one there is a row for the result.
    pitch = many + 16
    plane = (last - first + 2) * pitch
    image, origin = 3 * plane, 16
    scratch = channels * (count + 1) * image + origin
    pixels = workspace(scratch + pitch, u)
    rate = workspace(channels * count * plane, u)
    begun = workspace(2 * channels * STRIDE, u)
    # Of cells, a layer for each step; a single row if there is one step. Averages come several at a time.
    held = bottom - top + 1 if count > 1 else 1
    held = -(-held // AVERAGED) * AVERAGED if averages else held
    layers = layers_of_ring(tensors, shape)
    layer = held * 6 * STRIDE
    cells = workspace(count * layer + SPARE * STRIDE, u)
    reach_x, reach_y = len(kernel_x) - 1, len(kernel_y) - 1
    size = (last - first + 1) * many
    smooth = workspace(2 * channels * size if smooths else 1, u)
    blurred = workspace(blur_size(shape, (first, last + 1), reach_y) if smooths else 1, u)
    offsets = np.empty(len(weights_z), np.uint64)
    ring = workspace(rows_of_ring(reach_y, height) * many, u)
    line = workspace(many + 2 * reach_x, u)
    even = ones(len(fold_y), u)
    ring_size = 2 * wide_reach + AVERAGED
    wide_rings = workspace(7 * ring_size * many if averages else 1, u)
    row_at = np.empty(4 * len(wide_z) + 2 * AVERAGED, np.uint64)
    done = 0

    top_layer, bottom_layer = max(front - count + 1, 0), min(back + count - 1, depth)
    for now in range(top_layer - 1, back + count):
        z, before = min(max(now, 0), depth - 1), min(max(now - 1, 0), depth - 1)
        if now <= bottom_layer and (now < top_layer or z != before):
            for channel in range(channels):
                base = index(channel * volume)
                if smooths:
                    smooth_plane(
                        smooth, index((2 * channel + z % 2) * size), u, base, shape, z, (first, last + 1),
                        begin, n, many, blurred, offsets, ring, line, even,
                        kernel_x, fold_x, kernel_y, fold_y, weights_z, fold_z,
                    )  # fmt: skip
                for y in range(first, last + 1):
                    source = base + index(z * plane_pitch + y * row_pitch)
                    row = origin + channel * (count + 1) * image + z % 3 * plane + (y - first + 1) * pitch
                    if continued:
                        cut_row(pixels, index(row), previous, source, width, begin, fold_x, n)
                    cut_row(pixels, index(row + image), u, source, width, begin, fold_x, n)
        for step in range(count):
            k, margin = now - step, count - 1 - step
            if k < max(front - margin, 0) or k > min(back + margin, depth):
                continue
            near, far = min(max(k - 1, 0), depth - 1), min(k, depth - 1)
            low, high = max(start - margin, 0), min(stop + margin, height)
            weight, tau, stored = weights[step], taus[step], k % layers
            extrapolate = weight != 1 and (continued or step > 0)
            for i in range(low, high + 1):
                at = index(k % count * layer + (i - top) % held * 6 * STRIDE)
                upper, lower = max(i - 1, 0) - first, min(i, height - 1) - first
                if step == 0 and averages:
                    if i == low:
                        done = first_row_needed(low, wide_reach, height + 1) - 1
                    if (i - low) % AVERAGED == 0:
                        end = min(i + AVERAGED - 1, high)
                        while done < min(end + wide_reach, height):
                            done += 1
                            structures_row(
                                wide_rings, index(done % ring_size * many), ring_size * many, tensors,
                                layers, (depth, height, width), k, done, begin, n,
                            )  # fmt: skip
                        means_of_rows(
                            cells, at, 6, wide_rings, index(0), many, ring_size, i, AVERAGED, high, wide_z,
                            row_at, wide_fold_z, sign_z, 1, 4, many,
                        )  # fmt: skip
                        if i == 0:
                            clear_odd(cells, at, 1, 4, many)
                        if end == height:
                            clear_odd(cells, at + index((end - i) * 6 * STRIDE), 1, 4, many)
                        call_volume_tensor_row(
                            tensor_row, cells, at, per_x, per_y, per_z, parameters, many, end - i + 1
                        )
                elif step == 0 and computes:
                    for channel in range(channels):
                        one, two = (2 * channel + near % 2) * size, (2 * channel + far % 2) * size
                        a, b = index(one + upper * many), index(one + lower * many)
                        c, d = index(two + upper * many), index(two + lower * many)
                        add_structure(
                            cells, at, channel, smooth, a, b, c, d, per_x, per_y, per_z, share, many
                        )
                    call_volume_tensor_row(tensor_row, cells, at, per_x, per_y, per_z, parameters, many, 1)
                    if (
                        stores
                        and front <= k
                        and (k < back or k == depth)
                        and start <= i
                        and (i < stop or i == height)
                    ):
                        store_cells(tensors, shape, stored, i, columns, cells, at + index(count))
                elif step == 0:
                    stored_cells(cells, at, tensors, shape, stored, i, begin, n)
                for channel in range(channels):
                    place = origin + (channel * (count + 1) + step + 1) * image
                    one, two = place + near % 3 * plane, place + far % 3 * plane
                    a, b = index(one + (upper + 1) * pitch), index(one + (lower + 1) * pitch)
                    c, d = index(two + (upper + 1) * pitch), index(two + (lower + 1) * pitch)
                    r = index(((channel * count + step) * (last - first + 2) + i - first) * pitch)
                    g = index(2 * channel * STRIDE)
                    # The row of voxels that makes its step, and its place.
                    here = index(place + (k - 1) % 3 * plane + (i - first) * pitch)
                    there = here + index(image) if margin > 0 else index(scratch)
                    if extrapolate:
                        extrapolate_row(
                            pixels, there, pixels, a, b, c, d, here - index(image), cells, at, rate, r,
                            begun, g, alpha, gamma, beta, weight, tau, many,
                        )  # fmt: skip
                    else:
                        advance_row(
                            pixels, there, pixels, a, b, c, d, cells, at, rate, r, begun, g,
                            alpha, gamma, beta, tau, many,
                        )  # fmt: skip
                    if i == low or k == max(front - margin, 0):
                        continue
                    if len(fixed) > 1:
                        x, end = max(begin, 0), min(begin + n, width)
                        skip = index(x - begin)
                        voxel = index((k - 1) * plane_pitch + (i - 1) * row_pitch + x)
                        restore_fixed(pixels, there + skip, pixels, here + skip, fixed, voxel, end - x)
                    if margin > 0:
                        if begin < 0:
                            pixels[there + index(-begin - 1)] = pixels[there + index(-begin)]
                        if begin + n > width:
                            edge = there + index(width - begin)
                            pixels[edge] = pixels[edge - index(1)]
                    else:
                        skip = index(count)
                        voxel = index(channel * volume + (k - 1) * plane_pitch + (i - 1) * row_pitch + left)
                        copy_row(out, voxel, pixels, there + skip, right - left)
                        if to_be_continued:
                            copy_row(out_previous, voxel, pixels, here + skip, right - left)


@entry
def structure_layers(
    u, channels, shape, layers, rows, numbers, tensors,
    kernel_x, fold_x, kernel_y, fold_y, weights_z, fold_z,
    wide_x, wide_y, wide_fold_y, sign_y,
):  # fmt: skip
    """Layers of cells: their structure, mean over the channels, averaged within the layer."""
    (depth, height, width), (front, back), (start, stop) = shape, layers, rows
    per_x, per_y, per_z, _, _, _ = numbers
    share, n = real(1.0) / real(channels), width + 1
    reach_x, reach_y = len(kernel_x) - 1, len(kernel_y) - 1
    wide_reach_x, wide_reach_y = len(wide_x) - 1, len(wide_y) - 1
    # Columns of cells whose structure is needed; beyond the volume it is that of the mirrored volume.
    columns, piece = n + 2 * wide_reach_x, STRIDE - 16
    many, length = full_vectors(columns + 1), full_vectors(n)
    # Rows of cells whose structure is needed, and rows of voxels for them.
    begin, end = first_row_needed(start, wide_reach_y, height + 1), min(stop - 1 + wide_reach_y, height)
    first, last = max(begin - 1, 0), min(end, height - 1)
    size = (last - first + 1) * many

    smooth = workspace(2 * channels * size + STRIDE, u)
    blurred = workspace(blur_size(shape, (first, last + 1), reach_y), u)
    offsets = np.empty(len(weights_z), np.uint64)
    ring = workspace(rows_of_ring(reach_y, height) * many, u)
    line = workspace(many + 2 * reach_x, u)
    even = ones(len(fold_y), u)
    cells = workspace(AVERAGED * 6 * STRIDE, u)
    structures = workspace(6 * many + 16, u)
    ring_size = 2 * wide_reach_y + AVERAGED
    wide_rings = workspace(7 * ring_size * length + STRIDE, u)
    row_at = np.empty(4 * len(wide_y) + 2 * AVERAGED, np.uint64)

    for k in range(front - 1, back):
        z, before = min(max(k, 0), depth - 1), min(max(k - 1, 0), depth - 1)
        if k == front - 1 or z != before:
            for channel in range(channels):
                smooth_plane(
                    smooth, index((2 * channel + z % 2) * size), u, index(channel * depth * height * width),
                    shape, z, (first, last + 1), -1 - wide_reach_x, columns + 1, many, blurred, offsets, ring,
                    line, even, kernel_x, fold_x, kernel_y, fold_y, weights_z, fold_z,
                )  # fmt: skip
        if k == front - 1:
            continue
        layer, done = k % layers_of_ring(tensors, shape), begin - 1
        for i in range(start, stop, AVERAGED):
            while done < min(i + AVERAGED - 1 + wide_reach_y, end):
                done += 1
                upper, lower = (max(done - 1, 0) - first) * many, (min(done, height - 1) - first) * many
                # Cells 1 … of a piece are those from column `left` on.
                for left in range(0, columns, piece - 1):
                    count = min(piece, full_vectors(columns - left + 1))
                    for channel in range(channels):
                        near, far = (2 * channel + before % 2) * size, (2 * channel + z % 2) * size
                        a, b = index(near + upper + left), index(near + lower + left)
                        c, d = index(far + upper + left), index(far + lower + left)
                        add_structure(
                            cells, index(0), channel, smooth, a, b, c, d, per_x, per_y, per_z, share, count
                        )
                    # A row that fits the buffer of cells is averaged from there.
                    for field in range(6 if columns >= piece else 0):
                        copy_row(
                            structures, index(field * many + left), cells, index(field * STRIDE + 1),
                            min(piece - 1, columns - left),
                        )  # fmt: skip
                source, distance, skip = (structures, many, 0) if columns >= piece else (cells, STRIDE, 1)
                for field in range(6):
                    slot = index((field * ring_size + done % ring_size) * length)
                    along_row(wide_rings, slot, source, index(field * distance + skip), wide_x, length)
                    # An odd quantity vanishes on the boundary: exactly, not but for rounding.
                    if field == 1 or field == 3:
                        wide_rings[slot], wide_rings[slot + index(width)] = 0, 0
            # To be written soon.
            fetch_row(tensors, index((layer * (height + 1) + i) * 6 * n), min(AVERAGED, stop - i) * 6 * n)
            for left in range(0, n, piece):
                means_of_rows(
                    cells, index(0), 6, wide_rings, index(left), length, ring_size, i, AVERAGED, stop - 1,
                    wide_y, row_at, wide_fold_y, sign_y, 1, 4, min(piece, length - left),
                )  # fmt: skip
                for row in range(i, min(i + AVERAGED, stop)):
                    at = index((row - i) * 6 * STRIDE)
                    if row == 0 or row == height:
                        clear_odd(cells, at, 1, 4, piece)
                    for field in range(6):
                        copy_row(
                            tensors, index(((layer * (height + 1) + row) * 6 + field) * n + left),
                            cells, at + index(field * STRIDE), min(piece, n - left),
                        )  # fmt: skip


@entry
def average_layers(
    tensors, saved, shape, layers, row, columns, numbers, parameters, tensor_row,
    wide_z, wide_fold_z, sign_z,
):  # fmt: skip
    """Part of a row of cells in some layers: structure, averaged across layers, becomes the tensor.

    Layers before these are tensors already. Their structure is in `saved`, a ring of its own, where that of
    these is kept for the layers behind them.
    """
    (depth, height, width), (front, back), (left, right) = shape, layers, columns
    per_x, per_y, per_z, _, _, _ = numbers
    n, reach, last = right - left, len(wide_z) - 1, back - 1
    many, size = full_vectors(n), 2 * reach + AVERAGED
    ring = workspace(7 * size * many, tensors)
    cells = workspace((AVERAGED * 6 + SPARE) * STRIDE, tensors)
    row_at = np.empty(4 * len(wide_z) + 2 * AVERAGED, np.uint64)
    layer, start = (height + 1) * 6 * (width + 1), row * 6 * (width + 1) + left
    room, saved_room = layers_of_ring(tensors, shape), layers_of_ring(saved, shape)
    done = max(front - reach, 0) - 1
    while done < front - 1:
        done += 1
        for field in range(6):
            at = index(done % saved_room * layer + start + field * (width + 1))
            copy_row(ring, index((field * size + done % size) * many), saved, at, n)
    for k in range(front, back, AVERAGED):
        end = min(k + AVERAGED - 1, last)
        while done < min(end + reach, depth):
            done += 1
            for field in range(6):
                at = index(done % room * layer + start + field * (width + 1))
                copy_row(ring, index((field * size + done % size) * many), tensors, at, n)
        for ahead in range(done + 1, min(done + AVERAGED, last + reach, depth) + 1):
            for field in range(6):
                fetch_row(tensors, index(ahead % room * layer + start + field * (width + 1)), n)
        means_of_rows(
            cells, index(0), 6, ring, index(0), many, size, k, AVERAGED, last, wide_z, row_at, wide_fold_z,
            sign_z, 3, 4, many,
        )  # fmt: skip
        if k == 0:
            clear_odd(cells, index(0), 3, 4, many)
        if end == depth:
            clear_odd(cells, index((end - k) * 6 * STRIDE), 3, 4, many)
        call_volume_tensor_row(
            tensor_row, cells, index(0), per_x, per_y, per_z, parameters, many, end - k + 1
        )
        for this in range(k, end + 1):
            slot = index((this - k) * 6 * STRIDE)
            for field in range(6):
                at = index(this % room * layer + start + field * (width + 1))
                copy_row(tensors, at, cells, slot + index(field * STRIDE), n)
    if last < depth:
        for this in range(max(back - reach, 0), back):
            for field in range(6):
                at = index(this % saved_room * layer + start + field * (width + 1))
                copy_row(saved, at, ring, index((field * size + this % size) * many), n)
