"""Files made for tests, and what tests of files look at."""

import dataclasses
import errno
import io as streams
import re
import struct
import zlib
from pathlib import Path
from typing import Any

import imagecodecs
import mrcfile
import nibabel
import numpy as np
import pytest
import SimpleITK as sitk
import tifffile
from PIL import Image, ImageCms

from aniso.io import FileError, formats, read, write

PROFILE = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
# Their annotations are too strict for options in a dictionary, and too general for a volume.
tiff: Any = tifffile
load_volume: Any = nibabel.load
INTEGERS = ["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"]
FLOATS = ["float16", "float32", "float64"]


def pixels(shape, dtype="uint8", seed=0):
    """Random values over the whole range of integers; ordinary numbers as floats."""
    random = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        return random.normal(0, 100, shape).astype(dtype)
    limits = np.iinfo(dtype)
    return random.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)


def as_results(picture):
    """The pixels as a filter that changes nothing returns them; doubles, which hold 32-bit integers."""
    return picture.pixels.astype(np.float64)


def there_and_back(path, **changes):
    """A file, and what is read again after its pixels went through floats."""
    before = read(path)
    suffix = formats.suffix_of(path)
    result = as_results(before) if before.dtype.itemsize < 8 else before.pixels
    after = read(write(path.with_name(f"after{suffix}"), result, like=dataclasses.replace(before, **changes)))
    return before, after


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + zlib.crc32(kind + body).to_bytes(4, "big")


def png(width, height, depth, colour, rows, *chunks):
    """A PNG file made by hand; rows begin with their filter byte."""
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0))
    middle = b"".join(chunks) + chunk(b"IDAT", zlib.compress(rows))
    return b"\x89PNG\r\n\x1a\n" + head + middle + chunk(b"IEND", b"")


def with_chunks(data, *chunks):
    return data[:33] + b"".join(chunks) + data[33:]


def encoded(image, kind, **options):
    stream = streams.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def saved(path, data):
    path.write_bytes(data)
    return path


def refused(call, *parts, folder=None):
    """One sentence or two that say what, why and what to do; and no trace in the folder."""
    before = None if folder is None else contents(folder)
    with pytest.raises(FileError) as caught:
        call()
    message = str(caught.value)
    for part in parts:
        assert part in message, f"{part!r} is not in {message!r}"
    assert "\n" not in message
    assert len(message) < 500
    assert re.search(r"[.']$", message), f"not a sentence: {message!r}"
    if folder is not None:
        assert contents(folder) == before


def contents(folder):
    """Every file with its bytes; a temporary one that was left behind would show."""
    return {
        path.relative_to(folder): path.read_bytes()
        for path in sorted(Path(folder).rglob("*"))
        if path.is_file()
    }


def denied(*_, **__):
    raise PermissionError(errno.EACCES, "Permission denied")


MAKERS = {
    ".png": lambda path: path.write_bytes(imagecodecs.png_encode(pixels((50, 70, 3), "uint16"))),
    ".jpg": lambda path: path.write_bytes(encoded(Image.fromarray(pixels((50, 70, 3))), "JPEG")),
    ".tif": lambda path: tiff.imwrite(path, pixels((4, 50, 70)), photometric="minisblack", metadata=None),
    ".npy": lambda path: np.save(path, pixels((50, 70))),
    ".nii": lambda path: nibabel.Nifti1Image(pixels((20, 30, 4)), np.eye(4)).to_filename(path),
    ".nii.gz": lambda path: nibabel.Nifti1Image(pixels((20, 30, 4)), np.eye(4)).to_filename(path),
    ".mrc": lambda path: mrcfile.write(path, pixels((20, 30), "int16")),
    ".bmp": lambda path: path.write_bytes(encoded(Image.fromarray(pixels((50, 70, 3))), "BMP")),
    ".nrrd": lambda path: sitk.WriteImage(sitk.GetImageFromArray(pixels((4, 20, 30))), path),
    ".mha": lambda path: sitk.WriteImage(sitk.GetImageFromArray(pixels((4, 20, 30))), path),
}
