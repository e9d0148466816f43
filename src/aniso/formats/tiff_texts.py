"""What ImageJ, OME and tifffile say of the pages of a TIFF file, and how to say it of other pixels."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from aniso.picture import Picture

# What OME calls the types.
_OME_TYPES = {"float32": "float", "float64": "double"} | {
    f"{u}int{n}": f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32)
}


def spacing(file: Any, order: str) -> tuple[tuple[float, ...] | None, str | None]:
    """Distances of the pixels, from what ImageJ or OME wrote; of the pages too, if they are slices."""
    if file.is_ome:
        text = file.pages[0].description
        found = dict(re.findall(r'\bPhysicalSize([XYZ])="([^"]+)"', text))
        unit = (re.findall(r'\bPhysicalSizeXUnit="([^"]+)"', text) or ["µm"])[0]
    else:
        notes = file.imagej_metadata or {}
        unit = notes.get("unit")
        if unit in (None, "", "pixel", "pixels") or 282 not in file.pages[0].tags:
            return None, None
        across, down = file.pages[0].resolution
        found = {"Z": notes.get("spacing"), "Y": down and 1 / down, "X": across and 1 / across}
    numbers = tuple(map(_length, (found.get(axis) for axis in order)))
    if len(order) == 3 and numbers[0] is None:
        numbers = numbers[1:]
    if any(number is None for number in numbers):
        return None, None
    return numbers, str(unit)  # type: ignore[return-value]


def _length(value: Any) -> float | None:
    """A positive number, if it is one."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if 0 < number < math.inf else None


def imagej(picture: Picture, channels: int) -> str:
    """Distances, and which page is what, as ImageJ says it, which most programs read."""
    pages = picture.shape[0] if len(picture.shape) == 3 else 1
    lines = ["ImageJ=1.11a"]
    if pages * channels > 1:
        lines.append(f"images={pages * channels}")
    if channels > 1:
        lines.append(f"channels={channels}")
    if pages > 1:
        lines.append(f"slices={pages}")
    if pages > 1 and channels > 1:
        lines.append("hyperstack=true")
    if picture.spacing is not None:
        lines.append(f"unit={picture.unit or 'unit'}")
        if len(picture.spacing) == 3:
            lines.append(f"spacing={picture.spacing[0]!r}")
    return "\n".join(lines) + "\n"


def renewed(picture: Picture, shape: tuple[int, ...]) -> str | None:
    """The text of the file that the picture is from, true of its pixels now; None if that cannot be.

    `shape` is that of the file, with channels where it has them.
    """
    details = picture.details if picture.format == "TIFF" else {}
    text = details.get("structure")
    if text is None or details["shape"][:-2] != picture.shape[:-2]:
        return None
    if text.startswith("{"):
        return text if details["shape"] == picture.shape else json.dumps(json.loads(text) | {"shape": shape})
    if "<Pixels" not in text:
        return str(text)  # of ImageJ, which tells pages and no sizes
    return _ome(text, picture) if picture.dtype.name in _OME_TYPES else None


def _ome(text: str, picture: Picture) -> str:
    new = {"SizeY": picture.shape[-2], "SizeX": picture.shape[-1], "Type": _OME_TYPES[picture.dtype.name]}
    if picture.spacing is not None and picture.shape != picture.details["shape"]:
        new |= {"PhysicalSizeY": picture.spacing[-2], "PhysicalSizeX": picture.spacing[-1]}

    def renew(tag: re.Match[str]) -> str:
        head = tag[0]
        if f'Type="{new["Type"]}"' not in head:
            head = re.sub(r'\s*\bSignificantBits="[^"]*"', "", head)
        for name, value in new.items():
            head = re.sub(rf'\b{name}="[^"]*"', f'{name}="{value}"', head)
        return head

    return re.sub(r"<Pixels\b[^>]*>", renew, text)
