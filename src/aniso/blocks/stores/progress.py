"""What is done, on disk: an interrupted run goes on where it stopped.

A run keeps a folder beside its target, with one store per pass, of each the list of the blocks that are
complete, and a description of the run. A list grows by a line after the block was written and forced to the
disk; a line that was cut off is missing, and its block is written again. So a list is never ahead of the
data, not even after a power failure.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Any

from aniso import io
from aniso.blocks.stores.opened import Opened

_DESCRIPTION, _LOCK = "run.json", "lock"


def folder_of(target: Path) -> Path:
    """Where the stores of the passes to this target are kept."""
    return target.with_name(target.name + ".unfinished")


def check_place(target: Path) -> None:
    """Refuse a target that cannot be written, before anything is computed."""
    if os.path.lexists(target):
        raise FileExistsError(f"{target} exists already. Choose another name, or delete it first.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {target.parent}. Make it first.")
    folder = folder_of(target)
    if os.path.lexists(folder) and not folder.is_dir():
        raise FileExistsError(
            f"{folder} is no folder, and what is unfinished would be kept there. Rename it, or choose "
            "another output."
        )
    place = folder if folder.is_dir() else target.parent
    if not os.access(place, os.W_OK | os.X_OK):
        raise PermissionError(
            f"{target} cannot be written: this user may not write in {place}. Choose another output."
        )


@contextmanager
def writing(place: Path | str) -> Iterator[None]:
    """If the disk refuses what is written within, say that the run can go on when it does no more."""
    try:
        yield
    except OSError as error:
        raise OSError(
            f"{place} cannot be written: {io.reason(error)}. What is complete is kept; when that is "
            "remedied, repeat the call to go on."
        ) from error


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """No other run writes into the folder, which is made; a lock ends with the process that holds it."""
    import locket

    with writing(folder):
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


def begin(folder: Path, description: dict[str, Any], cut: dict[str, Any]) -> dict[str, Any]:
    """Prepare the folder of a run, or find that of the same one, which was interrupted; how it is cut.

    The description has to be the same. How a run is cut into blocks and passes depends on the workers, which
    may be others now: a run that goes on keeps what it was begun with.
    """
    path = folder / _DESCRIPTION
    if path.exists() and not any(folder.glob("pass-*.zarr")):
        # The result has taken its place, and only the rest was left.
        for rest in (path, *folder.glob("pass-*.done")):
            rest.unlink()
    if path.exists():
        before = json.loads(path.read_text("utf-8"))
        changed = [name for name in description if before.get(name) != description[name]]
        if changed:
            name = changed[0]
            raise ValueError(
                f"{folder} holds an interrupted run with another {name} ({_short(before.get(name))} there, "
                f"{_short(description[name])} now): its blocks would not fit. Delete it to start anew, "
                "or repeat the call that was interrupted to go on."
            )
        return {name: before[name] for name in cut}
    partial = folder / (_DESCRIPTION + ".partial")
    partial.write_text(json.dumps(description | cut, indent=1), "utf-8")
    _sync(partial)
    partial.replace(path)
    _sync(folder)
    return cut


def fingerprint(source: Opened) -> str:
    """A number that changes with the files of the source: their names, sizes and times."""
    digest = hashlib.sha256()
    for folder, names, files in os.walk(source.path):
        names.sort()
        for name in sorted(files):
            status = os.stat(os.path.join(folder, name))
            where = os.path.relpath(os.path.join(folder, name), source.path)
            digest.update(f"{where} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:32]


def done(folder: Path, number: int) -> set[str]:
    """Blocks of a pass that are complete."""
    path = _list_of(folder, number)
    if not path.exists():
        return set()
    lines = path.read_text("utf-8").splitlines(keepends=True)
    return {line.rstrip("\n") for line in lines if line.endswith("\n")}


@contextmanager
def recording(folder: Path, number: int) -> Iterator[FileIO]:
    """The list of a pass, to be written to."""
    path = _list_of(folder, number)
    if path.exists():
        # What is left of a line that was cut off may be the name of another block.
        before, end, _ = path.read_bytes().rpartition(b"\n")
        os.truncate(path, len(before + end))
    # Without a buffer, which would try to write once more when it is closed after an error.
    with path.open("ab", buffering=0) as file:
        yield file


def record(file: FileIO, block: str) -> None:
    """One more block is complete, and stays so if the process is killed now."""
    line = f"{block}\n".encode()
    with writing(str(file.name)):
        if file.write(line) < len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(file.fileno())


def persist(array: Path, keys: Iterable[str]) -> None:
    """Force chunks of an array to the disk, and the folders in which they appeared."""
    paths = {array / key for key in keys}
    for path in sorted(paths):
        with suppress(FileNotFoundError):  # a chunk that holds the fill value only is not written
            _sync(path)
    folders = {folder for path in paths for folder in path.parents if folder.is_relative_to(array)}
    for folder in sorted(folders, reverse=True):
        with suppress(FileNotFoundError):
            _sync(folder)


def persist_all(store: Path) -> None:
    """Force a new store to the disk: the files that describe it, and all folders."""
    for path in (*store.rglob("*"), store, store.parent):
        _sync(path)


def _sync(path: Path) -> None:
    """Wait until the disk holds a file, or the names in a folder."""
    if path.is_dir():
        if os.name == "nt":  # where folders cannot be opened, and names are kept in a journal
            return
        descriptor = os.open(path, os.O_RDONLY)
    else:
        descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def store_of(folder: Path, number: int) -> Path:
    """Where a pass writes."""
    return folder / f"pass-{number:04}.zarr"


def forget(folder: Path, number: int) -> None:
    """Delete what a pass has written."""
    shutil.rmtree(store_of(folder, number), ignore_errors=True)


def finish(result: Path, target: Path) -> None:
    """The result takes its place, without what killed workers left of chunks."""
    for remnant in result.rglob("*.partial"):
        remnant.unlink()
    os.rename(result, target)
    _sync(target.parent)


def clear(folder: Path) -> None:
    """A finished run needs its folder no more."""
    shutil.rmtree(folder)


def _list_of(folder: Path, number: int) -> Path:
    return folder / f"pass-{number:04}.done"


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 80 else text[:77] + "…"
