"""Read and renew what ImageJ, OME and tifffile write about the pages of a TIFF file."""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Mapping
from typing import Any

from aniso.io import units
from aniso.io.picture import Picture

# What OME calls the types.
_OME_TYPES = {"float32": "float", "float64": "double"} | {
    f"{u}int{n}": f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32)
}
# ImageJ takes distances without a unit for pixels.
_NO_UNIT = "unit"
_PIXEL_UNITS = ("", "pixel", "pixels")
# Tags may have the name of a namespace before them.
_PIXELS = re.compile(r"<(?:\w+:)?Pixels\b[^>]*>")
_TIFF_DATA = re.compile(r"<((?:\w+:)?)TiffData\b[^>]*?(?:/>|>.*?</\1TiffData\s*>)", re.DOTALL)


def spacing(file: Any, order: str) -> tuple[tuple[float, ...] | None, str | None]:
    """Return spacing and unit as ImageJ or OME wrote them; of the pages too, if they are slices."""
    order = "ZYX" if "Z" in order else order
    if file.is_ome:
        text = file.pages[0].description
        found, unit = _ome_sizes(text)
    else:
        notes = file.imagej_metadata or {}
        unit = units.unescape(str(notes.get("unit") or ""))
        if unit in _PIXEL_UNITS and order.startswith("Z") and _length(notes.get("spacing")) is not None:
            return _without_unit(file.pages[0], float(notes["spacing"]), unit), None
        if 282 not in file.pages[0].tags:
            return None, None
        across, down = file.pages[0].resolution
        found = {"Z": notes.get("spacing"), "Y": down and 1 / down, "X": across and 1 / across}
    if unit in _PIXEL_UNITS:
        return None, None
    numbers = tuple(map(_length, (found.get(axis) for axis in order)))
    if len(order) == 3 and numbers[0] is None:
        numbers = numbers[1:]
    if any(number is None for number in numbers):
        return None, None
    return numbers, None if unit == _NO_UNIT else unit  # type: ignore[return-value]


def _without_unit(page: Any, depth: float, unit: str) -> tuple[float, float, float]:
    """Return the shape of voxels whose depth ImageJ gives without a unit.

    It is in pixels, unless tags give other distances. Resolutions per inch or centimetre describe prints.
    """
    sizes = [1.0, 1.0]
    if not unit and 282 in page.tags and int(page.resolutionunit) == 1:
        sizes = [_length(dots and 1 / dots) or 1.0 for dots in page.resolution[::-1]]
    return depth, sizes[0], sizes[1]


def _ome_sizes(text: str) -> tuple[dict[str, float | None], str]:
    """Return the spacing along the axes, all in the unit of X."""
    found = dict(re.findall(r'\bPhysicalSize([XYZ])="([^"]+)"', text))
    named = dict(re.findall(r'\bPhysicalSize([XYZ])Unit="([^"]+)"', text))
    own = {axis: units.unescape(named.get(axis, "µm")) for axis in "XYZ"}
    sizes = {axis: _length(size) for axis, size in found.items()}
    for axis, size in sizes.items():
        if own[axis] != own["X"] and size is not None:
            ratio = units.ratio(own[axis], own["X"])
            sizes[axis] = None if ratio is None else size * ratio
    return sizes, own["X"]


def _length(value: Any) -> float | None:
    """Return a positive finite number, or None."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if 0 < number < math.inf else None


def imagej(picture: Picture, channels: int) -> str:
    """Describe spacing and pages as ImageJ does, which most programs read."""
    frames, slices = (1, 1, *picture.shape[:-2])[-2:]
    if picture.details.get("pages") == "T":
        frames, slices = slices, frames
    counts = {"channels": channels, "slices": slices, "frames": frames}
    several = {name: count for name, count in counts.items() if count > 1}
    planes = {"images": math.prod(counts.values())} if several else {}
    lines = ["ImageJ=1.11a", *(f"{name}={count}" for name, count in (planes | several).items())]
    if len(several) > 1:
        lines.append("hyperstack=true")
    if picture.spacing is not None:
        lines.append(f"unit={units.escape(picture.unit or _NO_UNIT)}")
        if len(picture.spacing) == 3:
            lines.append(f"spacing={picture.spacing[0]!r}")
    return "\n".join(lines) + "\n"


def renew(picture: Picture, details: Mapping[str, Any], shape: tuple[int, ...]) -> str | None:
    """Return the text of the original file, updated to the pixels; None if that is impossible.

    `shape` is that of the file, with channels where it has them.
    """
    text = details.get("structure")
    if text is None or details["shape"][:-2] != picture.shape[:-2]:
        return None
    if text.startswith("{"):
        return text if details["shape"] == picture.shape else json.dumps(json.loads(text) | {"shape": shape})
    if text.rstrip().endswith("OME>"):
        known = _planes(text) == _samples(picture) and picture.dtype.name in _OME_TYPES
        return _ome(text, picture) if known else None
    return str(text)  # of ImageJ, which describes pages and no sizes


def _planes(text: str) -> int:
    """Count the planes that OME describes: more than one file of a set holds, 0 if another file does."""
    head = _PIXELS.search(text)
    return math.prod(int(size) for size in re.findall(r'\bSize[ZCT]="(\d+)"', head[0])) if head else 0


def _samples(picture: Picture) -> int:
    """Count the planes of a picture, with channels and alpha."""
    return math.prod(picture.shape[:-2]) * ((picture.channels or 1) + (picture.alpha is not None))


def _ome(text: str, picture: Picture) -> str:
    new = {"SizeY": picture.shape[-2], "SizeX": picture.shape[-1], "Type": _OME_TYPES[picture.dtype.name]}
    if picture.spacing is not None and picture.shape != picture.details["shape"]:
        for axis, size in zip("YX", picture.spacing[-2:], strict=True):
            new[f"PhysicalSize{axis}"] = size
            new[f"PhysicalSize{axis}Unit"] = html.escape(picture.unit or "µm")

    def renew_tag(tag: re.Match[str]) -> str:
        head = tag[0]
        if f'Type="{new["Type"]}"' not in head:
            head = re.sub(r'\s*\bSignificantBits="[^"]*"', "", head)
        for name, value in new.items():
            attribute = f'{name}="{value}"'
            if re.search(rf'\b{name}="', head):
                head = re.sub(rf'\b{name}="[^"]*"', attribute, head)
            else:
                head = head.replace("Pixels", f"Pixels {attribute}", 1)
        return head

    return _PIXELS.sub(renew_tag, _of_this_file(text))


def _of_this_file(text: str) -> str:
    """Remove the names of the original file from OME's text: programs would look for planes there."""
    text = re.sub(r'(<(?:\w+:)?OME\b[^>]*?)\s+UUID="[^"]*"', r"\1", text)
    first = iter(["<{}TiffData/>"])  # the pages in their order
    return _TIFF_DATA.sub(lambda found: next(first, "").format(found[1]), text)
