"""The shown image: a picture, or a slice of a volume, which is filtered alone or as part of the volume."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

from aniso.arrays import Array
from aniso.explorer.choosing.parts import block_means
from aniso.explorer.choosing.source import Measures, Source, estimate_noise, invalid_pixels
from aniso.io.pages import voxel_shape
from aniso.io.picture import Picture
from aniso.noise import NoiseEstimate


@dataclass(frozen=True, eq=False)
class Scene:
    """An image (H, W) or (H, W, C): a whole picture, or the slice of a volume.

    `whole` means that the whole volume is filtered and this slice of it is shown. Otherwise the slice is
    filtered as an image.
    """

    source: Source
    axis: int = 0
    index: int = 0
    whole: bool = False
    _reduced: dict[int, Array] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if self.whole and not self.source.is_volume:
            raise ValueError(f"{self.source.name} is not a volume.")

    @functools.cached_property
    def image(self) -> Array:
        """The shown image."""
        return self.at(self.source.pixels) if self.source.is_volume else self.source.pixels

    @property
    def is_slice(self) -> bool:
        """Whether a slice of a volume is filtered as an image."""
        return self.source.is_volume and not self.whole

    @property
    def filtered(self) -> Array:
        """The input of the verbs: the image, or the whole volume."""
        return self.source.pixels if self.whole else self.image

    @property
    def extent(self) -> tuple[int, ...]:
        """Shape of the input of the verbs, without channels."""
        return self.source.picture.shape if self.whole else self.shape

    def at(self, volume: Array) -> Array:
        """Return the slice of an array over the volume, which may be on a finer grid."""
        factor = volume.shape[self.axis] // self.source.picture.shape[self.axis]
        return volume[(slice(None),) * self.axis + (factor * self.index + factor // 2,)]

    def shown(self, result: Array) -> Array:
        """Return what the page shows of a result of the verbs."""
        return self.at(result) if self.whole else result

    @property
    def channel_axis(self) -> int | None:
        """−1 for colour images."""
        return None if self.source.picture.channel_axis is None else -1

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width."""
        return self.image.shape[0], self.image.shape[1]

    @property
    def spacing(self) -> tuple[float, ...] | None:
        """Pixel spacing of the input of the verbs, from the file; None if it is unknown or 1."""
        given = self.source.picture.spacing
        if given is None or len(given) < len(self.source.picture.shape):
            return None
        own = self.in_plane(given) if self.is_slice else given
        return None if all(h == 1 for h in own) else tuple(map(float, own))

    @property
    def voxel_shape(self) -> tuple[float, ...] | None:
        """Default spacing of volumes, as on the command line."""
        shape = voxel_shape(self.spacing) if self.whole and self.spacing is not None else ()
        return None if all(h == 1 for h in shape) else shape

    def in_plane(self, along_axes: tuple[float, ...]) -> tuple[float, ...]:
        """Return the values of the two axes of the slice."""
        return along_axes[: self.axis] + along_axes[self.axis + 1 :]

    @functools.cached_property
    def measures(self) -> Measures:
        """The measures, estimated once; for volumes they do not depend on the slice."""
        return self.source.measures if self.whole else Measures.of(self.image, self.channel_axis)

    @functools.cached_property
    def noise(self) -> NoiseEstimate:
        """The noise, estimated when it is first needed, since it takes longer than the measures."""
        return self.source.noise if self.whole else estimate_noise(self.image, self.channel_axis)

    @functools.cached_property
    def invalid_pixels(self) -> tuple[int, int]:
        """The numbers of values in the input of the verbs that are NaN, and that are infinite."""
        return invalid_pixels(self.image) if self.is_slice else self.source.invalid_pixels

    @property
    def grey_range(self) -> tuple[float, float]:
        """The values shown as black and as white, the same for all slices."""
        return self.source.grey_range

    @property
    def like(self) -> Picture:
        """The picture whose data type, alpha and profile the result gets."""
        if self.is_slice:
            return Picture(self.image, channel_axis=self.channel_axis, dtype=self.source.picture.dtype)
        return self.source.picture

    @property
    def suffix(self) -> str:
        """Suffix of the file for results; slices need a format that stores any numbers."""
        slice_suffix = ".tif" if self.source.suffix in (".tif", ".tiff") else ".npy"
        return slice_suffix if self.is_slice else self.source.suffix

    def reduced(self, factor: int) -> Array:
        """Return the image as means of factor × factor pixels; cached for the next movement of a slider."""
        if factor == 1:
            return self.image
        if factor not in self._reduced:
            self._reduced[factor] = block_means(self.image, factor)
        return self._reduced[factor]
