"""Compiled kernels on disk: one file for each kernel, signature, processor and version of Numba and Python.

Numba's own cache needs the module as a file next to it, does not notice damaged files before they are loaded,
and does not ask who wrote them. Here a file begins with a hash of the rest: a file that was cut off or has
changed is removed, and its kernel compiled again. A kernel that cannot be stored is used from memory.
See :mod:`aniso.engines.cpu.private_folder` for whose files are loaded.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import logging
import os
import pickle
import re
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import _Cache
from numba.core.ccallback import CFunc
from numba.core.compiler import CompileResult
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps

from aniso.engines.cpu.private_folder import check_file, make_private

_rebuild: Any = CompileResult._rebuild
_dumps: Any = dumps
_runtime: Any = rtsys

_log = logging.getLogger("aniso")

_DAY = 86_400.0

#: Kernels that were not used for so long are removed.
_LONGEST_UNUSED = 90 * _DAY

#: If there are more bytes than this, the kernels that were not used for longest are removed.
_LARGEST_TOTAL = 512 * 2**20

#: Errors of a process or a machine that is short of something.
_TRANSIENT = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO)

_MAGIC = b"aniso kernel 1\n"

#: The files that may be removed: the user may have chosen a folder with other things in it.
_OWN_FILE = re.compile(r"aniso_[a-z_]+_[0-9a-f]{20}\.\w+\.[0-9a-f]{16}\.kernel(\.[0-9a-f]{32}\.tmp)?")

#: What this process has loaded or stored.
_used: set[Path] = set()

#: The folder that the user was warned of: one warning is enough.
_warned_of: list[Path] = []


def keep_entry(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function like `numba.njit`, and keep it on disk."""

    def decorate(function: Callable[..., Any]) -> Any:
        kernel = numba.njit(**options)(function)
        kernel._cache = KernelCache(function)
        return kernel

    return decorate


def keep_address(signature: Any, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function like `numba.cfunc`, and keep it on disk."""

    def decorate(function: Callable[..., Any]) -> Any:
        kernel: Any = CFunc(function, (signature.args, signature.return_type), {}, options)
        kernel._cache = KernelCache(function)
        kernel.compile()
        return kernel

    return decorate


class KernelCache(_Cache):
    """The files of one kernel, for Numba, which asks for it before it compiles.

    The module of the kernel is named by a hash of its text, so that a name stands for one text for ever.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._name = f"{function.__module__}.{function.__name__}"
        self._folder = cache_folder()

    @property
    def cache_path(self) -> str | None:
        """The folder, or None if nothing is stored."""
        return None if self._folder is None else str(self._folder)

    def holds_any(self) -> bool:
        """Whether the kernel is stored, for whatever signature."""
        return self._folder is not None and any(self._folder.glob(f"{self._name}.*.kernel"))

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """The stored kernel, or None."""
        path = self._path(signature, target_context.codegen())
        if path is None:
            return None
        try:
            content = _read(path)
            if content is None:
                return None
            # All that a stored kernel needs. The compiler loads the rest of Numba when it is called: this
            # takes longer than to load a kernel.
            _runtime.initialize(target_context)
            kernel = _rebuild(target_context, *pickle.loads(content))
        except Exception as error:
            if isinstance(error, MemoryError) or getattr(error, "errno", None) in _TRANSIENT:
                return None  # the file may be fine
            _log.warning("aniso removes the kernel %s and compiles it again: %s", path, error)
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        _used.add(path)
        return kernel

    def save_overload(self, signature: Any, kernel: Any) -> None:
        """Store a kernel, unless it contains addresses of this process."""
        path = self._path(signature, kernel.codegen)
        if path is None or kernel.lifted or kernel.library.has_dynamic_globals:
            return
        try:
            _write(path, _dumps(kernel._reduce()))
            _used.add(path)
            _prune_once(path.parent)
        except OSError as error:
            _warn_once(path.parent, error)

    def enable(self) -> None:
        """Load and store; kernels always do."""

    def disable(self) -> None:
        """Neither load nor store."""
        self._folder = None

    def flush(self) -> None:
        """Remove what is stored."""
        if self._folder is not None:
            for path in self._folder.glob(f"{self._name}.*.kernel"):
                path.unlink(missing_ok=True)

    def _path(self, signature: Any, codegen: Any) -> Path | None:
        if self._folder is None:
            return None
        arguments = getattr(signature, "args", signature)
        key = (arguments, codegen.magic_tuple(), numba.__version__, sys.implementation.cache_tag)
        return self._folder / f"{self._name}.{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}.kernel"


def _read(path: Path) -> bytes | None:
    """The content of a file, None if there is no such file; an error if it is damaged or somebody else's."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    try:
        handle = os.open(path, flags)
    except FileNotFoundError:
        return None
    with open(handle, "rb") as file:
        info = os.fstat(handle)
        check_file(info, path)
        head, content = file.read(len(_MAGIC) + 32), file.read()
    if head != _MAGIC + hashlib.sha256(content).digest():
        raise ValueError("the file is damaged")
    if time.time() - info.st_mtime > _DAY:
        with contextlib.suppress(OSError):  # the folder may be one that can only be read
            os.utime(path)  # in use, not to be removed
    return content


def _write(path: Path, content: bytes) -> None:
    """Write a file that is there as a whole or not at all."""
    temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        with open(temporary, "wb", opener=lambda name, _: os.open(name, flags, 0o600)) as file:
            file.write(_MAGIC + hashlib.sha256(content).digest())
            file.write(content)
        os.replace(temporary, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        # On Windows, a file that another process reads cannot be replaced; it has the same content.
        if not (isinstance(error, PermissionError) and os.name == "nt" and path.exists()):
            raise


@functools.cache
def _prune_once(folder: Path) -> None:
    """Remove what was not used for long, and what is too much; not what this process uses.

    Other processes that miss a file compile its kernel again.
    """
    now, total = time.time(), 0
    for last_use, size, path in sorted(_own_files(folder), reverse=True):
        unused = now - last_use
        # A process that was killed may have left a temporary file.
        too_old = unused > (_DAY if path.suffix == ".tmp" else _LONGEST_UNUSED)
        total += size
        if (too_old or total > _LARGEST_TOTAL) and path not in _used:
            total -= size
            with contextlib.suppress(OSError):
                path.unlink()


def _own_files(folder: Path) -> Iterator[tuple[float, int, Path]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if _OWN_FILE.fullmatch(entry.name):
                with contextlib.suppress(OSError):  # removed meanwhile
                    info = entry.stat(follow_symlinks=False)
                    yield info.st_mtime, info.st_size, folder / entry.name


@functools.cache
def cache_folder() -> Path | None:
    """Where kernels are kept between processes; None, after a warning, if there is no such folder."""
    wanted = os.environ.get("ANISO_CACHE_DIR")
    folder = Path(wanted).absolute() if wanted else _user_cache() / "aniso" / "kernels"
    try:
        return make_private(folder)
    except OSError as error:
        _warn_once(folder, error)
        return None


def _warn_once(folder: Path, error: OSError) -> None:
    if not _warned_of:
        _warned_of.append(folder)
        _log.warning(
            "aniso cannot keep compiled kernels in %s (%s): it will compile them again in each process. Set "
            "ANISO_CACHE_DIR to a folder that only you can write to.",
            folder,
            error.strerror or error,
        )


def _user_cache() -> Path:
    try:
        Path.home()
    except RuntimeError:  # a user without a home
        return Path(tempfile.gettempdir()) / f"aniso-{os.getuid() if hasattr(os, 'getuid') else 'user'}"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    given = Path(os.environ.get("XDG_CACHE_HOME") or "")
    return given if given.is_absolute() else Path.home() / ".cache"  # as its specification says
