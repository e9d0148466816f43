"""File formats: one module each, with a row `FORMAT` that says what such files can hold.

Modules of this package are found by themselves. They import their third-party libraries when these are used.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from aniso import checks
from aniso.io.picture import FileError, Picture

# Files larger in memory than the limit may expand to this many times their size on disk. Scans that compress
# well stay below it, decompression bombs are far above.
_EXPANSION = 200
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, kw_only=True, eq=False)
class Format:
    """A file format: how to recognise, read and write it, and what its files can hold.

    `read(path, limit)` returns a picture, `write(path, picture)` writes one that `check(picture)` has not
    refused; the writer of a `lossy` format also takes `quality`.
    """

    name: str
    suffixes: tuple[str, ...]
    #: Bytes by which a file is recognised, and where they are.
    marks: tuple[tuple[int, bytes], ...]
    read: Callable[[Path, int | None], Picture]
    write: Callable[..., None]
    check: Callable[[Picture], None]
    #: Suffixes of files that are compressed with gzip, which hides the marks.
    gzipped: tuple[str, ...] = ()
    #: The types of pixels that files can hold; empty for all types.
    types: tuple[str, ...] = ()
    #: The package that reads and writes it, if it comes with the extra `volumes`.
    package: str = ""
    #: Whether arrays of 3 or 4 columns are written as colours.
    last_axis_is_colour: bool = False
    #: Whether files say which axis holds the channels.
    says_channels: bool = True
    #: Whether stacks are always volumes; if not, they may also be series of images.
    stack_is_volume: bool = True
    #: Whether pixels change when they are written.
    lossy: bool = False
    #: Whether pixels are compressed in all files.
    compressed: bool = False
    #: The unit of all distances, where files have no place for another one.
    only_unit: str = ""

    def recognises(self, head: bytes, suffix: str = "") -> bool:
        """Return whether a file that begins with these bytes is of this format."""
        if suffix.lower() in self.gzipped:
            return head.startswith(_GZIP)
        return any(head[start:].startswith(mark) for start, mark in self.marks)

    def holds(self, dtype: np.dtype[Any]) -> bool:
        """Return whether files can hold pixels of this type."""
        return not self.types or dtype.name in self.types

    def details(self, picture: Picture) -> Mapping[str, Any]:
        """Return what only a file of the same format can take back, if the picture comes from one."""
        return picture.details if picture.format == self.name else {}

    def library(self) -> Any:
        """Import the package that reads and writes this format."""
        try:
            return importlib.import_module(self.package)
        except ImportError as error:
            raise FileError(
                f"{self.name} files need the package {self.package}, which is not installed. Install it "
                'with: pip install "aniso[volumes]".'
            ) from error


def suffix_of(path: Path) -> str:
    """Return the suffix that decides the format, as it is written; `.nii.gz` or `.ome.tif` is one suffix."""
    known = sorted((suffix for each in FORMATS.values() for suffix in each.suffixes), key=len, reverse=True)
    for suffix in known:
        if path.name.lower().endswith(suffix) and len(path.name) > len(suffix):
            return path.name[-len(suffix) :]
    return ""


def format_of(path: Path) -> Format:
    """Return the format that the suffix of a path stands for."""
    suffix = suffix_of(path).lower()
    for format in FORMATS.values():
        if suffix in format.suffixes:
            return format
    known = ", ".join(f"{each.name} ({', '.join(each.suffixes)})" for each in FORMATS.values())
    raise FileError(
        f"{path} has no suffix that stands for an image file: the format follows from the suffix. Use one of "
        f"{known}."
    )


def origin(picture: Picture) -> Format:
    """Return the format that a picture was read from; for an array, one with all defaults."""
    return FORMATS.get(picture.format or "", _NO_FILE)


def _refuse(*arguments: Any) -> Any:
    raise NotImplementedError("a picture that was made from an array has no file")


_NO_FILE = Format(name="", suffixes=(), marks=(), read=_refuse, write=_refuse, check=_refuse)


def check_size(path: Path, needed: int, limit: int | None) -> None:
    """Raise if a file claims to hold far more than its size makes plausible."""
    size = os.path.getsize(path)
    if limit is not None and needed > max(limit, _EXPANSION * size):
        raise checks.refusal(
            FileError,
            f"{path} would unfold from {_bytes(size)} to {_bytes(needed)}: it looks like a decompression "
            "bomb or a damaged header. If it is genuine,",
            python="read it with limit=None.",
            command="add --no-limit.",
        )


def cut_short(path: Path, why: str = "") -> FileError:
    """Return the error for a file that ends too early."""
    detail = f" ({why})" if why else ""
    return FileError(
        f"{path} is cut short{detail}: part of the image is missing. The file appears to be corrupt."
    )


def check_type(picture: Picture, format: Format) -> None:
    """Refuse pixels of a type that files of this format cannot hold."""
    if format.holds(picture.dtype):
        return
    others = [each.suffixes[0] for each in FORMATS.values() if each.holds(picture.dtype) and not each.package]
    narrow = format.types[0]
    limits = np.iinfo(narrow)
    first = "scale the values and " if picture.dtype.kind == "f" else ""
    raise checks.refusal(
        FileError,
        f"{format.name} files cannot hold {picture.dtype} pixels. Write {' or '.join(others)},",
        python=f"or {first}convert them to {narrow} if they fit.",
        command=f"or add --dtype {narrow} if values are from {limits.min} to {limits.max}: they are rounded "
        "and clipped, not scaled.",
    )


def check_plain_volume(picture: Picture, format: str) -> None:
    """Refuse colours, transparency and too many axes."""
    if picture.channel_axis is not None or picture.alpha is not None:
        raise FileError(
            f"{format} files hold grey values, the picture has colours or transparency. Write .tif or .npy, "
            "or one channel alone."
        )
    if picture.pixels.ndim not in (2, 3):
        raise FileError(
            f"{format} files hold images and volumes, got pixels of shape {picture.pixels.shape}. Write .npy."
        )


def check_photograph(picture: Picture, format: str) -> None:
    """Refuse what is not one grey or RGB image."""
    if len(picture.shape) != 2:
        raise checks.refusal(
            FileError,
            f"{format} files hold one image (H, W), got pixels of shape {picture.pixels.shape}.",
            python="Write .tif or .npy, which hold stacks; for a colour image, set channel_axis.",
            command="Write .tif or .npy, which hold stacks; for a colour image, add --channel-axis.",
        )
    if picture.channels not in (None, 1, 3):
        raise FileError(
            f"{format} files hold grey or RGB images, got {picture.channels} channels. Write .tif or .npy."
        )


def _bytes(number: int) -> str:
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number} bytes"


def _found() -> dict[str, Format]:
    """Return the rows of all modules of this package, by name."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    modules = [importlib.import_module(f"{__name__}.{name}") for name in names]
    rows = [module.FORMAT for module in modules if hasattr(module, "FORMAT")]
    return {row.name: row for row in rows}


#: All formats by name.
FORMATS = _found()
