"""DICOM, through SimpleITK: single files, and folders with the slices of one series. Results are NRRD files.

Grey values are scaled as the files say, e.g. to Hounsfield units. Nothing about the patient is copied.
"""

from __future__ import annotations

import itertools
import struct
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from aniso.io.formats import Format, check_size, itk
from aniso.io.picture import FileError, Picture, corrupt

_MARK, _MARK_PLACE = b"DICM", 128
_DRIVER = "GDCMImageIO"
# Files of a folder that are looked at.
_LOOKED_AT = 64
_POSITION, _ORIENTATION, _DESCRIPTION = "0020|0032", "0020|0037", "0008|103e"
# Distances between slices may differ by this share, angles by their sine.
_TOLERANCE = 0.02
# Transfer syntaxes that can be decoded: uncompressed, deflated, RLE, JPEG, JPEG-LS and JPEG 2000.
_SYNTAXES = {f"1.2.840.10008.1.2{end}" for end in ("", ".1", ".1.99", ".2", ".5")} | {
    f"1.2.840.10008.1.2.4.{number}" for number in (50, 51, 57, 70, 80, 81, 90, 91)
}


@dataclass(frozen=True)
class _Slice:
    """A file of a series, and what has to be alike in all of them."""

    path: Path
    size: tuple[int, ...]
    spacing: tuple[float, ...]
    pixel: str
    orientation: tuple[float, ...]
    position: tuple[float, ...]
    description: str

    @property
    def place(self) -> tuple[float, ...]:
        """Position along the rows, the columns and the normal of the slices."""
        across, down = np.reshape(self.orientation, (2, 3))
        return tuple(np.stack([across, down, np.cross(across, down)]) @ self.position)


def is_series(path: Path) -> bool:
    """Return whether a folder holds a DICOM file."""
    files = (file for file in sorted(path.iterdir()) if file.is_file())
    return any(_head(file)[_MARK_PLACE:].startswith(_MARK) for file in itertools.islice(files, _LOOKED_AT))


def read(path: Path, limit: int | None) -> Picture:
    """Read a file, or all files of the series in a folder."""
    sitk = FORMAT.library()
    if not path.is_dir():
        _check_syntax(path)
        picture = itk.read(path, limit, FORMAT, _DRIVER)
        geometry = picture.details["geometry"]
        description = geometry.texts.get(_DESCRIPTION, "").strip() or None
        return replace(picture, description=description, details={"geometry": replace(geometry, texts={})})
    with itk.explain(sitk):
        slices = [_slice(sitk, file) for file in _files(sitk, path)]
        first = slices[0]
        for each in slices:
            _check_alike(path, first, each)
            check_size(each.path, 8 * each.size[0] * each.size[1], limit)
        ordered = sorted(slices, key=lambda each: each.place[2])
        if len(ordered) == 1:
            return read(first.path, limit)
        _check_distances(path, ordered)
        reader = sitk.ImageSeriesReader()
        reader.SetImageIO(_DRIVER)
        reader.SetFileNames([str(each.path) for each in ordered])
        image = reader.Execute()
    return replace(itk.picture_of(sitk, path, image, {}), description=first.description or None)


def _files(sitk: Any, folder: Path) -> list[Path]:
    """Return the files of the only series in a folder."""
    series = sitk.ImageSeriesReader.GetGDCMSeriesIDs(str(folder))
    if len(series) != 1:
        raise FileError(
            f"{folder} holds {len(series)} DICOM series, but only one can be read. Put each series into a "
            "folder of its own, or give a single file."
        )
    names = sitk.ImageSeriesReader.GetGDCMSeriesFileNames(str(folder), series[0])
    return [Path(name) for name in names]


def _slice(sitk: Any, path: Path) -> _Slice:
    _check_syntax(path)
    about = itk.open_file(sitk, path, _DRIVER)
    size = about.GetSize()
    if len(size) > 2 and size[2] > 1:
        raise FileError(
            f"{path} holds {size[2]} frames: series of such files cannot be read. Give a single file."
        )
    pixel = f"{about.GetNumberOfComponents()} × {sitk.GetPixelIDValueAsString(about.GetPixelID())}"
    orientation, position = _numbers(about, _ORIENTATION, 6), _numbers(about, _POSITION, 3)
    description = about.GetMetaData(_DESCRIPTION).strip() if about.HasMetaDataKey(_DESCRIPTION) else ""
    return _Slice(path, size[:2], about.GetSpacing()[:2], pixel, orientation, position, description)


def _numbers(about: Any, key: str, count: int) -> tuple[float, ...]:
    words = about.GetMetaData(key).split("\\") if about.HasMetaDataKey(key) else []
    if len(words) != count:
        raise FileError(
            f"{about.GetFileName()} does not say where its slice is (tag {key.replace('|', ',')}), so that "
            "the series cannot be put in order. Convert it with another program, or give a single file."
        )
    return tuple(map(float, words))


def _check_alike(folder: Path, first: _Slice, other: _Slice) -> None:
    """Reject slices of different sizes, types, spacings or orientations."""
    name, reference = other.path.name, first.path.name
    if other.size != first.size:
        fault = f"{name} has {_times(other.size)} pixels, {reference} {_times(first.size)}"
    elif other.pixel != first.pixel:
        fault = f"{name} holds pixels of type {other.pixel}, {reference} {first.pixel}"
    elif not np.allclose(other.spacing, first.spacing, rtol=_TOLERANCE):
        fault = (
            f"pixels of {name} measure {_times(other.spacing)} mm, of {reference} {_times(first.spacing)} mm"
        )
    elif not np.allclose(other.orientation, first.orientation, atol=_TOLERANCE):
        fault = f"{name} has another orientation than {reference}"
    else:
        return
    raise FileError(f"the slices in {folder} do not form a volume: {fault}. Remove files of other scans.")


def _check_distances(folder: Path, ordered: list[_Slice]) -> None:
    """Reject a series with gaps, with several slices at one place, or with slices that are not aligned."""
    across, down, gaps = np.diff([each.place for each in ordered], axis=0).T
    usual = float(np.median(gaps))
    wrong = int(np.argmax(np.abs(gaps - usual)))
    pairs = [f"{one.path.name} and {other.path.name}" for one, other in itertools.pairwise(ordered)]
    if gaps.min() <= _TOLERANCE * max(usual, 1e-6):
        raise FileError(
            f"{pairs[np.argmin(gaps)]} in {folder} are at the same place. It may be a series of volumes. "
            "Put the slices of each volume into a folder of its own."
        )
    if abs(gaps[wrong] - usual) > _TOLERANCE * usual:
        raise FileError(
            f"{pairs[wrong]} in {folder} are {gaps[wrong]:g} mm apart, other slices {usual:g} mm: slices are "
            "missing or unequal. Add the missing files, or resample the volume first."
        )
    shifts = np.hypot(across, down)
    if shifts.max() > _TOLERANCE * usual:
        raise FileError(
            f"the slices in {folder} are shifted against each other, by {shifts.max():g} mm from one to the "
            "next, as with a tilted gantry: they do not form a box. Resample the volume first."
        )


def _times(values: tuple[float, ...]) -> str:
    return " × ".join(f"{value:g}" for value in values)


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(2048)


def _check_syntax(path: Path) -> None:
    """Reject files with a compression that cannot be decoded; it is named at the beginning."""
    head = _head(path)
    place = head.find(struct.pack("<HH", 2, 0x10) + b"UI", _MARK_PLACE)
    if place < 0:
        raise corrupt(f"{path} does not say how its pixels are stored: it has no transfer syntax.")
    (length,) = struct.unpack_from("<H", head, place + 6)
    syntax = head[place + 8 : place + 8 + length].decode("ascii", "replace").rstrip("\0 ")
    if syntax not in _SYNTAXES:
        raise FileError(
            f"{path} is compressed in a way that is not known (transfer syntax {syntax}). Decompress it "
            "first, e.g. with gdcmconv --raw."
        )


FORMAT = Format(
    name="DICOM",
    suffixes=(".dcm", ".dicom"),
    marks=((_MARK_PLACE, _MARK),),
    read=read,
    package="SimpleITK",
    extra="medical",
    written_as=dict.fromkeys(("", ".dcm", ".dicom"), ".nrrd"),
    is_folder=is_series,
)
