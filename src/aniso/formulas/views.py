"""All cells of an array at once, as shifted views, for engines that compute on whole arrays.

The last axes are y and x, or z, y and x. Cell (i, j) has pixel (i, j) at its lower right corner, so that
an image of H × W pixels, mirrored by one pixel, has (H+1) × (W+1) cells; in volumes likewise.
"""

from __future__ import annotations

import itertools
from typing import Any

_FIRST, _LAST = slice(None, -1), slice(1, None)
# Number of corners → the views of all cells' corners, in the order 00, 01, 10, 11 or 000, 001, …, 111.
_CORNERS = {2**ndim: tuple(itertools.product((_FIRST, _LAST), repeat=ndim)) for ndim in (2, 3)}


def corners(padded: Any, ndim: int = 2) -> tuple[Any, ...]:
    """Return the corner values of every cell, from the image or volume mirrored by one pixel.

    For a field over cells, these are the values in the cells around every pixel: nw, ne, sw, se for images.
    """
    return tuple(padded[(..., *corner)] for corner in _CORNERS[2**ndim])


def pixel_sums(*shares: Any) -> Any:
    """Return the transpose: what every pixel receives as a corner of its cells; mirrored pixels drop out."""
    views = _CORNERS[len(shares)]
    # A pixel is the last corner of the cell before it. Opposite corners are added first.
    received = [share[(..., *view)] for share, view in zip(shares, reversed(views), strict=True)]
    half = len(received) // 2
    pairs = [received[-1 - k] + received[k] for k in range(half)]
    while len(pairs) > 1:
        pairs = [first + second for first, second in zip(pairs[::2], pairs[1::2], strict=True)]
    return pairs[0]


def pixel_means(field: Any, ndim: int = 2) -> Any:
    """Return the means of a field over cells in the cells around every pixel."""
    return sum(corners(field, ndim)) * 0.5**ndim
