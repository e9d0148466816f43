"""Folders that nobody but this user can write to.

Compiled kernels are pickles and machine code: whoever can write them can run code as whoever loads them. So
they are read only from a folder that other users cannot change.

Trusted are this user, root, and the home folder if it belongs to one of them and others cannot write to it:
whoever can change what is above it could replace more than kernels. Below it, or from the root of the file
system down if the folder is elsewhere, each folder on the path must belong to this user or to root, and
others must not be able to replace what it contains: it is not writable by them, or it is sticky like
``/tmp``. A symbolic link on the path is followed if it belongs to this user or to root, and the same holds
for what it points to. The last folder is not shared at all: neither a link, nor sticky, nor writable by a
group.

Missing folders are made with mode 0700. Access control lists are not looked at. Windows has no such modes;
there, the folder is used as it is.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def make_private(folder: Path) -> Path:
    """Make a folder if it is missing, and return its real path.

    Raises
    ------
    OSError
        If it cannot be made, or PermissionError if other users could write to it.
    """
    if not hasattr(os, "geteuid"):
        folder.mkdir(parents=True, exist_ok=True)
        return folder.resolve()
    if folder.is_symlink():
        raise PermissionError(f"{folder} is a symbolic link: give the folder itself")
    path = _real_path(folder, _home())
    info = os.stat(path)
    if not stat.S_ISDIR(info.st_mode):
        raise NotADirectoryError(f"{path} is not a folder")
    if info.st_mode & _OTHERS_WRITE:
        raise PermissionError(f"other users can write to {path}: remove that right with chmod go-w")
    return path


def check_owner(info: os.stat_result, what: object) -> None:
    """Refuse what belongs neither to this user nor to root."""
    if hasattr(os, "geteuid") and info.st_uid not in (0, os.geteuid()):
        raise PermissionError(f"{what} belongs to another user (uid {info.st_uid})")


def check_file(info: os.stat_result, what: object) -> None:
    """Refuse what is not a file, or not only this user's."""
    check_owner(info, what)
    if not stat.S_ISREG(info.st_mode):
        raise PermissionError(f"{what} is not a regular file")
    if hasattr(os, "geteuid") and info.st_mode & _OTHERS_WRITE:
        raise PermissionError(f"other users can write to {what}")


def _home() -> Path | None:
    try:
        home = Path.home().resolve()
        info = os.stat(home)
        check_owner(info, home)
    except (OSError, RuntimeError):  # no home, or not one of this user
        return None
    return None if _others_can_replace_entries(info) else home


def _real_path(path: Path, home: Path | None) -> Path:
    """The path without links, all of its folders checked, and made where they are missing."""
    if path == home or path == path.parent:
        return path
    path = _real_path(path.parent, home) / path.name
    if path == home:
        return path
    try:
        info = os.lstat(path)
    except FileNotFoundError:
        with contextlib.suppress(FileExistsError):  # another process was faster
            os.mkdir(path, 0o700)
        info = os.lstat(path)
    check_owner(info, path)
    if stat.S_ISLNK(info.st_mode):
        os.stat(path)  # says if links go round in circles
        return _real_path(path.parent / os.readlink(path), home)
    if _others_can_replace_entries(info):
        raise PermissionError(f"other users can write to {path}: remove that right with chmod go-w")
    return path


def _others_can_replace_entries(info: os.stat_result) -> bool:
    if not info.st_mode & _OTHERS_WRITE or info.st_mode & stat.S_ISVTX:
        return False
    return bool(info.st_mode & stat.S_IWOTH) or not _is_own_group(info.st_gid)


def _is_own_group(gid: int) -> bool:
    """Whether a group has this user alone: many systems give everybody such a group, and let it write."""
    import grp
    import pwd

    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(gid)
    except KeyError:
        return False
    return gid == user.pw_gid and group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}
