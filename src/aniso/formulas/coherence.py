"""How fast to diffuse along a structure of coherence s: c(s) = exp(−1/s²), 0 without structure, 1 at most.

Where 1/s exceeds 32 the exponential is 0 in double precision, so that 1/s may stop growing there.
"""

from __future__ import annotations

from typing import Any

from aniso.formulas.diffusivities import relative_loss
from aniso.formulas.operations import exp, maximum


def coherence_diffusivity(s: Any) -> Any:
    """c(s)."""
    t = 1 / maximum(s, 0.03125)
    return exp(-(t * t))


def coherence_slope(s: Any) -> Any:
    """c(s)/s, the slope from 0 to s."""
    t = 1 / maximum(s, 0.03125)
    return t * exp(-(t * t))


def coherence_slope_between(s: Any, r: Any) -> Any:
    """(c(s) − c(r))/(s − r) for s ≥ r: one exponential times its relative loss, no 0/0."""
    t_r = 1 / maximum(r, 0.03125)
    ratio = r / maximum(s, 0.03125)
    steepness = t_r * t_r * (1 + ratio)
    return coherence_slope(s) * steepness * relative_loss(steepness * (1 - ratio))
