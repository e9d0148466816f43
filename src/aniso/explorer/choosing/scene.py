"""The shown image: a picture or a slice of a volume, where it comes from, its statistics, and parts of it."""

from __future__ import annotations

import functools
import importlib.util
import itertools
import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from aniso import estimates, io, noise, samples
from aniso.arrays import Array
from aniso.io.formats import origin, suffix_of
from aniso.io.pages import input_pixels, voxel_shape
from aniso.io.picture import Picture
from aniso.noise import NoiseEstimate

# Largest side of the part that is measured, in pixels, by the number of axes; and of that whose kind of noise
# is estimated.
_SIDE = {2: 512, 3: 80}
_NOISE_SIDE = {2: 256, 3: 80}
# The synthetic samples, and their options.
_SYNTHETIC: dict[str, dict[str, Any]] = {
    **{name: {} for name in ("lighthouse", "fingerprint", "rings", "shapes")},
    **{name: {"gaps": 30} for name in ("fibres", "layers")},
}


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
    missing = [(0, -n % factor) for n in image.shape[:2]]
    if missing != [(0, 0), (0, 0)]:
        image = np.pad(image, [*missing, *[(0, 0)] * (image.ndim - 2)], mode="edge")
    sums = np.zeros((image.shape[0] // factor, image.shape[1] // factor, *image.shape[2:]), real(image))
    # Without a floating-point copy of the whole image.
    for i, j in itertools.product(range(factor), repeat=2):
        sums += image[i::factor, j::factor]
    sums /= factor**2
    return sums


def real(image: Array) -> type[np.floating[Any]]:
    """Return the data type of means of its pixels."""
    return np.float64 if image.dtype == np.float64 else np.float32


class Measures(NamedTuple):
    """Noise level, typical and steepest gradient, shortest side."""

    noise: float
    typical: float
    steepest: float
    side: int


@dataclass(frozen=True, eq=False)
class Statistics:
    """What is known about an image or volume, from its middle part if it is large."""

    image: Array
    channel_axis: int | None

    @functools.cached_property
    def measures(self) -> Measures:
        """The measures that ranges of sliders follow from."""
        part, shape = _middle(self.image, self.channel_axis, _SIDE)
        level = estimates.noise_level(part, channel_axis=self.channel_axis)
        typical = estimates.contrast(part, noise=level, quantile=0.8, channel_axis=self.channel_axis)
        steepest = estimates.contrast(part, noise=0.0, quantile=0.999, channel_axis=self.channel_axis)
        spread = float(part.max() - part.min()) or 1.0
        return Measures(level, typical or 0.01 * spread, steepest or 0.1 * spread, min(shape))

    @functools.cached_property
    def noise(self) -> NoiseEstimate:
        """The noise, estimated when it is first needed, since it takes longer than the measures."""
        part, _ = _middle(self.image, self.channel_axis, _NOISE_SIDE)
        return noise.estimate(part, channel_axis=self.channel_axis)

    @functools.cached_property
    def invalid_pixels(self) -> tuple[int, int]:
        """The numbers of values that are NaN, and that are infinite, in the whole image."""
        if self.image.dtype.kind != "f":
            return 0, 0
        return int(np.isnan(self.image).sum()), int(np.isinf(self.image).sum())


def _middle(image: Array, channel_axis: int | None, sides: dict[int, int]) -> tuple[Array, tuple[int, ...]]:
    """Return the middle part in double precision, and the shape of the image without channels."""
    shape = image.shape if channel_axis is None else image.shape[:-1]
    longest = sides[len(shape)]
    starts = [max(0, (n - longest) // 2) for n in shape]
    middle = tuple(slice(start, start + longest) for start in starts)
    return np.nan_to_num(image[middle].astype(np.float64), posinf=0.0, neginf=0.0), shape


@dataclass(frozen=True, eq=False)
class Source:
    """A picture, its name, and the line of Python that reads or computes it."""

    picture: Picture
    name: str
    line: str
    is_file: bool

    @classmethod
    def of_file(cls, path: Path, name: str | None = None) -> Source:
        """Read a file; `name` is its original name.

        Arrays (H, W, 3) and (H, W, 4) of NPY files are treated as colour images. Volumes with 3 or 4 columns
        need a file of another format, such as NIfTI or TIFF.
        """
        try:
            picture = io.read(path)
        except io.FileError as error:  # the user knows its name, not where it is stored here
            raise io.FileError(str(error).replace(str(path), name or str(path))) from error
        if (
            not origin(picture).says_channels
            and picture.pixels.ndim == 3
            and picture.pixels.shape[-1] in (3, 4)
        ):
            picture = replace(picture, channel_axis=-1)
        name = name or str(path)
        if len(picture.shape) not in (2, 3):
            raise io.FileError(
                f"{Path(name).name} has {len(picture.shape)} axes other than channels, but the explorer "
                "shows images and volumes only. Split it first."
            )
        return cls(picture, name, f"aniso.io.read({name!r})", True)

    @classmethod
    def of_sample(cls, name: str) -> Source:
        """Return one of :func:`sample_names`."""
        if name in samples.PHOTOGRAPHS:
            image, line, suffix = samples.photograph(name), f"aniso.samples.photograph({name!r})", ".png"
        else:
            options = ", ".join(f"{option}={value!r}" for option, value in _SYNTHETIC[name].items())
            line, suffix = f"aniso.samples.{name}({options}).image", ".npy"
            image = getattr(samples, name)(**_SYNTHETIC[name]).image
        picture = Picture(image, channel_axis=-1 if image.shape[-1] == 3 else None)
        return cls(picture, name + suffix, line, False)

    @functools.cached_property
    def pixels(self) -> Array:
        """The input of the verbs, as on the command line."""
        return input_pixels(self.picture)

    @functools.cached_property
    def statistics(self) -> Statistics:
        """Those of the image, or of the whole volume."""
        return Statistics(self.pixels, None if self.picture.channel_axis is None else -1)

    @functools.cached_property
    def grey_range(self) -> tuple[float, float]:
        """The values shown as black and as white: the range of known pixels without extremes."""
        if self.picture.dtype == np.uint8:
            return 0.0, 255.0
        some = self.pixels.reshape(-1)[:: max(1, self.pixels.size // 2**20)]
        known = some[np.isfinite(some)] if some.dtype.kind == "f" else some
        low, high = np.quantile(known, (0.001, 0.999)) if known.size else (0.0, 1.0)
        return (float(low), float(high)) if high > low else (float(low) - 0.5, float(low) + 0.5)

    @property
    def is_volume(self) -> bool:
        """Whether there are slices to choose from."""
        return len(self.picture.shape) == 3

    @property
    def stem(self) -> str:
        """The name without folder and suffix."""
        return Path(self.name).name.removesuffix(self.suffix) if self.suffix else Path(self.name).name

    @property
    def suffix(self) -> str:
        """The suffix with its dot; .nii.gz is one."""
        return suffix_of(Path(self.name))


def sample_names() -> list[str]:
    """Return the names of samples: synthetic ones, and photographs if scikit-image is installed."""
    return [*_SYNTHETIC, *(samples.PHOTOGRAPHS if importlib.util.find_spec("skimage") else ())]


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
    #: What was computed for this scene: coarser images by factor, and sorted gradients.
    _reduced: dict[int, Array] = field(default_factory=dict, init=False, repr=False)
    gradients: dict[tuple[float, Any], Array] = field(default_factory=dict, init=False, repr=False)

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
    def rectangle(self) -> tuple[int, int, int, int]:
        """Left, top, right, bottom of the whole image."""
        return 0, 0, self.shape[1], self.shape[0]

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
    def statistics(self) -> Statistics:
        """Those of the input of the verbs; of a whole volume, they do not depend on the slice."""
        return Statistics(self.image, self.channel_axis) if self.is_slice else self.source.statistics

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
