"""TIFF: integers and floats of all sizes, grey and colour, with alpha, one page or many.

- Images of 1, 2 or 4 bit are widened to 8 bit and palettes become RGB; 10, 12 or 14 bit are held as 16 bit
  with the same values; where white is 0, values are inverted so that black is.
- The pages of a stack need one size and type. Thumbnails and smaller copies of the image are not kept.
- Compression, byte order, order of the channels and the text of ImageJ and OME files go back as they came,
  except that lossy compression becomes lossless, and that sizes and types in the text follow the pixels.
"""

from __future__ import annotations

import logging
import math
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from aniso.io import exif
from aniso.io.formats import INTEGERS, Format, check_numbers, check_size, cut_short, origin, tiff_descriptions
from aniso.io.picture import FileError, Picture, corrupt

# None, LZW, deflate (two numbers), PackBits, LZMA, Zstandard.
_LOSSLESS = (1, 5, 8, 32946, 32773, 34925, 50000)
_DEFLATE = 8
_NOT_PREDICTED = (1, 32773)
_MIN_IS_WHITE, _RGB, _PALETTE, _YCBCR = 0, 2, 3, 6
_ASSOCIATED, _UNASSOCIATED = 1, 2
# Axes of a series, which OME may store in this order; pictures have the frames first.
_SLICES_FIRST = "ZTYX"
_INCH = 2
# Who, when and with what; then XMP.
_KEPT_TAGS = (271, 272, 305, 306, 315, 33432, 700)
# Where on the earth the pixels lie: true as long as they stay where they are.
_KEPT_WITH_SHAPE = (33550, 33922, 34264, 34735, 34736, 34737, 42112, 42113)
# Bytes that a number takes in a tag, by its kind.
_SIZES = dict(enumerate((0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8, 8, 8)))
_LARGEST_CLASSIC = 2**32 - 2**25  # bytes that 32-bit offsets reach, and some room for tags

# tifffile reports damage as log records, which would reach the terminal beside our own sentence.
logging.getLogger("tifffile").addHandler(logging.NullHandler())


def read(path: Path, limit: int | None) -> Picture:
    """Read the picture, or the stack of pages, in a TIFF file."""
    import tifffile

    _check_pages(path)
    with tifffile.TiffFile(path, _multifile=False) as file:
        series = _series(path, file)
        page = series.keyframe
        photometric, bits = int(page.photometric), page.bitspersample
        _check_colours(path, photometric, int(page.compression), series.dtype)
        channel, order = _axes(path, series.axes)
        # Palettes expand to three channels.
        needed = math.prod(series.shape) * series.dtype.itemsize * (3 if photometric == _PALETTE else 1)
        check_size(path, needed, limit)
        _check_extent(path, series)
        pixels = series.asarray().reshape(series.shape)
        measured = bool(file.is_imagej or file.is_ome)
        spacing, unit = tiff_descriptions.spacing(file, order) if measured else (None, None)
        tags = page.tags
        details: dict[str, Any] = {
            "byteorder": file.byteorder,
            "bigtiff": file.is_bigtiff,
            "compression": int(page.compression),
            "predictor": int(page.predictor),
            "rgb": photometric in (_RGB, _YCBCR),
            "tags": tuple(_tag(tags[code]) for code in _KEPT_TAGS if code in tags),
            "shape_tags": tuple(_tag(tags[code]) for code in _KEPT_WITH_SHAPE if code in tags),
        }
        if measured and len(order) > 2:
            details["pages"] = order[:-2]
        text = page.description or None
        if text is not None and (measured or file.is_shaped):  # says which page is what
            details["structure"], text = text, None
        resolution = None
        if 282 in tags and 283 in tags:
            across, down = page.resolution
            details["resolution"] = (tags[282].value, tags[283].value, int(page.resolutionunit))
            per_inch = exif.PER_INCH.get(int(page.resolutionunit))
            if per_inch and across > 0 and down > 0:
                resolution = (down * per_inch, across * per_inch)
        colormap = page.colormap
        icc_profile = page.iccprofile
        orientation = int(tags[274].value) if 274 in tags else 1
        extras = tuple(int(extra) for extra in page.extrasamples) if "S" in series.axes else ()

    if channel is not None:
        details["channel"], details["planar"] = channel, "S" in series.axes
        pixels = np.moveaxis(pixels, channel, -1)
    if order == _SLICES_FIRST:
        pixels = np.swapaxes(pixels, 0, 1)
    if photometric == _PALETTE and measured:
        details["colormap"] = colormap  # false colours of measured values
    elif photometric == _PALETTE:
        pixels, details["rgb"] = (colormap >> 8).astype(np.uint8).T[pixels], True
    elif bits < 8:
        pixels = pixels.astype(np.uint8) * np.uint8(255 // (2**bits - 1))
    if photometric == _MIN_IS_WHITE:
        white = np.uint64(2 ** max(bits, 8) - 1).astype(pixels.dtype)
        shades = (..., slice(pixels.shape[-1] - len(extras))) if extras else ...  # not alpha
        pixels = pixels.copy()
        pixels[shades] = white - pixels[shades]
    alpha = None
    if _has_alpha(path, extras, details["rgb"]):
        alpha, pixels = pixels[..., -1].copy(), pixels[..., :-1]
        details["extrasample"] = extras[-1]
        details["premultiplied"] = extras[-1] == _ASSOCIATED
        if pixels.shape[-1] == 1:
            pixels = pixels[..., 0]
    has_channels = pixels.ndim > len(order)
    picture = Picture(
        np.ascontiguousarray(pixels),
        channel_axis=-1 if has_channels else None,
        alpha=alpha,
        spacing=spacing,
        unit=unit,
        resolution=resolution,
        icc_profile=icc_profile,
        exif=exif.with_orientation(orientation),
        description=text,
        details=details,
    )
    details["shape"] = picture.shape
    return picture


def _reject(picture: Picture) -> None:
    if not 2 <= len(picture.shape) <= 4:
        raise FileError(
            "TIFF files hold an image (H, W), a stack of pages (P, H, W) or a series of volumes "
            f"(T, D, H, W), got pixels of shape {picture.pixels.shape} with "
            f"channel_axis={picture.channel_axis}. Write .npy."
        )


def write(path: Path, picture: Picture) -> None:
    """Write a TIFF file."""
    import tifffile

    details = FORMAT.details(picture)
    true = details if details.get("shape") == picture.shape else {}  # what holds for one size only
    # What the axes are also holds if another format said so.
    samples, channels, text, options = _arrange(picture, picture.details)
    known = picture.spacing is not None or "pages" in picture.details
    if text is None and (known or channels > 1 or len(picture.shape) > 3):
        text, true = tiff_descriptions.imagej(picture, channels), {}
    text = text or picture.description
    if text is not None:
        options["description"] = text.encode()
    options |= _resolution(picture, true) | _compression(picture, details)
    options |= {"metadata": None, "software": False, "iccprofile": picture.icc_profile}
    if picture.alpha is not None:
        options["extrasamples"] = [details.get("extrasample", _UNASSOCIATED)]
    if "colormap" in details and details["colormap"].shape[-1] == 2 ** (8 * picture.dtype.itemsize):
        options["colormap"] = details["colormap"]
        options["photometric"] = "palette"
    tags = [*details.get("tags", ()), *true.get("shape_tags", ())]
    if picture.orientation != 1:
        tags.append((274, 3, 1, picture.orientation, False))
    byteorder = details.get("byteorder", "<")
    bigtiff = details.get("bigtiff", False) or samples.nbytes > _LARGEST_CLASSIC
    with tifffile.TiffWriter(path, byteorder=byteorder, bigtiff=bigtiff, ome=False, shaped=False) as file:
        file.write(np.ascontiguousarray(samples), extratags=tags, **options)


def _arrange(picture: Picture, details: Mapping[str, Any]) -> tuple[Any, int, str | None, dict[str, Any]]:
    """Samples in the order of the file, and how many channels are pages.

    Also the text that says which page is what, if that of the file still holds, and options for the order.
    """
    channels = 1
    samples = picture.samples()
    swapped = details.get("pages") == _SLICES_FIRST[:-2]
    if swapped and tiff_descriptions.renew(picture, details, ()) is not None:
        samples = np.swapaxes(samples, 0, 1)
    rgb = picture.channels == 3 and details.get("rgb", True)
    options = {"photometric": "rgb" if rgb else "minisblack"}
    has_channels = samples.ndim > len(picture.shape)
    place = details.get("channel", samples.ndim - 1)
    if has_channels:
        samples = np.moveaxis(samples, -1, place)
    text = tiff_descriptions.renew(picture, details, samples.shape)
    if has_channels and place == samples.ndim - 1:
        options["planarconfig"] = "contig"
    elif has_channels and details["planar"]:
        options["planarconfig"] = "separate"
    elif has_channels:  # channels are pages
        options["photometric"] = "minisblack"
        channels = samples.shape[place]
        if text is None:
            samples = np.moveaxis(samples, place, -3)  # where ImageJ has them
        samples = samples.reshape(-1, *samples.shape[-2:])
    return samples, channels, text, options


def _compression(picture: Picture, details: Mapping[str, Any]) -> dict[str, Any]:
    """As it was, if nothing is lost by it."""
    options: dict[str, Any] = {}
    compression = details.get("compression", _DEFLATE if origin(picture).compressed else 1)
    compression = compression if compression in _LOSSLESS else _DEFLATE
    if compression != 1:
        options["compression"] = compression
    if details.get("predictor", 1) != 1 and compression not in _NOT_PREDICTED:
        options["predictor"] = not (picture.dtype.kind in "iu" and picture.dtype.itemsize == 8)
    return options


def _resolution(picture: Picture, details: Mapping[str, Any]) -> dict[str, Any]:
    """That of the file where it still holds, or else a new one."""
    if "resolution" in details:
        *resolution, unit = details["resolution"]
    elif picture.spacing is not None:
        down, across = picture.spacing[-2:]
        resolution, unit = [1 / across, 1 / down], 1
    elif picture.resolution is not None:
        resolution, unit = list(picture.resolution[::-1]), _INCH
    else:
        return {}
    return {"resolution": resolution, "resolutionunit": unit}


def _check_pages(path: Path) -> None:
    """Follow the chain of pages: a file that was cut would be read as one of fewer pages."""
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(16)
        order = "<" if head[:2] == b"II" else ">"
        big = head[2:4] in (b"+\0", b"\0+")
        offset_form, count_form, entry = ("Q", "Q", 20) if big else ("I", "H", 12)
        offset_size, count_size = struct.calcsize(offset_form), struct.calcsize(count_form)
        start = 8 if big else 4
        if len(head) < start + offset_size:
            raise cut_short(path)
        (offset,) = struct.unpack_from(order + offset_form, head, start)
        seen: set[int] = set()
        read = 0
        while offset:
            if offset in seen:
                raise corrupt(f"{path} is damaged: its list of pages has no end.")
            seen.add(offset)
            file.seek(min(offset, size))
            count = int.from_bytes(file.read(count_size), "little" if order == "<" else "big")
            read += count_size + count * entry + offset_size
            # Pages that share bytes would be read again and again; one without tags holds nothing.
            if offset + count_size + count * entry + offset_size <= size and (read > size or not count):
                raise corrupt(f"{path} is damaged: its pages {'overlap' if count else 'are empty'}.")
            entries, link = file.read(min(count * entry, size)), file.read(offset_size)
            if len(link) < offset_size:
                raise cut_short(path, f"page {len(seen)} is not there")
            for _, kind, number, value in struct.iter_unpack(f"{order}HH{offset_form}{offset_form}", entries):
                length = _SIZES.get(kind, 0) * number
                if length > offset_size and value + length > size:  # longer ones are elsewhere in the file
                    raise cut_short(path, f"tags of page {len(seen)} are not there")
            (offset,) = struct.unpack(order + offset_form, link)
    if not seen:
        raise corrupt(f"{path} holds no image: the TIFF file has no page.")


def _series(path: Path, file: Any) -> Any:
    """The one image or stack that the file holds, apart from smaller copies of it."""
    full = [series for series in file.series if not series.keyframe.is_reduced] or list(file.series)
    if len(full) != 1:
        sizes = ", ".join(" × ".join(map(str, series.shape)) for series in full[:4])
        raise FileError(
            f"{path} holds {len(full)} images of different sizes or types ({sizes}): pages of a stack must "
            "be alike. Split it into files."
        )
    return full[0]


def _check_colours(path: Path, photometric: int, compression: int, dtype: Any) -> None:
    import tifffile

    decoded = photometric == _YCBCR and compression in (6, 7, 99, 33007)  # JPEG decoders give RGB
    if photometric > _PALETTE and not decoded:
        name = tifffile.PHOTOMETRIC(photometric).name
        raise FileError(
            f"{path} holds {name} colours, which are not amounts of light. Convert it to grey or RGB first."
        )
    check_numbers(path, dtype, "biuf")
    if photometric == _MIN_IS_WHITE and dtype.kind not in "bu":
        raise FileError(
            f"{path} says that 0 is white for values of type {dtype}, which have no black. Save it with "
            "black as 0."
        )


def _axes(path: Path, axes: str) -> tuple[int | None, str]:
    """Where the channels are, and the axes without them."""
    channels = [place for place, axis in enumerate(axes) if axis in "SC"]
    order = "".join(axis for axis in axes if axis not in "SC")
    known = len(order) <= 3 or order in ("TZYX", _SLICES_FIRST)
    if len(channels) > 1 or not order.endswith("YX") or not known:
        raise FileError(
            f"{path} has the axes {axes}: a stack of images or a series (T) of volumes (Z), with one axis of "
            "channels or without, can be read. Split it into files."
        )
    return (channels[0] if channels else None), order


def _check_extent(path: Path, series: Any) -> None:
    """All pixels must lie inside of the file."""
    size = path.stat().st_size
    if series.dataoffset is not None:
        if series.dataoffset + series.nbytes > size:
            raise cut_short(path)
        return
    for page in series.pages:
        if page is None:
            raise FileError(
                f"{path} is part of a set of files, and some pages are in others. Merge them first."
            )
        for offset, count in zip(page.dataoffsets, page.databytecounts, strict=False):
            if offset + count > size:
                raise cut_short(path)


def _has_alpha(path: Path, extras: tuple[int, ...], rgb: bool) -> bool:
    opacity = (_ASSOCIATED, _UNASSOCIATED)
    if len(extras) == 1:
        # Many programs do not say that the fourth channel after red, green and blue is alpha.
        return rgb or extras[0] in opacity
    if any(extra in opacity for extra in extras):
        raise FileError(
            f"{path} holds alpha among {len(extras)} additional channels: only one can be distinguished. "
            "Save it with alpha alone."
        )
    return False


def _tag(tag: Any) -> tuple[int, int, int, Any, bool]:
    """A tag in the form in which it is written again, on the first page."""
    value = tag.value
    if isinstance(value, str):
        return tag.code, 2, 0, value.encode(), True
    return tag.code, int(tag.dtype), tag.count, value, True


FORMAT = Format(
    name="TIFF",
    suffixes=(".tif", ".tiff", ".ome.tif", ".ome.tiff"),
    marks=((0, b"II*\0"), (0, b"MM\0*"), (0, b"II+\0"), (0, b"MM\0+")),
    read=read,
    write=write,
    reject=_reject,
    types=(*INTEGERS, "float16", "float32", "float64"),
    last_axis_is_colour=True,
    stack_is_volume=False,
)
