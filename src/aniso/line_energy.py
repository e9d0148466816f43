"""The energy of lines of one wavelength around each pixel, and whether it has a direction.

The image is seen through the Laplacian of a Gaussian, which passes lines about one wavelength apart and
little of a background that varies slowly, and the structure tensor of what passes is averaged over a window.
Its coherence is 1 for parallel lines (in volumes for parallel layers, and ½ for fibres) and near 0 where all
directions are alike.

Noise has no direction, but an average over a window is not exact. The gradients of noise that a Gaussian of
standard deviation S blurred have a correlation that falls with the distance as L₃(x²/4S²)·exp(−x²/4S²), with
the Laguerre polynomial L₃. A Gaussian window of standard deviation ρ then averages N = 6.4 ρ²/S² independent
gradients, and the squared coherence of an image of noise exceeds c² with the probability exp(−N·c²/2).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from aniso.arrays import Field

#: A Gaussian of an image (…), with the standard deviations along its axes in pixels; beyond the boundary the
#: image is mirrored.
Smooth = Callable[[Any, Sequence[float]], Any]

#: Standard deviation of the Gaussian over the wavelength that passes best: k³·exp(−k²s²/2) has its maximum at
#: k·s = √3.
SCALE = math.sqrt(3) / (2 * math.pi)
#: The coherence from which on there may be lines, and from which on there certainly are, by the number of
#: axes. Fibres have less of it than layers.
COHERENT = {2: (0.4, 0.6), 3: (0.16, 0.24)}
#: Standard deviation of the window over S, with which the coherence of noise exceeds the first of them in one
#: of 100 places: √(0.156·χ²/0.4²) for images, χ² = 9.21 (two degrees of freedom). Measured for volumes.
WINDOW = {2: 3.0, 3: 3.0}
# Places around which there are lines belong to them: the standard deviation of a Gaussian over the
# wavelength, and the mean weight within it from which on they do, and from which on they do entirely.
_AROUND, _SOME, _MOST = 1.2, 0.3, 0.6


def coarse_grid(wavelength: float, shape: Sequence[int], spacings: Sequence[float]) -> list[range]:
    """Return the pixels at which tensors are needed: about a quarter of the wavelength apart.

    Those near the boundary are left out: the image is mirrored there, which gives it a direction. The grid is
    symmetric, so that it is the same for a mirrored image. With an odd step this is always possible.
    """
    found = []
    for n, h in zip(shape, spacings, strict=True):
        trim = min(math.ceil(2 * SCALE * wavelength / h), (n - 1) // 4)
        step = 2 * int(wavelength / (8 * h)) + 1
        steps, rest = divmod(n - 1 - 2 * trim, step)
        if rest % 2 and steps:
            steps, rest = steps - 1, rest + step
        elif rest % 2:  # an even number of pixels, too few for a step
            step, steps, rest = 1, rest, 0
        first = trim + rest // 2
        found.append(range(first, first + steps * step + 1, step))
    return found


def line_energy(
    channels: Iterable[Field],
    wavelength: float,
    spacings: Sequence[float],
    window: float,
    smooth: Smooth,
    places: Sequence[range],
    blurred: Sequence[float] = (),
) -> tuple[Field, Field]:
    """Return the energy of lines and its coherence, from 0 to 1, at the pixels of a coarse grid.

    `places` are those of `coarse_grid`. `window` is the standard deviation of the window, in units of length.
    `blurred` are the variances of Gaussians that the channels have passed already.
    """
    scale = SCALE * wavelength
    done = blurred or (0.0,) * len(spacings)
    narrow = [math.sqrt(scale**2 - less) / h for less, h in zip(done, spacings, strict=True)]
    tensor: dict[tuple[int, int], Any] = {}
    for channel in channels:
        rates = _slopes(smooth(channel, narrow), places, [scale / h for h in spacings])
        for i, one in enumerate(rates):
            for j, other in enumerate(rates[: i + 1]):
                product = one * other
                tensor[i, j] = tensor[i, j] + product if (i, j) in tensor else product
    wide = [window / (h * one.step) for h, one in zip(spacings, places, strict=True)]
    return _coherence({pair: smooth(entry, wide) for pair, entry in tensor.items()})


def line_weight(
    coherence: Field, wavelength: float, spacings: Sequence[float], smooth: Smooth, places: Sequence[range]
) -> Field:
    """Return 0 where there are no lines, and 1 where there are.

    Lines that bend, meet or end have little coherence, but others around them.
    """
    least, enough = COHERENT[coherence.ndim]
    weight = np.clip((coherence - least) / (enough - least), 0, 1)
    around = smooth(weight, around_widths(wavelength, spacings, places))
    return np.maximum(weight, np.clip((around - _SOME) / (_MOST - _SOME), 0, 1))


def around_widths(wavelength: float, spacings: Sequence[float], places: Sequence[range]) -> list[float]:
    """Return the standard deviations of the Gaussian around a place, in steps of the coarse grid."""
    return [_AROUND * wavelength / (h * one.step) for h, one in zip(spacings, places, strict=True)]


def spread(values: Field, places: Sequence[range], shape: Sequence[int]) -> Field:
    """Interpolate values on a coarse grid linearly at all pixels; beyond the grid they are as at its end."""
    for axis, (one, n) in enumerate(zip(places, shape, strict=True)):
        position = np.clip(np.arange(n), one[0], one[-1]) - one.start
        before = position // one.step
        after = np.minimum(before + 1, len(one) - 1)
        share = ((position % one.step) / one.step).astype(values.dtype)
        share = share.reshape([-1 if k == axis else 1 for k in range(len(shape))])
        near = np.take(values, before, axis)
        values = np.take(values, after, axis)
        values -= near
        values *= share
        values += near
    return values


def noise_width(channels: Iterable[Field], wavelength: float, spacings: Sequence[float], quiet: Any) -> float:
    """Return S, the standard deviation of the Gaussian that blurred the noise, at the scale of lines.

    It includes that of the filter, and so is at least `SCALE` times the wavelength; at most twice of that, as
    smoother noise cannot be distinguished from lines. For the spectrum k⁴·exp(−k²S²), the ratio of the mean
    squares of gradient and Laplacian is 2S²/(n + 6), with n axes. Only `quiet` pixels count.
    """
    from scipy import ndimage

    scale = SCALE * wavelength
    gradient = curvature = 0.0
    for channel in channels:
        seen = ndimage.gaussian_filter(channel, [scale / h for h in spacings], mode="reflect")
        band = _laplacian(seen, spacings)
        for axis, h in enumerate(spacings):
            gradient += float(np.mean(_squared_slope(band, axis)[quiet])) / h**2
        curvature += float(np.mean(_laplacian(band, spacings)[quiet] ** 2))
    if curvature <= 0:
        return scale
    return min(max(math.sqrt((0.5 * len(spacings) + 3) * gradient / curvature), scale), 2 * scale)


def _squared_slope(image: Field, axis: int) -> Field:
    """Return the mean square of both differences to neighbours along an axis."""
    ends = [(int(k == axis), int(k == axis)) for k in range(image.ndim)]
    squares = np.pad(np.diff(image, axis=axis) ** 2, ends)
    n = image.shape[axis]
    return 0.5 * (squares.take(range(n), axis) + squares.take(range(1, n + 1), axis))


def _laplacian(image: Field, spacings: Sequence[float]) -> Field:
    from scipy import ndimage

    parts = (
        ndimage.correlate1d(image, np.array([1, -2, 1]) / h**2, axis, mode="reflect")
        for axis, h in enumerate(spacings)
    )
    return sum(parts, np.zeros_like(image))


def _slopes(seen: Any, places: Sequence[range], scales: Sequence[float]) -> list[Any]:
    """Return the derivatives of the Laplacian at some places, in units of the scales (in pixels)."""
    wide = np.pad(seen, 2, mode="symmetric")
    inner = (slice(1, -1),) * seen.ndim
    laplacian = wide[inner] * np.asarray(-2 * sum(scale**2 for scale in scales), seen.dtype)
    for axis, scale in enumerate(scales):
        pair = _shift(wide, inner, axis, slice(2, None)) + _shift(wide, inner, axis, slice(-2))
        pair *= np.asarray(scale**2, seen.dtype)
        laplacian += pair
    # Its first pixel lies one pixel outside.
    grid = tuple(slice(one.start + 1, one.stop + 1, one.step) for one in places)
    found = []
    for axis, (one, scale) in enumerate(zip(places, scales, strict=True)):
        after = _shift(laplacian, grid, axis, slice(one.start + 2, one.stop + 2, one.step))
        before = _shift(laplacian, grid, axis, slice(one.start, one.stop, one.step))
        found.append((after - before) * np.asarray(0.5 * scale, seen.dtype))
    return found


def _shift(image: Any, where: tuple[slice, ...], axis: int, along: slice) -> Any:
    return image[(*where[:axis], along, *where[axis + 1 :])]


def _coherence(tensor: dict[tuple[int, int], Any]) -> tuple[Field, Field]:
    """Return the trace of tensors (entries i, j ≤ i), and the norm of their deviators over its maximum."""
    ndim = max(i for i, _ in tensor) + 1
    energy = sum(tensor[i, i] for i in range(ndim))
    tiny = np.finfo(energy.dtype).tiny
    divisor = np.maximum(energy, tiny)
    total = np.zeros_like(energy)
    for (i, j), entry in tensor.items():
        share = entry / divisor
        total += (share - 1 / ndim) ** 2 if i == j else 2 * share * share
    # Nothing has a direction where there is nothing.
    total[energy <= tiny] = 0
    return energy, np.sqrt(total * (ndim / (ndim - 1)))
