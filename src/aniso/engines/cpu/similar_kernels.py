"""Loops that average similar voxels over tiles of a volume, for the compiler.

This text becomes part of a generated kernel module, after the formulas and the loops over rows. Pixels of a
tile are copied with all that offsets and the neighbourhoods of voxels reach, mirrored at the edges of the
volume. The rows of a plane lie one after another, so that each loop goes over all of them; between them it
computes values that are not used.
"""

from __future__ import annotations

import numpy as np

from aniso.engines.cpu.placeholders import compiled, entry, index
from aniso.engines.cpu.rows import cut_row, full_vectors
from aniso.formulas.similarity import similarity, squared_difference


@compiled
def multiply_row(rows, r, factor, n):
    """Multiply a row by a number."""
    for k in range(n):
        j = index(k)
        rows[r + j] *= factor


@compiled
def square_differences(out, o, rows, a, b, n):
    """Write the squared differences of two rows."""
    for k in range(n):
        j = index(k)
        out[o + j] = squared_difference(rows[a + j], rows[b + j])


@compiled
def add_square_differences(out, o, rows, a, b, n):
    """Add the squared differences of two rows."""
    for k in range(n):
        j = index(k)
        out[o + j] += squared_difference(rows[a + j], rows[b + j])


@compiled
def add_three(out, o, rows, a, b, c, n):
    """Write the sum of three rows, or of one row at three places."""
    for k in range(n):
        j = index(k)
        out[o + j] = (rows[a + j] + rows[b + j]) + rows[c + j]


@compiled
def weigh(w, distances, scale, total, t, n):
    """Write the weights for a row of distances, and add them to their sum."""
    for k in range(n):
        j = index(k)
        weight = similarity(distances[j], scale)
        w[j] = weight
        total[t + j] += weight


@compiled
def add_weighed(out, o, w, rows, r, n):
    """Add a row times weights."""
    for k in range(n):
        j = index(k)
        out[o + j] += w[j] * rows[r + j]


@compiled
def copy_tile(out, volume, shape, planes, rows, left, wide, fold_x, fold_y, fold_z, reach):
    """Copy a tile of all channels with `reach` voxels around it, mirrored, in rows of this width."""
    channels, depth, height, width = shape
    at = 0
    for channel in range(channels):
        for z in range(planes[0], planes[1] + 2 * reach):
            for y in range(rows[0], rows[1] + 2 * reach):
                row = ((channel * depth + fold_z[z]) * height + fold_y[y]) * width
                cut_row(out, index(at), volume, index(row), width, left - reach, fold_x, wide)
                at += wide


@entry
def average_similar(
    image, guide, out, shape, planes, rows, columns, offsets, unit, scales, reach, fold_x, fold_y, fold_z
):
    """Means of similar voxels for a tile of volumes (channels, D, H, W), one volume for each of the scales.

    Similar are voxels around which the guide, times `unit`, is similar: the squared differences, added up
    over 3³ voxels and all channels, are the distance. `reach` is that of the offsets, plus 1.
    """
    channels, depth, height, width = shape
    deep, high, n = planes[1] - planes[0], rows[1] - rows[0], columns[1] - columns[0]
    tall, wide = high + 2 * reach, n + 2 * reach
    size = (deep + 2 * reach) * tall * wide
    # Values from the first to the last voxel of a plane; with one more row on both sides; with columns, too.
    plane, taller = full_vectors((high - 1) * wide + n), full_vectors((high + 1) * wide + n)
    all_around = full_vectors(taller + 2)
    # Whole vectors are computed, and read what lies after a plane.
    pixels, seen = np.zeros(channels * size + 64, image.dtype), np.zeros(channels * size + 64, image.dtype)
    copy_tile(pixels, image, shape, planes, rows, columns[0], wide, fold_x, fold_y, fold_z, reach)
    copy_tile(seen, guide, shape, planes, rows, columns[0], wide, fold_x, fold_y, fold_z, reach)
    multiply_row(seen, index(0), unit, len(seen))
    squares, along_x = np.zeros(all_around, image.dtype), np.zeros(taller + 2 * wide, image.dtype)
    along_y = np.zeros((deep + 2) * plane, image.dtype)
    distances, w = np.zeros(plane, image.dtype), np.zeros(plane, image.dtype)
    total = np.zeros(len(scales) * deep * plane, image.dtype)
    sums = np.zeros(len(scales) * channels * deep * plane, image.dtype)
    for number in range(len(offsets)):
        there = (offsets[number, 0] * tall + offsets[number, 1]) * wide + offsets[number, 2]
        for z in range(deep + 2):
            for channel in range(channels):
                here = channel * size + ((z + reach - 1) * tall + reach - 1) * wide + reach - 1
                first, second = index(here), index(here + there)
                if channel == 0:
                    square_differences(squares, index(0), seen, first, second, all_around)
                else:
                    add_square_differences(squares, index(0), seen, first, second, all_around)
            add_three(along_x, index(0), squares, index(0), index(1), index(2), taller)
            a, b, c = index(0), index(wide), index(2 * wide)
            add_three(along_y, index(z * plane), along_x, a, b, c, plane)
        for z in range(deep):
            a, b, c = index(z * plane), index((z + 1) * plane), index((z + 2) * plane)
            add_three(distances, index(0), along_y, a, b, c, plane)
            for k in range(len(scales)):
                weigh(w, distances, scales[k], total, index((k * deep + z) * plane), plane)
                for channel in range(channels):
                    here = channel * size + ((z + reach) * tall + reach) * wide + reach + there
                    to = index(((k * channels + channel) * deep + z) * plane)
                    add_weighed(sums, to, w, pixels, index(here), plane)
    for k in range(len(scales)):
        for channel in range(channels):
            for z in range(deep):
                for y in range(high):
                    row = (k * channels + channel) * depth + planes[0] + z
                    to = index((row * height + rows[0] + y) * width + columns[0])
                    a = index(((k * channels + channel) * deep + z) * plane + y * wide)
                    b = index((k * deep + z) * plane + y * wide)
                    for x in range(n):
                        out[to + index(x)] = sums[a + index(x)] / total[b + index(x)]
