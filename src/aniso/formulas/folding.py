"""Where a mirrored image finds its values: integer arithmetic, exact for any reach."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Index = npt.NDArray[np.intp]


def edge_fold(length: int, reach: int) -> Index:
    """Indices −reach … length−1+reach of pixels mirrored at their edges: … 1 0 | 0 1 …."""
    position = np.arange(-reach, length + reach) % (2 * length)
    return np.minimum(position, 2 * length - 1 - position)


def centre_fold(length: int, reach: int) -> tuple[Index, npt.NDArray[np.float64]]:
    """Indices of cells mirrored at the centre of the first and last one: … 2 1 0 1 2 ….

    The second result is the sign of an odd quantity there.
    """
    period = 2 * (length - 1)
    position = np.arange(-reach, length + reach) % period
    mirrored = position > length - 1
    return np.where(mirrored, period - position, position), np.where(mirrored, -1.0, 1.0)
