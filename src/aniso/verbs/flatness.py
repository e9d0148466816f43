"""Where an image is flat: there, mixtures may have other weights than at edges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from aniso.arrays import Array
from aniso.formulas.gaussian import gaussian_radius

if TYPE_CHECKING:
    from torch import Tensor

# Gradients, over the noise level, that count as edges where weights may differ from flat regions; and the
# Gaussians in pixels through which gradients are seen and averaged.
EDGE_ENERGY = 0.05
SEEN, AVERAGED = 1.0, 1.5
REACH = gaussian_radius(SEEN) + gaussian_radius(AVERAGED)
# Rows (in volumes, slices) of a band in which flatness is computed at least, and its values.
_BAND, _BAND_VALUES = 16, 2**18


def flatness(image: Array, level: float) -> Array:
    """Return values near 1 in flat regions and near 0 at edges, from the gradient over the noise level."""
    flat = np.empty(image.shape[1:], image.dtype)
    for rows, band in flat_bands(image, level):
        flat[rows] = band
    return flat


def flat_bands(image: Array, level: float) -> Iterator[tuple[slice, Array]]:
    """Yield the flatness band by band, because it takes several times the memory of the image."""
    length = image.shape[1]
    rows = max(_BAND, _BAND_VALUES // max(image[0, 0].size, 1))
    for core in range(0, length, rows):
        low, high = max(core - REACH, 0), min(core + rows + REACH, length)
        yield slice(core, core + rows), _band_flatness(image[:, low:high], level)[core - low :][:rows]


def _band_flatness(image: Array, level: float) -> Array:
    from scipy import ndimage

    energy = np.zeros(image.shape[1:], image.dtype)
    for channel in image:
        for axis in range(energy.ndim):
            order = [int(axis == other) for other in range(energy.ndim)]
            slope = ndimage.gaussian_filter(channel, SEEN, order=order)
            energy += np.divide(np.multiply(slope, slope, out=slope), len(image), out=slope)
            del slope  # before the next one is computed
    ndimage.gaussian_filter(energy, AVERAGED, output=energy)
    energy /= EDGE_ENERGY * level**2
    energy += 1
    return np.divide(1, energy, out=energy)


def tensor_flatness(image: Tensor, level: float) -> Tensor:
    """Return the flatness of a tensor (images, channels, …) on any device, (images, 1, …)."""
    from aniso.engines.torch.smoothing import half_kernel, smooth_pixels

    axes = range(2 - image.ndim, 0)
    seen, averaged = half_kernel(SEEN, image), half_kernel(AVERAGED, image)
    assert seen is not None
    energy = image.new_zeros(image[:, :1].shape)
    for axis in axes:
        slope = smooth_pixels(image, tuple(None if other == axis else seen for other in axes))
        energy = energy + _derivative(slope, seen, axis).square().mean(dim=1, keepdim=True)
    energy = smooth_pixels(energy, (averaged,) * len(axes))
    return 1 / (1 + energy / (EDGE_ENERGY * level**2))


def _derivative(u: Tensor, kernel: Tensor, axis: int) -> Tensor:
    """Return the derivative of a Gaussian-smoothed image along an axis."""
    from aniso.engines.torch.smoothing import extend_edge

    reach, length = len(kernel) - 1, u.shape[axis]
    extended = extend_edge(u, reach, axis)
    total = u.new_zeros(u.shape)
    for distance in range(1, reach + 1):
        ahead, behind = (extended.narrow(axis, reach + s * distance, length) for s in (1, -1))
        total = total + distance / SEEN**2 * kernel[distance] * (ahead - behind)
    return total
