"""The journal of a run, in the place of its target: an interrupted run continues where it stopped.

A run has a folder next to its target, with one store per pass, a list of complete blocks for each, and a
description of the run. A line is added to a list after the block was synchronised to the disk, or stored by
the server; a truncated line is ignored, and its block is written again. So a list is never ahead of the data,
not even after a power failure.
"""

from __future__ import annotations

import bisect
import hashlib
import json
import os
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from fnmatch import fnmatch
from typing import Any

from aniso.blocks.stores.places import UNFINISHED, Place, Record
from aniso.blocks.stores.urls import place_of
from aniso.blocks.stores.zarr_array import ZarrArray

DESCRIPTION, PUBLISHED, FIELDS = "run.json", "published", "fields.json"


def folder_of(target: Place | str | os.PathLike[str]) -> Place:
    """Return the folder of the stores of all passes to this target."""
    target = place_of(target)
    return target.rename(target.name + UNFINISHED)


def data_of(folder: Place, store: Place) -> Place:
    """Return where the data of a result are written that is described in a store of this folder."""
    return store if folder.moves else folder.rename(folder.name.removesuffix(UNFINISHED))


def begin_run(folder: Place, description: dict[str, Any], cut: dict[str, Any]) -> dict[str, Any]:
    """Prepare the folder of a run, or that of the same interrupted run, and return how it is cut.

    The description has to be the same. How a run is cut into blocks and passes depends on the workers, which
    may have changed: a continued run keeps what it began with.
    """
    path = folder / DESCRIPTION
    text = path.read()
    if text is None:  # what is left of a run that was killed while it was cleared away
        _remove(folder, "pass-*", "start*")
    elif _find(folder, PUBLISHED) or not _find(folder, "pass-*.zarr"):
        # The result was moved to its place, and only these files were left.
        _remove(folder, PUBLISHED, DESCRIPTION, "pass-*", "start*")
        text = None
    if text is not None:
        before = json.loads(text)
        changed = [name for name in description if before.get(name) != description[name]]
        if changed:
            name = changed[0]
            raise ValueError(
                f"{folder} holds an interrupted run with another {name} ({_short(before.get(name))} there, "
                f"{_short(description[name])} now): its blocks would not fit. Delete it to start again, "
                "or repeat the interrupted call to continue."
            )
        return {name: before.get(name, cut[name]) for name in cut}
    write_json(path, description | cut)
    return cut


def write_json(path: Place, values: Any) -> None:
    """Write a file that is complete as soon as it is there."""
    path.write(json.dumps(values, indent=1).encode())


def _find(folder: Place, *patterns: str) -> list[Place]:
    return [
        folder / name for name in folder.children() if any(fnmatch(name, pattern) for pattern in patterns)
    ]


def _remove(folder: Place, *patterns: str) -> None:
    for rest in _find(folder, *patterns):
        rest.remove(strict=True)


def fingerprint(source: ZarrArray) -> str:
    """Return a hash of the names, sizes and times of the files of the source."""
    digest = hashlib.sha256()
    for where, version in source.path.files():
        digest.update(f"{where} {version}\n".encode())
    return digest.hexdigest()[:32]


def complete_blocks(folder: Place, number: int) -> set[str]:
    """Return the complete blocks of a pass."""
    return _list_of(folder, number).lines()


def describe_run(target: Place) -> dict[str, Any]:
    """Return what a run to this target has done, as far as its place shows: nothing is changed there."""
    folder = folder_of(target)
    if target.is_described():
        return {"state": "complete"}
    if (text := (folder / FIELDS).read()) is not None:
        return _describe_fields(target, json.loads(text))
    if (text := (folder / DESCRIPTION).read()) is None:
        return {"state": "none"}
    about, holder = json.loads(text), folder.lock_holder()
    passes = about.get("passes", 0)
    totals = [about.get("blocks", 0)] * passes + about.get("lower", [])
    done = [len(complete_blocks(folder, number)) for number in range(len(totals))]
    return {
        "state": "interrupted" if holder is None else "running",
        "host": holder,
        **{name: about[name] for name in ("verb", "version", "block", "passes") if name in about},
        "pass": next(
            (number for number in range(1, passes + 1) if done[number - 1] < about["blocks"]), passes
        ),
        "blocks": sum(done),
        "blocks_total": sum(totals),
    }


def _describe_fields(target: Place, fields: list[str]) -> dict[str, Any]:
    """Return what a run for all fields of a plate or well has done: they are written one after another."""
    complete = bisect.bisect_left(
        fields, True, key=lambda name: describe_run(target / name)["state"] != "complete"
    )
    about = {"fields": complete, "fields_total": len(fields)}
    if complete == len(fields):
        return {"state": "between fields", **about}
    found = describe_run(target / fields[complete])
    if found["state"] == "none":
        found = {"state": "between fields"}
    return {**found, "field": fields[complete], **about}


def open_list(folder: Place, number: int) -> AbstractContextManager[Record]:
    """Open the list of a pass, to add complete blocks, unless workers do so."""
    if list_of_workers(folder, number) is not None:
        return nullcontext(lambda name: None)
    return _list_of(folder, number).open_list()


def list_of_workers(folder: Place, number: int) -> Place | None:
    """Return the list of a pass if workers add their blocks to it themselves: objects need no order."""
    return None if folder.moves else _list_of(folder, number)


def store_of(folder: Place, number: int, name: str = "image") -> Place:
    """Return the store into which a pass writes an image."""
    return folder / f"pass-{number:04}-{name}.zarr"


def forget_all_but(folder: Place, stores: Iterable[Place]) -> None:
    """Delete the stores that no pass reads any more."""
    kept = set(stores)
    for store in _find(folder, "pass-*.zarr"):
        if store not in kept:
            store.remove()


def _list_of(folder: Place, number: int) -> Place:
    return folder / f"pass-{number:04}.done"


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 80 else text[:77] + "…"
