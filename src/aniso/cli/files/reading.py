"""Read pictures and masks according to the options of a command."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from aniso import io
from aniso.arrays import Mask
from aniso.cli.options.shared import MaskOptions, MeasuringOptions, ReadingOptions
from aniso.io.formats import origin
from aniso.io.pages import Pages, is_volume, voxel_shape
from aniso.io.picture import FileError, Picture

if TYPE_CHECKING:
    from aniso.cli.jobs.reporting import Report


def read_as_stored(path: Path, reading: ReadingOptions) -> Picture:
    """Read the picture in a file, with the axes as the file says."""
    return io.read(path, limit=None if reading.no_limit else io.LIMIT)


def read(path: Path, reading: ReadingOptions) -> Picture:
    """Read the picture in a file, with the channel axis of the options."""
    picture = replace(read_as_stored(path, reading), source=path)  # as it was given
    axis: Any = reading.channel_axis
    if axis is not None and origin(picture).says_channels:
        if axis == "none" and picture.channel_axis is None:
            return picture
        raise FileError(f"{path} already defines its channels: --channel-axis is for NPY files. Remove it.")
    if axis is None and not origin(picture).says_channels and picture.pixels.ndim == 3:
        for colours in (-1, 0):
            if picture.pixels.shape[colours] in (3, 4):
                raise FileError(
                    f"{path} has shape {picture.pixels.shape}, which may be colour or grey-value slices. Add "
                    f"--channel-axis {colours} or --channel-axis none."
                )
    return picture if axis in (None, "none") else replace(picture, channel_axis=axis)


def pages(picture: Picture, reading: ReadingOptions, measuring: MeasuringOptions) -> Pages:
    """Return the pages, with their spacing."""
    volume = is_volume(picture, reading.volume)
    axes = 3 if volume else 2
    spacing, own = measuring.spacing, picture.spacing
    if spacing == "file":
        if own is None:
            raise FileError(
                f"{picture.source} does not store a pixel spacing. Give --spacing "
                f"{'Z,Y,X' if volume else 'Y,X'}."
            )
        spacing = own[-axes:]
    elif spacing is None and volume and own is not None and len(own) == 3:
        spacing = voxel_shape(own)
    return Pages(picture, spacing, volume)


def unknown_pixels(wanted: MaskOptions, picture: Picture, reading: ReadingOptions, report: Report) -> Mask:
    """Return True where a pixel is unknown, (H, W) or one for each page; at least one pixel is."""
    if wanted.mask_file is not None:
        mask = read_mask(wanted.mask_file, reading, report)
        mask = ~mask if wanted.invert else mask
        if mask.shape not in (picture.shape, picture.shape[1:] if len(picture.shape) == 3 else ()):
            sizes = " × ".join(map(str, mask.shape)), " × ".join(map(str, picture.shape))
            raise FileError(
                f"{wanted.mask_file} has {sizes[0]} pixels, but {picture.source} has {sizes[1]}. Give a "
                "mask of the same size."
            )
        why = f"{wanted.mask_file} marks no unknown pixels"
    elif wanted.mask_value is not None:
        mask = _over_channels(picture, picture.pixels == wanted.mask_value, np.all)
        why = f"no pixel has the value {wanted.mask_value:g}"
    else:
        mask = _over_channels(picture, ~np.isfinite(picture.pixels), np.any)
        why = "no pixel is NaN or infinite. Give --mask or --mask-value"
    if not mask.any():
        raise FileError(f"{picture.source} has nothing to fill in: {why}.")
    return mask


@lru_cache(maxsize=1)  # one mask serves many files
def read_mask(file: Path, reading: ReadingOptions, report: Report) -> Mask:
    """Return where a mask file is not 0 in any channel."""
    picture = read_as_stored(file, reading)
    if origin(picture).lossy:
        report.note(
            "mask",
            f"{file} is a {picture.format} file. Its compression leaves nonzero pixels around the mask, "
            "which count as unknown too. Save masks as PNG.",
        )
    return _over_channels(picture, picture.pixels != 0, np.any)


def _over_channels(picture: Picture, marked: Any, combined: Any) -> Mask:
    axis = picture.channel_axis
    result: Mask = marked if axis is None else combined(marked, axis=axis)
    return result
