"""Sample data for napari: images and volumes with noise."""

from __future__ import annotations

from typing import Any

import aniso


def lighthouse() -> list[Any]:
    """Return a photograph with noise, in colour."""
    image = aniso.samples.lighthouse(noise=25.0).image.clip(0, 255).astype("uint8")
    return [(image, {"name": "lighthouse", "rgb": True}, "image")]


def fingerprint() -> list[Any]:
    """Return a fingerprint with noise."""
    return [(aniso.samples.fingerprint(noise=25.0).image, {"name": "fingerprint"}, "image")]


def fibres() -> list[Any]:
    """Return a volume of fibres with gaps and noise."""
    options = {"name": "fibres", "axis_labels": ("z", "y", "x")}
    return [(aniso.samples.fibres(gaps=30, noise=20.0).image, options, "image")]
