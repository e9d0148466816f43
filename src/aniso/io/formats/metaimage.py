"""MetaImage (MHA, MHD), through SimpleITK: volumes with origin, direction and spacing, and texts.

The pixels of an MHD file are in another file, so that results are written as MHA.
"""

from __future__ import annotations

from pathlib import Path

from aniso.io.formats import INTEGERS, Format, cut_short, itk
from aniso.io.picture import Picture, corrupt

_LOCAL = "local"


def read(path: Path, limit: int | None) -> Picture:
    """Read the image, volume or series in a MetaImage file."""
    fields, start = itk.header(path, end=r"ElementDataFile\s*=.*", separator="=")
    place = fields.get("elementdatafile")
    if place is None:
        raise corrupt(f"{path} does not say where its pixels are: it has no line ElementDataFile.")
    if place.lower() != _LOCAL:
        itk.check_data_file(path, place)
    compressed = fields.get("compresseddata", "").lower() == "true"
    size = fields.get("compresseddatasize", "")
    holder, start = (path, start) if place.lower() == _LOCAL else (path.with_name(place), 0)
    if compressed and size.isdecimal() and start + int(size) > holder.stat().st_size:
        raise cut_short(path)
    unit = fields.get("distanceunits", itk.UNIT)
    picture = itk.read(path, limit, FORMAT, "MetaImageIO", unit=unit, raw=not compressed)
    if not compressed and picture.pixels.nbytes > holder.stat().st_size:
        raise cut_short(path)
    return picture


FORMAT = Format(
    name="MetaImage",
    suffixes=(".mha", ".mhd"),
    marks=((0, b"ObjectType"), (0, b"NDims"), (0, b"Comment")),
    read=read,
    write=itk.write,
    reject=itk.reject,
    types=(*INTEGERS, "float32", "float64"),
    package="SimpleITK",
    extra="medical",
    series=True,
    written_as={".mhd": ".mha"},
)
