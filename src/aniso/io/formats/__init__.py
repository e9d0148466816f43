"""File formats: one module each, with a row `FORMAT` that says what such files can hold.

Formats that differ in little but their names share a module with a tuple of rows, `FORMATS`. Modules of this
package are found automatically. They import their third-party libraries when these are used.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from aniso import checks
from aniso.io.picture import WITHOUT_ALPHA, FileError, Picture, corrupt

# Files larger in memory than the limit may expand to this many times their size on disk. Scans that compress
# well stay below it, decompression bombs are far above.
_EXPANSION = 200
_GZIP = b"\x1f\x8b"
#: The types of integers that most formats can hold.
INTEGERS = ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64")


@dataclass(frozen=True, kw_only=True, eq=False)
class Format:
    """A file format: how to recognise, read and write it, and what its files can hold.

    `read(path, limit)` returns a picture, `write(path, picture)` writes one that :meth:`check` has not
    rejected; the writer of a `lossy` format also takes `quality`. Formats that are read only have none.
    """

    name: str
    suffixes: tuple[str, ...]
    #: Bytes by which a file is recognised, and where they are.
    marks: tuple[tuple[int, bytes], ...]
    read: Any = None
    write: Any = None
    #: Rejects a picture for other reasons than its type and `content`.
    reject: Callable[[Picture], None] = lambda picture: None
    #: What files hold: one grey or RGB image, one grey-value image or volume, or anything.
    content: Literal["photograph", "volume", "any"] = "any"
    #: Suffixes of files that are compressed with gzip, which hides the marks.
    gzipped: tuple[str, ...] = ()
    #: The types of pixels that files can hold; empty for all types.
    types: tuple[str, ...] = ()
    #: The package that reads and writes it, and the extra that it comes with.
    package: str = ""
    extra: str = "volumes"
    #: Whether files hold series of volumes (T, D, H, W) too.
    series: bool = False
    #: Suffixes of files that are read but not written, with those that results get instead.
    written_as: Mapping[str, str] = field(default_factory=dict)
    #: Whether a folder is one picture, if folders can be.
    is_folder: Callable[[Path], bool] = lambda path: False
    #: Whether arrays of 3 or 4 columns are written as colours.
    last_axis_is_colour: bool = False
    #: Whether files say which axis holds the channels.
    says_channels: bool = True
    #: Whether stacks are always volumes; if not, they may also be series of images.
    stack_is_volume: bool = True
    #: Whether files can hold an alpha channel.
    transparent: bool = True
    #: Whether pixels change when they are written.
    lossy: bool = False
    #: Whether pixels are compressed in all files.
    compressed: bool = False
    #: The unit of all distances, where files have no place for another one.
    only_unit: str = ""

    def claims(self, path: Path) -> bool:
        """Return whether a path has a suffix of this format, or is a folder with files of a series."""
        return suffix_of(path).lower() in self.suffixes or (os.path.isdir(path) and self.is_folder(path))

    def recognises(self, head: bytes, suffix: str = "") -> bool:
        """Return whether a file that begins with these bytes is of this format."""
        if suffix.lower() in self.gzipped:
            return head.startswith(_GZIP)
        return any(head[start:].startswith(mark) for start, mark in self.marks)

    def holds(self, dtype: np.dtype[Any]) -> bool:
        """Return whether files can hold pixels of this type."""
        return not self.types or dtype.name in self.types

    def check(self, picture: Picture) -> None:
        """Raise if files of this format cannot hold the picture."""
        if self.package:
            self.library()
        if self.content == "photograph":
            self._check_photograph(picture)
        elif self.content == "volume":
            self._check_volume(picture)
        if self.holds(picture.dtype):
            self._check_alpha(picture)
            self.reject(picture)
            return
        others = [row.suffixes[0] for row in FORMATS.values() if row.holds(picture.dtype) and not row.package]
        narrow = self.types[0]
        limits = np.iinfo(narrow)
        first = "scale the values and " if picture.dtype.kind == "f" else ""
        raise checks.make_error(
            FileError,
            f"{self.name} files cannot hold {picture.dtype} pixels. Write {' or '.join(others)},",
            python=f"or {first}convert them to {narrow} if they fit.",
            command=f"or add --dtype {narrow} if values are from {limits.min} to {limits.max}: they are "
            "rounded and clipped, not scaled.",
        )

    def _check_volume(self, picture: Picture) -> None:
        if picture.channel_axis is not None or picture.alpha is not None:
            raise FileError(
                f"{self.name} files hold grey values, the picture has colours or transparency. Write .tif or "
                ".npy, or one channel alone."
            )
        shape = picture.pixels.shape
        if not 2 <= len(shape) <= 3 + self.series:
            kinds = "images, volumes and series of volumes" if self.series else "images and volumes"
            raise FileError(f"{self.name} files hold {kinds}, got pixels of shape {shape}. Write .npy.")

    def _check_photograph(self, picture: Picture) -> None:
        if len(picture.shape) != 2:
            raise checks.make_error(
                FileError,
                f"{self.name} files hold one image (H, W), got pixels of shape {picture.pixels.shape}. Write "
                ".tif or .npy, which hold stacks; for a colour image,",
                python="set channel_axis.",
                command="add --channel-axis.",
            )
        count = picture.channels
        if count not in (None, 1, 3):
            raise FileError(
                f"{self.name} files hold grey or RGB images, got {count} channels. Write .tif or .npy."
            )

    def _check_alpha(self, picture: Picture) -> None:
        if picture.alpha is not None and not self.transparent:
            raise checks.make_error(
                FileError,
                f"{self.name} files cannot store transparency, which the picture has. Write .png or .tif,",
                python=f"or {WITHOUT_ALPHA}.",
                command="or remove it first in an image editor.",
            )

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
                f'with: pip install "aniso[{self.extra}]".'
            ) from error


def suffix_of(path: Path) -> str:
    """Return the suffix that decides the format, as it is written; `.nii.gz` or `.ome.tif` is one suffix."""
    known = sorted((suffix for each in FORMATS.values() for suffix in each.suffixes), key=len, reverse=True)
    for suffix in known:
        if path.name.lower().endswith(suffix) and len(path.name) > len(suffix):
            return path.name[-len(suffix) :]
    return ""


def format_of(path: Path) -> Format:
    """Return the format that the suffix of a path stands for, or that of a folder with files of a series."""
    for format in FORMATS.values():
        if format.claims(path):
            return format
    known = ", ".join(f"{each.name} ({', '.join(each.suffixes)})" for each in FORMATS.values())
    raise FileError(
        f"{path} does not have the suffix of an image format that can be used. Use one of {known}."
    )


def result_suffix(path: Path) -> str:
    """Return the suffix of results for a file: its own, or that of a format that can be written."""
    suffix = suffix_of(path)
    for format in FORMATS.values():
        if format.claims(path):
            return format.written_as.get(suffix.lower(), suffix)
    return path.suffix


def origin(picture: Picture) -> Format:
    """Return the format that a picture was read from; for an array, one with all defaults."""
    return FORMATS.get(picture.format or "", _NO_FILE)


_NO_FILE = Format(name="", suffixes=(), marks=())


def check_size(path: Path, needed: int, limit: int | None) -> None:
    """Raise if a file claims to hold far more than its size makes plausible."""
    size = os.path.getsize(path)
    if limit is not None and needed > max(limit, _EXPANSION * size):
        raise checks.make_error(
            FileError,
            f"{path} would expand from {_bytes(size)} to {_bytes(needed)}: it looks like a decompression "
            "bomb or a damaged header. If it is genuine,",
            python="read it with limit=None.",
            command="add --no-limit.",
        )


def check_numbers(path: Path, dtype: Any, kinds: str = "iuf") -> None:
    """Raise if the values in a file are not real numbers."""
    if dtype is None or dtype.kind not in kinds:
        raise FileError(f"{path} holds values of type {dtype}, which are not grey values. Convert it first.")


def cut_short(path: Path, why: str = "") -> FileError:
    """Return the error for a file that ends too early."""
    return corrupt(f"{path} is cut short{f' ({why})' if why else ''}: part of the image is missing.")


def _bytes(number: int) -> str:
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number} bytes"


_modules = [importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)]
#: All formats by name.
FORMATS: dict[str, Format] = {
    row.name: row
    for each in _modules
    for row in getattr(each, "FORMATS", (each.FORMAT,) if hasattr(each, "FORMAT") else ())
}
