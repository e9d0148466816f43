"""Read pictures according to the options of a command."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from aniso import io
from aniso.cli.options.bundles import MeasuringOptions, ReadingOptions
from aniso.io.pages import Pages, is_volume, voxel_shape
from aniso.io.picture import FileError, Picture


def read_as_stored(path: Path, reading: ReadingOptions) -> Picture:
    """Read the picture in a file, with the axes as the file says."""
    return io.read(path, limit=None if reading.no_limit else io.LIMIT)


def read(path: Path, reading: ReadingOptions) -> Picture:
    """Read the picture in a file, with the channel axis of the options."""
    picture = replace(read_as_stored(path, reading), source=path)  # as it was given
    axis: Any = reading.channel_axis
    if axis is not None and picture.format != "NPY":
        if axis == "none" and picture.channel_axis is None:
            return picture
        raise FileError(f"{path} already defines its channels: --channel-axis is for NPY files. Remove it.")
    if axis is None and picture.format == "NPY" and picture.pixels.ndim == 3:
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
