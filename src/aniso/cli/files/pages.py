"""A picture as pages that are filtered one by one: a photograph or a volume is one page, a stack several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from aniso import io
from aniso.cli.options.bundles import Computing, Reading
from aniso.io.picture import FileError, Picture

Array = npt.NDArray[Any]

# So many pages of which a TIFF file does not say what they are, and more, are taken for a volume.
_MANY_PAGES = 8


@dataclass(frozen=True, eq=False)
class Page:
    """One image, and what the verbs have to know about it."""

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

    def outline(self, factor: int) -> Array:
        """An array like the joined results of a filter that makes pages so many times finer; all zeros."""
        shape = list(self.picture.pixels.shape)
        for axis in [axis for axis in range(len(shape)) if axis not in (self._channel_axis, self.axis)]:
            shape[axis] *= factor
        return np.broadcast_to(np.zeros((), self.picture.pixels.dtype), shape)

    def joined(self, results: Sequence[Array]) -> Array:
        """Results of all pages in the order of the picture's axes."""
        return results[0] if self.axis is None else np.stack(results, axis=self.axis)


def as_stored(path: Path, reading: Reading) -> Picture:
    """The picture in a file, as it says itself."""
    return io.read(path, limit=None if reading.no_limit else io.LIMIT)


def read(path: Path, reading: Reading) -> Picture:
    """The picture in a file, with the channels where the options say."""
    picture = replace(as_stored(path, reading), source=path)  # as people named it
    axis: Any = reading.channel_axis
    if axis is not None and picture.format != "NPY":
        if axis == "none" and picture.channel_axis is None:
            return picture
        raise FileError(
            f"{path} says itself where its channels are: --channel-axis is for NPY files. Leave it out."
        )
    if axis is None and picture.format == "NPY" and picture.pixels.ndim == 3:
        for colours in (-1, 0):
            if picture.pixels.shape[colours] in (3, 4):
                raise FileError(
                    f"{path} holds an array of shape {picture.pixels.shape}: colours, or grey "
                    f"slices? Add --channel-axis {colours} or --channel-axis none."
                )
    return picture if axis in (None, "none") else replace(picture, channel_axis=axis)


def pages(picture: Picture, reading: Reading, computing: Computing) -> Pages:
    """The pages, with their spacing."""
    volume = is_volume(picture, reading.volume)
    axes = 3 if volume else 2
    spacing, own = computing.spacing, picture.spacing
    if spacing == "file":
        if own is None:
            raise FileError(
                f"{picture.source} does not say how far its pixels are apart. Give --spacing "
                f"{'Z,Y,X' if volume else 'Y,X'}."
            )
        spacing = own[-axes:]
    elif spacing is None and volume and own is not None and len(own) == 3:
        spacing = voxel_shape(own)
    return Pages(picture, spacing, volume)


def is_volume(picture: Picture, wanted: bool | None) -> bool:
    """Whether a stack is filtered as one volume; a single slice is an image."""
    if len(picture.shape) != 3 or picture.shape[0] == 1:
        return False
    if wanted is not None:
        return wanted
    if picture.format != "TIFF":
        return True
    kind = picture.details.get("pages", "")
    return kind == "Z" or (kind not in ("T", "C") and picture.shape[0] >= _MANY_PAGES)


def voxel_shape(spacing: tuple[float, ...]) -> tuple[float, ...]:
    """The shape of the voxels, their shortest side 1: lengths stay what they are without it, in voxels."""
    return tuple(h / min(spacing) for h in spacing)
