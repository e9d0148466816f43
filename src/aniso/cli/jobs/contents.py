"""The contents of a file, as data and as text."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from aniso import estimates
from aniso.cli import files
from aniso.cli.errors import describe_error
from aniso.cli.jobs.file_job import picture_facts
from aniso.cli.jobs.reporting import Rows, columns
from aniso.cli.options.shared import ComputingOptions, ReadingOptions
from aniso.io.pages import is_volume
from aniso.io.picture import Picture
from aniso.noise import NoiseModel
from aniso.noise import estimate as estimate_noise

_SCALED = "{dtype}, times {slope:.6g} plus {intercept:.6g}"
_VALUES = "{least:.6g} to {largest:.6g}, mean {mean:.6g}"


def describe_file(path: Path, reading: ReadingOptions, estimate: bool) -> tuple[dict[str, Any], list[str]]:
    """Return facts for JSON, and lines of text."""
    picture = files.read(path, reading)
    facts = {**picture_facts(picture), **_facts(picture)}
    found = _estimate(picture, reading) if estimate else {}
    volume = is_volume(picture, reading.volume)
    rows = [*_rows(picture, facts, volume), *_estimate_rows(found, "voxel" if volume else "pixel")]
    if volume and "noise" in found and len(set(picture.spacing or ())) > 1:
        rows.append(("lengths", "in units of the shortest side of a voxel"))
    return {**facts, "estimates": found}, [f"{path}", columns(rows)]


def _facts(picture: Picture) -> dict[str, Any]:
    """Return what a file says about its pixels (`stored` only if it scales them), and their values."""
    pixels, scale = picture.pixels, picture.scale
    known = pixels[np.isfinite(pixels)] if pixels.dtype.kind == "f" else pixels
    some = known.size > 0
    return {
        "stored": scale and {"dtype": str(scale[2]), "slope": scale[0], "intercept": scale[1]},
        **{name: getattr(picture, name) for name in ("spacing", "unit", "resolution")},
        "icc_profile": picture.icc_profile is not None,
        **{name: getattr(picture, name) for name in ("orientation", "description")},
        "least": known.min().item() if some else None,
        "largest": known.max().item() if some else None,
        "mean": float(known.mean(dtype=np.float64)) if some else None,
        "unknown": pixels.size - known.size,
    }


def _estimate(picture: Picture, reading: ReadingOptions) -> dict[str, Any]:
    """Estimate noise, contrast and wavelength of a volume or of the middle page; else say why not."""
    if picture.pixels.dtype.kind == "f" and not np.isfinite(picture.pixels).all():
        fill = "Fill them in with aniso inpaint first; denoise and enhance fill in NaN automatically"
        return {"none": f"some values are not finite. {fill}"}
    try:
        stack = files.pages(picture, reading, ComputingOptions())
        page = next(itertools.islice(stack, stack.count // 2, None))
        where: Any = {"channel_axis": page.channel_axis}
        noise = estimate_noise(page.image, **where)
        where |= {"noise": noise.level, "spacing": page.spacing}
        return {
            "noise": noise.level,
            "noise_models": noise.models,
            "certainty": noise.certainty,
            "compressed": noise.compressed,
            "contrast": estimates.contrast(page.image, **where),
            "edges": estimates.contrast(page.image, quantile=0.95, **where),
            "wavelength": estimates.wavelength(page.image, **where),
        }
    except (ValueError, TypeError) as error:
        return {"none": describe_error(error).rstrip(".")}


def _rows(picture: Picture, facts: dict[str, Any], volume: bool) -> Rows:
    turned = facts["orientation"] != 1
    colours = "grey" if picture.channels is None else f"{picture.channels}"
    spacing, resolution = (
        " × ".join(f"{h:.6g}" for h in facts[name] or ()) for name in ("spacing", "resolution")
    )
    first = "".join((picture.description or "").strip().splitlines()[:1])
    table = [
        ("format", f"{picture.format}, {picture.dtype}"),
        ("stored as", facts["stored"] and _SCALED.format(**facts["stored"])),
        *_size_rows(picture.shape, volume),
        ("channels", colours + (", with alpha" if picture.alpha is not None else "")),
        ("values", facts["mean"] is not None and _VALUES.format(**facts)),
        ("not finite", facts["unknown"] and f"{facts['unknown']} values (NaN or infinite)"),
        ("spacing", spacing and f"{spacing} {picture.unit or ''}"),
        ("resolution", resolution and f"{resolution} pixels per inch"),
        ("colour profile", picture.icc_profile is not None and f"{len(picture.icc_profile)} bytes"),
        ("orientation", turned and f"{facts['orientation']} in EXIF; pixels are not rotated"),
        ("description", first if len(first) <= 60 else first[:59] + "…"),
    ]
    return [(name, text) for name, text in table if text]


def _size_rows(shape: tuple[int, ...], volume: bool) -> Rows:
    axes = 3 if volume else 2
    sizes = " × ".join(map(str, shape[-axes:]))
    if len(shape) == 1:
        return [("size", f"{sizes} samples")]
    rows = [
        ("size", f"{sizes} voxels (depth × height × width)" if volume else f"{sizes} pixels (height × width)")
    ]
    if len(shape) > axes:
        rows.append(("frames" if volume else "pages", " × ".join(map(str, shape[:-axes]))))
    return rows


def _estimate_rows(found: dict[str, Any], element: str) -> Rows:
    if not found:
        return []
    if "none" in found:
        return [("estimates", f"none: {found['none']}")]
    typical, edges = f"{found['contrast']:.4g}", f"{found['edges']:.4g}"
    compressed = [("compression", "by JPEG: fine noise is missing")] if found["compressed"] else []
    return [
        ("noise", f"{found['noise']:.4g} grey values (standard deviation, at the median grey value)"),
        *_model_rows(found["noise_models"]),
        ("certainty", f"{found['certainty']:.2g} (of the noise, from 0 to 1)"),
        *compressed,
        ("gradients", f"{typical} grey values per {element} (typical), {edges} (edges)"),
        ("wavelength", f"{found['wavelength']:.4g} {element}s (line spacing)"),
    ]


def _model_rows(models: Sequence[NoiseModel]) -> Rows:
    """Return the kind of noise, as `--noise` takes it, and its parameters; of each channel if they differ."""
    rows = []
    for number, model in enumerate(models, 1):
        values = {one.name.replace("_", " "): getattr(model, one.name) for one in fields(model)}  # type: ignore[arg-type]
        text = ", ".join(f"{name} {value:.4g}" for name, value in values.items())
        rows.append(("kind" if len(models) == 1 else f"channel {number}", f"{model.kind} ({text})"))
    return rows
