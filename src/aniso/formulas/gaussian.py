"""The sampled Gaussian."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from aniso.formulas.operations import exp


def gaussian_radius(sigma: float) -> int:
    """How many pixels the kernel reaches to each side: 4σ, rounded."""
    return int(4 * sigma + 0.5)


def gaussian_weights(offsets: Any, sigma: Any) -> Any:
    """Weights at these offsets, which sum to 1; σ > 0 in pixels."""
    distance = offsets / sigma
    weights = exp(-0.5 * (distance * distance))
    return weights / weights.sum()


def gaussian_kernel(sigma: float) -> npt.NDArray[np.float64]:
    """Weights at −radius … radius, which sum to 1; σ in pixels."""
    radius = gaussian_radius(sigma)
    if radius == 0:
        return np.ones(1)
    kernel: npt.NDArray[np.float64] = gaussian_weights(np.arange(-radius, radius + 1), sigma)
    return kernel
