"""Split pictures into pages that are filtered one by one. A photograph or a volume is one page.

The pages of a series of volumes (T, D, H, W) are its frames, or all slices of all frames.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from aniso.arrays import Array, Mask
from aniso.io.formats import origin
from aniso.io.picture import FileError, Picture

# A stack of at least this many pages is taken for a volume if the file does not say what they are.
_MANY_PAGES = 8


@dataclass(frozen=True, eq=False)
class Page:
    """One image, with the arguments that describe it to the verbs."""

    image: Array
    channel_axis: int | None
    spacing: Any
    number: int


@dataclass(frozen=True, eq=False)
class Pages:
    """The pages of a picture; `volume` means that each of them has three axes."""

    picture: Picture
    spacing: Any = None
    volume: bool = False

    def __post_init__(self) -> None:
        if len(self.picture.shape) > 4:
            raise FileError(
                f"{self.picture.source} has {len(self.picture.shape)} axes besides the channels: images "
                "(H, W), volumes (D, H, W), and stacks and series of them can be filtered. Split it first."
            )

    @property
    def count(self) -> int:
        """Number of pages."""
        return math.prod(self.stacked)

    @property
    def stacked(self) -> tuple[int, ...]:
        """Sizes of the axes along which pages are stacked; empty for a single page."""
        return self.picture.shape[: -self.ndim]

    @property
    def ndim(self) -> int:
        """Number of axes of a page, without channels."""
        return min(len(self.picture.shape), 3 if self.volume else 2)

    def __iter__(self) -> Iterator[Page]:
        pixels, axis = input_pixels(self.picture), self.picture.channel_axis
        if axis is not None:
            pixels, axis = np.moveaxis(pixels, axis, -1), self.ndim
        for number, index in enumerate(np.ndindex(self.stacked), 1):
            yield Page(pixels[index], axis, self.spacing, number)

    def outline(self, factors: Sequence[int] | None = None) -> Array:
        """Return zeros with the shape of all results, which are finer than the pages by these factors."""
        shape, axis = list(self.picture.shape), self.picture.channel_axis
        for place, factor in zip(range(-self.ndim, 0), factors or (1,) * self.ndim, strict=True):
            shape[place] *= factor
        zero = np.zeros((), self.picture.pixels.dtype)
        if axis is None:
            return np.broadcast_to(zero, shape)
        return np.moveaxis(np.broadcast_to(zero, (*shape, self.picture.pixels.shape[axis])), -1, axis)

    def part_of_mask(self, mask: Mask, page: Page) -> Mask:
        """Return the part of a mask that belongs to a page; a mask with fewer axes serves several."""
        each = np.broadcast_to(mask, self.picture.shape)
        return each[np.unravel_index(page.number - 1, self.stacked)] if self.stacked else each

    def join(self, results: Sequence[Array]) -> Array:
        """Stack the results of all pages in the order of the picture's axes."""
        axis, stack = self.picture.channel_axis, results[0]
        if self.stacked:
            stack = np.stack(results).reshape(*self.stacked, *stack.shape)
        return stack if axis is None else np.moveaxis(stack, -1, axis)


def input_pixels(picture: Picture) -> Array:
    """Return the pixels as the verbs take them: float32 does not have enough digits for large integers."""
    pixels = picture.pixels
    large = pixels.dtype.kind in "iu" and pixels.dtype.itemsize >= 4
    return pixels.astype(np.float64) if large else pixels


def is_volume(picture: Picture, wanted: bool | None) -> bool:
    """Return whether a stack is filtered as one volume, or each frame of a series; a slice is an image."""
    if len(picture.shape) < 3 or picture.shape[-3] == 1:
        return False
    if wanted is not None:
        return wanted
    if origin(picture).stack_is_volume or len(picture.shape) > 3:
        return True
    kind = picture.details.get("pages", "")
    return kind == "Z" or (kind not in ("T", "C") and picture.shape[0] >= _MANY_PAGES)


def is_guess(picture: Picture) -> bool:
    """Return whether `is_volume` goes by the number of pages, since the file does not say what they are."""
    known = origin(picture).stack_is_volume or len(picture.shape) > 3
    return not known and "pages" not in picture.details


def voxel_shape(spacing: tuple[float, ...]) -> tuple[float, ...]:
    """Return the shape of the voxels, scaled so that the shortest side is 1 and lengths are in voxels."""
    return tuple(h / min(spacing) for h in spacing)
