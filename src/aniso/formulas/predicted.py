"""From numbers of any size, as a network predicts them, to a diffusion tensor."""

from __future__ import annotations

from typing import Any

from aniso.formulas.operations import tanh
from aniso.formulas.structure import spread


def squashed(s_xx: Any, s_xy: Any, s_yy: Any) -> tuple[Any, Any, Any]:
    """D = 1/(1 + e^(−S)) as a function of a symmetric matrix: eigenvalues between 0 and 1.

    The divided difference of the function, ¼·tanh(d)/d·(1 − T₁T₂) with T = tanh(μ/2) and d half the gap of
    the eigenvalues μ of S, has no cancellation where they coincide.
    """
    mean, slant, half_gap = spread(s_xx, s_xy, s_yy)
    upper, lower = tanh(0.5 * (mean + half_gap)), tanh(0.5 * (mean - half_gap))
    level = 0.5 + 0.25 * (upper + lower)
    gain = 0.25 * (tanh(half_gap) / half_gap) * (1 - upper * lower)
    return level + gain * slant, gain * s_xy, level - gain * slant
