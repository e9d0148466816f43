"""Places of stores: a folder on a disk, or the objects of a store with a common prefix.

A run keeps everything in its target's place, with the few operations of :class:`Place`: on a disk here, in an
object store in :mod:`aniso.blocks.stores.remote`.
"""

# ruff: noqa: D102 (methods are described in Place)

from __future__ import annotations

import errno
import os
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from aniso import io

if TYPE_CHECKING:
    from io import FileIO

#: What the name of the folder of a run ends in.
UNFINISHED = ".unfinished"
#: What describes an array or group, in the order in which it has to appear.
DESCRIPTIONS = (".zarray", ".zgroup", "zarr.json")
# Seconds to wait for workers of an interrupted run.
_PATIENCE = 10
_LOCK = "lock"

#: Options of object stores, as given by the user.
Options = Mapping[str, Any]
#: Adds a line to a list.
Record = Callable[[str], object]


class ExplainedError(OSError):
    """An error of a place whose message says all that is known."""


class Lease:
    """Tells workers whether the run for which they work may still write: on a disk, always."""

    def check(self) -> None:
        """Raise an error if another run has taken over."""


class Place(ABC):
    """A folder or a file; or, in an object store, a prefix or an object."""

    #: Whether results are moved to their place when they are complete.
    moves: ClassVar[bool]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    @property
    @abstractmethod
    def name(self) -> str:
        """The last part of the path."""

    @property
    @abstractmethod
    def node(self) -> Any:
        """What Zarr opens."""

    @property
    def parents(self) -> list[Place]:
        """The folders that contain it, from the inside out."""
        return []

    @abstractmethod
    def __truediv__(self, name: str) -> Place: ...

    @abstractmethod
    def rename(self, name: str) -> Place:
        """Return the place of this name in the same folder."""

    def absolute(self) -> Place:
        """Return the same place for processes with another working directory."""
        return self

    @abstractmethod
    def make_parents(self) -> None:
        """Create the folders in which it will be, where there are folders."""

    @abstractmethod
    def exists(self) -> bool:
        """Whether there is a file or a folder."""

    def is_described(self) -> bool:
        """Whether there is what describes an array or group, which is written last."""
        return any((self / name).read() is not None for name in DESCRIPTIONS)

    @abstractmethod
    def read(self) -> bytes | None:
        """Return the contents of a file, or None if it does not exist."""

    @abstractmethod
    def write(self, contents: bytes) -> None:
        """Write a file that is complete as soon as it is there, and stays after a power failure."""

    @abstractmethod
    def children(self) -> list[str]:
        """Return the names of the files and folders in a folder."""

    @abstractmethod
    def files(self) -> Iterator[tuple[str, str]]:
        """Yield the paths of all files in a folder and what changes with them, without those of runs."""

    @abstractmethod
    def remove(self, *, strict: bool = False) -> None:
        """Delete a file, or a folder as far as possible; `strict`: raise an error if it is not."""

    @abstractmethod
    def lines(self) -> set[str]:
        """Return the complete lines of a list."""

    @abstractmethod
    def open_list(self) -> AbstractContextManager[Record]:
        """Open a list, to add lines that stay after a power failure."""

    @abstractmethod
    def persist(self, keys: Iterable[str] | None = None) -> None:
        """Force files in a folder to the disk, by default all of them and the name of the folder."""

    @abstractmethod
    def check_free(self) -> None:
        """Reject a place at which there is something already."""

    @abstractmethod
    def check_writable(self) -> None:
        """Reject a place in which nothing can be written, before anything is computed."""

    @abstractmethod
    def lock(self) -> AbstractContextManager[Lease]:
        """Create a folder, and keep other runs from writing into it."""

    @abstractmethod
    def check_lock(self) -> None:
        """Raise an error if a run is writing into the folder."""

    @abstractmethod
    def lock_holder(self) -> str | None:
        """Return the machine of the run that is writing into the folder, or None."""

    @abstractmethod
    def publish(self, target: Place) -> None:
        """Make the result in this folder visible at the target, at once."""


@dataclass(frozen=True, repr=False)
class LocalPlace(Place):
    """A path on a disk."""

    path: Path
    moves = True

    def __str__(self) -> str:
        return str(self.path)

    __fspath__ = __str__

    def __truediv__(self, name: str) -> LocalPlace:
        return LocalPlace(self.path / name)

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def node(self) -> str:
        return str(self.path)

    @property
    def parents(self) -> list[Place]:
        return [LocalPlace(path) for path in self.path.parents]

    def rename(self, name: str) -> LocalPlace:
        return LocalPlace(self.path.with_name(name))

    def absolute(self) -> LocalPlace:
        return LocalPlace(self.path.absolute())

    def make_parents(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)

    def exists(self) -> bool:
        return self.path.exists()

    def read(self) -> bytes | None:
        return self.path.read_bytes() if self.path.exists() else None

    def write(self, contents: bytes) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        partial = self.path.with_name(self.path.name + ".partial")
        partial.write_bytes(contents)
        _sync(partial)
        partial.replace(self.path)
        _sync(self.path.parent)

    def children(self) -> list[str]:
        return sorted(os.listdir(self.path)) if self.path.is_dir() else []

    def files(self) -> Iterator[tuple[str, str]]:
        for folder, names, files in os.walk(self.path):
            # A result may be stored in the source itself.
            names[:] = sorted(name for name in names if not name.endswith(UNFINISHED))
            for name in sorted(files):
                path = os.path.join(folder, name)
                status = os.stat(path)
                yield os.path.relpath(path, self.path), f"{status.st_size} {status.st_mtime_ns}"

    def remove(self, *, strict: bool = False) -> None:
        if not self.path.is_dir():
            self.path.unlink(missing_ok=True)
            return
        end = time.monotonic() + _PATIENCE
        while self.path.exists():
            try:
                shutil.rmtree(self.path, ignore_errors=not strict)
                return
            except OSError:  # a worker of the run that was interrupted may be writing its last block there
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)

    def lines(self) -> set[str]:
        text = self.read() or b""
        return {line.decode().rstrip("\n") for line in text.splitlines(keepends=True) if line.endswith(b"\n")}

    @contextmanager
    def open_list(self) -> Iterator[Record]:
        if self.path.exists():
            # A truncated line may be the name of another block.
            before, end, _ = self.path.read_bytes().rpartition(b"\n")
            os.truncate(self.path, len(before + end))
        # A buffer would try to write again when it is closed after an error.
        with self.path.open("ab", buffering=0) as file:
            _sync(self.path.parent)  # the name of the list
            yield lambda line: _add_line(file, line)

    def persist(self, keys: Iterable[str] | None = None) -> None:
        if keys is None:
            for path in (*self.path.rglob("*"), self.path, self.path.parent):
                _sync(path)
            return
        paths = {self.path / key for key in keys}
        folders = {folder for path in paths for folder in path.parents if folder.is_relative_to(self.path)}
        for path in (*sorted(paths), *sorted(folders, reverse=True)):
            with suppress(FileNotFoundError):  # chunks that contain only the fill value are not written
                _sync(path)

    def check_free(self) -> None:
        if os.path.lexists(self.path):
            raise FileExistsError(f"{self} already exists. Choose another name, or delete it first.")

    def check_writable(self) -> None:
        self.check_free()
        if not self.path.parent.is_dir():
            raise FileNotFoundError(f"the folder {self.path.parent} does not exist. Create it first.")
        folder = self.path.with_name(self.path.name + UNFINISHED)
        if os.path.lexists(folder) and not folder.is_dir():
            raise FileExistsError(
                f"{folder} is not a folder, but unfinished results are stored there. Rename it, or choose "
                "another output."
            )
        place = folder if folder.is_dir() else self.path.parent
        if not os.access(place, os.W_OK | os.X_OK):
            raise PermissionError(
                f"{self} cannot be written: this user may not write in {place}. Choose another output."
            )

    @contextmanager
    def lock(self) -> Iterator[Lease]:
        """Create the folder, and lock it; a lock ends with its process."""
        import locket

        with explain_write_errors(self):
            self.path.mkdir(exist_ok=True)
        lock = locket.lock_file(str(self.path / _LOCK), timeout=0)
        try:
            lock.acquire()
        except locket.LockError as error:
            raise FileExistsError(
                f"another run is writing to {self}. Wait until it ends, or choose another output."
            ) from error
        try:
            yield Lease()
        finally:
            lock.release()

    def check_lock(self) -> None:
        if (self.path / _LOCK).exists():
            with self.lock():
                pass

    def lock_holder(self) -> str | None:
        try:
            self.check_lock()
        except FileExistsError:
            return "this machine"
        return None

    def publish(self, target: Place) -> None:
        """Move the result to its place, without partial chunks of killed workers."""
        for remnant in self.path.rglob("*.partial"):
            remnant.unlink()
        os.rename(self.path, str(target))
        _sync(Path(str(target)).parent)


@contextmanager
def explain_write_errors(place: Place | str) -> Iterator[None]:
    """Add to errors of the disk that the run can be continued."""
    try:
        yield
    except ExplainedError:
        raise
    except OSError as error:
        raise OSError(
            f"{place} cannot be written: {io.reason(error)}. Complete blocks are kept. Fix the "
            "problem, and repeat the call to continue."
        ) from error


def _add_line(file: FileIO, text: str) -> None:
    """Add a line to a file, and force it to the disk."""
    line = f"{text}\n".encode()
    with explain_write_errors(str(file.name)):
        if file.write(line) < len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(file.fileno())


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
