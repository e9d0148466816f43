"""The journal of a run, on disk: an interrupted run continues where it stopped.

A run has a folder next to its target, with one store per pass, a list of complete blocks for each, and a
description of the run. A line is added to a list after the block was synchronised to the disk; a truncated
line is ignored, and its block is written again. So a list is never ahead of the data, not even after a power
failure.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Any

from aniso import io
from aniso.blocks.stores.zarr_array import ZarrArray

# Seconds to wait for workers of an interrupted run.
_PATIENCE = 10
_DESCRIPTION, _LOCK, _UNFINISHED = "run.json", "lock", ".unfinished"


def folder_of(target: Path) -> Path:
    """Return the folder of the stores of all passes to this target."""
    return target.with_name(target.name + _UNFINISHED)


def check_place(target: Path) -> None:
    """Reject a target that cannot be written, before anything is computed."""
    if os.path.lexists(target):
        raise FileExistsError(f"{target} already exists. Choose another name, or delete it first.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"the folder {target.parent} does not exist. Create it first.")
    folder = folder_of(target)
    if os.path.lexists(folder) and not folder.is_dir():
        raise FileExistsError(
            f"{folder} is not a folder, but unfinished results are stored there. Rename it, or choose "
            "another output."
        )
    place = folder if folder.is_dir() else target.parent
    if not os.access(place, os.W_OK | os.X_OK):
        raise PermissionError(
            f"{target} cannot be written: this user may not write in {place}. Choose another output."
        )


@contextmanager
def explain_write_errors(place: Path | str) -> Iterator[None]:
    """Add to errors of the disk that the run can be continued."""
    try:
        yield
    except OSError as error:
        raise OSError(
            f"{place} cannot be written: {io.reason(error)}. Complete blocks are kept. Fix the "
            "problem, and repeat the call to continue."
        ) from error


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Create the folder, and keep other runs from writing into it; a lock ends with its process."""
    import locket

    with explain_write_errors(folder):
        folder.mkdir(exist_ok=True)
    lock = locket.lock_file(str(folder / _LOCK), timeout=0)
    try:
        lock.acquire()
    except locket.LockError as error:
        raise FileExistsError(
            f"another run is writing to {folder}. Wait until it ends, or choose another output."
        ) from error
    try:
        yield
    finally:
        lock.release()


def begin_run(folder: Path, description: dict[str, Any], cut: dict[str, Any]) -> dict[str, Any]:
    """Prepare the folder of a run, or that of the same interrupted run, and return how it is cut.

    The description has to be the same. How a run is cut into blocks and passes depends on the workers, which
    may have changed: a continued run keeps what it began with.
    """
    path = folder / _DESCRIPTION
    if not path.exists():  # what is left of a run that was killed while it was cleared away
        _remove(folder, "pass-*", "start*")
    if path.exists() and not any(folder.glob("pass-*.zarr")):
        # The result was moved to its place, and only these files were left.
        _remove(folder, _DESCRIPTION, "pass-*.done", "start*")
    if path.exists():
        before = json.loads(path.read_text("utf-8"))
        changed = [name for name in description if before.get(name) != description[name]]
        if changed:
            name = changed[0]
            raise ValueError(
                f"{folder} holds an interrupted run with another {name} ({_short(before.get(name))} there, "
                f"{_short(description[name])} now): its blocks would not fit. Delete it to start again, "
                "or repeat the interrupted call to continue."
            )
        return {name: before[name] for name in cut}
    write_json(path, description | cut)
    return cut


def write_json(path: Path, values: dict[str, Any]) -> None:
    """Write a file that is complete as soon as it is there."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text(json.dumps(values, indent=1), "utf-8")
    _sync(partial)
    partial.replace(path)
    _sync(path.parent)


def _remove(folder: Path, *patterns: str) -> None:
    for rest in (rest for pattern in patterns for rest in folder.glob(pattern)):
        _remove_folder(rest) if rest.is_dir() else rest.unlink()


def fingerprint(source: ZarrArray) -> str:
    """Return a hash of the names, sizes and times of the files of the source."""
    digest = hashlib.sha256()
    for folder, names, files in os.walk(source.path):
        # A result may be stored in the source itself.
        names[:] = sorted(name for name in names if not name.endswith(_UNFINISHED))
        for name in sorted(files):
            status = os.stat(os.path.join(folder, name))
            where = os.path.relpath(os.path.join(folder, name), source.path)
            digest.update(f"{where} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:32]


def complete_blocks(folder: Path, number: int) -> set[str]:
    """Return the complete blocks of a pass."""
    path = _list_of(folder, number)
    if not path.exists():
        return set()
    lines = path.read_text("utf-8").splitlines(keepends=True)
    return {line.rstrip("\n") for line in lines if line.endswith("\n")}


@contextmanager
def open_list(folder: Path, number: int) -> Iterator[FileIO]:
    """Open the list of a pass for writing."""
    path = _list_of(folder, number)
    if path.exists():
        # A truncated line may be the name of another block.
        before, end, _ = path.read_bytes().rpartition(b"\n")
        os.truncate(path, len(before + end))
    # A buffer would try to write again when it is closed after an error.
    with path.open("ab", buffering=0) as file:
        _sync(folder)  # the name of the list
        yield file


def record(file: FileIO, block: str) -> None:
    """Add a complete block to the list, and synchronise it to the disk."""
    line = f"{block}\n".encode()
    with explain_write_errors(str(file.name)):
        if file.write(line) < len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(file.fileno())


def persist(array: Path, keys: Iterable[str]) -> None:
    """Synchronise chunks of an array and their folders to the disk."""
    paths = {array / key for key in keys}
    folders = {folder for path in paths for folder in path.parents if folder.is_relative_to(array)}
    for path in (*sorted(paths), *sorted(folders, reverse=True)):
        with suppress(FileNotFoundError):  # chunks that contain only the fill value are not written
            _sync(path)


def persist_all(store: Path) -> None:
    """Synchronise a new store to the disk: its metadata and all folders."""
    for path in (*store.rglob("*"), store, store.parent):
        _sync(path)


def _sync(path: Path) -> None:
    """Synchronise a file, or the names in a folder."""
    if path.is_dir():
        if os.name == "nt":  # folders cannot be opened there, and NTFS has a journal for names
            return
        descriptor = os.open(path, os.O_RDONLY)
    else:
        descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def store_of(folder: Path, number: int, name: str = "image") -> Path:
    """Return the store into which a pass writes an image."""
    return folder / f"pass-{number:04}-{name}.zarr"


def _remove_folder(folder: Path) -> None:
    """Delete a folder; a worker of the run that was interrupted may be writing its last block there."""
    end = time.monotonic() + _PATIENCE
    while folder.exists():
        try:
            shutil.rmtree(folder)
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def forget(store: Path) -> None:
    """Delete a store."""
    shutil.rmtree(store, ignore_errors=True)


def forget_all_but(folder: Path, stores: Iterable[Path]) -> None:
    """Delete the stores that no pass reads any more."""
    for store in set(folder.glob("pass-*.zarr")) - set(stores):
        forget(store)


def finish(result: Path, target: Path) -> None:
    """Move the result to its place, without partial chunks of killed workers."""
    for remnant in result.rglob("*.partial"):
        remnant.unlink()
    os.rename(result, target)
    _sync(target.parent)


def clear(folder: Path) -> None:
    """Delete the folder of a finished run, as far as it is there."""
    shutil.rmtree(folder, ignore_errors=True)


def _list_of(folder: Path, number: int) -> Path:
    return folder / f"pass-{number:04}.done"


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 80 else text[:77] + "…"
