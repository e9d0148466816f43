"""The pixels of a file with their metadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from aniso import arrays, checks
from aniso.arrays import Array
from aniso.io import exif as exif_blocks

__all__ = ["FileError", "Picture"]


class FileError(ValueError):
    """Raised for a file that cannot be read or written."""


def corrupt(fault: str) -> FileError:
    """Return the error for a file that has this fault."""
    return FileError(f"{fault} The file appears to be corrupt.")


@dataclass(frozen=True, eq=False, repr=False)
class Picture:
    """The content of a file: pixels and metadata.

    Parameters
    ----------
    pixels : array
        (H, W), or (P, H, W) for the pages of a TIFF or the slices of a volume, or (T, D, H, W) for a series
        of volumes, with channels along `channel_axis`; without alpha.
    channel_axis : int, optional
        The axis of the channels: −1 for colour files.
    alpha : array (H, W) or (P, H, W), optional
        Opacity. It is kept as it is and not meant to be filtered.
    dtype : dtype, optional
        The type in which the pixels are written: by default that of the array. Results are rounded and
        clipped to it.
    spacing : tuple of float, optional
        Pixel spacing along each axis without the channels, or along H and W alone where pages are not
        slices at a known distance; None where the file does not say (resolutions of photographs, in pixels
        per inch, do not count).
    unit : str, optional
        Unit of `spacing`, as the file names it. An MRC file takes distances in units of length alone, from
        ångström to inches, since it has no place for the unit.
    resolution : tuple of float, optional
        Pixels per inch along H and W.
    icc_profile, exif : bytes, optional
        Colour profile; EXIF block. Its orientation is kept, pixels are never turned.
    description : str, optional
        A human-readable text.
    format : str, optional
        The format that it was read from, a name in `aniso.io.formats.FORMATS`.
    source : Path, optional
        The file it was read from.
    details : mapping
        What only a file of the same format can take back.

    Examples
    --------
    >>> import numpy as np
    >>> from aniso.io import Picture
    >>> Picture(np.zeros((40, 60, 3), np.uint16), channel_axis=-1)
    <Picture: 40 × 60 pixels, 3 channels, uint16>
    """

    pixels: Array
    channel_axis: int | None = None
    alpha: Array | None = None
    dtype: Any = None  # a NumPy dtype, once the picture is made
    spacing: tuple[float, ...] | None = None
    unit: str | None = None
    resolution: tuple[float, float] | None = None
    icc_profile: bytes | None = None
    exif: bytes | None = None
    description: str | None = None
    format: str | None = None
    source: Path | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        pixels = arrays.as_array("pixels", self.pixels)
        if pixels.dtype.kind not in "biuf":
            raise FileError(
                f"pixels must have a real numeric dtype, got {pixels.dtype}. Give e.g. pixels.real."
            )
        axis = self.channel_axis
        if axis is not None:
            checks.whole("channel_axis", axis, "", "a whole number or None")
        if axis is not None and not -pixels.ndim <= axis < pixels.ndim:
            raise checks.make_error(
                FileError,
                f"there is no axis {axis} for the channels in pixels of shape {pixels.shape}.",
                python="Give channel_axis, e.g. -1, or None.",
                command="Give --channel-axis, e.g. -1, or none.",
            )
        try:
            dtype = np.dtype(pixels.dtype if self.dtype is None else self.dtype)
        except TypeError as error:
            raise FileError(
                f"dtype must be a numeric type, got {self.dtype!r}. Give e.g. numpy.uint8, or None for that "
                "of the pixels."
            ) from error
        object.__setattr__(self, "pixels", pixels)
        object.__setattr__(self, "dtype", dtype)
        if self.alpha is None:
            return
        object.__setattr__(self, "alpha", arrays.as_array("alpha", self.alpha))
        if self.alpha.shape != self.shape:
            raise FileError(
                f"alpha has shape {self.alpha.shape}, the pixels without channels {self.shape}: each pixel "
                "has one opacity. Give alpha=None to leave it out."
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of pixels along each axis, without the channels."""
        shape = list(self.pixels.shape)
        if self.channel_axis is not None:
            del shape[self.channel_axis]
        return tuple(shape)

    @property
    def channels(self) -> int | None:
        """Number of channels; None if there is no axis for them."""
        return None if self.channel_axis is None else self.pixels.shape[self.channel_axis]

    @property
    def orientation(self) -> int:
        """The EXIF orientation, 1 to 8; 1 is upright."""
        return exif_blocks.orientation(self.exif)

    @property
    def scale(self) -> tuple[float, float, Any] | None:
        """(slope, intercept, dtype) where the file stores other numbers, pixels = slope · number + intercept.

        None where it stores the pixels themselves.
        """
        return self.details.get("scale")

    def with_pixels(self, pixels: npt.ArrayLike) -> Picture:
        """Return the same picture with other pixels, such as filtered or enlarged ones.

        Spacing and resolution follow the size, so that the picture still covers the same ground. Alpha is
        kept; where the picture was enlarged by a whole factor, each of its pixels becomes a block. A preview
        in the EXIF block is dropped, since it shows the old pixels.

        Examples
        --------
        >>> import numpy as np
        >>> from aniso.io import Picture
        >>> small = Picture(np.zeros((4, 6), np.uint8), spacing=(1.0, 0.5))
        >>> large = small.with_pixels(np.zeros((8, 12), np.float32))
        >>> large.spacing, large.dtype
        ((0.5, 0.25), dtype('uint8'))
        """
        other = replace(self, pixels=np.asarray(pixels), alpha=None)
        if other.pixels.ndim != self.pixels.ndim or other.channels != self.channels or 0 in other.shape:
            raise FileError(
                f"pixels of shape {other.pixels.shape} do not fit a picture of shape {self.pixels.shape}: "
                "axes and channels must be the same. Write them without like=."
            )
        shrink = [old / new for old, new in zip(self.shape, other.shape, strict=True)]
        spacing, resolution = self.spacing, self.resolution
        if spacing is not None:
            spacing = tuple(h * s for h, s in zip(spacing, shrink[-len(spacing) :], strict=True))
        if resolution is not None:
            resolution = (resolution[0] / shrink[-2], resolution[1] / shrink[-1])
        exif = self.exif
        if exif is not None and len(shrink) > 1:
            height, width = other.shape[-2:]
            exif = exif_blocks.with_size(exif, (height, width), (1 / shrink[-2], 1 / shrink[-1]))
        alpha = self._enlarged_alpha(other.shape)
        return replace(other, spacing=spacing, resolution=resolution, exif=exif, alpha=alpha)

    def with_dtype(self, dtype: npt.DTypeLike) -> Picture:
        """Return the same picture, to be written in another type.

        Values are rounded and clipped to it, not scaled; opacity, which has no other meaning than a share,
        is. Where the file stores other numbers than its pixels, the pixels themselves are written.

        Examples
        --------
        >>> import numpy as np
        >>> from aniso.io import Picture
        >>> half = Picture(np.zeros((1, 1), np.uint8), alpha=np.full((1, 1), 128, np.uint8))
        >>> half.with_dtype("uint16").alpha
        array([[32896]], dtype=uint16)
        """
        alpha = self.alpha
        if alpha is not None and alpha.dtype != dtype:
            share = alpha.astype(np.float64) / _full(alpha.dtype)
            alpha = as_dtype(share * _full(np.dtype(dtype)), dtype)
        details = {name: detail for name, detail in self.details.items() if name != "scale"}
        return replace(self, dtype=np.dtype(dtype), alpha=alpha, details=details)

    def _enlarged_alpha(self, shape: tuple[int, ...]) -> Array | None:
        alpha = self.alpha
        if alpha is None or alpha.shape == shape:
            return alpha
        if any(new % old for old, new in zip(alpha.shape, shape, strict=True)):
            raise FileError(
                f"alpha of shape {alpha.shape} does not fit pixels of shape {shape}: it is enlarged by whole "
                f"factors only. Resize it yourself, or {WITHOUT_ALPHA}."
            )
        for axis, new in enumerate(shape):
            alpha = np.repeat(alpha, new // alpha.shape[axis], axis)
        return alpha

    def samples(self) -> Array:
        """Return pixels in the type of the file, channels last, alpha as the last channel."""
        native = self.dtype.newbyteorder("=")
        pixels = as_dtype(self.pixels, native)
        if self.channel_axis is not None:
            pixels = np.moveaxis(pixels, self.channel_axis, -1)
        if self.alpha is None:
            return np.ascontiguousarray(pixels)
        if self.alpha.dtype != self.dtype:
            raise FileError(
                f"alpha is {self.alpha.dtype} but the pixels are written as {self.dtype}: a file has one "
                f"type for both. Convert it with with_dtype, or {WITHOUT_ALPHA}."
            )
        if self.channel_axis is None:
            pixels = pixels[..., np.newaxis]
        return np.concatenate([pixels, self.alpha[..., np.newaxis].astype(native)], -1)

    def __repr__(self) -> str:
        parts = [" × ".join(map(str, self.shape)) + " pixels"]
        if self.channels is not None:
            parts.append(f"{self.channels} channels")
        parts.append(" ".join(filter(None, (str(self.dtype), self.format))))
        if self.alpha is not None:
            parts.append("with alpha")
        return f"<Picture: {', '.join(parts)}>"


WITHOUT_ALPHA = "leave it out with dataclasses.replace(picture, alpha=None)"


def _full(dtype: np.dtype[Any]) -> float:
    """Return the value of opaque pixels."""
    return float(np.iinfo(dtype).max) if dtype.kind in "iu" else 1.0


def as_dtype(values: Array, dtype: npt.DTypeLike) -> Array:
    """Convert values to the type of a file: rounded and clipped, never wrapped.

    Halves go to the even neighbour. What is too large for a float type becomes its largest number;
    infinite values and NaN stay what they are there, and are rejected by integer types.
    """
    dtype = np.dtype(dtype)
    if values.dtype == dtype:
        return values
    if dtype.kind == "b":
        raise FileError(f"values of dtype {values.dtype} cannot be written as bool. Give a mask.")
    if values.dtype.kind == "b":
        values = values.astype(np.uint8)
    if dtype.kind == "f":
        if values.dtype.kind == "f" and dtype.itemsize < values.dtype.itemsize:
            largest = np.finfo(dtype).max
            values = np.where(np.isinf(values), values, np.clip(values, -largest, largest))
        return values.astype(dtype)
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    if values.dtype.kind in "iu":
        own = np.iinfo(values.dtype)
        return np.clip(values, max(low, own.min), min(high, own.max)).astype(dtype)
    bad = ~np.isfinite(values)
    if bad.any():
        first = tuple(int(i) for i in np.argwhere(bad)[0])
        raise FileError(
            f"the result holds {int(bad.sum())} values that are NaN or infinite, the first at index {first}: "
            f"{dtype} has no number for them. Replace them first, or write floats as .tif or .npy."
        )
    whole = np.rint(values.astype(np.float32) if values.dtype.itemsize < 4 else values)
    # The limits are rounded to the float type, possibly beyond the integers: they go in as integers.
    below, above = whole <= low, whole >= high
    whole[below | above] = 0
    integers = whole.astype(dtype)
    integers[below], integers[above] = low, high
    return integers
