"""How similar two places of an image are, from what lies around them."""

from __future__ import annotations

from typing import Any

from aniso.formulas.operations import maximum


def squared_difference(a: Any, b: Any) -> Any:
    """Return (a − b)²."""
    difference = a - b
    return difference * difference


def similarity(distance: Any, scale: Any) -> Any:
    """Return the weight max(1 − distance·scale, 0)²: 1 for equal places, 0 from distance 1/scale on."""
    rest = maximum(1 - distance * scale, 0)
    return rest * rest
