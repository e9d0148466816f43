"""From numbers of any size, as a network predicts them, to a diffusion tensor."""

from __future__ import annotations

from typing import Any

from aniso.formulas.operations import tanh
from aniso.formulas.structure import spread
from aniso.formulas.symmetric import joined, split


def squashed(s_xx: Any, s_xy: Any, s_yy: Any) -> tuple[Any, Any, Any]:
    """D = 1/(1 + e^(−S)) as a function of a symmetric matrix: eigenvalues between 0 and 1."""
    mean, slant, half_gap = spread(s_xx, s_xy, s_yy)
    level, gain = logistic_of_pair(mean, half_gap)
    return level + gain * slant, gain * s_xy, level - gain * slant


def squashed_volume(s_xx: Any, s_xy: Any, s_yy: Any, s_xz: Any, s_yz: Any, s_zz: Any) -> tuple[Any, ...]:
    """The same for the six entries of a tensor in a volume."""
    (isolated, pair, half_gap), p, c = split(s_xx, s_xy, s_yy, s_xz, s_yz, s_zz)
    level, gain = logistic_of_pair(pair, half_gap)
    return joined(0.5 + 0.5 * tanh(0.5 * isolated), level, gain, p, c)


def logistic_of_pair(mean: Any, half_gap: Any) -> tuple[Any, Any]:
    """Mean and slope of the logistic function at two eigenvalues of S.

    The slope, ¼·tanh(d)/d·(1 − T₁T₂) with T = tanh(μ/2) and d half the gap of the eigenvalues μ, has no
    cancellation where they coincide.
    """
    upper, lower = tanh(0.5 * (mean + half_gap)), tanh(0.5 * (mean - half_gap))
    return 0.5 + 0.25 * (upper + lower), 0.25 * (tanh(half_gap) / half_gap) * (1 - upper * lower)
