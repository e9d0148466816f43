"""BMP: 8 bit, grey and RGB. Palettes become RGB unless they are grey; alpha is read but not written."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from aniso.io.formats import Format, check_size
from aniso.io.picture import FileError, Picture

# Uncompressed, run lengths of 8 and 4 bit, and colours in given bits.
_COMPRESSIONS = (0, 1, 2, 3)


def read(path: Path, limit: int | None) -> Picture:
    """Read the picture in a BMP file."""
    from PIL.BmpImagePlugin import BmpImageFile

    with path.open("rb") as file:
        size, compression = struct.unpack_from("<14xI12xI", file.read(34).ljust(34, b"\0"))
        if size >= 40 and compression not in _COMPRESSIONS:
            raise FileError(
                f"{path} is compressed in a way that is not known (number {compression}). Save it without "
                "compression, or as PNG."
            )
        file.seek(0)
        with BmpImageFile(file) as image:
            width, height = image.size
            check_size(path, 4 * width * height, limit)
            dots = image.info.get("dpi")
            mode = {"1": "L", "P": "RGB"}.get(image.mode, image.mode)
            pixels = np.array(image.convert(mode))
    alpha = None
    if pixels.ndim == 3 and pixels.shape[-1] == 4:
        pixels, alpha = pixels[..., :3].copy(), pixels[..., 3].copy()
    return Picture(
        pixels,
        channel_axis=-1 if pixels.ndim == 3 else None,
        alpha=alpha,
        resolution=(float(dots[1]), float(dots[0])) if dots and all(dots) else None,
    )


def write(path: Path, picture: Picture) -> None:
    """Write a BMP file."""
    from PIL import Image

    dots = {"dpi": tuple(reversed(picture.resolution))} if picture.resolution is not None else {}
    Image.fromarray(picture.samples()).save(path, "BMP", **dots)


FORMAT = Format(
    name="BMP",
    suffixes=(".bmp",),
    marks=((0, b"BM"),),
    read=read,
    write=write,
    content="photograph",
    types=("uint8",),
    last_axis_is_colour=True,
    transparent=False,
)
