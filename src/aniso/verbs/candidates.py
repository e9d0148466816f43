"""The diffusions that denoising tries."""

from __future__ import annotations

from aniso.models import CoherenceEnhancing, EdgeEnhancing, ImageDriven

# The candidates, over the noise level and in pixels: contrast and noise scale of edge-enhancing diffusion;
# contrast, noise and integration scale of coherence-enhancing one, and whether it takes plates for structure.
_EDGES = {2: ((0.2, 0.5), (0.45, 0.5), (0.9, 0.5)), 3: ((0.1, 1.0), (0.25, 0.5), (0.7, 0.5))}


_COHERENCES = {
    2: ((0.2, 0.5, 2.0, True), (0.2, 1.0, 2.0, True)),
    3: ((0.1, 0.5, 1.0, True), (0.05, 0.7, 1.5, False)),
}


GIVEN_SIGMA = 0.5


# Times, in squared pixels, and how many of them before and after the best one help to mix.
TIMES = tuple(0.25 * 1.35**k for k in range(17))


def edge_enhancing(contrast: float, sigma: float) -> EdgeEnhancing:
    """The candidate with this contrast and noise scale."""
    return EdgeEnhancing(contrast=contrast, sigma=sigma, diffusivity="perona-malik")


def candidates(level: float, pixel: float, ndim: int) -> list[ImageDriven]:
    """The diffusions that are tried for this noise level."""
    strength, dimension = level / pixel, max(ndim, 2)
    models: list[ImageDriven] = [edge_enhancing(k * strength, s * pixel) for k, s in _EDGES[dimension]]
    if ndim > 1:  # a signal has no direction
        models += [
            CoherenceEnhancing(contrast=k * strength, sigma=s * pixel, rho=r * pixel, plates=plates)
            for k, s, r, plates in _COHERENCES[dimension]
        ]
    return models
