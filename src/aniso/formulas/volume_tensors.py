"""From the structure tensor of a cell of a volume to its diffusion tensor, without eigenvectors.

What :mod:`aniso.formulas.tensors` is to images. Tensors are given as xx, xy, yy, xz, yz, zz.
"""

from __future__ import annotations

from typing import Any

from aniso.formulas.diffusivities import coherence_diffusivity, coherence_slope, coherence_slope_between
from aniso.formulas.operations import maximum, minimum, precision, where
from aniso.formulas.symmetric import joined, reduced, split

Entries = tuple[Any, Any, Any, Any, Any, Any]


def homogeneous(j_xx: Any, j_xy: Any, j_yy: Any, j_xz: Any, j_yz: Any, j_zz: Any) -> Entries:
    """D = I, whatever the structure."""
    return 1, 0, 1, 0, 0, 1


def edge_enhancing(
    j_xx: Any, j_xy: Any, j_yy: Any, j_xz: Any, j_yz: Any, j_zz: Any, decline: Any, per_contrast2: Any
) -> Entries:
    """D = I − ψ(r) q qᵀ for one channel, where J = ∇u ∇uᵀ has rank one and r is its trace over λ²."""
    weight = per_contrast2 * decline((j_xx + j_yy + j_zz) * per_contrast2)
    return (
        1 - weight * j_xx,
        -(weight * j_xy),
        1 - weight * j_yy,
        -(weight * j_xz),
        -(weight * j_yz),
        1 - weight * j_zz,
    )


def edge_enhancing_joint(
    j_xx: Any, j_xy: Any, j_yy: Any, j_xz: Any, j_yz: Any, j_zz: Any,
    diffusivity: Any, slope: Any, per_contrast2: Any,
) -> Entries:  # fmt: skip
    """D = g(J/λ²) as a function of a matrix, for several channels with one structure tensor.

    What of an eigenvalue is rounding of the largest one does not count, as in images: neither its value, nor,
    where the pair is little more than that, the direction in which it splits.
    """
    k = per_contrast2
    (isolated, pair, half_gap), p, c = split(k * j_xx, k * j_xy, k * j_yy, k * j_xz, k * j_yz, k * j_zz)
    rounding = 4 * precision(pair) * maximum(isolated, pair + half_gap)
    apart, low, high, share = reduced(isolated, pair, half_gap, rounding)
    fall = share * slope(high, low)
    return joined(diffusivity(apart), diffusivity(low) - fall * half_gap, -fall, p, c)


def edge_continuing(
    j_xx: Any, j_xy: Any, j_yy: Any, j_xz: Any, j_yz: Any, j_zz: Any,
    diffusivity: Any, slope: Any, per_contrast2: Any,
) -> Entries:  # fmt: skip
    """D = g((J − μ3·I)/λ²): 1 along the direction in which least changes, less along the others."""
    k = per_contrast2
    (isolated, pair, half_gap), p, c = split(k * j_xx, k * j_xy, k * j_yy, k * j_xz, k * j_yz, k * j_zz)
    least, most = minimum(isolated, pair - half_gap), maximum(isolated, pair + half_gap)
    apart, low, high, share = reduced(isolated, pair, half_gap, least + 4 * precision(pair) * most)
    fall = share * slope(high, low)
    return joined(diffusivity(apart), diffusivity(low) - fall * half_gap, -fall, p, c)


def perona_malik(
    j_xx: Any, j_xy: Any, j_yy: Any, j_xz: Any, j_yz: Any, j_zz: Any, diffusivity: Any, per_contrast2: Any
) -> Entries:
    """D = g(r) I with r the trace of J over λ²: the same in all directions."""
    g = diffusivity((j_xx + j_yy + j_zz) * per_contrast2)
    return g, 0, g, 0, 0, g


def coherence_enhancing(
    j_xx: Any, j_xy: Any, j_yy: Any, j_xz: Any, j_yz: Any, j_zz: Any, per_contrast2: Any, min_diffusivity: Any
) -> Entries:
    """D = f(μ1·I − J/λ²) with f(s) = ε + (1 − ε)·exp(−1/s²), f(0) = ε: along lines and within plates."""
    k = per_contrast2
    (isolated, pair, half_gap), p, c = split(k * j_xx, k * j_xy, k * j_yy, k * j_xz, k * j_yz, k * j_zz)
    upper = pair + half_gap
    # μ1 − μ, exactly 0 for μ1 itself: its rounding may be large for f.
    gain, near = 1 - min_diffusivity, maximum(isolated - upper, 0)
    rise = gain * coherence_slope_between(near + 2 * half_gap, near)
    apart = min_diffusivity + gain * coherence_diffusivity(maximum(upper - isolated, 0))
    beside = min_diffusivity + gain * coherence_diffusivity(near) + rise * half_gap
    return joined(apart, beside, -rise, p, c)


def line_enhancing(
    j_xx: Any, j_xy: Any, j_yy: Any, j_xz: Any, j_yz: Any, j_zz: Any, per_contrast2: Any, min_diffusivity: Any
) -> Entries:
    """D = ε along all directions but that of the least change, where s = (μ2 − μ3)/λ²: along lines only.

    What of s is rounding of the largest eigenvalue does not count: within a plate it would be a direction.
    """
    k = per_contrast2
    (isolated, pair, half_gap), p, c = split(k * j_xx, k * j_xy, k * j_yy, k * j_xz, k * j_yz, k * j_zz)
    rounding = 16 * precision(pair) * maximum(isolated, pair + half_gap)
    gain, gap = 1 - min_diffusivity, pair - half_gap - isolated
    alone = where(gap > rounding, gain * coherence_diffusivity(gap), 0 * gap)
    rise = where(2 * half_gap > rounding, gain * coherence_slope(2 * half_gap), 0 * gap)
    rise = where(gap > 0, 0 * gap, rise)
    return joined(min_diffusivity + alone, min_diffusivity + rise * half_gap, -rise, p, c)
