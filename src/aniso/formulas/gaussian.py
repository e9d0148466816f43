"""The sampled Gaussian."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def gaussian_radius(sigma: float) -> int:
    """How many pixels the kernel reaches to each side: 4σ, rounded."""
    return int(4 * sigma + 0.5)


def gaussian_kernel(sigma: float) -> npt.NDArray[np.float64]:
    """Weights at −radius … radius, which sum to 1; σ in pixels."""
    radius = gaussian_radius(sigma)
    if radius == 0:
        return np.ones(1)
    offsets = np.arange(-radius, radius + 1)
    weights = np.exp(-0.5 * (offsets / sigma) ** 2)
    return weights / weights.sum()
