"""NPY: arrays of real numbers as NumPy saves them; nothing says which axis holds colours."""

from __future__ import annotations

import math
from pathlib import Path
from typing import BinaryIO

import numpy as np

from aniso.io.formats import Format, check_size, cut_short
from aniso.io.picture import FileError, Picture, as_dtype, corrupt


def read(path: Path, limit: int | None) -> Picture:
    """Read the array in an NPY file, of real numbers or of booleans (a mask)."""
    with path.open("rb") as file:
        version = np.lib.format.read_magic(file)
        _check_header(path, file, version)
        if version == (1, 0):
            shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        else:  # 2.0 and 3.0 differ in the encoding of field names, of which there are none here
            shape, _, dtype = np.lib.format.read_array_header_2_0(file)
        if dtype.kind not in "biuf":
            raise FileError(
                f"{path} holds values of dtype {dtype}, which are not grey values. Save an array of real "
                "numbers."
            )
        if any(n < 0 for n in shape):
            raise corrupt(f"{path} has the negative shape {shape}.")
        needed = math.prod(shape) * dtype.itemsize
        check_size(path, needed, limit)
        if file.tell() + needed > path.stat().st_size:
            raise cut_short(path)
        file.seek(0)
        return Picture(np.lib.format.read_array(file, allow_pickle=False))


def _check_header(path: Path, file: BinaryIO, version: tuple[int, int]) -> None:
    """Reject a header that is longer than the file: NumPy would allocate its length first."""
    start = file.tell()
    length = int.from_bytes(file.read(2 if version == (1, 0) else 4), "little")
    if file.tell() + length > path.stat().st_size:
        raise cut_short(path, f"its header should have {length} bytes")
    file.seek(start)


def write(path: Path, picture: Picture) -> None:
    """Write an NPY file; alpha becomes the last channel."""
    pixels = as_dtype(picture.pixels, picture.dtype) if picture.alpha is None else picture.samples()
    with path.open("wb") as file:
        np.save(file, pixels, allow_pickle=False)


FORMAT = Format(
    name="NPY", suffixes=(".npy",), marks=((0, b"\x93NUMPY"),), read=read, write=write, says_channels=False
)
