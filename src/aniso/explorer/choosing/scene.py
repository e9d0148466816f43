"""What is looked at: a picture, or a slice of a volume, which is filtered by itself or with all others."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

from aniso.explorer.choosing.measures import Measures, invalid_pixels
from aniso.explorer.choosing.source import Source
from aniso.explorer.computing.blocks import block_means
from aniso.io.pages import voxel_shape
from aniso.io.picture import Picture

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Scene:
    """An image (H, W) or (H, W, C): a whole picture, or the slice of a volume.

    `whole` says whether the volume is filtered as one, of which this slice is shown. If not, the slice is
    an image like others.
    """

    source: Source
    axis: int = 0
    index: int = 0
    whole: bool = False
    _reduced: dict[int, Array] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if self.whole and not self.source.is_volume:
            raise ValueError(f"{self.source.name} is not a volume: there is one image to be filtered.")

    @functools.cached_property
    def image(self) -> Array:
        """What is on the page."""
        return self.at(self.source.pixels) if self.source.is_volume else self.source.pixels

    @property
    def filtered(self) -> Array:
        """What the verbs get: the image, or the whole volume."""
        return self.source.pixels if self.whole else self.image

    @property
    def extent(self) -> tuple[int, ...]:
        """Shape of what the verbs get, without channels."""
        return self.source.picture.shape if self.whole else self.shape

    def at(self, volume: Array) -> Array:
        """The slice of an array over the volume, which may be on a finer grid."""
        factor = volume.shape[self.axis] // self.source.picture.shape[self.axis]
        return volume[(slice(None),) * self.axis + (factor * self.index + factor // 2,)]

    def shown(self, result: Array) -> Array:
        """What the page shows of an array like those that the verbs return."""
        return self.at(result) if self.whole else result

    @property
    def channel_axis(self) -> int | None:
        """−1 for colours."""
        return None if self.source.picture.channel_axis is None else -1

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width."""
        return self.image.shape[0], self.image.shape[1]

    @property
    def spacing(self) -> tuple[float, ...] | None:
        """Distance of the pixels that are filtered, as the file says; None if it does not, or says 1."""
        given = self.source.picture.spacing
        if given is None or len(given) < len(self.source.picture.shape):
            return None
        own = given if self.whole or not self.source.is_volume else self.in_plane(given)
        return None if all(h == 1 for h in own) else tuple(map(float, own))

    @property
    def voxel_shape(self) -> tuple[float, ...] | None:
        """The spacing of volumes unless that of the file is asked for: as on the command line."""
        shape = voxel_shape(self.spacing) if self.whole and self.spacing is not None else ()
        return None if all(h == 1 for h in shape) else shape

    def in_plane(self, along_axes: tuple[float, ...]) -> tuple[float, ...]:
        """What belongs to the two axes of the slice."""
        return along_axes[: self.axis] + along_axes[self.axis + 1 :]

    @functools.cached_property
    def measures(self) -> Measures:
        """Estimated once; for volumes whatever slice of them is shown."""
        return self.source.measures if self.whole else Measures.of(self.image, self.channel_axis)

    @functools.cached_property
    def invalid_pixels(self) -> tuple[int, int]:
        """Of what the verbs get, how many numbers are NaN, and how many are infinite."""
        alone = self.source.is_volume and not self.whole
        return invalid_pixels(self.image) if alone else self.source.invalid_pixels

    @property
    def grey_range(self) -> tuple[float, float]:
        """What is shown as black and as white, the same for all slices."""
        return self.source.grey_range

    @property
    def like(self) -> Picture:
        """The picture whose type, alpha and profile a result of this shape is written with."""
        picture = self.source.picture
        if self.whole or not self.source.is_volume:
            return picture
        return Picture(self.image, channel_axis=self.channel_axis, dtype=picture.dtype)

    @property
    def suffix(self) -> str:
        """Of the file for results; a slice goes into a file that takes its numbers as they are."""
        if self.whole or not self.source.is_volume:
            return self.source.suffix
        return ".tif" if self.source.suffix in (".tif", ".tiff") else ".npy"

    def reduced(self, factor: int) -> Array:
        """The image in means of factor × factor pixels; kept, since sliders ask for it again and again."""
        if factor == 1:
            return self.image
        if factor not in self._reduced:
            self._reduced[factor] = block_means(self.image, factor)
        return self._reduced[factor]
