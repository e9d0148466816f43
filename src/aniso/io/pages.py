"""Split pictures into pages that are filtered one by one. A photograph or a volume is one page."""

from __future__ import annotations

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
    count: int


@dataclass(frozen=True, eq=False)
class Pages:
    """The pages of a picture; a volume is one page."""

    picture: Picture
    spacing: Any = None
    volume: bool = False

    def __post_init__(self) -> None:
        if len(self.picture.shape) > 3:
            raise FileError(
                f"{self.picture.source} has {len(self.picture.shape)} axes besides the channels: images "
                "(H, W), stacks of them and volumes (D, H, W) can be filtered. Split it first."
            )

    @property
    def count(self) -> int:
        """Number of pages."""
        return 1 if self.axis is None else self.picture.shape[0]

    @property
    def axis(self) -> int | None:
        """The axis of the pages, if there are several."""
        if len(self.picture.shape) < 3 or self.volume:
            return None
        return int(self._channel_axis == 0)

    @property
    def _channel_axis(self) -> int | None:
        axis = self.picture.channel_axis
        return None if axis is None else axis % self.picture.pixels.ndim

    def __iter__(self) -> Iterator[Page]:
        pixels, channel = self.picture.pixels, self._channel_axis
        if pixels.dtype.kind in "iu" and pixels.dtype.itemsize >= 4:
            pixels = pixels.astype(np.float64)  # float32 has not enough digits for them
        axis = self.axis
        if axis is None:
            yield Page(pixels, channel, self.spacing, 1, 1)
            return
        if channel is not None and channel > axis:
            channel -= 1
        for number in range(self.count):
            yield Page(np.take(pixels, number, axis), channel, self.spacing, number + 1, self.count)

    @property
    def ndim(self) -> int:
        """Number of axes of a page, without channels."""
        return len(self.picture.shape) - (self.axis is not None)

    def outline(self, factors: Sequence[int] | None = None) -> Array:
        """Return zeros with the shape of all results, which are finer than the pages by these factors."""
        shape = list(self.picture.pixels.shape)
        axes = [axis for axis in range(len(shape)) if axis not in (self._channel_axis, self.axis)]
        for axis, factor in zip(axes, factors or (1,) * len(axes), strict=True):
            shape[axis] *= factor
        return np.broadcast_to(np.zeros((), self.picture.pixels.dtype), shape)

    def part_of_mask(self, mask: Mask, page: Page) -> Mask:
        """Return the part of a mask that belongs to a page; a mask of one page serves all."""
        if self.volume:
            return np.broadcast_to(mask, self.picture.shape)
        return mask[page.number - 1] if mask.ndim == len(self.picture.shape) == 3 else mask

    def join(self, results: Sequence[Array]) -> Array:
        """Stack the results of all pages in the order of the picture's axes."""
        return results[0] if self.axis is None else np.stack(results, axis=self.axis)


def is_volume(picture: Picture, wanted: bool | None) -> bool:
    """Return whether a stack is filtered as one volume; a single slice is an image."""
    if len(picture.shape) != 3 or picture.shape[0] == 1:
        return False
    if wanted is not None:
        return wanted
    if origin(picture).stack_is_volume:
        return True
    kind = picture.details.get("pages", "")
    return kind == "Z" or (kind not in ("T", "C") and picture.shape[0] >= _MANY_PAGES)


def is_guess(picture: Picture) -> bool:
    """Return whether `is_volume` goes by the number of pages, since the file does not say what they are."""
    return not origin(picture).stack_is_volume and "pages" not in picture.details


def voxel_shape(spacing: tuple[float, ...]) -> tuple[float, ...]:
    """Return the shape of the voxels, scaled so that the shortest side is 1 and lengths are in voxels."""
    return tuple(h / min(spacing) for h in spacing)
