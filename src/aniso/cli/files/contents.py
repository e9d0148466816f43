"""The contents of a file, as data and as text."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np

from aniso import estimates
from aniso.cli.errors import describe_error
from aniso.cli.files import reading as files
from aniso.cli.jobs.file_job import picture_facts
from aniso.cli.jobs.reporting import columns
from aniso.cli.options.shared import ComputingOptions, ReadingOptions
from aniso.io.pages import is_volume
from aniso.io.picture import Picture


def describe_file(path: Path, reading: ReadingOptions, estimate: bool) -> tuple[dict[str, Any], list[str]]:
    """Return facts for JSON, and lines of text."""
    picture = files.read(path, reading)
    facts = {**picture_facts(picture), **_metadata(picture), **_values(picture)}
    found = _estimate(picture, reading) if estimate else {}
    volume = is_volume(picture, reading.volume)
    rows = [*_rows(picture, facts, volume), *_estimate_rows(found, "voxel" if volume else "pixel")]
    if volume and "noise" in found and len(set(picture.spacing or ())) > 1:
        rows.append(("lengths", "in units of the shortest side of a voxel"))
    return {**facts, "estimates": found}, [f"{path}", columns(rows)]


def _metadata(picture: Picture) -> dict[str, Any]:
    return {
        "stored": _stored(picture),
        "spacing": picture.spacing,
        "unit": picture.unit,
        "resolution": picture.resolution,
        "icc_profile": picture.icc_profile is not None,
        "orientation": picture.orientation,
        "description": picture.description,
    }


def _stored(picture: Picture) -> dict[str, Any] | None:
    """Return how the file stores its pixels, if it scales them."""
    if picture.scale is None:
        return None
    slope, intercept, dtype = picture.scale
    return {"dtype": str(dtype), "slope": slope, "intercept": intercept}


def _values(picture: Picture) -> dict[str, Any]:
    pixels = picture.pixels
    known = pixels[np.isfinite(pixels)] if pixels.dtype.kind == "f" else pixels
    if known.size == 0:
        return {"least": None, "largest": None, "mean": None, "unknown": pixels.size}
    return {
        "least": known.min().item(),
        "largest": known.max().item(),
        "mean": float(known.mean(dtype=np.float64)),
        "unknown": pixels.size - known.size,
    }


def _estimate(picture: Picture, reading: ReadingOptions) -> dict[str, Any]:
    """Estimate noise, contrast and wavelength of a volume or of the middle page; else say why not."""
    if picture.pixels.dtype.kind == "f" and not np.isfinite(picture.pixels).all():
        return {"none": "some values are not finite. Fill them in first with aniso inpaint"}
    try:
        stack = files.pages(picture, reading, ComputingOptions())
        page = next(itertools.islice(stack, stack.count // 2, None))
        where: Any = {"channel_axis": page.channel_axis}
        noise = estimates.noise_level(page.image, **where)
        where |= {"noise": noise, "spacing": page.spacing}
        return {
            "noise": noise,
            "contrast": estimates.contrast(page.image, **where),
            "edges": estimates.contrast(page.image, quantile=0.95, **where),
            "wavelength": estimates.wavelength(page.image, **where),
        }
    except (ValueError, TypeError) as error:
        return {"none": describe_error(error).rstrip(".")}


def _rows(picture: Picture, facts: dict[str, Any], volume: bool) -> list[tuple[str, str]]:
    rows = [("format", f"{picture.format}, {picture.dtype}")]
    if facts["stored"] is not None:
        rows.append(
            ("stored as", "{dtype}, times {slope:.6g} plus {intercept:.6g}".format(**facts["stored"]))
        )
    rows += _size_rows(picture.shape, volume)
    colours = "grey" if picture.channels is None else f"{picture.channels}"
    rows.append(("channels", colours + (", with alpha" if picture.alpha is not None else "")))
    if facts["least"] is not None:
        rows.append(("values", f"{facts['least']:.6g} to {facts['largest']:.6g}, mean {facts['mean']:.6g}"))
    if facts["unknown"]:
        rows.append(("not finite", f"{facts['unknown']} values (NaN or infinite)"))
    if picture.spacing is not None:
        rows.append(("spacing", " × ".join(f"{h:.6g}" for h in picture.spacing) + f" {picture.unit or ''}"))
    if picture.resolution is not None:
        rows.append(("resolution", " × ".join(f"{r:.6g}" for r in picture.resolution) + " pixels per inch"))
    if picture.icc_profile is not None:
        rows.append(("colour profile", f"{len(picture.icc_profile)} bytes"))
    if facts["orientation"] != 1:
        rows.append(("orientation", f"{facts['orientation']} in EXIF; pixels are not rotated"))
    if picture.description:
        first = picture.description.strip().splitlines()[0]
        rows.append(("description", first if len(first) <= 60 else first[:59] + "…"))
    return rows


def _size_rows(shape: tuple[int, ...], volume: bool) -> list[tuple[str, str]]:
    sizes = " × ".join(map(str, shape))
    if volume:
        return [("size", f"{sizes} voxels (depth × height × width)")]
    if len(shape) == 1:
        return [("size", f"{sizes} samples")]
    rows = [("size", " × ".join(map(str, shape[-2:])) + " pixels (height × width)")]
    if len(shape) > 2:
        rows.append(("pages", " × ".join(map(str, shape[:-2]))))
    return rows


def _estimate_rows(found: dict[str, Any], element: str) -> list[tuple[str, str]]:
    if not found:
        return []
    if "none" in found:
        return [("estimates", f"none: {found['none']}")]
    return [
        ("noise", f"{found['noise']:.4g} grey values (standard deviation)"),
        (
            "gradients",
            f"{found['contrast']:.4g} grey values per {element} (typical), {found['edges']:.4g} (edges)",
        ),
        ("wavelength", f"{found['wavelength']:.4g} {element}s (line spacing)"),
    ]
