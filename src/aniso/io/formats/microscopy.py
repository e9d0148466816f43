"""CZI, LIF and ND2 files of microscopes, through the readers of bioio. Results are TIFF files.

Tiles of a mosaic are joined as the reader joins them. Pixels and their spacing are kept, nothing else is.
"""

from __future__ import annotations

import logging
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from aniso.io.formats import Format, check_numbers, check_size, format_of
from aniso.io.picture import FileError, Picture, corrupt

_UNIT = "µm"  # of all distances that bioio returns
_NAMED = 4  # names of images in a message
_COUNT = "./Metadata/Information/Image/SizeS"
_BLUE_FIRST = ("CZI",)  # formats whose colours bioio returns as blue, green and red

# Readers report what is odd about metadata as log records, which would reach the terminal.
for _name in ("bioio", "bioio_base", "bioio_czi", "bioio_lif", "bioio_nd2", "liffile", "nd2"):
    logging.getLogger(_name).addHandler(logging.NullHandler())


def read(path: Path, limit: int | None) -> Picture:
    """Read the image, volume or series in a file."""
    format = format_of(path)
    image = _open(path, format)
    _check_scenes(path, image)
    sizes = dict(zip(image.dims.order, image.dims.shape, strict=True))
    check_numbers(path, image.dtype)
    check_size(path, math.prod(sizes.values()) * image.dtype.itemsize, limit)
    channels = "".join(axis for axis in "CS" if sizes.get(axis, 1) > 1)
    others = [axis for axis, size in sizes.items() if axis not in "TCZYXS" and size > 1]
    if len(channels) > 1 or others:
        raise FileError(
            f"{path} has the axes {image.dims.order}: a stack of images or a series (T) of volumes (Z), with "
            "one axis of channels (C) or colours (S), can be read. Split it into files."
        )
    pages = "".join(axis for axis in "TZ" if sizes[axis] > 1)
    pixels = image.get_image_data(f"{pages}YX{channels}")
    if channels == "S" and format.name in _BLUE_FIRST:
        pixels = pixels[..., ::-1]
    details: dict[str, Any] = {"pages": pages} if pages else {}
    if channels == "C":
        # As in TIFF files, which results are: channels of a microscope are pages, not red, green and blue.
        details |= {"channel": len(pages), "planar": False}
    spacing = _spacing(image.physical_pixel_sizes, volume="Z" in pages)
    return Picture(
        np.ascontiguousarray(pixels),
        channel_axis=-1 if channels else None,
        spacing=spacing,
        unit=_UNIT if spacing else None,
        details=details,
    )


def _open(path: Path, format: Format) -> Any:
    bioio, plugin = replace(format, package="bioio").library(), format.library()
    from bioio_base.exceptions import UnsupportedFileFormatError

    try:
        return bioio.BioImage(path, reader=plugin.Reader)
    except UnsupportedFileFormatError as error:  # a text of many lines
        raise corrupt(
            f"{path} cannot be read as {format.name}: it is damaged, cut short or of an unknown version."
        ) from error


def _check_scenes(path: Path, image: Any) -> None:
    """Reject a file with several images."""
    scenes, about = image.scenes, image.metadata
    # Some CZI files count their images without naming them, and then bioio finds one only.
    counted = about.findtext(_COUNT) if hasattr(about, "findtext") else None
    count = max(len(scenes), int(counted or 1))
    if count > 1:
        names = ", ".join(scenes[:_NAMED]) + (", …" if count > _NAMED else "")
        raise FileError(
            f"{path} holds {count} images{f' ({names})' if len(scenes) > 1 else ''}, but only files "
            "with one can be read. Save each as an OME-TIFF file, or read one with bioio and filter it."
        )


def _spacing(sizes: Any, *, volume: bool) -> tuple[float, ...] | None:
    """Return the spacing along the axes that are there, without slices at an unknown distance."""
    found = [float(size or 0) for size in (sizes.Z, sizes.Y, sizes.X)]
    known = [0 < size < math.inf for size in found]
    if not all(known[1:]):
        return None
    return tuple(found if volume and known[0] else found[1:])


def _row(name: str, package: str, *marks: bytes) -> Format:
    suffix = f".{name.lower()}"
    return Format(
        name=name,
        suffixes=(suffix,),
        marks=tuple((0, mark) for mark in marks),
        read=read,
        package=package,
        extra="microscopy",
        written_as={suffix: ".tif"},
        stack_is_volume=False,
    )


FORMATS = (
    _row("CZI", "bioio_czi", b"ZISRAWFILE"),
    _row("LIF", "bioio_lif", b"p\0\0\0"),
    _row("ND2", "bioio_nd2", b"\xda\xce\xbe\n", b"\0\0\0\x0cjP  "),
)
