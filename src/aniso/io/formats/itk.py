"""NRRD and MetaImage (MHA, MHD) through SimpleITK, with the place in space and texts, and what DICOM shares.

The pixels of NHDR and MHD files are in another file, so that results are written as NRRD and MHA.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from aniso.io import units
from aniso.io.formats import INTEGERS, Format, check_numbers, check_size, cut_short, format_of
from aniso.io.picture import FileError, Picture, corrupt

#: The unit of distances, unless a file names another one.
UNIT = "mm"
# Keys of the metadata that the library makes from the header, and writes again.
_MADE = re.compile(r"ITK_|NRRD_|Modality$")
_ENCODINGS = ("raw", "gzip", "gz", "txt", "text", "ascii", "hex")


@dataclass(frozen=True)
class Geometry:
    """Where the pixels are in space: as in ITK, in the order x, y, z and then time."""

    size: tuple[int, ...]
    spacing: tuple[float, ...]
    origin: tuple[float, ...]
    direction: tuple[float, ...]
    texts: Mapping[str, str] = field(default_factory=dict)

    def on_grid(self, size: tuple[int, ...]) -> Geometry:
        """Return the geometry of a grid of another size that covers the same box."""
        steps = [h * (old / new) for h, old, new in zip(self.spacing, self.size, size, strict=True)]
        # Pixels are at the centres of their cells.
        shift = [(new - old) / 2 for old, new in zip(self.spacing, steps, strict=True)]
        axes = np.reshape(self.direction, (len(size), len(size)))
        origin = tuple((self.origin + axes @ shift).tolist())
        return Geometry(size, tuple(steps), origin, self.direction, self.texts)


def read(
    path: Path, limit: int | None, format: Format, driver: str, *, unit: str = UNIT, raw: bool = False
) -> Picture:
    """Read the picture in a file by a driver of the library; `raw`: its pixels are not compressed."""
    sitk = format.library()
    with explain(sitk):
        reader = open_file(sitk, path, driver)
        if len(reader.GetSize()) > 4:
            raise FileError(
                f"{path} has {len(reader.GetSize())} axes: images, volumes and series of volumes (4 axes) "
                "can be read. Split it first."
            )
        bits = re.search(r"(\d+)-bit", sitk.GetPixelIDValueAsString(reader.GetPixelID()))
        width = reader.GetNumberOfComponents() * (int(bits[1]) if bits else 64) // 8
        check_size(path, math.prod(reader.GetSize()) * width, limit)
        image = reader.Execute()
    texts = {key: image.GetMetaData(key) for key in image.GetMetaDataKeys() if not _MADE.match(key)}
    return picture_of(sitk, path, image, texts, unit=unit, raw=raw)


def open_file(sitk: Any, path: Path, driver: str) -> Any:
    """Return a reader that has read all but the pixels of a file."""
    reader = sitk.ImageFileReader()
    reader.SetImageIO(driver)
    reader.SetFileName(str(path))
    reader.ReadImageInformation()
    return reader


def picture_of(
    sitk: Any, path: Path, image: Any, texts: Mapping[str, str], *, unit: str = UNIT, raw: bool = False
) -> Picture:
    """Return an image of the library as a picture."""
    pixels = sitk.GetArrayFromImage(image)
    check_numbers(path, pixels.dtype)
    several = image.GetNumberOfComponentsPerPixel() > 1
    spacing = tuple(reversed(image.GetSpacing()[:3]))
    geometry = Geometry(image.GetSize(), image.GetSpacing(), image.GetOrigin(), image.GetDirection(), texts)
    return Picture(
        pixels,
        channel_axis=-1 if several else None,
        spacing=spacing,
        unit=unit,
        details={"geometry": geometry, "raw": raw},
    )


def _reject(picture: Picture) -> None:
    """Raise if files cannot hold a picture."""
    if not 2 <= len(picture.shape) <= 4:
        raise FileError(
            "such files hold images, volumes and series of volumes, got pixels of shape "
            f"{picture.pixels.shape}. Write .npy."
        )


def write(path: Path, picture: Picture) -> None:
    """Write a picture, with its place in space, and as a file of the same format also with its texts."""
    format = format_of(path)
    sitk = format.library()
    image = sitk.GetImageFromArray(picture.samples(), isVector=picture.channel_axis is not None)
    geometry = picture.details.get("geometry")
    scale = units.ratio(picture.unit, UNIT) or 1.0
    if isinstance(geometry, Geometry) and len(geometry.size) == image.GetDimension():
        place = geometry.on_grid(image.GetSize())
        image.SetOrigin([value * scale for value in place.origin])
        image.SetDirection(place.direction)
        spacing = place.spacing
    else:
        spacing = tuple(reversed(picture.spacing or ()))
    lengths = [h * scale for h in spacing[:3]]
    frames = [*spacing[3:]]  # the time between them
    image.SetSpacing([*lengths, *frames, *[1.0] * (image.GetDimension() - len(lengths) - len(frames))])
    own = format.details(picture)
    for key, text in getattr(own.get("geometry"), "texts", {}).items():
        image.SetMetaData(key, text)
    with explain(sitk):
        sitk.WriteImage(image, str(path), useCompression=not own.get("raw", False))


@contextlib.contextmanager
def explain(sitk: Any) -> Iterator[None]:
    """Keep warnings of the library from the terminal, and all but the last line of its errors, the reason."""
    shown = sitk.ProcessObject.GetGlobalWarningDisplay()
    sitk.ProcessObject.SetGlobalWarningDisplay(False)
    try:
        yield
    except RuntimeError as error:
        lines = [line for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        why = re.sub(r"^\[\w+\]\s*|\w*\(0x[0-9a-f]+\):?\s*", "", lines[-1]).strip().rstrip(".:")
        raise OSError(why) from error
    finally:
        sitk.ProcessObject.SetGlobalWarningDisplay(shown)


def _read_nrrd(path: Path, limit: int | None) -> Picture:
    fields, _ = _header(path, end="", separator=":")
    encoding = fields.get("encoding", "raw")
    if encoding.lower() not in _ENCODINGS:
        raise FileError(
            f"{path} is compressed with {encoding!r}, which is not known. Save it with the encoding gzip or "
            "raw."
        )
    for name in ("data file", "datafile"):
        if name in fields:
            _check_data_file(path, fields[name])
    unit = next(iter(fields.get("space units", "").replace('"', " ").split()), UNIT)
    return read(path, limit, _NRRD, "NrrdImageIO", unit=unit, raw=encoding == "raw")


def _read_metaimage(path: Path, limit: int | None) -> Picture:
    fields, start = _header(path, end=r"ElementDataFile\s*=.*", separator="=")
    holder, place = path, fields.get("elementdatafile")
    if place is None:
        raise corrupt(f"{path} does not say where its pixels are: it has no line ElementDataFile.")
    if place.lower() != "local":
        _check_data_file(path, place)
        holder, start = path.with_name(place), 0
    compressed = fields.get("compresseddata", "").lower() == "true"
    size = fields.get("compresseddatasize", "")
    if compressed and size.isdecimal() and start + int(size) > holder.stat().st_size:
        raise cut_short(path)
    unit = fields.get("distanceunits", UNIT)
    picture = read(path, limit, _METAIMAGE, "MetaImageIO", unit=unit, raw=not compressed)
    if not compressed and picture.pixels.nbytes > holder.stat().st_size:
        raise cut_short(path)
    return picture


def _header(path: Path, end: str, separator: str) -> tuple[dict[str, str], int]:
    """Return the fields of a text header, by names in lower case, and its length.

    It ends after a line that matches `end`.
    """
    fields: dict[str, str] = {}
    with path.open("rb") as file:
        for line in iter(lambda: file.readline(1 << 16), b""):
            text = line.decode("latin-1").strip()
            name, found, value = text.partition(separator)
            if found:
                fields[name.strip().lower()] = value.strip()
            if re.fullmatch(end, text, re.IGNORECASE) or file.tell() > 1 << 20:
                break
        return fields, file.tell()


def _check_data_file(path: Path, name: str) -> None:
    """Reject a header whose pixels are elsewhere than in a file next to it."""
    if Path(name).name != name or name.lower().startswith("list") or "%" in name or "\\" in name:
        raise FileError(
            f"{path} says that its pixels are in {name!r}. They must be in one file in the same folder. "
            "Merge it into one file first."
        )
    if not path.with_name(name).is_file():
        raise FileError(f"{path} needs the file {name}, which does not exist. Put it into the same folder.")


def _row(name: str, read: Any, suffixes: tuple[str, str], *marks: bytes) -> Format:
    """Return the row of a format; files with the second suffix are headers of others, and not written."""
    return Format(
        name=name,
        suffixes=suffixes,
        marks=tuple((0, mark) for mark in marks),
        read=read,
        write=write,
        reject=_reject,
        types=(*INTEGERS, "float32", "float64"),
        package="SimpleITK",
        extra="medical",
        series=True,
        transparent=False,
        written_as={suffixes[1]: suffixes[0]},
    )


_NRRD = _row("NRRD", _read_nrrd, (".nrrd", ".nhdr"), b"NRRD0")
_METAIMAGE = _row("MetaImage", _read_metaimage, (".mha", ".mhd"), b"ObjectType", b"NDims", b"Comment")
FORMATS = (_METAIMAGE, _NRRD)
