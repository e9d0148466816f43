"""Where an image is flat: there, mixtures may have other weights than at edges."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from aniso.arrays import Array
from aniso.formulas.gaussian import gaussian_radius

# Gradients, over the noise level, that count as edges where weights may differ from flat regions; and the
# Gaussians in pixels through which gradients are seen and averaged.
EDGE_ENERGY = 0.05
SEEN, AVERAGED = 1.0, 1.5
REACH = gaussian_radius(SEEN) + gaussian_radius(AVERAGED)
# Rows (in volumes, slices) of a band in which flatness is computed at least, and its values.
_BAND, _BAND_VALUES = 24, 2**18


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
