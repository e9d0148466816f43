"""PNG: 8 and 16 bit, grey and colour, with alpha.

Shallower grey images are widened to 8 bit, palettes become RGB, and a transparent colour becomes alpha.
"""

from __future__ import annotations

import logging
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path

from aniso.io.formats import Format, check_size, cut_short
from aniso.io.picture import FileError, Picture, corrupt

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_AFTER_HEADER = 8 + 25  # signature and IHDR
_METRES_PER_INCH = 0.0254
_LARGEST_PROFILE = 1 << 26  # bytes; real ones have a few megabytes at most
_SAMPLES = {0: 1, 2: 3, 3: 4, 4: 2, 6: 4}  # per pixel at most, by colour type
# Go back as they came: how colours are meant, and texts.
_KEPT = (b"cHRM", b"gAMA", b"sRGB", b"cICP", b"mDCV", b"cLLI", b"tEXt", b"zTXt", b"iTXt")

# libpng's warnings are log records of imagecodecs, which would reach the terminal beside our own sentence.
logging.getLogger("imagecodecs").addHandler(logging.NullHandler())


def read(path: Path, limit: int | None) -> Picture:
    """Read the picture in a PNG file."""
    import imagecodecs

    chunks = _chunks(path, path.read_bytes())
    width, height, depth, colour = struct.unpack(">IIBB", chunks[0][1][:10])
    check_size(path, width * height * _SAMPLES.get(colour, 4) * (2 if depth == 16 else 1), limit)
    found = dict(reversed(chunks))  # the first of each kind
    if b"acTL" in found:
        raise FileError(f"{path} is an animation: only single images are read. Save one frame of it.")
    try:
        image = imagecodecs.png_decode(_SIGNATURE + b"".join(_pack(filter(_decides_pixels, chunks))))
    except (imagecodecs.PngError, UnicodeDecodeError):  # of a message whose memory was used again
        raise corrupt(f"{path} is damaged: its pixels cannot be decoded.") from None
    alpha = None
    if image.ndim == 3 and image.shape[-1] in (2, 4):
        alpha, image = image[..., -1].copy(), image[..., :-1].copy()
        image = image[..., 0] if image.shape[-1] == 1 else image
    kept = [chunk for chunk in chunks if chunk[0] in _KEPT]
    resolution = None
    if len(found.get(b"pHYs", b"")) == 9:
        across, down, unit = struct.unpack(">IIB", found[b"pHYs"])
        if unit == 1 and across and down:
            resolution = (down * _METRES_PER_INCH, across * _METRES_PER_INCH)
        else:  # the shape of a pixel only
            kept.append((b"pHYs", found[b"pHYs"]))
    return Picture(
        image,
        channel_axis=-1 if image.ndim == 3 else None,
        alpha=alpha,
        resolution=resolution,
        icc_profile=_profile(found[b"iCCP"]) if b"iCCP" in found else None,
        exif=found.get(b"eXIf"),
        details={"chunks": tuple(kept)},
    )


def _reject(picture: Picture) -> None:
    if picture.details.get("premultiplied"):
        raise FileError(
            "PNG files cannot hold colours that are multiplied by alpha, as this TIFF has them. Write .tif."
        )


def write(path: Path, picture: Picture) -> None:
    """Write a PNG file."""
    import imagecodecs

    data = imagecodecs.png_encode(picture.samples())
    chunks: list[tuple[bytes, bytes]] = []
    if picture.icc_profile is not None:
        chunks.append((b"iCCP", b"ICC profile\0\0" + zlib.compress(picture.icc_profile)))
    chunks.extend(picture.details.get("chunks", ()))
    if picture.resolution is not None:
        down, across = (round(r / _METRES_PER_INCH) for r in picture.resolution)
        chunks.append((b"pHYs", struct.pack(">IIB", across, down, 1)))
    if picture.exif is not None:
        chunks.append((b"eXIf", picture.exif))
    with path.open("wb") as file:
        file.write(data[:_AFTER_HEADER])
        file.writelines(_pack(chunks))
        file.write(data[_AFTER_HEADER:])


def _chunks(path: Path, data: bytes) -> list[tuple[bytes, bytes]]:
    """All chunks, from the header to the end; the file must be whole."""
    chunks: list[tuple[bytes, bytes]] = []
    start = len(_SIGNATURE)
    while True:
        head = data[start : start + 8]
        if len(head) < 8:
            raise cut_short(path)
        length, kind = struct.unpack(">I4s", head)
        end = start + 12 + length
        if end > len(data):
            raise cut_short(path)
        body = data[start + 8 : end - 4]
        if zlib.crc32(kind + body) != int.from_bytes(data[end - 4 : end], "big"):
            raise corrupt(f"{path} is damaged: a checksum does not match.")
        if not chunks and (kind != b"IHDR" or length != 13):
            raise corrupt(f"{path} is damaged: it has no PNG header.")
        chunks.append((kind, body))
        if kind == b"IEND":
            return chunks
        start = end


def _decides_pixels(chunk: tuple[bytes, bytes]) -> bool:
    """Whether the decoder needs a chunk: damage in others does not matter, but it would complain."""
    kind, _ = chunk
    critical = not kind[0] & 0x20  # by the standard: the first letter is a capital one
    return critical or kind == b"tRNS"


def _pack(chunks: Iterable[tuple[bytes, bytes]]) -> Iterable[bytes]:
    for kind, body in chunks:
        yield struct.pack(">I4s", len(body), kind)
        yield body
        yield zlib.crc32(kind + body).to_bytes(4, "big")


def _profile(body: bytes) -> bytes | None:
    """The colour profile in a chunk; None if it is broken, since the pixels are good without."""
    _, _, packed = body.partition(b"\0")
    try:
        inflater = zlib.decompressobj()
        profile = inflater.decompress(packed[1:], _LARGEST_PROFILE)
    except zlib.error:
        return None
    return profile if inflater.eof else None


FORMAT = Format(
    name="PNG",
    suffixes=(".png",),
    marks=((0, _SIGNATURE),),
    read=read,
    write=write,
    reject=_reject,
    content="photograph",
    types=("uint8", "uint16"),
    last_axis_is_colour=True,
    compressed=True,
)
