"""Loops of a learned diffusion over tiles of an image, for the compiler.

This text becomes part of the generated kernel module of a net, after the formulas and the loops over rows.

A kernel is even or odd, and used in four orientations: as it is, mirrored along x, transposed, and both.
Sums and differences of mirrored pixels, here called folds, therefore serve all kernels and orientations: with
r pixels to each side there are (2r + 1)² of them, and a kernel is four short sums of folds. Energies are
transformed over the orientations (the Walsh–Hadamard transform), so that mixing them is one small matrix for
each of four characters. The adjoint does the same backwards.

Rows of one buffer are at the distance `STRIDE`. With the dilation d, a tile of responses is wider than the
tile of the result by (r + 1)·d on each side, and one of pixels by (2r + 1)·d. Tiles of several small images
lie side by side in the same rows, at this distance plus their width, since short rows are slow.
"""

from __future__ import annotations

import numpy as np

from aniso.engines.cpu.placeholders import STRIDE, compiled, entry, index, real, weighted_sum
from aniso.engines.cpu.rows import (
    copy_row,
    cut_row,
    first_row_needed,
    full_vectors,
    next_smooth_row,
    rows_of_ring,
)
from aniso.formulas.learned import energy, learned_step, response_weight, scaled_square

# Folds of a row ----------------------------------------------------------------------------------------


@compiled
def sum_and_difference(rows, first, second, n):
    """Replace two rows by their sum and their difference."""
    for k in range(n):
        j = index(k)
        x, y = rows[first + j], rows[second + j]
        rows[first + j], rows[second + j] = x + y, x - y


@compiled
def fold_row(out, o, rows, r, shift, odd, n):
    """Write the sum, or the difference, of pixels `shift` to the right and to the left; r is the centre."""
    right, left = r + index(shift), r - index(shift)
    if shift == 0:
        for k in range(n):
            j = index(k)
            out[o + j] = rows[r + j]
    elif odd:
        for k in range(n):
            j = index(k)
            out[o + j] = rows[right + j] - rows[left + j]
    else:
        for k in range(n):
            j = index(k)
            out[o + j] = rows[right + j] + rows[left + j]


@compiled
def unfold_row(out, o, rows, r, shift, odd, n):
    """Add what a fold gives to pixels: the adjoint of `fold_row`."""
    right, left = r + index(shift), r - index(shift)
    if shift == 0:
        for k in range(n):
            j = index(k)
            out[o + j] += rows[r + j]
    elif odd:
        for k in range(n):
            j = index(k)
            out[o + j] += rows[left + j] - rows[right + j]
    else:
        for k in range(n):
            j = index(k)
            out[o + j] += rows[left + j] + rows[right + j]


# Orientations of a kernel ------------------------------------------------------------------------------


@compiled
def turn_even(v, at, parts, unit, share, most, squares, s, n):
    """Write the responses of an even kernel in four orientations, and add their squares."""
    second, third, fourth = index(STRIDE), index(2 * STRIDE), index(3 * STRIDE)
    for k in range(n):
        j = index(k)
        a, b = parts[j] + parts[j + second], parts[j] - parts[j + second]
        c, d = parts[j + third] + parts[j + fourth], parts[j + third] - parts[j + fourth]
        store_turns(v, at + j, (a + c, a - c, b + d, b - d), unit, share, most, squares, s + j)


@compiled
def turn_odd(v, at, parts, unit, share, most, squares, s, n):
    """The same for an odd kernel."""
    second, third, fourth = index(STRIDE), index(2 * STRIDE), index(3 * STRIDE)
    for k in range(n):
        j = index(k)
        v0, v1 = parts[j] + parts[j + second], parts[j] - parts[j + second]
        v2, v3 = parts[j + third] + parts[j + fourth], parts[j + third] - parts[j + fourth]
        store_turns(v, at + j, (v0, v1, v2, v3), unit, share, most, squares, s + j)


@compiled
def store_turns(v, at, turns, unit, share, most, squares, s):
    """Write the responses of a kernel at one pixel in four orientations, and add their squares."""
    second, third, fourth = index(STRIDE), index(2 * STRIDE), index(3 * STRIDE)
    v0, v1, v2, v3 = turns
    v[at], v[at + second], v[at + third], v[at + fourth] = v0, v1, v2, v3
    squares[s] += share * scaled_square(v0, unit, most)
    squares[s + second] += share * scaled_square(v1, unit, most)
    squares[s + third] += share * scaled_square(v2, unit, most)
    squares[s + fourth] += share * scaled_square(v3, unit, most)


@compiled
def energies_of(out, o, apart, squares, s, n):
    """Write the transformed energies of four orientations, to rows at the distance `apart`."""
    second, third, fourth = index(STRIDE), index(2 * STRIDE), index(3 * STRIDE)
    for k in range(n):
        j = index(k)
        e0, e1 = energy(squares[s + j]), energy(squares[s + j + second])
        e2, e3 = energy(squares[s + j + third]), energy(squares[s + j + fourth])
        a, b, c, d = e0 + e1, e0 - e1, e2 + e3, e2 - e3
        out[o + j], out[o + apart + j] = a + c, b + d
        out[o + index(2) * apart + j], out[o + index(3) * apart + j] = a - c, b - d


@compiled
def sum_along(out, o, rows, r, shift, n):
    """Write the sum of three values in a row."""
    once, twice = r + index(shift), r + index(2 * shift)
    for k in range(n):
        j = index(k)
        out[o + j] = (rows[r + j] + rows[once + j]) + rows[twice + j]


@compiled
def weights_of(w, to, own, at, apart, sums, above, here, below, counts, per_rows, gain, bias, n):
    """Write the weights of a kernel in four orientations."""
    second, third, fourth = index(STRIDE), index(2 * STRIDE), index(3 * STRIDE)
    for k in range(n):
        j = index(k)
        per_count = counts[j] * per_rows
        p = index(0) * apart + j
        x0 = own[at + p] + per_count * ((sums[above + p] + sums[here + p]) + sums[below + p])
        p = index(1) * apart + j
        x1 = own[at + p] + per_count * ((sums[above + p] + sums[here + p]) + sums[below + p])
        p = index(2) * apart + j
        x2 = own[at + p] + per_count * ((sums[above + p] + sums[here + p]) + sums[below + p])
        p = index(3) * apart + j
        x3 = own[at + p] + per_count * ((sums[above + p] + sums[here + p]) + sums[below + p])
        a, b, c, d = x0 + x1, x0 - x1, x2 + x3, x2 - x3
        w[to + j] = response_weight(a + c, gain, bias)
        w[to + j + second] = response_weight(b + d, gain, bias)
        w[to + j + third] = response_weight(a - c, gain, bias)
        w[to + j + fourth] = response_weight(b - d, gain, bias)


@compiled
def weigh_even(fluxes, to, apart, v, at, w, f, n):
    """Write what an even kernel gives to the folds: four characters, in rows at the distance `apart`."""
    second, third, fourth = index(STRIDE), index(2 * STRIDE), index(3 * STRIDE)
    for k in range(n):
        j = index(k)
        f0, f1 = w[f + j] * v[at + j], w[f + j + second] * v[at + j + second]
        f2, f3 = w[f + j + third] * v[at + j + third], w[f + j + fourth] * v[at + j + fourth]
        a, b, c, d = f0 + f1, f0 - f1, f2 + f3, f2 - f3
        fluxes[to + j], fluxes[to + apart + j] = a + c, a - c
        fluxes[to + index(2) * apart + j], fluxes[to + index(3) * apart + j] = b + d, b - d


@compiled
def weigh_odd(fluxes, to, apart, v, at, w, f, n):
    """The same for an odd kernel: sums and differences of two orientations."""
    second, third, fourth = index(STRIDE), index(2 * STRIDE), index(3 * STRIDE)
    for k in range(n):
        j = index(k)
        f0, f1 = w[f + j] * v[at + j], w[f + j + second] * v[at + j + second]
        f2, f3 = w[f + j + third] * v[at + j + third], w[f + j + fourth] * v[at + j + fourth]
        fluxes[to + j], fluxes[to + apart + j] = f0 + f1, f2 + f3
        fluxes[to + index(2) * apart + j], fluxes[to + index(3) * apart + j] = f0 - f1, f2 - f3


@compiled
def add_two_rows(out, o, rows, first, second, sign, n):
    """Add one row and, times a sign, another one."""
    for k in range(n):
        j = index(k)
        out[o + j] += rows[first + j] + sign * rows[second + j]


@compiled
def clear_rows(rows, count, n):
    """Write zeros to n columns of some rows."""
    for row in range(count):
        for k in range(n):
            rows[index(row * STRIDE + k)] = 0


@compiled
def add_row(out, o, rows, r, n):
    """Add one row."""
    for k in range(n):
        j = index(k)
        out[o + j] += rows[r + j]


# Tiles -------------------------------------------------------------------------------------------------


@compiled
def respond(
    u, base, apart, several, pitch, shape, y, left, n, dilation, radius, kernels, folds, pairs, spans,
    numbers, fold_x, fold_y, unit, of_group, share, most, lines, folded, parts, v, at, squares,
):  # fmt: skip
    """Responses of all kernels to row y of one channel, n of them from `left` on, with their squares.

    Several images are at the distance `apart` in the array, and at `pitch` in rows.
    """
    _, width = shape
    reach, all_columns = radius * dilation, (several - 1) * pitch + n
    many = full_vectors(all_columns)
    for k in range(2 * radius + 1):
        row = base + index(fold_y[reach + y + (k - radius) * dilation] * width)
        for image in range(several):
            to, source = index(k * STRIDE + image * pitch), row + index(image * apart)
            cut_row(lines, to, u, source, width, left - reach, fold_x, n + 2 * reach)
    for k in range(radius):  # the row below becomes the sum of both, the one above the difference
        below, above = index((2 * radius - k) * STRIDE), index(k * STRIDE)
        sum_and_difference(lines, below, above, full_vectors(all_columns + 2 * reach))
    for fold in range(len(folds)):
        row, odd, shift = folds[fold, 0], folds[fold, 1] == 1, folds[fold, 2] * dilation
        fold_row(folded, index(fold * STRIDE), lines, index(row * STRIDE + reach), shift, odd, many)
    for pair in range(len(pairs)):
        sum_and_difference(folded, index(pairs[pair, 0] * STRIDE), index(pairs[pair, 1] * STRIDE), many)
    number = 0
    for kernel in range(kernels):
        for part in range(4):
            first, count = spans[4 * kernel + part, 0], spans[4 * kernel + part, 1]
            to = index(part * STRIDE)
            weighted_sum(parts, to, folded, index(first * STRIDE), numbers, index(number), count, many)
            number += count
        four, per_noise = index(4 * kernel * STRIDE), unit[of_group + kernel]
        if kernel < kernels // 2:
            turn_odd(v, at + four, parts, per_noise, share, most, squares, four, many)
        else:
            turn_even(v, at + four, parts, per_noise, share, most, squares, four, many)


@compiled
def give_back(
    several, pitch, left, width, n, dilation, radius, folds, pairs, spans, numbers, fold_x, fluxes, given,
    sides,
):  # fmt: skip
    """What all kernels give to the rows around theirs: sums and differences.

    The fluxes have n columns from `left` on, for each of several images. `sides` has as many more on each
    side as the kernels reach, and `given` twice as many, which are 0, and which neighbours share.
    """
    reach, all_columns, number = radius * dilation, (several - 1) * pitch + n, 0
    many = full_vectors(all_columns)
    for fold in range(len(folds)):
        first, count = spans[fold, 0], spans[fold, 1]
        to = index(fold * STRIDE + 2 * reach)
        weighted_sum(given, to, fluxes, index(first * STRIDE), numbers, index(number), count, many)
        number += count
        for image in range(several):  # there are no responses outside the image
            first = image * pitch
            for j in range(-left):
                given[to + index(first + j)] = 0
            for j in range(first + min(n, width - left), many if image == several - 1 else first + pitch):
                given[to + index(j)] = 0
    for pair in range(len(pairs)):
        one, other = index(pairs[pair, 0] * STRIDE), index(pairs[pair, 1] * STRIDE)
        sum_and_difference(given, one, other, full_vectors(all_columns + 4 * reach))
    clear_rows(sides, 2 * radius + 1, full_vectors(all_columns + 2 * reach))
    for fold in range(len(folds)):
        row, odd, shift = folds[fold, 0], folds[fold, 1] == 1, folds[fold, 2] * dilation
        centre, columns = index(fold * STRIDE + reach), full_vectors(all_columns + 2 * reach)
        unfold_row(sides, index(row * STRIDE), given, centre, shift, odd, columns)
    # Mirrored pixels give what they get to the pixels of which they are copies.
    for j in range(n + 2 * reach):
        x = left - reach + j
        if x < 0 or x >= width:
            inside = fold_x[(len(fold_x) - width) // 2 + x] - (left - reach)
            if 0 <= inside < n + 2 * reach:
                for row, image in np.ndindex(2 * radius + 1, several):
                    first = row * STRIDE + image * pitch
                    sides[index(first + inside)] += sides[index(first + j)]


@entry
def kernel_responses(
    u, rate, shape, images, rows, columns, groups, dilation, radius, kernels, most, folds, pairs,
    forward_spans, forward, backward_spans, backward, own_mixing, mean_mixing, unit, gain, bias, fold_x,
    fold_y,
):  # fmt: skip
    """Kᵀ(w v) with v = K u for a tile of the images (channels, H, W) from images[0] to images[1] − 1.

    Channels groups[g] … groups[g + 1] − 1 share weights w, which depend on the energies of this group and, if
    it is the second one, on averages of those of the first.
    """
    (channels, height, width), (start, stop), (left, right) = shape, rows, columns
    first_row = images[0] * channels * height  # of these images, with all their channels
    reach, half, group_count = radius * dilation, kernels // 2, len(groups) - 1
    # Columns of responses and of fluxes.
    wide_left, wide = left - reach - dilation, right - left + 2 * (reach + dilation)
    flux_left, n = left - reach, right - left + 2 * reach
    several, pitch = images[1] - images[0], wide + 2 * reach
    many, all_rows = full_vectors((several - 1) * pitch + n), 4 * kernels
    all_wide = full_vectors((several - 1) * pitch + wide)
    lines = np.zeros((2 * radius + 1) * STRIDE, u.dtype)
    folded = np.zeros(len(folds) * STRIDE, u.dtype)
    given = np.zeros(len(folds) * STRIDE, u.dtype)
    sides = np.zeros((2 * radius + 1) * STRIDE, u.dtype)
    parts = np.zeros(4 * STRIDE, u.dtype)
    squares = np.zeros(all_rows * STRIDE, u.dtype)
    # For each group and character the energies of the group, then those of the first one.
    energies = np.zeros((2 * group_count - 1) * all_rows * STRIDE, u.dtype)
    means = np.zeros(STRIDE, u.dtype)
    fluxes = np.zeros(all_rows * STRIDE, u.dtype)
    w = np.zeros(all_rows * STRIDE, u.dtype)
    # Rows that wait for the averages of the energies around them; the last ring ends with rows of zeros.
    later, ring = dilation + 1, 2 * dilation + 1
    v = np.zeros(later * channels * all_rows * STRIDE, u.dtype)
    own = np.zeros(later * group_count * all_rows * STRIDE, u.dtype)
    sums = np.zeros((ring + 1) * group_count * all_rows * STRIDE, u.dtype)
    total = np.zeros(channels * (stop - start) * STRIDE, u.dtype)
    counts = np.ones(STRIDE, u.dtype)
    for image, j in np.ndindex(several, n):
        x = flux_left + j
        counts[image * pitch + j] = real(1.0) / real(
            1 + (1 if x >= dilation else 0) + (1 if x + dilation < width else 0)
        )

    first_flux, last_flux = max(0, start - reach), min(height, stop + reach)
    for y in range(max(0, first_flux - dilation), last_flux + dilation):
        for group in range(group_count if y < min(height, last_flux + dilation) else 0):
            clear_rows(squares, all_rows, all_wide)
            slot, share = y % later, real(1.0) / real(groups[group + 1] - groups[group])
            for channel in range(groups[group], groups[group + 1]):
                respond(
                    u, index((first_row + channel * height) * width), channels * height * width, several,
                    pitch, (height, width), y, wide_left, wide, dilation, radius, kernels, folds, pairs,
                    forward_spans, forward, fold_x, fold_y, unit, group * kernels, share, most, lines,
                    folded, parts, v, index((slot * channels + channel) * all_rows * STRIDE), squares,
                )  # fmt: skip
            # Energies that a group looks at, for each character: its own, and those of the first group.
            seen, base = (group + 1) * kernels, group * all_rows
            for kernel in range(kernels):
                energies_of(
                    energies, index((base + kernel) * STRIDE), index(seen * STRIDE), squares,
                    index(4 * kernel * STRIDE), all_wide,
                )  # fmt: skip
            for row in range(all_rows if group > 0 else 0):
                to = base + row // kernels * seen + kernels + row % kernels
                copy_row(energies, index(to * STRIDE), energies, index(row * STRIDE), all_wide)
            for row in range(all_rows):
                first = index((base + row // kernels * seen) * STRIDE)
                to = index(((slot * group_count + group) * all_rows + row) * STRIDE)
                number = index((base + row) * kernels)
                weighted_sum(own, to, energies, first, own_mixing, number, kernels, all_wide)
                number = index(base * kernels + row * seen)
                weighted_sum(means, index(0), energies, first, mean_mixing, number, seen, all_wide)
                for image in range(several):  # averages are those of pixels inside the image
                    for j in range(-wide_left):
                        means[index(image * pitch + j)] = 0
                    for j in range(width - wide_left, wide):
                        means[index(image * pitch + j)] = 0
                to = index(((y % ring * group_count + group) * all_rows + row) * STRIDE)
                sum_along(sums, to, means, index(0), dilation, many)
        y -= dilation
        if y < first_flux:
            continue
        slot = y % later
        # Rows of the ring; the last one, of zeros, stands for those outside the image.
        above = (y - dilation) % ring if y >= dilation else ring
        below = (y + dilation) % ring if y + dilation < height else ring
        per_rows = real(1.0) / real(1 + (1 if y >= dilation else 0) + (1 if y + dilation < height else 0))
        for group in range(group_count):
            for kernel in range(kernels):
                row = group * all_rows + kernel
                weights_of(
                    w, index(4 * kernel * STRIDE),
                    own, index((slot * group_count * all_rows + row) * STRIDE + dilation),
                    index(kernels * STRIDE), sums, index((above * group_count * all_rows + row) * STRIDE),
                    index((y % ring * group_count * all_rows + row) * STRIDE),
                    index((below * group_count * all_rows + row) * STRIDE), counts, per_rows,
                    gain[group * kernels + kernel], bias[group * kernels + kernel], many,
                )  # fmt: skip
            for channel in range(groups[group], groups[group + 1]):
                for kernel in range(kernels):
                    four = index(4 * kernel * STRIDE)
                    at = index((slot * channels + channel) * all_rows * STRIDE + dilation) + four
                    if kernel < half:
                        weigh_odd(fluxes, index(kernel * STRIDE), index(half * STRIDE), v, at, w, four, many)
                    else:
                        to = index((3 * half + kernel) * STRIDE)
                        weigh_even(fluxes, to, index(half * STRIDE), v, at, w, four, many)
                give_back(
                    several, pitch, flux_left, width, n, dilation, radius, folds, pairs, backward_spans,
                    backward, fold_x, fluxes, given, sides,
                )  # fmt: skip
                for k in range(-radius, radius + 1):
                    row = fold_y[reach + y + k * dilation]
                    if start <= row < stop:
                        to = index((channel * (stop - start) + row - start) * STRIDE)
                        sum_of_both = index((radius + abs(k)) * STRIDE + reach)
                        difference = index((radius - abs(k)) * STRIDE + reach)
                        if k == 0:
                            add_row(total, to, sides, sum_of_both, many)
                        else:
                            sign = real(1 if k > 0 else -1)
                            add_two_rows(total, to, sides, sum_of_both, difference, sign, many)
    for image, channel, y in np.ndindex(several, channels, stop - start):
        source = index((channel * (stop - start) + y) * STRIDE + image * pitch + reach)
        to = first_row + (image * channels + channel) * height + start + y
        copy_row(rate, index(to * width + left), total, source, right - left)


@entry
def smooth_or_step(
    source, target, f, shape, channels, rows, columns, finish, steps, backs, kernel, fold_x, fold_y
):
    """Smooth a tile of some channels; to finish, take the step with it as rate instead of storing it."""
    (height, width), (start, stop), (left, right) = shape, rows, columns
    n, reach = right - left, len(kernel) - 1
    many = full_vectors(n)
    ring = np.empty(rows_of_ring(reach, height) * many, source.dtype)
    line = np.zeros(many + 2 * reach, source.dtype)
    smooth = np.zeros(many, source.dtype)
    even = np.ones(len(fold_y), source.dtype)
    for channel in range(channels[0], channels[1]):
        base = index(channel * height * width)
        done = first_row_needed(start, reach, height) - 1
        for y in range(start, stop):
            done = next_smooth_row(
                smooth, index(0), source, base, height, width, y, done, ring, line, left, n, many,
                kernel, fold_x, kernel, fold_y, even,
            )  # fmt: skip
            at = base + index(y * width + left)
            if finish:
                step_row(target, at, f, smooth, steps[channel], backs[channel], n)
            else:
                copy_row(target, at, smooth, index(0), n)


@compiled
def step_row(u, at, f, rate, step, back, n):
    """One row of a stage, in place."""
    for k in range(n):
        j = index(k)
        u[at + j] = learned_step(u[at + j], rate[j], f[at + j], step, back)
