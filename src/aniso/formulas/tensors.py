"""From the structure tensor of a cell to its diffusion tensor (a b; b c), without eigenvectors.

A function of a symmetric 2×2 matrix is pI + qJ; so these are exact, continuous where eigenvalues
coincide (smooth, except for edge-continuing diffusion), and have no 0/0.
"""

from __future__ import annotations

from typing import Any

from aniso.formulas.diffusivities import coherence_slope
from aniso.formulas.operations import maximum, precision
from aniso.formulas.symmetric import spread


def homogeneous(j_xx: Any, j_xy: Any, j_yy: Any) -> tuple[Any, Any, Any]:
    """Return D = I, whatever the structure."""
    return 1, 0, 1


def edge_enhancing(j_xx: Any, j_xy: Any, j_yy: Any, decline: Any, per_contrast2: Any) -> tuple[Any, Any, Any]:
    """Return D = I − ψ(r) q qᵀ for one channel: J = ∇u ∇uᵀ has rank one, and r is its trace over λ²."""
    q_xx, q_xy, q_yy = j_xx * per_contrast2, j_xy * per_contrast2, j_yy * per_contrast2
    psi = decline(q_xx + q_yy)
    return 1 - psi * q_xx, -(psi * q_xy), 1 - psi * q_yy


def edge_enhancing_joint(
    j_xx: Any, j_xy: Any, j_yy: Any, diffusivity: Any, slope: Any, per_contrast2: Any
) -> tuple[Any, Any, Any]:
    """Return the matrix function D = g(J/λ²), for several channels with one structure tensor.

    The part of the smaller eigenvalue that is rounding of the larger one is ignored. Otherwise equal channels
    would seem to have structure along their edge, and strong edges would stop the diffusion along them.
    """
    q_xx, q_xy, q_yy = j_xx * per_contrast2, j_xy * per_contrast2, j_yy * per_contrast2
    mean, _, half_gap = spread(q_xx, q_xy, q_yy)
    larger = mean + half_gap
    smaller = maximum(mean - half_gap - 8 * precision(larger) * larger, 0)
    psi = slope(larger, smaller)
    # The same as at the smaller one, but the slope contains the exponential of this one already.
    offset = diffusivity(larger) + psi * larger
    return offset - psi * q_xx, -(psi * q_xy), offset - psi * q_yy


def edge_continuing(
    j_xx: Any, j_xy: Any, j_yy: Any, decline: Any, per_contrast2: Any
) -> tuple[Any, Any, Any]:
    """Return D = I − ψ(r)(J − μ2·I)/λ² with r = (μ1 − μ2)/λ²: 1 along the mean direction, g(r) across."""
    q_xx, q_xy, q_yy = j_xx * per_contrast2, j_xy * per_contrast2, j_yy * per_contrast2
    _, slant, half_gap = spread(q_xx, q_xy, q_yy)
    psi = decline(2 * half_gap)
    return 1 - psi * (half_gap + slant), -(psi * q_xy), 1 - psi * (half_gap - slant)


def perona_malik(
    j_xx: Any, j_xy: Any, j_yy: Any, diffusivity: Any, per_contrast2: Any
) -> tuple[Any, Any, Any]:
    """Return D = g(r) I with r the trace of J over λ²: the same in all directions."""
    g = diffusivity((j_xx + j_yy) * per_contrast2)
    return g, 0, g


def coherence_enhancing(
    j_xx: Any, j_xy: Any, j_yy: Any, per_contrast2: Any, min_diffusivity: Any
) -> tuple[Any, Any, Any]:
    """Return D = f(μ1·I − J/λ²) with f(s) = ε + (1 − ε)·exp(−1/s²), f(0) = ε.

    Across the structure s is 0, along it s is the coherence (μ1 − μ2)/λ².
    """
    q_xx, q_xy, q_yy = j_xx * per_contrast2, j_xy * per_contrast2, j_yy * per_contrast2
    _, slant, half_gap = spread(q_xx, q_xy, q_yy)
    gain = (1 - min_diffusivity) * coherence_slope(2 * half_gap)
    return (
        min_diffusivity + gain * (half_gap - slant),
        -(gain * q_xy),
        min_diffusivity + gain * (half_gap + slant),
    )
