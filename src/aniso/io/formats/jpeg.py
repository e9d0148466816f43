"""JPEG: 8 bit, grey and RGB."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from aniso.io import exif as exif_blocks
from aniso.io.formats import Format, check_size
from aniso.io.picture import FileError, Picture

QUALITY = 95


def read(path: Path, limit: int | None) -> Picture:
    """Read the picture in a JPEG file."""
    from PIL.JpegImagePlugin import JpegImageFile

    # Not Image.open, which rejects large photographs for their number of pixels alone.
    with path.open("rb") as file, JpegImageFile(file) as image:
        if image.mode not in ("L", "RGB"):
            raise FileError(
                f"{path} holds {image.mode} colours, which are amounts of ink and not of light. Convert it "
                "to RGB first."
            )
        width, height = image.size
        check_size(path, width * height * len(image.getbands()), limit)
        pixels = np.array(image)
        info = dict(image.info)
        progressive = bool(info.get("progressive"))
    exif = info["exif"].removeprefix(b"Exif\0\0") if info.get("exif") else None
    resolution = exif_blocks.resolution(exif)  # not from Pillow, which makes 72 of a block that does not say
    if info.get("jfif_unit") in (1, 2) and all(info["dpi"]):
        resolution = float(info["dpi"][1]), float(info["dpi"][0])
    comment = info.get("comment")
    return Picture(
        pixels,
        channel_axis=-1 if pixels.ndim == 3 else None,
        resolution=resolution,
        icc_profile=info.get("icc_profile"),
        exif=exif,
        description=comment.decode("utf-8", "replace") if comment else None,
        details={"xmp": info.get("xmp"), "progressive": progressive},
    )


def _reject(picture: Picture) -> None:
    if max(picture.shape) > 65500:
        raise FileError(
            f"JPEG files hold at most 65500 pixels along an axis, the picture has {max(picture.shape)}. "
            "Write .png or .tif."
        )


def write(path: Path, picture: Picture, quality: int = QUALITY) -> None:
    """Write a JPEG file, with colours at the full resolution."""
    from PIL import Image

    given = {
        "dpi": picture.resolution and tuple(map(round, reversed(picture.resolution))),
        "icc_profile": picture.icc_profile,
        "exif": None if picture.exif is None else b"Exif\0\0" + picture.exif,
        "comment": picture.description and picture.description.encode(),
        **{name: picture.details.get(name) for name in ("xmp", "progressive")},
    }
    options = {"quality": quality, "subsampling": 0, **{name: each for name, each in given.items() if each}}
    # Not into the file itself: on a full disk Pillow's encoder stops early and does not say so.
    path.write_bytes(_encode(Image.fromarray(picture.samples()), options))


def _encode(image: Any, options: dict[str, object]) -> memoryview:
    """Encode a file."""
    stream = BytesIO()
    try:
        image.save(stream, "JPEG", **options)
    except OSError:
        if "progressive" not in options:
            raise
        # Pillow has too little room for progressive files of much noise; others are written in parts.
        return _encode(image, {name: option for name, option in options.items() if name != "progressive"})
    return stream.getbuffer()


FORMAT = Format(
    name="JPEG",
    suffixes=(".jpg", ".jpeg"),
    marks=((0, b"\xff\xd8\xff"),),
    read=read,
    write=write,
    reject=_reject,
    content="photograph",
    types=("uint8",),
    last_axis_is_colour=True,
    transparent=False,
    lossy=True,
    compressed=True,
)
