"""The kernels: a program computes one tile of an image, or of a plane of a volume.

Images are stored one after the other. A pixel outside the image is its mirror image, that is, the outermost
pixel. Cell (i, j) has pixel (i, j) at its last corner. Values of neighbours are loaded again rather than
exchanged, since they are in the cache.

`numbers` holds, x first: the factors of derivatives 1/(h·λ), the factors 1/h, α, γ, β, the largest slope, and
the numbers of the tensor formula.
"""

from __future__ import annotations

import inspect

import triton
import triton.language as tl

from aniso.engines.triton.arithmetic import inlined, maximum, minimum
from aniso.engines.triton.device_functions import device_function
from aniso.formulas import bounds, cell, volume_cell, volume_weights, weights

# Lengths may be 1, and those are not to be kernels of their own.
_LENGTHS = ("channels", "depth", "height", "width", "cells", "reach", "planes", "per_image", "per_entry")


def entry(function):
    """A kernel, the same for all lengths."""
    lengths = [name for name in inspect.signature(function).parameters if name in _LENGTHS]
    return triton.jit(function, do_not_specialize=lengths)


explicit_step = device_function(bounds.explicit_step)
extrapolated_step = device_function(bounds.extrapolated_step)

modes = device_function(cell.modes)
structure = device_function(cell.structure)
fluxes = device_function(cell.fluxes)
corner_shares = device_function(cell.corner_shares)
scaled = device_function(weights.scaled)
hourglass_weight = device_function(weights.hourglass_weight)
free_hourglass_weight = device_function(weights.free_hourglass_weight)

volume_modes = device_function(volume_cell.modes)
volume_structure = device_function(volume_cell.volume_structure)
volume_fluxes = device_function(volume_cell.fluxes)
coupled_fluxes = device_function(volume_cell.coupled_fluxes)
volume_shares = device_function(volume_cell.corner_shares)
volume_scaled = device_function(volume_weights.volume_scaled)
hourglass_weights = device_function(volume_weights.hourglass_weights)
split_weights = device_function(volume_weights.split_weights)


@inlined
def tile_of(height, width, HEIGHT: tl.constexpr, WIDTH: tl.constexpr, FLAT: tl.constexpr = False):
    """The number of the matrix, the rows and columns of the tile, and where it is inside of the matrix.

    Rows and columns beyond the last one are the last one. In a FLAT tile they are (1, pixels).
    """
    across, down = tl.cdiv(width, WIDTH), tl.cdiv(height, HEIGHT)
    program = tl.program_id(0)
    if FLAT:
        pixel = tl.arange(0, HEIGHT * WIDTH)[None, :]
        row, column = pixel // WIDTH, pixel % WIDTH
    else:
        row, column = tl.arange(0, HEIGHT)[:, None], tl.arange(0, WIDTH)[None, :]
    x = (program % across) * WIDTH + column
    y = (program // across % down) * HEIGHT + row
    inside = (y < height) & (x < width)
    y, x = tl.minimum(y, height - 1), tl.minimum(x, width - 1)
    return (program // across // down).to(tl.int64), y, x, inside


@entry
def smooth(
    source, out, weights, fold, sign, reach, planes, height, width,
    ALONG_X: tl.constexpr, ODD: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """A Gaussian along the rows or columns of a stack of matrices.

    `fold` says where values outside a matrix are found, from −reach on, and `sign` their sign in odd fields:
    in the stack number n of `planes` matrices each, if bit n of ODD is set.
    """
    plane, y, x, inside = tile_of(height, width, HEIGHT, WIDTH)
    source += plane * height * width
    row = y.to(tl.int64) * width
    total = tl.load(weights) * tl.load(source + row + x)
    at = (x if ALONG_X else y) + reach
    for distance in range(1, reach + 1):
        before, after = tl.load(fold + at - distance), tl.load(fold + at + distance)
        if ALONG_X:
            first, second = tl.load(source + row + before), tl.load(source + row + after)
        else:
            first = tl.load(source + before.to(tl.int64) * width + x)
            second = tl.load(source + after.to(tl.int64) * width + x)
        if ODD != 0:
            odd = ((ODD >> (plane // planes)) & 1) != 0
            first *= tl.where(odd, tl.load(sign + at - distance), 1)
            second *= tl.where(odd, tl.load(sign + at + distance), 1)
        # Opposite values are added first: they cancel exactly on the boundary.
        total += tl.load(weights + distance) * (first + second)
    tl.store(out + plane * height * width + row + x, total, mask=inside)


@inlined
def slope(mode, per_unit, most):
    """A derivative in units of the contrast, limited so that its fourth power stays finite."""
    return minimum(maximum(mode * per_unit, -most), most)


@inlined
def image_corners(u, y0, y1, x0, x1):
    """The corners of cells between these rows, given by their offsets, and these columns."""
    return tl.load(u + y0 + x0), tl.load(u + y0 + x1), tl.load(u + y1 + x0), tl.load(u + y1 + x1)


@inlined
def volume_corners(u, z0, z1, y0, y1, x0, x1):
    """The corners of cells between these planes and rows, given by their offsets, and these columns."""
    u000, u001, u010, u011 = image_corners(u + z0, y0, y1, x0, x1)
    u100, u101, u110, u111 = image_corners(u + z1, y0, y1, x0, x1)
    return u000, u001, u010, u011, u100, u101, u110, u111


@inlined
def image_structure(u, y0, y1, x0, x1, numbers):
    """The structure of one channel in units of the contrast."""
    u00, u01, u10, u11 = image_corners(u, y0, y1, x0, x1)
    x, y, _ = modes(u00, u01, u10, u11)
    most = tl.load(numbers + 7)
    return structure(slope(x, tl.load(numbers), most), slope(y, tl.load(numbers + 1), most))


@inlined
def structure_in_volume(u, z0, z1, y0, y1, x0, x1, numbers):
    """The same in a volume."""
    u000, u001, u010, u011, u100, u101, u110, u111 = volume_corners(u, z0, z1, y0, y1, x0, x1)
    x, y, z, _, _, _, _ = volume_modes(u000, u001, u010, u011, u100, u101, u110, u111)
    most = tl.load(numbers + 9)
    return volume_structure(
        slope(x, tl.load(numbers), most),
        slope(y, tl.load(numbers + 1), most),
        slope(z, tl.load(numbers + 2), most),
    )


@inlined
def image_tensor(j_xx, j_xy, j_yy, numbers, TENSOR: tl.constexpr):
    """The tensor of a structure, scaled to unit spacing."""
    a, b, c = TENSOR(j_xx, j_xy, j_yy, numbers + 8)
    return scaled(a, b, c, tl.load(numbers + 2), tl.load(numbers + 3))


@inlined
def volume_tensor(j_xx, j_xy, j_yy, j_xz, j_yz, j_zz, numbers, TENSOR: tl.constexpr):
    """The same in a volume."""
    xx, xy, yy, xz, yz, zz = TENSOR(j_xx, j_xy, j_yy, j_xz, j_yz, j_zz, numbers + 10)
    per_x, per_y, per_z = tl.load(numbers + 3), tl.load(numbers + 4), tl.load(numbers + 5)
    return volume_scaled(xx, xy, yy, xz, yz, zz, per_x, per_y, per_z)


@inlined
def shares_in_image(u, y0, y1, x0, x1, a, b, c, zeta):
    """What cells with these tensors add to A u at their corners."""
    u00, u01, u10, u11 = image_corners(u, y0, y1, x0, x1)
    x, y, z = modes(u00, u01, u10, u11)
    f_x, f_y, f_z = fluxes(x, y, z, a, b, c, zeta)
    return corner_shares(f_x, f_y, f_z)


@inlined
def shares_in_volume(
    u, z0, z1, y0, y1, x0, x1, xx, xy, yy, xz, yz, zz, zeta_x, zeta_y, zeta_z, kappa, COUPLED: tl.constexpr
):
    """The same in a volume."""
    u000, u001, u010, u011, u100, u101, u110, u111 = volume_corners(u, z0, z1, y0, y1, x0, x1)
    x, y, z, r_x, r_y, r_z, t = volume_modes(u000, u001, u010, u011, u100, u101, u110, u111)
    if COUPLED:
        f_x, f_y, f_z, h_x, h_y, h_z, h_t = coupled_fluxes(
            x, y, z, r_x, r_y, r_z, t, xx, xy, yy, xz, yz, zz, zeta_x, zeta_y, zeta_z, kappa
        )
    else:
        f_x, f_y, f_z, h_x, h_y, h_z, h_t = volume_fluxes(
            x, y, z, r_x, r_y, r_z, t, xx, xy, yy, xz, yz, zz, zeta_x, zeta_y, zeta_z, kappa
        )
    return volume_shares(f_x, f_y, f_z, h_x, h_y, h_z, h_t)


@inlined
def neighbours(here, length, stride):
    """The offsets of the pixels before, at and after a position."""
    before, after = tl.maximum(here - 1, 0), tl.minimum(here + 1, length - 1)
    return before.to(tl.int64) * stride, here.to(tl.int64) * stride, after.to(tl.int64) * stride


@inlined
def cell_in_image(
    u, look, tensors, delta, y0, y1, x0, x1, at, field, numbers, TENSOR: tl.constexpr, STENCIL: tl.constexpr
):
    """The shares of cells with stored tensors, at the offset `at`, or with those of the smoothed `look`."""
    if TENSOR is None:
        a, b, c = tl.load(tensors + at), tl.load(tensors + field + at), tl.load(tensors + 2 * field + at)
    else:
        j_xx, j_xy, j_yy = image_structure(look, y0, y1, x0, x1, numbers)
        a, b, c = image_tensor(j_xx, j_xy, j_yy, numbers, TENSOR)
    if STENCIL == "free":
        zeta = free_hourglass_weight(a, c, tl.load(delta + at))
    else:
        zeta = hourglass_weight(a, b, c, tl.load(numbers + 4), tl.load(numbers + 5), tl.load(numbers + 6))
    return shares_in_image(u, y0, y1, x0, x1, a, b, c, zeta)


@inlined
def cell_in_volume(
    u, look, tensors, z0, z1, y0, y1, x0, x1, at, field, numbers, TENSOR: tl.constexpr, STENCIL: tl.constexpr
):
    """The same in a volume."""
    if TENSOR is None:
        xx, xy, yy = tl.load(tensors + at), tl.load(tensors + field + at), tl.load(tensors + 2 * field + at)
        tensors += 3 * field
        xz, yz, zz = tl.load(tensors + at), tl.load(tensors + field + at), tl.load(tensors + 2 * field + at)
    else:
        j_xx, j_xy, j_yy, j_xz, j_yz, j_zz = structure_in_volume(look, z0, z1, y0, y1, x0, x1, numbers)
        xx, xy, yy, xz, yz, zz = volume_tensor(j_xx, j_xy, j_yy, j_xz, j_yz, j_zz, numbers, TENSOR)
    alpha, gamma, beta = tl.load(numbers + 6), tl.load(numbers + 7), tl.load(numbers + 8)
    if STENCIL == "split":
        zeta_x, zeta_y, zeta_z, kappa = split_weights(xx, xy, yy, xz, yz, zz, alpha)
    else:
        zeta_x, zeta_y, zeta_z, kappa = hourglass_weights(xx, xy, yy, xz, yz, zz, alpha, gamma, beta)
    return shares_in_volume(
        u, z0, z1, y0, y1, x0, x1, xx, xy, yy, xz, yz, zz, zeta_x, zeta_y, zeta_z, kappa, STENCIL == "split"
    )


@entry
def diffusion_step(
    u, previous, look, tensors, delta, fixed, out, numbers, weight: tl.float64, tau: tl.float64,
    channels, depth, height, width, per_image, per_entry,
    TENSOR: tl.constexpr, NDIM: tl.constexpr, STENCIL: tl.constexpr, EXTRAPOLATED: tl.constexpr,
    FIXED: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """A step (w, τ) of all channels.

    If TENSOR is given, images have one channel, and each pixel computes the tensors of the cells around it
    from `look`. Otherwise tensors are stored: those of images and their entries are at these distances; 0 if
    all images have the same.
    """
    image, row, x, inside = tile_of(depth * height, width, HEIGHT, WIDTH)
    z, y = row // height, row % height
    size = height.to(tl.int64) * width
    u, look, out = u + image * depth * size, look + image * depth * size, out + image * depth * size
    z0, z1, z2 = neighbours(z, depth, size)
    y0, y1, y2 = neighbours(y, height, width)
    x0, x1, x2 = neighbours(x, width, 1)
    # The cells around a pixel, and the distance of the entries of a tensor.
    down, below = width.to(tl.int64) + 1, (height.to(tl.int64) + 1) * (width + 1)
    tensors += (image // channels) * per_image
    here = z1 + y1 + x1
    c000 = z * below + y * down + x1
    c001, c010, c011 = c000 + 1, c000 + down, c000 + down + 1
    n = tl.full((), per_entry, tl.int64)
    # Opposite cells are added first, so that mirrored images have mirrored results.
    if NDIM == 2:
        rate = (
            cell_in_image(u, look, tensors, delta, y0, y1, x0, x1, c000, n, numbers, TENSOR, STENCIL)[3]
            + cell_in_image(u, look, tensors, delta, y1, y2, x1, x2, c011, n, numbers, TENSOR, STENCIL)[0]
        ) + (
            cell_in_image(u, look, tensors, delta, y0, y1, x1, x2, c001, n, numbers, TENSOR, STENCIL)[2]
            + cell_in_image(u, look, tensors, delta, y1, y2, x0, x1, c010, n, numbers, TENSOR, STENCIL)[1]
        )
    else:
        c100, c101, c110, c111 = c000 + below, c001 + below, c010 + below, c011 + below
        first = (
            cell_in_volume(u, look, tensors, z0, z1, y0, y1, x0, x1, c000, n, numbers, TENSOR, STENCIL)[7]
            + cell_in_volume(u, look, tensors, z1, z2, y1, y2, x1, x2, c111, n, numbers, TENSOR, STENCIL)[0]
        ) + (
            cell_in_volume(u, look, tensors, z0, z1, y0, y1, x1, x2, c001, n, numbers, TENSOR, STENCIL)[6]
            + cell_in_volume(u, look, tensors, z1, z2, y1, y2, x0, x1, c110, n, numbers, TENSOR, STENCIL)[1]
        )
        second = (
            cell_in_volume(u, look, tensors, z0, z1, y1, y2, x0, x1, c010, n, numbers, TENSOR, STENCIL)[5]
            + cell_in_volume(u, look, tensors, z1, z2, y0, y1, x1, x2, c101, n, numbers, TENSOR, STENCIL)[2]
        ) + (
            cell_in_volume(u, look, tensors, z0, z1, y1, y2, x1, x2, c011, n, numbers, TENSOR, STENCIL)[4]
            + cell_in_volume(u, look, tensors, z1, z2, y0, y1, x0, x1, c100, n, numbers, TENSOR, STENCIL)[3]
        )
        rate = first + second
    value = tl.load(u + here)
    step = tl.full((), tau, u.dtype.element_ty)
    if EXTRAPOLATED:
        before = tl.load(previous + image * depth * size + here)
        after = extrapolated_step(value, before, rate, tl.full((), weight, u.dtype.element_ty), step)
    else:
        after = explicit_step(value, rate, step)
    if FIXED:
        after = tl.where(tl.load(fixed + here) != 0, value, after)
    tl.store(out + here, after, mask=inside)


@inlined
def store_entries(out, field, xx, xy, yy, inside):
    """Store three entries of a tensor, at this distance."""
    tl.store(out, xx, mask=inside)
    tl.store(out + field, xy, mask=inside)
    tl.store(out + 2 * field, yy, mask=inside)


@inlined
def cell_sides(position, length, stride):
    """The offsets of the pixels on both sides of the cells at these positions."""
    first, last = tl.maximum(position - 1, 0), tl.minimum(position, length - 1)
    return first.to(tl.int64) * stride, last.to(tl.int64) * stride


@entry
def cell_tensors(
    look, out, numbers, channels, depth, height, width, per_entry,
    TENSOR: tl.constexpr, NDIM: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """The structure over cells, mean over the channels of an image; if TENSOR is given, the tensors.

    An entry of all images is stored before the next one, at the distance `per_entry`.
    """
    rows = (height + 1) * (1 if NDIM == 2 else depth + 1)
    image, row, x, inside = tile_of(rows, width + 1, HEIGHT, WIDTH)
    z, y = row // (height + 1), row % (height + 1)
    size = height.to(tl.int64) * width
    z0, z1 = cell_sides(z, depth, size)
    y0, y1 = cell_sides(y, height, width)
    x0, x1 = cell_sides(x, width, 1)
    out += image * rows * (width + 1) + row.to(tl.int64) * (width + 1) + x
    look += image * channels * depth * size
    field = tl.full((), per_entry, tl.int64)
    per_channel = 1 / tl.full((), channels, look.dtype.element_ty)
    if NDIM == 2:
        j_xx, j_xy, j_yy = image_structure(look, y0, y1, x0, x1, numbers)
        for _ in range(1, channels):
            look += size
            more_xx, more_xy, more_yy = image_structure(look, y0, y1, x0, x1, numbers)
            j_xx, j_xy, j_yy = j_xx + more_xx, j_xy + more_xy, j_yy + more_yy
        xx, xy, yy = j_xx * per_channel, j_xy * per_channel, j_yy * per_channel
        if TENSOR is not None:
            xx, xy, yy = image_tensor(xx, xy, yy, numbers, TENSOR)
    else:
        j_xx, j_xy, j_yy, j_xz, j_yz, j_zz = structure_in_volume(look, z0, z1, y0, y1, x0, x1, numbers)
        for _ in range(1, channels):
            look += depth * size
            more_xx, more_xy, more_yy, more_xz, more_yz, more_zz = structure_in_volume(
                look, z0, z1, y0, y1, x0, x1, numbers
            )
            j_xx, j_xy, j_yy = j_xx + more_xx, j_xy + more_xy, j_yy + more_yy
            j_xz, j_yz, j_zz = j_xz + more_xz, j_yz + more_yz, j_zz + more_zz
        xx, xy, yy = j_xx * per_channel, j_xy * per_channel, j_yy * per_channel
        xz, yz, zz = j_xz * per_channel, j_yz * per_channel, j_zz * per_channel
        if TENSOR is not None:
            xx, xy, yy, xz, yz, zz = volume_tensor(xx, xy, yy, xz, yz, zz, numbers, TENSOR)
        store_entries(out + 3 * field, field, xz, yz, zz, inside)
    store_entries(out, field, xx, xy, yy, inside)


@entry
def tensors_of_structure(
    structures, out, numbers, cells, TENSOR: tl.constexpr, NDIM: tl.constexpr, SIZE: tl.constexpr
):
    """The tensors of stored structure, cell by cell."""
    field = tl.full((), cells, tl.int64)
    at = tl.program_id(0).to(tl.int64) * SIZE + tl.arange(0, SIZE)
    inside = at < field
    at = tl.minimum(at, field - 1)
    structures, out = structures + at, out + at
    xx, xy, yy = tl.load(structures), tl.load(structures + field), tl.load(structures + 2 * field)
    if NDIM == 2:
        xx, xy, yy = image_tensor(xx, xy, yy, numbers, TENSOR)
    else:
        structures += 3 * field
        xz, yz, zz = tl.load(structures), tl.load(structures + field), tl.load(structures + 2 * field)
        xx, xy, yy, xz, yz, zz = volume_tensor(xx, xy, yy, xz, yz, zz, numbers, TENSOR)
        store_entries(out + 3 * field, field, xz, yz, zz, inside)
    store_entries(out, field, xx, xy, yy, inside)
