"""The candidate diffusions of denoise()."""

from __future__ import annotations

import numpy as np

from aniso.arrays import Array
from aniso.models import CoherenceEnhancing, EdgeEnhancing, ImageDriven

# In units of the noise level and in pixels: contrast and noise scale of edge-enhancing diffusion; contrast,
# noise scale, integration scale and plates of coherence-enhancing diffusion.
_EDGES = {2: ((0.2, 0.5), (0.45, 0.5), (0.9, 0.5)), 3: ((0.1, 1.0), (0.25, 0.5), (0.7, 0.5))}
# More edge-enhancing diffusions for strong noise, which see edges through wider Gaussians.
_STRONG = {2: ((0.12, 1.0), (0.07, 2.0)), 3: ((0.04, 1.5),)}
_COHERENCES = {2: ((0.2, 0.5, 2.0, True), (0.2, 1.0, 2.0, True)), 3: ((0.05, 0.7, 1.5, False),)}
# The least noise scale in pixels if single pixels may be bright by chance.
_WIDE = 1.0
# Noise over the standard deviation of the image from which on it is strong.
_STRONG_PART = 0.5
# The noise scale for a given contrast, in pixels.
_GIVEN_SIGMA = 0.5
# Spacing of a grid on which noise is nearly white, over its correlation.
_GRID_PER_CORRELATION = 1.6
# Times in squared pixels: the first one, the ratio of each to the one before, and their number.
_TIMES = {2: (0.25, 2.2, 7), 3: (0.25, 2.7, 6)}


def is_strong(level: float, windows: list[Array]) -> bool:
    """Return whether noise of this level is a large part of all that varies in windows of an image."""
    spread = np.concatenate([window.ravel() for window in windows]).std()
    return bool(level > _STRONG_PART * spread)


def grid_of(correlation: float) -> float:
    """Return the spacing, in pixels, of a grid on which noise with this correlation is nearly white."""
    return max(1.0, _GRID_PER_CORRELATION * correlation)


def choose_times(pixel: float, ndim: int) -> list[float]:
    """Return the times at which a diffusion may stop."""
    first, ratio, count = _TIMES[max(ndim, 2)]
    return [first * ratio**k * pixel**2 for k in range(count)]


def choose_models(
    level: float,
    contrast: float | None,
    pixel: float,
    ndim: int,
    *,
    strong: bool = False,
    normal: bool = True,
) -> list[ImageDriven]:
    """Return the diffusions to try for this noise level, or the one with a given contrast.

    Noise is `strong` if it is a large part of all that varies in the image. Noise that is not `normal` has
    single bright pixels, which are edges unless they are seen through a wide Gaussian.
    """
    if contrast is not None:
        return [_edge_enhancing(contrast, _GIVEN_SIGMA * pixel)]
    if level == 0:
        return []
    strength, dimension = level / pixel, max(ndim, 2)
    edges = (_EDGES[dimension] if normal else ()) + (_STRONG[dimension] if strong or not normal else ())
    models: list[ImageDriven] = [_edge_enhancing(k * strength, s * pixel) for k, s in edges]
    if ndim > 1:  # a signal has no direction
        models += [
            CoherenceEnhancing(contrast=k * strength, sigma=s * pixel, rho=r * pixel, plates=plates)
            for k, s, r, plates in _COHERENCES[dimension]
            if normal or s >= _WIDE
        ]
    return models


def _edge_enhancing(contrast: float, sigma: float) -> EdgeEnhancing:
    return EdgeEnhancing(contrast=contrast, sigma=sigma, diffusivity="perona-malik")
