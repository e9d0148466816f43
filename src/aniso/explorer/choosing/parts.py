"""Parts of the image, the visible one and the computed one, and coarser images."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from aniso.arrays import Array


@dataclass(frozen=True)
class View:
    """The part of the image that the page shows, in pixels, and screen pixels per pixel."""

    left: float
    top: float
    right: float
    bottom: float
    scale: float

    @property
    def factor(self) -> int:
        """Image pixels per screen pixel, along each side."""
        return max(1, math.floor(1 / self.scale)) if self.scale > 0 else 1

    @classmethod
    def of_all(cls, shape: tuple[int, int]) -> View:
        """Return the view of the whole image, pixel by pixel."""
        return cls(0, 0, shape[1], shape[0], 1.0)


@dataclass(frozen=True)
class Part:
    """A window of the image, in blocks of factor × factor pixels.

    For a volume it has `depth` such blocks on each side of the slice as well.
    """

    top: int
    bottom: int
    left: int
    right: int
    factor: int
    depth: int = 0

    @property
    def rectangle(self) -> tuple[int, int, int, int]:
        """Left, top, right, bottom in pixels of the image."""
        f = self.factor
        return self.left * f, self.top * f, self.right * f, self.bottom * f

    def covers(self, shape: tuple[int, int]) -> bool:
        """Whether an image of this shape lies in it."""
        left, top, right, bottom = self.rectangle
        return left <= 0 and top <= 0 and right >= shape[1] and bottom >= shape[0]

    @property
    def pixels(self) -> int:
        """Number of pixels to compute."""
        return (self.bottom - self.top) * (self.right - self.left) * (2 * self.depth + 1)

    def of(self, array: Array) -> Array:
        """Return the part of an array over the blocks."""
        return array[self.top : self.bottom, self.left : self.right]


def block_means(image: Array, factor: int) -> Array:
    """Return means of factor × factor pixels; blocks beyond the boundary repeat it."""
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
