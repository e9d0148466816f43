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
from dataclasses import dataclass
from typing import Any

import numpy as np

from aniso.arrays import Field

#: A Gaussian of an image (…), with the standard deviations along its axes in pixels; beyond the boundary the
#: image is mirrored.
Smooth = Callable[[Any, Sequence[float]], Any]

#: Averages of products of derivatives, by the numbers i ≥ j of their axes.
Tensor = dict[tuple[int, int], Any]

#: Standard deviation of the Gaussian over the wavelength that passes best: k³·exp(−k²s²/2) has its maximum at
#: k·s = √3.
SCALE = math.sqrt(3) / (2 * math.pi)
#: The coherence from which on there may be lines, and from which on there certainly are, by the number of
#: axes. Fibres have less of it than layers.
COHERENT = {2: (0.4, 0.6), 3: (0.12, 0.2)}
#: Standard deviation of the window over S, with which the coherence of noise exceeds the first of them in one
#: of 100 places: √(0.156·χ²/0.4²) for images, χ² = 9.21 (two degrees of freedom). Measured for volumes.
WINDOW = {2: 3.0, 3: 3.0}
# Places around which there are lines belong to them: the standard deviation of a Gaussian over the
# wavelength, and the mean weight within it from which on they do, and from which on they do entirely.
AROUND, _SOME, _MOST = 1.2, 0.3, 0.6
# Standard deviation of the Gaussian within which a place has energy of its own, over the wavelength; and the
# shares of the energy in the window from which on it may belong to the lines, and from which on it does.
_OWN, _FAINT, _STRONG = 0.2, 0.05, 0.15
# The energy of a place over that of noise from which on it may be a line; from twice of that on it is.
_LOUD = 0.8
# The power of the number of mirror images with which the coherence of noise near the boundary grows.
_NEAR_BOUNDARY = 0.25
# The harmonic mean of the energy of noise over its mean, measured; and the share of the energy in the window
# below which a place is constant.
_HARMONIC, _CONSTANT = {2: 0.82, 3: 0.91}, 1e-4


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


@dataclass(frozen=True)
class LineScale:
    """Lines of one wavelength at the pixels of a coarse grid.

    `places` are those of `coarse_grid`, and `whole` is the coarse grid of the whole image if they are a part
    of it. Windows are Gaussian, with standard deviations in units of length.
    """

    wavelength: float
    spacings: Sequence[float]
    smooth: Smooth
    places: Sequence[range]
    whole: Sequence[range] = ()

    def tensor(self, channels: Iterable[Field], blurred: Sequence[float] = ()) -> Tensor:
        """Return the structure tensor of lines, not averaged yet.

        `blurred` are the variances of Gaussians that the channels have passed already.
        """
        scale = SCALE * self.wavelength
        done = blurred or (0.0,) * len(self.spacings)
        narrow = [math.sqrt(scale**2 - less) / h for less, h in zip(done, self.spacings, strict=True)]
        tensor: Tensor = {}
        for channel in channels:
            rates = _slopes(self.smooth(channel, narrow), self.places, [scale / h for h in self.spacings])
            for i, one in enumerate(rates):
                for j, other in enumerate(rates[: i + 1]):
                    product = one * other
                    tensor[i, j] = tensor[i, j] + product if (i, j) in tensor else product
        return tensor

    def energy(self, tensor: Tensor, window: float) -> tuple[Field, Field]:
        """Return the energy of lines and its coherence, from 0 to 1, within a window."""
        return _coherence(self._average(tensor, window))

    def own_energy(self, tensor: Tensor, energy: Field) -> tuple[Field, Field]:
        """Return the energy at each place itself, and 1 where it belongs to the lines in the window.

        `energy` is that within the window. What has far less does not belong to its lines: the share is 0.
        """
        widths = self._widths(_OWN * self.wavelength)
        own = sum(self.smooth(tensor[i, i], widths) for i in range(len(self.spacings)))
        share = own / np.maximum(energy, _tiny(energy))
        return own, np.clip((share - _FAINT) / (_STRONG - _FAINT), 0, 1)

    def weight(self, tensor: Tensor, window: float) -> Field:
        """Return 0 where there are no lines, and 1 where there are.

        Lines are coherent within the window, apart from the energy of the noise, and have more energy
        themselves than noise has. Lines that bend, meet or end have little coherence, but others around them.
        What has far less energy than the lines in its window does not belong to them.
        """
        energy, coherence = self.energy(tensor, window)
        own, share = self.own_energy(tensor, energy)
        noise = self._noise_energy(self._average(tensor, 0.5 * window), energy, window)
        coherence = coherence * energy / np.maximum(np.maximum(energy - noise, noise), _tiny(energy))
        weight = self.certainty(coherence, window)
        weight *= np.clip(own / np.maximum(_LOUD * noise, _tiny(own)) - 1, 0, 1)
        around = self.smooth(weight, self._widths(AROUND * self.wavelength))
        weight = np.maximum(weight, np.clip((around - _SOME) / (_MOST - _SOME), 0, 1))
        return weight * share

    def certainty(self, coherence: Field, window: float) -> Field:
        """Return 0 where noise may be as coherent by chance, and 1 where it certainly is not."""
        least, enough = COHERENT[coherence.ndim]
        chance = self._chance(window).astype(coherence.dtype)
        return np.clip((coherence - least * chance) / (enough - least), 0, 1)

    def _noise_energy(self, tensor: Tensor, energy: Field, window: float) -> Field:
        """Return the energy of noise around each place, from tensors averaged over half of the window.

        It is the harmonic mean over directions and over places in the window, to which lines contribute
        little: 1/trace(J⁻¹). Constant regions, which have next to no energy, do not count.
        """
        ndim = len(self.spacings)
        here = sum(tensor[i, i] for i in range(ndim))
        if ndim == 2:
            minors = here
            determinant = tensor[0, 0] * tensor[1, 1] - tensor[1, 0] * tensor[1, 0]
        else:
            (xx, xy, yy, xz, yz, zz) = (tensor[i, j] for i in range(3) for j in range(i + 1))
            first, second, third = yy * zz - yz * yz, xx * zz - xz * xz, xx * yy - xy * xy
            minors = first + second + third
            determinant = xx * first - xy * (xy * zz - yz * xz) + xz * (xy * yz - yy * xz)
        tiny = _tiny(here)
        mean = ndim * ndim * determinant / np.maximum(minors, tiny)
        # Differences of nearly equal products are inexact, but such tensors are coherent anyway.
        mean = np.maximum(mean, np.asarray(0.01, here.dtype) * here)
        counts = (here > np.asarray(_CONSTANT, here.dtype) * energy) & (mean > tiny)
        inverse = np.divide(1, mean, out=np.zeros_like(mean), where=counts)
        widths = self._widths(window)
        count, total = self.smooth(counts.astype(here.dtype), widths), self.smooth(inverse, widths)
        found = np.divide(count, total, out=np.zeros_like(mean), where=total > 0)
        return found / np.asarray(_HARMONIC[ndim], here.dtype)

    def _chance(self, window: float) -> Field:
        """Return how much more coherent noise is by chance: the window has mirror images at the boundary.

        A Gaussian window and its mirror image at the distance 2d overlap by exp(−d²/ρ²). With the root of
        that there would be as few errors as elsewhere, but lines near the boundary would be lost.
        """
        chance: Any = 1.0
        axes = zip(self.places, self.whole or self.places, self.spacings, strict=True)
        for axis, (one, every, h) in enumerate(axes):
            width = window / h
            before = np.arange(one.start, one.stop, one.step) - (every.start - 0.5 * every.step)
            length = float(len(every) * every.step)
            mirrored = 1 + 2 * math.exp(-((length / width) ** 2))
            mirrored = mirrored + sum(np.exp(-((far / width) ** 2)) for far in (before, length - before))
            chance = chance * mirrored.reshape([-1 if k == axis else 1 for k in range(len(self.places))])
        return np.asarray(chance**_NEAR_BOUNDARY)

    def _average(self, tensor: Tensor, window: float) -> Tensor:
        widths = self._widths(window)
        return {pair: self.smooth(entry, widths) for pair, entry in tensor.items()}

    def _widths(self, length: float) -> list[float]:
        """Return a length in steps of the coarse grid."""
        return [length / (h * one.step) for h, one in zip(self.spacings, self.places, strict=True)]


def _tiny(values: Field) -> Any:
    return np.finfo(values.dtype).tiny


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


def _coherence(tensor: Tensor) -> tuple[Field, Field]:
    """Return the trace of tensors (entries i, j ≤ i), and the norm of their deviators over its maximum."""
    ndim = max(i for i, _ in tensor) + 1
    energy = sum(tensor[i, i] for i in range(ndim))
    tiny = _tiny(energy)
    divisor = np.maximum(energy, tiny)
    total = np.zeros_like(energy)
    for (i, j), entry in tensor.items():
        share = entry / divisor
        total += (share - 1 / ndim) ** 2 if i == j else 2 * share * share
    # Nothing has a direction where there is nothing.
    total[energy <= tiny] = 0
    return energy, np.sqrt(total * (ndim / (ndim - 1)))
