"""What is looked at: a picture from a file or a sample, and the slice of it that is on the page."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from aniso import estimates, io, samples
from aniso.picture import Picture

Array = npt.NDArray[Any]

# Estimates that only set the ranges of sliders look at so many pixels per side.
_LOOK_AT = 512


@dataclass(frozen=True, eq=False)
class Source:
    """A picture, the name that people know it by, and the line of Python that gives it."""

    picture: Picture
    name: str
    line: str
    is_file: bool

    @classmethod
    def of_file(cls, path: Path, name: str | None = None) -> Source:
        """From a file; `name` is what it was called where it came from."""
        picture = io.read(path)
        if picture.format == "NPY" and picture.pixels.ndim == 3 and picture.pixels.shape[-1] in (3, 4):
            picture = replace(picture, channel_axis=-1)
        name = name or str(path)
        if len(picture.shape) not in (2, 3):
            raise io.FileError(
                f"{Path(name).name} has {len(picture.shape)} axes besides the channels: the explorer shows "
                "images and volumes. Split it first."
            )
        return cls(picture, name, f"aniso.io.read({name!r})", True)

    @classmethod
    def of_sample(cls, name: str) -> Source:
        """One of :func:`sample_names`."""
        if name in samples.PHOTOGRAPHS:
            image, line, suffix = samples.photograph(name), f"aniso.samples.photograph({name!r})", ".png"
        else:
            image, line, suffix = _SYNTHETIC[name]().image, f"aniso.samples.{name}().image", ".npy"
        picture = Picture(image, channel_axis=-1 if image.shape[-1] == 3 else None)
        return cls(picture, name + suffix, line, False)

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
        """With its dot; .nii.gz is one."""
        from aniso.formats import suffix_of

        return suffix_of(Path(self.name))


_SYNTHETIC: dict[str, Callable[[], samples.Sample]] = {
    "lighthouse": functools.partial(samples.lighthouse),
    "fingerprint": functools.partial(samples.fingerprint),
    "rings": functools.partial(samples.rings),
    "shapes": functools.partial(samples.shapes),
}


def sample_names() -> list[str]:
    """Samples that can be opened here: synthetic ones, and photographs where scikit-image is installed.

    Examples
    --------
    >>> from aniso.explorer import scene
    >>> scene.sample_names()[0]
    'lighthouse'
    """
    import importlib.util

    photographs = samples.PHOTOGRAPHS if importlib.util.find_spec("skimage") else ()
    return [*_SYNTHETIC, *photographs]


@dataclass(frozen=True)
class Measures:
    """Figures of an image from which ranges follow, and what "auto" takes for models."""

    noise: float
    typical: float
    steepest: float
    side: int

    @classmethod
    def of(cls, image: Array, channel_axis: int | None) -> Measures:
        """Of the middle of the image, if it is large."""
        starts = [max(0, (n - _LOOK_AT) // 2) for n in image.shape[:2]]
        middle = tuple(slice(start, start + _LOOK_AT) for start in starts)
        part = np.nan_to_num(image[middle].astype(np.float64))
        noise = estimates.noise_level(part, channel_axis=channel_axis)

        def strength(quantile: float) -> float:
            return estimates.contrast(part, noise=0.0, quantile=quantile, channel_axis=channel_axis)

        spread = float(part.max() - part.min()) or 1.0
        typical = estimates.contrast(part, noise=noise, quantile=0.8, channel_axis=channel_axis)
        return cls(noise, typical or 0.01 * spread, strength(0.999) or 0.1 * spread, min(image.shape[:2]))


@dataclass(frozen=True, eq=False)
class Scene:
    """An image (H, W) or (H, W, C): a whole picture, or the slice of a volume."""

    source: Source
    axis: int = 0
    index: int = 0
    _reduced: dict[int, Array] = field(default_factory=dict, repr=False)

    @functools.cached_property
    def image(self) -> Array:
        """What the verbs get."""
        pixels = self.source.picture.pixels
        if self.source.is_volume:
            pixels = np.take(pixels, self.index, self.axis)
        if pixels.dtype.kind in "iu" and pixels.dtype.itemsize >= 4:
            return pixels.astype(np.float64)  # float32 has not enough digits for them
        return pixels

    @property
    def channel_axis(self) -> int | None:
        """−1 for colours."""
        return None if self.source.picture.channel_axis is None else -1

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width."""
        return self.image.shape[0], self.image.shape[1]

    @property
    def spacing(self) -> tuple[float, float] | None:
        """Distance of the pixels of this slice, as the file says; None if it does not, or says 1."""
        given = self.source.picture.spacing
        if given is None or len(given) < len(self.source.picture.shape):
            return None
        own = [h for axis, h in enumerate(given) if not self.source.is_volume or axis != self.axis]
        return None if own[0] == own[1] == 1 else (float(own[0]), float(own[1]))

    @functools.cached_property
    def measures(self) -> Measures:
        """Estimated once."""
        return Measures.of(self.image, self.channel_axis)

    @functools.cached_property
    def grey_range(self) -> tuple[float, float]:
        """What is shown as black and as white."""
        if self.source.picture.dtype == np.uint8:
            return 0.0, 255.0
        image = self.image
        known = image[np.isfinite(image)] if image.dtype.kind == "f" else image
        step = max(1, known.size // 2**20)
        low, high = np.quantile(known.reshape(-1)[::step], (0.001, 0.999)) if known.size else (0.0, 1.0)
        return (float(low), float(high)) if high > low else (float(low) - 0.5, float(low) + 0.5)

    @property
    def like(self) -> Picture:
        """The picture whose type, alpha and profile a result of this shape is written with."""
        picture = self.source.picture
        if not self.source.is_volume:
            return picture
        return Picture(self.image, channel_axis=self.channel_axis, dtype=picture.dtype)

    @property
    def suffix(self) -> str:
        """Of the file for results; a slice goes into a file that takes its numbers as they are."""
        if not self.source.is_volume:
            return self.source.suffix
        return ".tif" if self.source.suffix in (".tif", ".tiff") else ".npy"

    def reduced(self, factor: int) -> Array:
        """The image in means of factor × factor pixels; kept, since sliders ask for it again and again."""
        if factor == 1:
            return self.image
        if factor not in self._reduced:
            self._reduced[factor] = block_means(self.image, factor)
        return self._reduced[factor]


def block_means(image: Array, factor: int) -> Array:
    """Means of factor × factor pixels; where blocks reach beyond the boundary, it is repeated.

    Examples
    --------
    >>> import numpy as np
    >>> from aniso.explorer import scene
    >>> scene.block_means(np.arange(12.0).reshape(3, 4), 2)
    array([[ 2.5,  4.5],
           [ 8.5, 10.5]])
    """
    rows, columns = (-(-n // factor) for n in image.shape[:2])
    real = np.float64 if image.dtype == np.float64 else np.float32
    sums = np.zeros((rows, columns, *image.shape[2:]), real)
    # Without a copy of the whole image in floats, which may be large.
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
