"""NRRD, through SimpleITK: volumes with origin, direction and spacing, and texts."""

from __future__ import annotations

from pathlib import Path

from aniso.io.formats import INTEGERS, Format, itk
from aniso.io.picture import FileError, Picture

_ENCODINGS = ("raw", "gzip", "gz", "txt", "text", "ascii", "hex")
_RAW = "raw"


def read(path: Path, limit: int | None) -> Picture:
    """Read the image, volume or series in an NRRD file."""
    fields, _ = itk.header(path, end="", separator=":")
    encoding = fields.get("encoding", _RAW)
    if encoding.lower() not in _ENCODINGS:
        raise FileError(
            f"{path} is compressed with {encoding!r}, which is not known. Save it with the encoding gzip or "
            "raw."
        )
    for name in ("data file", "datafile"):
        if name in fields:
            itk.check_data_file(path, fields[name])
    unit = next(iter(fields.get("space units", "").replace('"', " ").split()), itk.UNIT)
    return itk.read(path, limit, FORMAT, "NrrdImageIO", unit=unit, raw=encoding == _RAW)


FORMAT = Format(
    name="NRRD",
    suffixes=(".nrrd", ".nhdr"),
    marks=((0, b"NRRD0"),),
    read=read,
    write=itk.write,
    reject=itk.reject,
    types=(*INTEGERS, "float32", "float64"),
    package="SimpleITK",
    extra="medical",
    series=True,
    written_as={".nhdr": ".nrrd"},
)
