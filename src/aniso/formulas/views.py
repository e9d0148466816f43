"""All cells of an array at once: shifted views, for engines that compute on whole arrays.

The last two axes are y and x. Cell (i, j) has pixel (i, j) at its lower right corner, so that an
image of H × W pixels, mirrored by one pixel, has (H+1) × (W+1) cells.
"""

from __future__ import annotations

from typing import Any


def corners(padded: Any) -> tuple[Any, Any, Any, Any]:
    """Corner values u00, u01, u10, u11 of every cell, from the image mirrored by one pixel."""
    return (
        padded[..., :-1, :-1],
        padded[..., :-1, 1:],
        padded[..., 1:, :-1],
        padded[..., 1:, 1:],
    )


def pixel_sums(s00: Any, s01: Any, s10: Any, s11: Any) -> Any:
    """The transpose: what every pixel receives as a corner of its four cells; mirrored pixels drop out."""
    return (s11[..., :-1, :-1] + s00[..., 1:, 1:]) + (s10[..., :-1, 1:] + s01[..., 1:, :-1])


def pixel_cells(field: Any) -> tuple[Any, Any, Any, Any]:
    """The values of a field over cells in the four cells around every pixel: nw, ne, sw, se."""
    return corners(field)
