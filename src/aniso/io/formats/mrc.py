"""MRC, through mrcfile: volumes and images of electron microscopy with their voxel size in ångström."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from aniso.io import units
from aniso.io.formats import Format, check_numbers, check_size, cut_short
from aniso.io.picture import FileError, Picture, corrupt

_HEADER = 1024
# What follows from the pixels, and is not copied.
_COMPUTED = ("nx", "ny", "nz", "mode", "dmin", "dmax", "dmean", "rms", "machst", "map", "nversion", "nsymbt")
# What counts pixels, and holds for one size only.
_SAMPLED = ("mx", "my", "mz", "nxstart", "nystart", "nzstart", "cella")


def read(path: Path, limit: int | None) -> Picture:
    """Read the image or volume in an MRC file."""
    mrcfile = FORMAT.library()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        header = _header(path, mrcfile)
        dtype = mrcfile.utils.data_dtype_from_header(header)
        shape = mrcfile.utils.data_shape_from_header(header)
        check_numbers(path, dtype)
        if len(shape) not in (2, 3):
            raise FileError(
                f"{path} holds a stack of volumes of shape {shape}: only one can be read. Split it."
            )
        extended, needed = int(header.nsymbt), math.prod(shape) * dtype.itemsize
        if min(*shape, extended) < 0:
            fault = f"shape {shape} and an extended header of {extended} bytes"
            raise corrupt(f"{path} has negative sizes in its header: {fault}.")
        check_size(path, needed, limit)
        if _HEADER + extended + needed > path.stat().st_size:
            raise cut_short(
                path, f"its header announces {extended} bytes of extended header and {needed} of pixels"
            )
        # Not mrcfile.open, which also decompresses, to any size.
        with mrcfile.mrcfile.MrcFile(path, permissive=False) as file:
            values = np.array(file.data, dtype=file.data.dtype.newbyteorder("="))
            voxel = file.voxel_size
            extended = file.extended_header.tobytes()
    sizes = [float(voxel.x), float(voxel.y), float(voxel.z)]
    spacing = tuple(sizes[axis] for axis in reversed(_order(header)))[-len(shape) :]
    labels = [label.decode("latin-1").strip() for label in header.label[: int(header.nlabl)]]
    measured = all(0 < size < math.inf for size in spacing)
    return Picture(
        values,
        spacing=spacing if measured else None,
        unit="Å" if measured else None,
        description="\n".join(filter(None, labels)) or None,
        details={
            "header": header,
            "extended": extended,
            "shape": values.shape,
            # By the standard a stack of images; but many programs write volumes so, too.
            "image_stack": values.ndim == 3 and int(header.ispg) == 0,
        },
    )


def write(path: Path, picture: Picture) -> None:
    """Write an MRC file."""
    mrcfile = FORMAT.library()
    values = picture.samples()
    details: Any = FORMAT.details(picture)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on NaN in floats, which are the caller's own
        with mrcfile.new(path, overwrite=True) as file:
            file.set_data(values)
            if values.dtype == np.float16:  # whose squares are beyond its own range
                file.header.rms = values.std(dtype=np.float64)
            if details:
                header = details["header"]
                resized = details["shape"] != values.shape
                for name in header.dtype.names:
                    if name not in _COMPUTED and not (resized and name in _SAMPLED):
                        file.header[name] = header[name]
                if details["extended"]:
                    file.set_extended_header(np.frombuffer(details["extended"], np.dtype("V1")))
            angstroms = units.ratio(picture.unit, "Å")
            # Without a unit that is known, no size is better than a wrong one.
            if picture.spacing is not None and angstroms is not None and (not details or resized):
                voxel = [1.0, 1.0, 1.0]
                for axis, size in zip(_order(file.header), reversed(picture.spacing), strict=False):
                    voxel[axis] = size * angstroms
                file.voxel_size = tuple(voxel)


def _header(path: Path, mrcfile: Any) -> Any:
    """The header alone: mrcfile would allocate the size that it gives for what follows, whatever that is."""
    with path.open("rb") as file:
        content = file.read(_HEADER)
    if len(content) < _HEADER:
        raise cut_short(path)
    header = np.frombuffer(content, mrcfile.dtypes.HEADER_DTYPE).reshape(()).view(np.recarray)
    order = mrcfile.utils.byte_order_from_machine_stamp(header.machst)
    return header.view(header.dtype.newbyteorder(order)).copy()


def _order(header: Any) -> tuple[int, int, int]:
    """Which of x, y, z the columns, rows and sections are; old files leave it open."""
    order = (int(header.mapc) - 1, int(header.mapr) - 1, int(header.maps) - 1)
    return order if sorted(order) == [0, 1, 2] else (0, 1, 2)


FORMAT = Format(
    name="MRC",
    suffixes=(".mrc", ".map", ".rec"),
    marks=((208, b"MAP"),),
    read=read,
    write=write,
    content="volume",
    types=("int8", "int16", "uint16", "float16", "float32", "uint8"),  # the last is widened to 16 bit
    package="mrcfile",
    only_unit="Å",
)
