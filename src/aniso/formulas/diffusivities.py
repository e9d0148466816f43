"""Diffusivities g(r), with r = |∇u|²/λ²: 1 in flat regions, small where the contrast is high.

Each has a row in `DIFFUSIVITIES` and comes in three forms, all free of 0/0:

``*_diffusivity``
    g(r)
``*_decline``
    ψ(r) = (1 − g(r))/r, for tensors of rank one: D = I − ψ(r) q qᵀ with q = ∇u/λ
``*_slope``
    −g[s, r] = (g(r) − g(s))/(s − r) for s ≥ r, for tensors of full rank; ψ(r) is its value at (r, 0)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aniso.formulas.operations import exp, expm1, maximum, sqrt


def relative_loss(x: Any) -> Any:
    """Return (1 − e⁻ˣ)/x for x ≥ 0, and 1 at 0."""
    x = maximum(x, 1e-12)
    return -expm1(-x) / x


# Weickert's C = 3.31488 makes the flux √r·g(r) largest at r = 1. Below r = ¼ the exponential is 0 in
# double precision, so that 1/r may stop growing there.
def weickert_diffusivity(r: Any) -> Any:
    """Return g(r) = 1 − exp(−C/r⁴)."""
    t = 1 / maximum(r, 0.25)
    t = t * t
    return -expm1(-3.31488 * (t * t))


def weickert_decline(r: Any) -> Any:
    """Return ψ(r) = exp(−C/r⁴)/r."""
    t = 1 / maximum(r, 0.25)
    tt = t * t
    return t * exp(-3.31488 * (tt * tt))


def weickert_slope(s: Any, r: Any) -> Any:
    """Return the slope: a difference of exponentials, as one exponential times its relative loss."""
    t_r = 1 / maximum(r, 0.25)
    t_r = t_r * t_r
    # 1/s is needed anyway: a division takes as long as ten products.
    ratio = r * (1 / maximum(s, 0.25))
    steepness = 3.31488 * (t_r * t_r) * (1 + ratio) * (1 + ratio * ratio)
    return weickert_decline(s) * steepness * relative_loss(steepness * (1 - ratio))


def charbonnier_diffusivity(r: Any) -> Any:
    """Return g(r) = 1/√(1 + r)."""
    return 1 / sqrt(1 + r)


def charbonnier_decline(r: Any) -> Any:
    """Return ψ(r) = 1/(Q(1 + Q)) with Q = √(1 + r)."""
    root = sqrt(1 + r)
    return 1 / (root * (1 + root))


def charbonnier_slope(s: Any, r: Any) -> Any:
    """Return 1/(Q_s·Q_r·(Q_s + Q_r)) with Q = √(1 + r)."""
    root_s, root_r = sqrt(1 + s), sqrt(1 + r)
    return 1 / (root_s * root_r * (root_s + root_r))


def perona_malik_diffusivity(r: Any) -> Any:
    """Return g(r) = 1/(1 + r)."""
    return 1 / (1 + r)


def perona_malik_decline(r: Any) -> Any:
    """Return ψ(r) = 1/(1 + r)."""
    return 1 / (1 + r)


def perona_malik_slope(s: Any, r: Any) -> Any:
    """Return 1/((1 + s)(1 + r))."""
    return 1 / ((1 + s) * (1 + r))


def exponential_diffusivity(r: Any) -> Any:
    """Return g(r) = e^(−r/2)."""
    return exp(-0.5 * r)


def exponential_decline(r: Any) -> Any:
    """Return ψ(r) = (1 − e^(−r/2))/r, ½ at 0."""
    return 0.5 * relative_loss(0.5 * r)


def exponential_slope(s: Any, r: Any) -> Any:
    """Return e^(−r/2)·ψ(s − r)."""
    return exp(-0.5 * r) * exponential_decline(s - r)


def gated_diffusivity(r: Any, gate: Any) -> Any:
    """Return g(r) = 1 − s(r)·(1 − e^(−r)) with a gate s(r) in [0, 1]: between e^(−r) and 1."""
    return 1 + gate(r) * expm1(-r)


def gated_decline(r: Any, gate: Any) -> Any:
    """Return ψ(r) = s(r)·(1 − e^(−r))/r."""
    return gate(r) * relative_loss(r)


def secant_decline(r: Any, diffusivity: Any) -> Any:
    """Return ψ(r) = (1 − g(r))/r for a diffusivity g given by the user, r at least 1e-4."""
    r = maximum(r, 1e-4)
    return (1 - diffusivity(r)) / r


def secant_slope(s: Any, r: Any, diffusivity: Any) -> Any:
    """Return (g(r) − g(s))/(s − r) for a diffusivity g given by the user, s slightly above r at least."""
    s = maximum(s, r + 1e-4 * (1 + r))
    return (diffusivity(r) - diffusivity(s)) / (s - r)


# How fast to diffuse along a structure of coherence s: c(s) = exp(−1/s²), 0 without structure, 1 at most.
# Where 1/s exceeds 32 the exponential is 0 in double precision, so that 1/s may stop growing there.
def coherence_diffusivity(s: Any) -> Any:
    """Return c(s)."""
    t = 1 / maximum(s, 0.03125)
    return exp(-(t * t))


def coherence_slope(s: Any) -> Any:
    """Return c(s)/s, the slope from 0 to s."""
    t = 1 / maximum(s, 0.03125)
    return t * exp(-(t * t))


@dataclass(frozen=True)
class Diffusivity:
    """The three forms in which tensor formulas need a diffusivity."""

    diffusivity: Callable[[Any], Any]
    decline: Callable[[Any], Any]
    slope: Callable[[Any, Any], Any]


#: The diffusivities by name.
DIFFUSIVITIES = {
    "weickert": Diffusivity(weickert_diffusivity, weickert_decline, weickert_slope),
    "charbonnier": Diffusivity(charbonnier_diffusivity, charbonnier_decline, charbonnier_slope),
    "perona-malik": Diffusivity(perona_malik_diffusivity, perona_malik_decline, perona_malik_slope),
    "exponential": Diffusivity(exponential_diffusivity, exponential_decline, exponential_slope),
}
