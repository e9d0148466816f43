"""Paths and URLs of stores."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from aniso.blocks.stores.places import LocalPlace, Options, Place
from aniso.blocks.stores.remote import RemotePlace

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")  # two letters at least: C:// is a disk


def is_url(word: str) -> bool:
    """Whether this is a URL rather than a path."""
    return _URL.match(word) is not None


def place_of(given: str | os.PathLike[str] | Place, options: Options | None = None) -> Place:
    """Return the place of a path or URL."""
    if isinstance(given, Place):
        return given
    if not isinstance(given, str | os.PathLike):
        raise TypeError(
            f"a store must be given as str or os.PathLike, got {type(given).__name__}. For arrays in memory, "
            "call aniso.denoise and the other functions themselves."
        )
    word = os.fspath(given)
    if not is_url(word):
        return LocalPlace(Path(word))
    if word.lower().startswith("file://"):
        parts = urlsplit(word)
        if parts.netloc not in ("", "localhost"):
            raise ValueError(f"{word} names a file of another machine. Give file:///path or a path.")
        return LocalPlace(Path(url2pathname(parts.path)))
    return RemotePlace.of_url(word, options or {})


def options_for(end: str, options: Options | None) -> dict[str, Any]:
    """Return the options of one end of a run, "source" or "target": those for both, and its own."""
    found = {}
    for name, value in (options or {}).items():
        which, dot, key = str(name).rpartition(".")
        if dot and which not in ("source", "target"):
            raise ValueError(
                f"storage option {name} is unknown. Give e.g. region, or source.region for one end."
            )
        if which in ("", end):
            found[key] = value
    return found
