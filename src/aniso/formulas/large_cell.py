"""Cells of k×k pixels: what a cell does with the coefficients of its modes, and the largest stable step."""

from __future__ import annotations

from typing import Any

from aniso.formulas.operations import precision


def reflect(x: Any, v: Any, axis: int) -> Any:
    """Return Hx with the reflection H = I − 2 v vᵀ/|v|², for vectors along an axis; v = 0 gives x."""
    square = (v * v).sum(axis, keepdims=True)
    tiny = precision(x) ** 4  # not 0; then H is between I and a reflection, and its norm is at most 1
    return x - v * (2 * (v * x).sum(axis, keepdims=True) / (square + tiny))


def weigh(x: Any, w: Any, v: Any, axis: int) -> Any:
    """Return W x with W = H diag(w) H, which is symmetric with eigenvalues in [0, 1] if w is in [0, 1]."""
    return reflect(w * reflect(x, v, axis), v, axis)


def largest_step(side: int) -> float:
    """Return 2/k², up to which a step never increases the norm."""
    return 2 / side**2
