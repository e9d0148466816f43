"""Plates and wells of OME-Zarr: groups of fields, each of which is an image."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

from aniso.blocks.stores.places import Place
from aniso.blocks.stores.zarr_array import copy_description


def fields_of(source: Place) -> list[str]:
    """Return the paths of all fields of a plate or of a well."""
    about = _attributes(source)
    try:
        if "well" in about:
            return [_inside(one["path"]) for one in about["well"]["images"]]
        wells = [_inside(one["path"]) for one in about["plate"]["wells"]]
        return [f"{well}/{name}" for well in wells for name in fields_of(source / well)]
    except (LookupError, TypeError) as error:
        raise ValueError(
            f"{source} is not an OME-Zarr plate or well: its metadata have no {error}. Leave --fields out."
        ) from error


def copy_groups(source: Place, target: Place, fields: Sequence[str]) -> None:
    """Copy what describes a plate and its rows and wells; the plate itself last, so that it is complete."""
    groups = {str(parent) for field in fields for parent in PurePosixPath(field).parents}
    for group in sorted(groups, key=lambda name: (name == ".", -name.count("/"), name)):
        copy_description(*(place if group == "." else place / group for place in (source, target)))


def _attributes(place: Place) -> dict[str, Any]:
    for name in ("zarr.json", ".zattrs"):
        if (text := (place / name).read()) is not None:
            found = json.loads(text)
            attributes = found.get("attributes", {}) if name == "zarr.json" else found
            return dict(attributes.get("ome", attributes))
    raise FileNotFoundError(f"{place} does not exist, or is not a Zarr group with metadata.")


def _inside(path: Any) -> str:
    """Return a path of metadata that does not lead out of its group."""
    parts = str(path).split("/")
    if any(part in ("", ".", "..") for part in parts):
        raise ValueError(f"path {path!r} in OME-Zarr metadata does not name a group within.")
    return "/".join(parts)
