"""What is done, on disk: an interrupted run goes on where it stopped.

A run keeps a folder beside its target, with one store per pass, of each the list of the blocks that are
complete, and a description of the run. A list grows by a line after the block was written; a line that was
cut off counts as missing, and its block is written again.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from aniso.stores.opened import Opened

_DESCRIPTION = "run.json"


def folder_of(target: Path) -> Path:
    """Where the stores of the passes to this target are kept."""
    return target.with_name(target.name + ".unfinished")


def begin(folder: Path, description: dict[str, Any], cut: dict[str, Any]) -> dict[str, Any]:
    """Prepare the folder of a run, or find that of the same one, which was interrupted; how it is cut.

    The description has to be the same. How a run is cut into blocks and passes depends on the workers, which
    may be others now: a run that goes on keeps what it was begun with.
    """
    path = folder / _DESCRIPTION
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
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / (_DESCRIPTION + ".partial")
    partial.write_text(json.dumps(description | cut, indent=1), "utf-8")
    partial.replace(path)
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
def recording(folder: Path, number: int) -> Iterator[TextIO]:
    """The list of a pass, to be written to; a line that was cut off goes, since it may name another block."""
    path = _list_of(folder, number)
    if path.exists():
        os.truncate(path, path.read_bytes().rfind(b"\n") + 1)
    with path.open("a", encoding="utf-8") as file:
        yield file


def record(file: TextIO, block: str) -> None:
    """One more block is complete, and stays so if the machine stops now."""
    file.write(block + "\n")
    file.flush()
    os.fsync(file.fileno())


def store_of(folder: Path, number: int) -> Path:
    """Where a pass writes."""
    return folder / f"pass-{number:04}.zarr"


def forget(folder: Path, number: int) -> None:
    """Delete what a pass has written."""
    shutil.rmtree(store_of(folder, number), ignore_errors=True)


def finish(folder: Path, result: Path, target: Path) -> None:
    """The result takes its place, and the rest goes."""
    os.rename(result, target)
    shutil.rmtree(folder)


def _list_of(folder: Path, number: int) -> Path:
    return folder / f"pass-{number:04}.done"


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 80 else text[:77] + "…"
