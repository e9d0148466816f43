"""Sources of pictures: files, and samples."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from aniso import io, samples
from aniso.explorer.choosing.measures import Measures, grey_range, invalid_pixels
from aniso.io.picture import Picture

Array = npt.NDArray[Any]


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
        if picture.format == "NPY" and picture.pixels.ndim == 3 and picture.pixels.shape[-1] in (3, 4):
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
            line = f"aniso.samples.{name}({_words(name)}).image"
            image, suffix = _SYNTHETIC[name]().image, ".npy"
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
        from aniso.io.formats import suffix_of

        return suffix_of(Path(self.name))


_SYNTHETIC: dict[str, functools.partial[samples.Sample]] = {
    "lighthouse": functools.partial(samples.lighthouse),
    "fingerprint": functools.partial(samples.fingerprint),
    "rings": functools.partial(samples.rings),
    "shapes": functools.partial(samples.shapes),
    "fibres": functools.partial(samples.fibres, gaps=30),
    "layers": functools.partial(samples.layers, gaps=30),
}


def sample_names() -> list[str]:
    """Return the names of samples: synthetic ones, and photographs if scikit-image is installed.

    Examples
    --------
    >>> from aniso.explorer.choosing import source
    >>> source.sample_names()[0]
    'lighthouse'
    """
    import importlib.util

    photographs = samples.PHOTOGRAPHS if importlib.util.find_spec("skimage") else ()
    return [*_SYNTHETIC, *photographs]


def _words(name: str) -> str:
    """Return the arguments of a synthetic sample."""
    return ", ".join(f"{option}={value!r}" for option, value in _SYNTHETIC[name].keywords.items())
