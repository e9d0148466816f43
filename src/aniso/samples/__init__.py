"""Test images and volumes: synthetic ones whose truth is known, and the photographs that scikit-image ships.

Grey values are float64 between 0 and 255; noise may leave that range.
"""

from __future__ import annotations

from aniso.samples.common import Sample
from aniso.samples.images import (
    PHOTOGRAPHS,
    fingerprint,
    lighthouse,
    photograph,
    ring_pattern,
    ring_tensor,
    rings,
    shapes,
)
from aniso.samples.volumes import balls, fibres, layers, shell_pattern, shell_tensor

__all__ = [
    "PHOTOGRAPHS",
    "Sample",
    "balls",
    "fibres",
    "fingerprint",
    "layers",
    "lighthouse",
    "photograph",
    "ring_pattern",
    "ring_tensor",
    "rings",
    "shapes",
    "shell_pattern",
    "shell_tensor",
]
