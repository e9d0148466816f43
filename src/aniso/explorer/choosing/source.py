"""Sources of pictures, which are files and samples, and statistics for the ranges of sliders."""

from __future__ import annotations

import functools
import importlib.util
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from aniso import estimates, io, noise, samples
from aniso.arrays import Array
from aniso.io.formats import origin, suffix_of
from aniso.io.picture import Picture
from aniso.noise import NoiseEstimate

# Largest side of the part that is measured, in pixels, by the number of axes; and of that whose kind of noise
# is estimated.
_SIDE = {2: 512, 3: 80}
_NOISE_SIDE = {2: 256, 3: 80}


@dataclass(frozen=True)
class Measures:
    """Statistics of an image or volume: noise level, typical and steepest gradient, shortest side."""

    noise: float
    typical: float
    steepest: float
    side: int

    @classmethod
    def of(cls, image: Array, channel_axis: int | None) -> Measures:
        """Measure the image; only its middle part, if it is large."""
        part, shape = _middle(image, channel_axis, _SIDE)
        level = estimates.noise_level(part, channel_axis=channel_axis)
        typical = estimates.contrast(part, noise=level, quantile=0.8, channel_axis=channel_axis)
        steepest = estimates.contrast(part, noise=0.0, quantile=0.999, channel_axis=channel_axis)
        spread = float(part.max() - part.min()) or 1.0
        return cls(level, typical or 0.01 * spread, steepest or 0.1 * spread, min(shape))


def estimate_noise(image: Array, channel_axis: int | None) -> NoiseEstimate:
    """Estimate the noise of an image or volume; only of its middle part, if it is large."""
    part, _ = _middle(image, channel_axis, _NOISE_SIDE)
    return noise.estimate(part, channel_axis=channel_axis)


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
        need a NIfTI or MRC file.
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
        pixels = self.picture.pixels
        if pixels.dtype.kind in "iu" and pixels.dtype.itemsize >= 4:
            return pixels.astype(np.float64)  # float32 is not precise enough
        return pixels

    @functools.cached_property
    def noise(self) -> NoiseEstimate:
        """The noise of the image, or of the whole volume."""
        return estimate_noise(self.pixels, None if self.picture.channel_axis is None else -1)

    @functools.cached_property
    def measures(self) -> Measures:
        """The measures of the image, or of the whole volume."""
        return Measures.of(self.pixels, None if self.picture.channel_axis is None else -1)

    @functools.cached_property
    def invalid_pixels(self) -> tuple[int, int]:
        """The numbers of values that are NaN, and that are infinite."""
        return invalid_pixels(self.pixels)

    @functools.cached_property
    def grey_range(self) -> tuple[float, float]:
        """The values shown as black and as white."""
        return (0.0, 255.0) if self.picture.dtype == np.uint8 else grey_range(self.pixels)

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


# The synthetic samples, and their options.
_SYNTHETIC: dict[str, dict[str, Any]] = {
    **{name: {} for name in ("lighthouse", "fingerprint", "rings", "shapes")},
    **{name: {"gaps": 30} for name in ("fibres", "layers")},
}


def sample_names() -> list[str]:
    """Return the names of samples: synthetic ones, and photographs if scikit-image is installed."""
    return [*_SYNTHETIC, *(samples.PHOTOGRAPHS if importlib.util.find_spec("skimage") else ())]


def invalid_pixels(image: Array) -> tuple[int, int]:
    """Return the numbers of values that are NaN, and that are infinite."""
    if image.dtype.kind != "f":
        return 0, 0
    return int(np.isnan(image).sum()), int(np.isinf(image).sum())


def grey_range(pixels: Array) -> tuple[float, float]:
    """Return the values to show as black and as white: the range of known pixels without extremes."""
    some = pixels.reshape(-1)[:: max(1, pixels.size // 2**20)]
    known = some[np.isfinite(some)] if some.dtype.kind == "f" else some
    low, high = np.quantile(known, (0.001, 0.999)) if known.size else (0.0, 1.0)
    return (float(low), float(high)) if high > low else (float(low) - 0.5, float(low) + 0.5)
