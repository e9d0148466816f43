"""The kernels of learned diffusions: a program computes some pixels of an image, for all K of a stage.

Tensors of these programs are (kernels, pixels). Responses are computed twice rather than stored, since they
take less time than to write and read them. `numbers` holds c/σ, a and b for each kernel of an image, then s
and μ; images are at the distance `per_image`, 0 if all have the same.
"""

from __future__ import annotations

import triton.language as tl

from aniso.engines.triton.arithmetic import inlined
from aniso.engines.triton.device_functions import device_function
from aniso.engines.triton.kernels import entry, tile_of
from aniso.formulas import learned

scaled_square = device_function(learned.scaled_square)
energy = device_function(learned.energy)
response_weight = device_function(learned.response_weight)
learned_step = device_function(learned.learned_step)


@inlined
def mirrored(position, length, reach, SMALL: tl.constexpr):
    """The pixels at positions from −reach on, and whether they are seen in an odd number of mirrors.

    If no axis is SMALL, that is, shorter than the reach, there is one mirror at most.
    """
    period = 2 * length
    if SMALL:
        position = (position + tl.cdiv(reach, period) * period) % period
        is_odd = position >= length
    else:
        is_odd = (position < 0) | (position >= length)
    other = tl.where(position < 0, -1 - position, period - 1 - position)
    return tl.where(is_odd, other, position), is_odd


@inlined
def responses(
    u, y, x, height, width, dilation, kernels, kernel, known, SIDE: tl.constexpr, SMALL: tl.constexpr
):
    """K u at these pixels, the image being mirrored at its boundary."""
    reach = dilation * (SIDE // 2)
    v = tl.zeros([kernel.shape[0], x.shape[1]], u.dtype.element_ty)
    for across in range(SIDE):
        column, _ = mirrored(x + (across * dilation - reach), width, reach, SMALL)
        for down in range(SIDE):
            row, _ = mirrored(y + (down * dilation - reach), height, reach, SMALL)
            value = tl.load(u + row.to(tl.int64) * width + column)
            tap = kernel * (SIDE * SIDE) + down * SIDE + across
            v += tl.load(kernels + tap, mask=known, other=0.0) * value
    return v


@entry
def response_energies(
    u, out, kernels, numbers, most: tl.float64, channels, height, width, per_image, dilation,
    COUNT: tl.constexpr, PADDED: tl.constexpr, SIDE: tl.constexpr, SMALL: tl.constexpr,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """The energies e of the responses, (images, kernels, H, W)."""
    image, y, x, inside = tile_of(height, width, HEIGHT, WIDTH, True)
    size = height.to(tl.int64) * width
    kernel = tl.arange(0, PADDED)[:, None]
    known = kernel < COUNT
    unit = tl.load(numbers + image * per_image + kernel, mask=known, other=0.0)
    limit = tl.full((), most, u.dtype.element_ty)
    u += image * channels * size
    square = tl.zeros([PADDED, HEIGHT * WIDTH], u.dtype.element_ty)
    for _ in range(0, channels):
        v = responses(u, y, x, height, width, dilation, kernels, kernel, known, SIDE, SMALL)
        square += scaled_square(v, unit, limit)
        u += size
    e = energy(square / tl.full((), channels, u.dtype.element_ty))
    here = (image * COUNT + kernel) * size + y.to(tl.int64) * width + x
    tl.store(out + here, e, mask=inside & known)


@inlined
def row_sums(energies, y, x, row_is_inside, width, dilation):
    """Sums of three pixels of a row that are spaced by the dilation, with zeros outside the image."""
    here = energies + y.to(tl.int64) * width + x
    before = tl.load(here - dilation, mask=row_is_inside & (x >= dilation), other=0.0)
    after = tl.load(here + dilation, mask=row_is_inside & (x + dilation < width), other=0.0)
    return tl.load(here, mask=row_is_inside, other=0.0) + (before + after)


@entry
def response_fluxes(
    u, energies, others, averaged, out, kernels, mixing, numbers, channels, height, width, per_image,
    dilation, COUNT: tl.constexpr, PADDED: tl.constexpr, SIDE: tl.constexpr, SMALL: tl.constexpr,
    OTHERS: tl.constexpr, KEEPS: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """The fluxes w v, (images, channels, kernels, H, W); and the averages ē of energies, if these are kept.

    If OTHERS is set, the weights depend on the averages `others` of other channels too.
    """
    image, y, x, inside = tile_of(height, width, HEIGHT, WIDTH, True)
    size = height.to(tl.int64) * width
    here = y.to(tl.int64) * width + x
    kernel = tl.arange(0, PADDED)[:, None]
    known = kernel < COUNT
    up, down = y >= dilation, y + dilation < height
    near = 1 + (x >= dilation).to(tl.int32) + (x + dilation < width).to(tl.int32)
    near *= 1 + up.to(tl.int32) + down.to(tl.int32)
    first = image * COUNT * size
    mixed = tl.zeros([PADDED, HEIGHT * WIDTH], u.dtype.element_ty)
    for number in range(COUNT):
        field = energies + first + number * size
        e = tl.load(field + here)
        total = row_sums(field, y - dilation, x, up, width, dilation)
        total += row_sums(field, y, x, y < height, width, dilation)
        total += row_sums(field, y + dilation, x, down, width, dilation)
        mean = total / near.to(u.dtype.element_ty)
        if KEEPS:
            tl.store(averaged + first + number * size + here, mean, mask=inside)
        column = mixing + kernel * COUNT + number
        mixed += tl.load(column, mask=known, other=0.0) * e
        mixed += tl.load(column + COUNT * COUNT, mask=known, other=0.0) * mean
        if OTHERS:
            other = tl.load(others + first + number * size + here)
            mixed += tl.load(column + 2 * COUNT * COUNT, mask=known, other=0.0) * other
    numbers += image * per_image + kernel
    gain = tl.load(numbers + COUNT, mask=known, other=0.0)
    bias = tl.load(numbers + 2 * COUNT, mask=known, other=0.0)
    weight = response_weight(mixed, gain, bias)
    for channel in range(0, channels):
        plane = image * channels + channel
        v = responses(u + plane * size, y, x, height, width, dilation, kernels, kernel, known, SIDE, SMALL)
        tl.store(out + (plane * COUNT + kernel) * size + here, weight * v, mask=inside & known)


@entry
def flux_sums(
    fluxes, out, kernels, height, width, dilation,
    COUNT: tl.constexpr, PADDED: tl.constexpr, SIDE: tl.constexpr, SMALL: tl.constexpr,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Kᵀ of the fluxes, (planes, kernels, H, W) → (planes, H, W).

    Pixels outside the image that K saw in a mirror give their share to those that they are images of. Such a
    mirror also turns the kernel round.
    """
    plane, y, x, inside = tile_of(height, width, HEIGHT, WIDTH, True)
    size = height.to(tl.int64) * width
    reach = dilation * (SIDE // 2)
    kernel = tl.arange(0, PADDED)[:, None]
    known = kernel < COUNT
    kernels += kernel * (SIDE * SIDE)
    fluxes += (plane * COUNT + kernel) * size
    shares = tl.zeros([PADDED, HEIGHT * WIDTH], out.dtype.element_ty)
    for across in range(SIDE):
        column, is_odd = mirrored(x - (across * dilation - reach), width, reach, SMALL)
        tap_x = tl.where(is_odd, SIDE - 1 - across, across)
        for down in range(SIDE):
            row, is_odd = mirrored(y - (down * dilation - reach), height, reach, SMALL)
            tap = tl.where(is_odd, SIDE - 1 - down, down) * SIDE + tap_x
            flux = tl.load(fluxes + row.to(tl.int64) * width + column, mask=known, other=0.0)
            shares += tl.load(kernels + tap, mask=known, other=0.0) * flux
    total = tl.sum(shares, axis=0)[None, :]
    tl.store(out + plane * size + y.to(tl.int64) * width + x, total, mask=inside)


@entry
def finish_stage(
    u, f, rates, out, numbers, channels, height, width, per_image,
    COUNT: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """The images after a stage."""
    plane, y, x, inside = tile_of(height, width, HEIGHT, WIDTH, True)
    here = plane * height * width + y.to(tl.int64) * width + x
    numbers += (plane // channels) * per_image + 3 * COUNT
    value, start, rate = (
        tl.load(u + here, mask=inside), tl.load(f + here, mask=inside), tl.load(rates + here, mask=inside),
    )  # fmt: skip
    after = learned_step(value, rate, start, tl.load(numbers), tl.load(numbers + 1))
    tl.store(out + here, after, mask=inside)
