"""Coarser images: means of blocks of pixels."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def block_means(image: Array, factor: int) -> Array:
    """Return means of factor × factor pixels; blocks beyond the boundary repeat it.

    Examples
    --------
    >>> import numpy as np
    >>> from aniso.explorer.computing import blocks
    >>> blocks.block_means(np.arange(12.0).reshape(3, 4), 2)
    array([[ 2.5,  4.5],
           [ 8.5, 10.5]])
    """
    rows, columns = (-(-n // factor) for n in image.shape[:2])
    sums = np.zeros((rows, columns, *image.shape[2:]), real(image))
    # Without a floating-point copy of the whole image.
    for i, j in itertools.product(range(factor), repeat=2):
        last_row, last_column = image[-1:, j::factor], image[i::factor, -1:]
        part = image[i::factor, j::factor]
        if part.shape[0] < rows:
            part = np.concatenate([part, last_row])
            last_column = np.concatenate([last_column, image[-1:, -1:]])
        if part.shape[1] < columns:
            part = np.concatenate([part, last_column], axis=1)
        sums += part
    sums /= factor**2
    return sums


def real(image: Array) -> type[np.floating[Any]]:
    """Return the data type of means of its pixels."""
    return np.float64 if image.dtype == np.float64 else np.float32
