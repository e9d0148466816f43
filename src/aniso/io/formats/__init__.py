"""Kinds of files: a module each, with `read(path, limit)`, `check(picture)` and `write(path, picture)`."""

from __future__ import annotations

import importlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np

from aniso import checks
from aniso.io.picture import FileError, Picture

# So many times its own size may a file unfold to, beyond the limit in bytes: a scan that was
# compressed well does not reach it, a bomb is far beyond.
_EXPANSION = 200


class FormatModule(Protocol):
    """What each module of this package offers."""

    def read(self, path: Path, limit: int | None) -> Picture:
        """The picture that the file holds."""

    def check(self, picture: Picture) -> None:
        """Refuse a picture that such a file cannot hold."""

    def write(self, path: Path, picture: Picture) -> None:
        """Write a picture that has been checked."""


@dataclass(frozen=True)
class Format:
    """A kind of file: its name, its suffixes, and the bytes by which it is recognised."""

    name: str
    suffixes: tuple[str, ...]
    marks: tuple[tuple[int, bytes], ...]
    module: str

    def recognises(self, head: bytes) -> bool:
        """Whether a file that begins like this is of this kind."""
        return any(head[start:].startswith(mark) for start, mark in self.marks)

    def load(self) -> FormatModule:
        """The module that reads and writes it; its libraries are imported when they are used."""
        return cast(FormatModule, importlib.import_module(f"aniso.io.formats.{self.module}"))


_TIFF_MARKS = ((0, b"II*\0"), (0, b"MM\0*"), (0, b"II+\0"), (0, b"MM\0+"))
FORMATS = (
    Format("PNG", (".png",), ((0, b"\x89PNG\r\n\x1a\n"),), "png"),
    Format("JPEG", (".jpg", ".jpeg"), ((0, b"\xff\xd8\xff"),), "jpeg"),
    Format("TIFF", (".tif", ".tiff", ".ome.tif", ".ome.tiff"), _TIFF_MARKS, "tiff"),
    Format("NPY", (".npy",), ((0, b"\x93NUMPY"),), "npy"),
    Format("NIfTI", (".nii",), ((344, b"n+1\0"), (4, b"n+2\0")), "nifti"),
    Format("NIfTI", (".nii.gz",), ((0, b"\x1f\x8b"),), "nifti"),
    Format("MRC", (".mrc", ".map", ".rec"), ((208, b"MAP"),), "mrc"),
)


def suffix_of(path: Path) -> str:
    """The suffix by which the kind of file is known, as it is written; `.nii.gz` or `.ome.tif` is one."""
    known = sorted((suffix for format in FORMATS for suffix in format.suffixes), key=len, reverse=True)
    for suffix in known:
        if path.name.lower().endswith(suffix) and len(path.name) > len(suffix):
            return path.name[-len(suffix) :]
    return ""


def format_of(path: Path) -> Format:
    """The kind of file that this name stands for."""
    suffix = suffix_of(path).lower()
    for format in FORMATS:
        if suffix in format.suffixes:
            return format
    names: dict[str, list[str]] = {}
    for format in FORMATS:
        names.setdefault(format.name, []).extend(format.suffixes)
    known = ", ".join(f"{name} ({', '.join(suffixes)})" for name, suffixes in names.items())
    raise FileError(
        f"{path} has no suffix that stands for an image file: the kind of file follows from its name. "
        f"Use one of {known}."
    )


def check_size(path: Path, needed: int, limit: int | None) -> None:
    """Refuse a file that claims to hold far more than its size makes plausible."""
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
    """The error for a file that ends too early."""
    detail = f" ({why})" if why else ""
    return FileError(f"{path} is cut short{detail}: part of the image is missing. Get the file again.")


def extra(files: str, name: str) -> Any:
    """A library that comes with the extra `volumes`."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise FileError(
            f"{files} files need the package {name}, which is not installed. Install it with: "
            'pip install "aniso[volumes]".'
        ) from error


def check_type(picture: Picture, format: str, types: tuple[str, ...]) -> None:
    """Refuse pixels of a type that files of this kind cannot hold."""
    if picture.dtype.name not in types:
        suffix = ".npy" if format == "TIFF" else ".tif or .npy"
        if format == "JPEG" and picture.dtype == np.uint16:
            suffix = ".png, .tif or .npy"
        limits = np.iinfo(types[0])
        first = "scale the values and " if picture.dtype.kind == "f" else ""
        raise checks.refusal(
            FileError,
            f"{format} files cannot hold {picture.dtype} pixels. Write {suffix},",
            python=f"or {first}convert them to {types[0]} if they fit.",
            command=f"or add --dtype {types[0]} if values are from {limits.min} to {limits.max}: they are "
            "rounded and clipped, not scaled.",
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
