"""Pictures as the options of a command say to read them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from aniso import io
from aniso.cli.options.bundles import Computing, Reading
from aniso.io.formats import origin
from aniso.io.pages import Pages, is_volume, voxel_shape
from aniso.io.picture import FileError, Picture


def as_stored(path: Path, reading: Reading) -> Picture:
    """The picture in a file, as it says itself."""
    return io.read(path, limit=None if reading.no_limit else io.LIMIT)


def read(path: Path, reading: Reading) -> Picture:
    """The picture in a file, with the channels where the options say."""
    picture = replace(as_stored(path, reading), source=path)  # as people named it
    axis: Any = reading.channel_axis
    if axis is not None and origin(picture).says_channels:
        if axis == "none" and picture.channel_axis is None:
            return picture
        raise FileError(
            f"{path} says itself where its channels are: --channel-axis is for NPY files. Leave it out."
        )
    if axis is None and not origin(picture).says_channels and picture.pixels.ndim == 3:
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
