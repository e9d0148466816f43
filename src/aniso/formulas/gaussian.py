"""The sampled Gaussian, and the mirrored pixels that it reaches, in exact integer arithmetic.

Positions are whole numbers of any size and sign, as an array or a tensor.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from aniso.formulas.operations import exp, minimum

Index = npt.NDArray[np.intp]


def gaussian_radius(sigma: float) -> int:
    """Return the radius of the kernel in pixels: 4σ, rounded."""
    return int(4 * sigma + 0.5)


def gaussian_weights(offsets: Any, sigma: Any) -> Any:
    """Return weights at these offsets, which sum to 1; σ > 0 in pixels."""
    distance = offsets / sigma
    weights = exp(-0.5 * (distance * distance))
    return weights / weights.sum()


def gaussian_kernel(sigma: float) -> npt.NDArray[np.float64]:
    """Return weights at −radius … radius, which sum to 1; σ in pixels."""
    radius = gaussian_radius(sigma)
    if radius == 0:
        return np.ones(1)
    kernel: npt.NDArray[np.float64] = gaussian_weights(np.arange(-radius, radius + 1), sigma)
    return kernel


def fold_at_edge(position: Any, length: int) -> Any:
    """Map positions to pixels mirrored at their edges: … 1 0 | 0 1 …."""
    position = position % (2 * length)
    return minimum(position, 2 * length - 1 - position)


def fold_at_centre(position: Any, length: int) -> tuple[Any, Any]:
    """Map positions to cells mirrored at the centre of the first and last one: … 2 1 0 1 2 ….

    The second result is the sign of an odd quantity there.
    """
    period = 2 * (length - 1)
    position = position % period
    return minimum(position, period - position), 1 - 2 * (position > length - 1)


def edge_fold(length: int, reach: int) -> Index:
    """Return the pixels at −reach … length−1+reach, mirrored at their edges."""
    index: Index = fold_at_edge(np.arange(-reach, length + reach), length)
    return index


def centre_fold(length: int, reach: int) -> tuple[Index, npt.NDArray[np.float64]]:
    """Return the cells at −reach … length−1+reach, mirrored at their centres, and the sign there."""
    index, sign = fold_at_centre(np.arange(-reach, length + reach), length)
    return index, sign.astype(np.float64)
