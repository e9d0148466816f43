"""From unconstrained numbers, as predicted by a network, to a diffusion tensor; and cells of k×k pixels.

A cell weighs the coefficients of its modes with predicted numbers.
"""

from __future__ import annotations

from typing import Any

from aniso.formulas.operations import precision, tanh
from aniso.formulas.symmetric import combined, split, spread

#: Beyond it the logistic function is constant.
SATURATION = 50.0


def squashed(s_xx: Any, s_xy: Any, s_yy: Any) -> tuple[Any, Any, Any]:
    """Return the matrix function D = 1/(1 + e^(−S)), with eigenvalues between 0 and 1."""
    mean, slant, half_gap = spread(s_xx, s_xy, s_yy)
    level, gain = logistic_of_pair(mean, half_gap)
    return level + gain * slant, gain * s_xy, level - gain * slant


def squashed_volume(s_xx: Any, s_xy: Any, s_yy: Any, s_xz: Any, s_yz: Any, s_zz: Any) -> tuple[Any, ...]:
    """Return the same for the six entries of a tensor in a volume.

    Eigenvalues are taken relative to s_zz and values of the function as differences, so that derivatives are
    right where all eigenvalues are equal: predictions may well start there.
    """
    (isolated, pair, half_gap), p, c = split(s_xx - s_zz, s_xy, s_yy - s_zz, s_xz, s_yz, 0 * s_zz)
    level, gain = logistic_of_pair(s_zz + pair, half_gap)
    above, below = isolated - pair - half_gap, isolated - pair + half_gap
    apart = tanh(0.5 * (s_zz + isolated))
    upper, lower = tanh(0.5 * (s_zz + pair + half_gap)), tanh(0.5 * (s_zz + pair - half_gap))
    excess = 0.25 * (tanh(0.5 * above) * (1 - apart * upper) + tanh(0.5 * below) * (1 - apart * lower))
    return combined(excess, level, gain, p, c)


def logistic_of_pair(mean: Any, half_gap: Any) -> tuple[Any, Any]:
    """Return mean and slope of the logistic function at two eigenvalues of S.

    The slope, ¼·tanh(d)/d·(1 − T₁T₂) with T = tanh(μ/2) and d half the gap of the eigenvalues μ, has no
    cancellation where they coincide.
    """
    upper, lower = tanh(0.5 * (mean + half_gap)), tanh(0.5 * (mean - half_gap))
    return 0.5 + 0.25 * (upper + lower), 0.25 * (tanh(half_gap) / half_gap) * (1 - upper * lower)


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
