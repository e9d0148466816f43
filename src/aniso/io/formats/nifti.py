"""NIfTI, through nibabel: volumes and series of volumes, with their voxel size.

Axes are turned round: the slowest one comes first, as in stacks of images. Where the header scales the
stored integers, pixels are the scaled values, and they are written with the same scale.
"""

from __future__ import annotations

import gzip
import logging
import math
from pathlib import Path
from typing import Any

import numpy as np

from aniso.io import units
from aniso.io.formats import INTEGERS, Format, check_numbers, check_size, cut_short
from aniso.io.picture import FileError, Picture, as_dtype, corrupt

_BLOCK = 1 << 20
_HEADER_2, _MAGIC_2 = 540, (b"n+2\0", b"ni2\0")  # of NIfTI-2, whose header is the longer one

# Without its own handlers nibabel's records would reach the terminal by the one of last resort.
logging.getLogger("nibabel").addHandler(logging.NullHandler())


def read(path: Path, limit: int | None) -> Picture:
    """Read the image or volume in a NIfTI file."""
    nibabel = FORMAT.library()
    with nibabel.imageglobals.LoggingOutputSuppressor():  # it mends small faults, and would say so
        _check_offset(path, nibabel, limit)
        image = nibabel.load(path, mmap=False)
    header = image.header.copy()
    shape, dtype = header.get_data_shape(), header.get_data_dtype()
    while len(shape) > 3 and shape[-1] == 1:  # a series of one volume
        shape = shape[:-1]
    if len(shape) == 5 and shape[3] == 1:
        raise FileError(
            f"{path} holds {shape[4]} values for each voxel (shape {shape}), such as vectors. Split it into "
            "files of grey values."
        )
    check_numbers(path, dtype)
    if not 2 <= len(shape) <= 4 or min(shape) < 1:
        raise FileError(
            f"{path} holds an array of shape {shape}: images, volumes and series of volumes (4 axes) can be "
            "read. Split it first."
        )
    needed = math.prod(shape) * dtype.itemsize
    check_size(path, image.dataobj.offset + needed, limit)
    if path.suffix.lower() == ".nii" and image.dataobj.offset + needed > path.stat().st_size:
        raise cut_short(path)
    if path.suffix.lower() == ".gz":
        _check_whole(path, image.dataobj.offset + needed)
    header.set_data_shape(shape)
    values = np.ascontiguousarray(np.asarray(image.dataobj.get_unscaled()).reshape(shape).T)
    values = values.astype(values.dtype.newbyteorder("="), copy=False)
    slope, inter = float(image.dataobj.slope), float(image.dataobj.inter)
    details: dict[str, Any] = {"image": type(image), "header": header, "affine": image.affine}
    if (slope, inter) != (1.0, 0.0):
        details["scale"] = slope, inter, dtype.newbyteorder("=")
        wide = np.float32 if dtype.itemsize <= 2 or dtype == np.float32 else np.float64
        values = (values * np.float64(slope) + inter).astype(wide)
    zooms = tuple(float(zoom) for zoom in reversed(header.get_zooms()[: min(len(shape), 3)]))
    unit = header.get_xyzt_units()[0]
    picture = Picture(
        values,
        spacing=zooms if all(0 < zoom < math.inf for zoom in zooms) else None,
        unit=None if unit == "unknown" else unit,
        description=header["descrip"].item().decode("latin-1").rstrip("\0") or None,
        details=details,
    )
    details["shape"], details["dtype"] = picture.shape, picture.dtype
    return picture


def write(path: Path, picture: Picture) -> None:
    """Write a NIfTI file."""
    nibabel = FORMAT.library()
    details = FORMAT.details(picture)
    slope, inter, dtype = 1.0, 0.0, picture.dtype.newbyteorder("=")
    values = picture.pixels
    if "scale" in details and details["dtype"] == dtype:
        slope, inter, dtype = details["scale"]
        values = (values.astype(np.float64) - inter) / slope
    values = as_dtype(values, dtype).T
    if details:
        header, affine = details["header"].copy(), details["affine"]
        if picture.shape != details["shape"]:
            shrink = [old / new for old, new in zip(details["shape"][::-1], values.shape, strict=True)]
            _resize(header, values.shape, shrink)
            affine = header.get_best_affine()
        image = details["image"](values, affine, header, dtype=dtype)
    else:
        unit, factor = _unit(picture.unit)
        # In axis order of NIfTI.
        given = picture.spacing or (1.0,) * min(values.ndim, 3)
        spacing = [h * factor for h in reversed(given)]
        affine = np.diag([*spacing, *([1.0] * (4 - len(spacing)))])
        image = nibabel.Nifti1Image(values, affine, dtype=dtype)
        image.header.set_xyzt_units(xyz=unit)
    image.header.set_slope_inter(slope, inter)
    image.to_filename(path)


def _check_offset(path: Path, nibabel: Any, limit: int | None) -> None:
    """Reject a file whose pixels begin too far behind: nibabel reads all that lies before them at once."""
    packed = path.suffix.lower() == ".gz"
    with gzip.open(path) if packed else path.open("rb") as file:
        head = file.read(_HEADER_2)
    kind = nibabel.Nifti2Header if head[4:8] in _MAGIC_2 else nibabel.Nifti1Header
    if len(head) < kind.sizeof_hdr:
        raise cut_short(path)
    offset = float(kind(head[: kind.sizeof_hdr], check=False)["vox_offset"])
    if not 0 <= offset < math.inf:
        raise corrupt(f"{path} says that its pixels begin at byte {offset}, which is not a place in a file.")
    check_size(path, int(offset), limit)
    if not packed and offset > path.stat().st_size:
        raise cut_short(path, f"its pixels begin at byte {int(offset)}")


def _check_whole(path: Path, needed: int) -> None:
    """Read to the end, where the checksum is: nibabel stops at the last pixel."""
    with gzip.open(path) as file:
        while needed + _BLOCK > 0:  # whatever follows the pixels is not read for ever
            block = file.read(_BLOCK)
            if not block:
                break
            needed -= len(block)
    if needed > 0:
        raise cut_short(path)


def _resize(header: Any, shape: tuple[int, ...], shrink: list[float]) -> None:
    """Make the header fit a grid of other size that covers the same box; cells hold their voxels' centres."""
    grid = np.eye(4)
    for axis, factor in enumerate(shrink[:3]):  # a fourth one is time
        grid[axis, axis], grid[axis, 3] = factor, (factor - 1) / 2
    forms = {name: getattr(header, f"get_{name}")(coded=True) for name in ("qform", "sform")}
    zooms = [zoom * factor for zoom, factor in zip(header.get_zooms(), shrink, strict=True)]
    header.set_data_shape(shape)
    header.set_zooms(zooms)
    for name, (affine, code) in forms.items():
        if affine is not None:
            getattr(header, f"set_{name}")(affine @ grid, code)


def _unit(name: str | None) -> tuple[str, float]:
    """The unit for distances, of the three that NIfTI knows, and how many of it make the given one.

    Distances in a unit that is not known are written as they are, and their unit as unknown.
    """
    for own in ("mm", "micron", "meter"):
        if units.metres(own) == units.metres(name):
            return own, 1.0
    length = units.metres(name)
    if length is None:
        return "unknown", 1.0
    own = "micron" if length < 1e-6 else "mm"
    return own, units.ratio(name, own) or 1.0


FORMAT = Format(
    name="NIfTI",
    suffixes=(".nii", ".nii.gz"),
    marks=((344, b"n+1\0"), (4, b"n+2\0")),
    read=read,
    write=write,
    content="volume",
    series=True,
    gzipped=(".nii.gz",),
    types=(*INTEGERS, "float32", "float64"),
    package="nibabel",
)
