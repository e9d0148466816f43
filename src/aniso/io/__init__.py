"""Read and write image files, with their metadata.

PNG, JPEG, BMP, TIFF and NPY; with the extra `volumes` also NIfTI and MRC, with `medical` NRRD, MetaImage
(MHA) and series of DICOM files, and with `microscopy` CZI, LIF and ND2. The format follows from the suffix; a
series of DICOM files is a folder.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from aniso import arrays, checks
from aniso.io.formats import FORMATS, Format, format_of, suffix_of
from aniso.io.picture import FileError, Picture, corrupt

__all__ = ["FileError", "Picture", "check_input", "check_output", "read", "write"]

LIMIT = 2**30  # bytes that any file may take in memory
_HEAD = 512  # bytes by which every format is recognised
# Errors of file systems without hard links.
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EINVAL)


def read(path: str | os.PathLike[str], *, limit: int | None = LIMIT) -> Picture:
    """Read an image file.

    Parameters
    ----------
    path : str or path
        A PNG, JPEG, BMP, TIFF, NPY, NIfTI, MRC, NRRD, MetaImage, DICOM, CZI, LIF or ND2 file, by its suffix;
        or a folder with the files of one DICOM series.
    limit : int, optional
        Bytes that any file may take in memory. Beyond it, files that would expand to more than 200 times
        their size are rejected as decompression bombs. None: no limit.

    Returns
    -------
    Picture
        Pixels as stored: integers as integers, colours in the file's own colour space, never turned. Images
        of less than 8 bit are widened to 8 bit, and palettes become RGB.

    Raises
    ------
    FileError
        If the file does not exist, is not of the format that its suffix says, is corrupt or truncated, or
        holds neither grey values nor RGB colours.

    Examples
    --------
    >>> import tempfile, numpy as np, aniso.io
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = aniso.io.write(Path(folder, "ramp.png"), np.arange(12, dtype=np.uint16).reshape(3, 4))
    ...     aniso.io.read(path)
    <Picture: 3 × 4 pixels, uint16 PNG>
    """
    path = _path(path)
    check_input(path)
    if limit is not None:
        limit = checks.whole("limit", limit, "It is a number of bytes.", "a whole number or None")
    format = format_of(path)
    try:
        if path.is_file():
            with path.open("rb") as file:
                _check_head(path, file.read(_HEAD))
        picture = format.read(path, limit)
    except (FileError, ImportError):
        raise
    except PermissionError:
        raise FileError(f"{path} may not be read by this user. Change its permissions.") from None
    except MemoryError as error:
        raise FileError(f"{path} does not fit into memory. Cut it into parts first.") from error
    except Exception as error:  # decoders have many ways to say that a file is broken
        fault = f"it is damaged or cut short ({_one_line(error)})"
        raise corrupt(f"{path} cannot be read as {format.name}: {fault}.") from error
    shape = picture.pixels.shape
    if 0 in shape or not shape:
        raise corrupt(f"{path} holds no pixels: its array has shape {shape}.")
    return replace(picture, format=format.name, source=path.absolute())


def check_input(path: str | os.PathLike[str]) -> None:
    """Raise if `read` would reject this path by its name, or because it is not a file.

    Parameters
    ----------
    path : str or path
        The path to read.

    Examples
    --------
    >>> import aniso.io
    >>> aniso.io.check_input(".")
    Traceback (most recent call last):
    ...
    aniso.io.picture.FileError: . is a folder, not a file. Name a file in it.
    """
    path = _path(path)
    if os.path.isdir(path):
        if any(format.is_folder(path) for format in FORMATS.values()):
            return
        store = path.suffix == ".zarr"
        raise checks.make_error(
            FileError,
            f"{path} is a folder, not a file.",
            python="Read it with dask.array.from_zarr." if store else "Name a file in it.",
            command="Commands that filter images, such as denoise, take Zarr stores."
            if store
            else f"Name files in it, such as '{path / '*.png'}'.",
        )
    format_of(path)
    if not os.path.exists(path):
        raise FileError(f"{path} does not exist. Check the name and the folder.")
    if not os.path.isfile(path):
        raise FileError(f"{path} is a device or a pipe, not a file. Save it as a file first.")


def write(
    path: str | os.PathLike[str],
    picture: Any,
    *,
    like: Picture | None = None,
    force: bool = False,
    parents: bool = False,
    quality: int = 95,
) -> Path:
    """Write an image file atomically.

    The file is written under another name in the same folder and renamed when it is complete. If anything
    fails, an existing file is left unchanged.

    Parameters
    ----------
    path : str or path
        The target; the format follows from the suffix.
    picture : Picture or array
        The pixels. Values are rounded and clipped to the type that is written, never wrapped.
    like : Picture, optional
        Type, alpha, profile, spacing and everything else that is not pixels, for an array. Without it, an
        array is written in its own type, and a last axis of 3 or 4 holds colours or colours and alpha
        (except in NPY files and files of volumes, such as NIfTI).
    force : bool
        Overwrite an existing file, even the one from which `like` was read.
    parents : bool
        Create missing folders; they are removed again if the file cannot be written.
    quality : int
        JPEG quality, 1 to 100. Colours are not subsampled.

    Returns
    -------
    Path
        The path as given.

    Raises
    ------
    FileError
        If the file exists, or cannot hold the picture, or cannot be written.

    Examples
    --------
    >>> import tempfile, numpy as np, aniso.io
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = aniso.io.write(Path(folder, "in.png"), np.array([[0, 100, 255]], np.uint8))
    ...     picture = aniso.io.read(path)
    ...     result = picture.pixels * 1.5 - 20.0
    ...     path = aniso.io.write(Path(folder, "out.png"), result, like=picture)
    ...     print(aniso.io.read(path).pixels)
    [[  0 130 255]]
    """
    path = _path(path)
    if not 1 <= checks.whole("quality", quality, "A good one is 95.") <= 100:
        raise FileError(f"quality must be a whole number from 1 to 100, got {quality!r}. A good one is 95.")
    format = format_of(path)
    full = _picture(picture, like, format)
    check_output(path, source=full.source, force=force, parents=parents, picture=full)
    options = {"quality": quality} if format.lossy else {}
    with (
        _explain_write_errors(path, format.name),
        _make_folders(path.parent),
        _replace(path, force=force) as temporary,
    ):
        format.write(temporary, full, **options)
    return path


def check_output(
    path: str | os.PathLike[str],
    *,
    source: str | os.PathLike[str] | None = None,
    force: bool = False,
    parents: bool = False,
    picture: Picture | None = None,
) -> None:
    """Raise if `write` would reject this output, before anything is computed for it.

    Parameters
    ----------
    path : str or path
        The path to write.
    source : str or path, optional
        The file that is read. It may go by another name: links are followed.
    force : bool
        Whether an existing file may be overwritten.
    parents : bool
        Whether missing folders are made.
    picture : Picture, optional
        What is to be written: its type, channels and size must fit the file, its values do not matter.

    Examples
    --------
    >>> import aniso.io
    >>> aniso.io.check_output("result.gif")
    Traceback (most recent call last):
    ...
    aniso.io.picture.FileError: result.gif does not have the suffix of an image format ...
    """
    path = _path(path)
    format = format_of(path)
    other = format.written_as.get(suffix_of(path).lower())
    if other is not None:
        raise FileError(f"{path} cannot be written: such files are read only. Write {other}, for example.")
    check_place(path, source=source, force=force, parents=parents)
    if picture is not None:
        format.check(picture)


def write_text(path: Path, text: str, *, force: bool) -> None:
    """Write a text file atomically, as `write` does."""
    check_place(path, force=force)
    with _explain_write_errors(path, "text"), _replace(path, force=force) as temporary:
        temporary.write_text(text, "utf-8")


def check_place(path: Path, *, source: Any = None, force: bool = False, parents: bool = False) -> None:
    """Raise if there cannot be a new file at this path, whatever its format; as `check_output`."""
    path = _path(path)
    if os.path.isdir(path):
        raise FileError(f"{path} is a folder, not a file. Name a file in it.")
    try:
        os.lstat(path)
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise FileError(f"{path} cannot be written: its name is too long. Give a shorter one.") from error
    folder = Path(os.path.realpath(path)).parent
    while parents and not os.path.lexists(folder):
        folder = folder.parent
    if not os.path.isdir(folder):
        why = "is not a folder" if os.path.lexists(folder) else "does not exist"
        raise FileError(f"{path} cannot be written: its folder {why}. Make the folder first.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise FileError(f"{path} cannot be written: {_FORBIDDEN}. Choose another folder.")
    if os.path.exists(path) and not os.path.isfile(path):
        raise FileError(f"{path} is a device or a pipe, not a file. Give the name of a file.")
    if os.path.lexists(path) and not force:
        both = source is not None and os.path.exists(path) and os.path.exists(source)
        same = both and os.path.samefile(path, source)
        raise _exists(path, ": it is the input itself, which would be replaced" if same else "")


def _path(path: Any) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be str or os.PathLike, got {path!r}. Give e.g. 'image.png'.")
    if "\0" in os.fspath(path):
        raise FileError(f"path must not contain a null byte, got {os.fspath(path)!r}. Give another name.")
    return Path(path)


def _exists(path: Path, detail: str) -> FileError:
    return checks.make_error(
        FileError,
        f"{path} exists already{detail}. Give another name,",
        python="or force=True to overwrite it.",
        command="or add --force to overwrite it.",
    )


def _picture(picture: Any, like: Picture | None, format: Format) -> Picture:
    """Return the picture to write, with its metadata."""
    if like is not None and not isinstance(like, Picture):
        raise TypeError(f"like must be a Picture, as read() gives it, got {like!r}.")
    if isinstance(picture, Picture):
        if like is not None:
            raise TypeError("like is for arrays, got a Picture, which has its own metadata. Leave like out.")
        full = picture
    elif like is not None:
        full = like.with_pixels(picture)
    else:
        array = arrays.as_array("picture", picture)
        full = Picture(array)
        if format.last_axis_is_colour and array.ndim >= 3 and array.shape[-1] in (3, 4):
            colours, alpha = array[..., :3], (array[..., 3] if array.shape[-1] == 4 else None)
            full = Picture(colours, channel_axis=-1, alpha=alpha)
    if 0 in full.pixels.shape or full.pixels.ndim == 0:
        raise FileError(f"the picture must have pixels, got an array of shape {full.pixels.shape}.")
    if format.content == "photograph" and full.channels == 1:
        full = replace(full, pixels=full.pixels.squeeze(full.channel_axis), channel_axis=None)
    if full.dtype.kind == "b" and not format.holds(full.dtype):
        # As 1-bit images are read: black and white.
        full = Picture(full.pixels.astype(np.uint8) * np.uint8(255), source=full.source)
    return full


def _check_head(path: Path, head: bytes) -> None:
    """Raise if a file is not of the format that its suffix says."""
    format = format_of(path)
    if not head:
        raise corrupt(f"{path} is empty (0 bytes).")
    if format.recognises(head, suffix_of(path)):
        return
    for other in FORMATS.values():
        if other.recognises(head) and other is not format:
            raise FileError(
                f"{path} is a {other.name} file, not a {format.name} file as its suffix says. Rename it to "
                f"{path.name.removesuffix(suffix_of(path))}{other.suffixes[0]}."
            )
    raise FileError(
        f"{path} is not a {format.name} file: it begins with {head[:8]!r}. Check whether it is an image."
    )


_FORBIDDEN = "this user may not write there"
_CUT_WRITE = re.compile(r"\d+ requested and \d+ written")


@contextlib.contextmanager
def _explain_write_errors(path: Path, format: str) -> Iterator[None]:
    """Say why a file cannot be written."""
    try:
        yield
    except (FileError, ImportError):
        raise
    except MemoryError as error:
        raise FileError(f"{path} cannot be written: there is not enough memory.") from error
    except FileExistsError as error:
        raise _exists(path, " since a moment ago") from error
    except OSError as error:
        raise FileError(f"{path} cannot be written: {reason(error)}. Nothing was changed.") from error
    except Exception as error:
        raise FileError(
            f"{path} cannot be written as {format} ({_one_line(error)}). Try another format."
        ) from error


@contextlib.contextmanager
def _make_folders(folder: Path) -> Iterator[None]:
    """Create missing folders; remove them again if the body fails."""
    made: list[Path] = []
    try:
        for each in [*reversed(folder.parents), folder]:
            if not each.is_dir():
                each.mkdir()
                made.append(each)
        yield
    except BaseException:
        for each in reversed(made):
            with contextlib.suppress(OSError):  # somebody may have put something into it
                each.rmdir()
        raise


@contextlib.contextmanager
def _replace(path: Path, *, force: bool) -> Iterator[Path]:
    """Give a temporary file next to the path, which replaces it at the end, or is removed on failure."""
    target = Path(os.path.realpath(path))  # a link is written through
    suffix = suffix_of(path)
    stem = target.name.removesuffix(suffix)[:40]
    temporary = target.with_name(f".{stem}-{secrets.token_hex(6)}{suffix.lower()}")
    try:
        # Not tempfile, whose files only their owner can read.
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        yield temporary
        with temporary.open("r+b") as file:
            os.fsync(file.fileno())  # a rename must not reach the disk before the pixels
        if force:
            if target.exists():
                shutil.copymode(target, temporary)
            os.replace(temporary, target)
        else:
            _give_name(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def _give_name(temporary: Path, target: Path) -> None:
    """Rename, unless the target exists by now."""
    try:
        os.link(temporary, target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # Here a file that appears between these two lines is lost.
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, "it exists", str(target)) from error
        os.replace(temporary, target)


def reason(error: OSError) -> str:
    """Return why something cannot be written, in a few words."""
    if isinstance(error, PermissionError):
        return _FORBIDDEN
    # NumPy and tifffile report the bytes written, without an errno.
    if error.errno == errno.ENOSPC or (error.errno is None and _CUT_WRITE.search(str(error))):
        return "the disk is full"
    return (error.strerror or _one_line(error)).lower()


def _one_line(error: Exception) -> str:
    """Return the message of an error in one line."""
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__
