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
    """Return D = I, whatever the structure."""
    return 1, 0, 1, 0, 0, 1


def edge_enhancing(
    j_xx: Any, j_xy: Any, j_yy: Any, j_xz: Any, j_yz: Any, j_zz: Any, decline: Any, per_contrast2: Any
) -> Entries:
    """Return D = I − ψ(r) q qᵀ for one channel: J = ∇u ∇uᵀ has rank one, and r is its trace over λ²."""
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
    """Return the matrix function D = g(J/λ²), for several channels with one structure tensor.

    As in images, the part of an eigenvalue that is rounding of the largest one is ignored, and so is the
    direction in which the pair splits where it is hardly more than that.
    """
    k = per_contrast2
    eigenvalues, p, c = split(k * j_xx, k * j_xy, k * j_yy, k * j_xz, k * j_yz, k * j_zz)
    isolated, pair, half_gap = eigenvalues
    rounding = 4 * precision(pair) * maximum(isolated, pair + half_gap)
    apart, low, high, share = reduced(isolated, pair, half_gap, rounding)
    fall = share * slope(high, low)
    return joined(diffusivity(apart), diffusivity(high) + fall * half_gap, -fall, p, c)


def edge_continuing(
    j_xx: Any, j_xy: Any, j_yy: Any, j_xz: Any, j_yz: Any, j_zz: Any,
    diffusivity: Any, slope: Any, per_contrast2: Any,
) -> Entries:  # fmt: skip
    """Return D = g((J − μ3·I)/λ²): 1 along the direction of least change, less along the others."""
    k = per_contrast2
    eigenvalues, p, c = split(k * j_xx, k * j_xy, k * j_yy, k * j_xz, k * j_yz, k * j_zz)
    isolated, pair, half_gap = eigenvalues
    least, most = minimum(isolated, pair - half_gap), maximum(isolated, pair + half_gap)
    apart, low, high, share = reduced(isolated, pair, half_gap, least + 4 * precision(pair) * most)
    fall = share * slope(high, low)
    return joined(diffusivity(apart), diffusivity(high) + fall * half_gap, -fall, p, c)


def perona_malik(
    j_xx: Any, j_xy: Any, j_yy: Any, j_xz: Any, j_yz: Any, j_zz: Any, diffusivity: Any, per_contrast2: Any
) -> Entries:
    """Return D = g(r) I with r the trace of J over λ²: the same in all directions."""
    g = diffusivity((j_xx + j_yy + j_zz) * per_contrast2)
    return g, 0, g, 0, 0, g


def coherence_enhancing(
    j_xx: Any, j_xy: Any, j_yy: Any, j_xz: Any, j_yz: Any, j_zz: Any, per_contrast2: Any, min_diffusivity: Any
) -> Entries:
    """Return D = f(μ1·I − J/λ²), f(s) = ε + (1 − ε)·exp(−1/s²), f(0) = ε: along lines and within plates."""
    k = per_contrast2
    eigenvalues, p, c = split(k * j_xx, k * j_xy, k * j_yy, k * j_xz, k * j_yz, k * j_zz)
    isolated, pair, half_gap = eigenvalues
    upper = pair + half_gap
    # μ1 − μ, exactly 0 for μ1 itself: its rounding may be large for f.
    gain, near = 1 - min_diffusivity, maximum(isolated - upper, 0)
    far = near + 2 * half_gap
    rise = gain * coherence_slope_between(far, near)
    apart = min_diffusivity + gain * coherence_diffusivity(maximum(upper - isolated, 0))
    beside = min_diffusivity + gain * coherence_diffusivity(far) - rise * half_gap
    return joined(apart, beside, -rise, p, c)


def line_enhancing(
    j_xx: Any, j_xy: Any, j_yy: Any, j_xz: Any, j_yz: Any, j_zz: Any, per_contrast2: Any, min_diffusivity: Any
) -> Entries:
    """Return D = ε in all directions but that of least change, where s = (μ2 − μ3)/λ²: along lines only.

    The part of s that is rounding of the largest eigenvalue is ignored: within a plate it has no direction.
    """
    k = per_contrast2
    eigenvalues, p, c = split(k * j_xx, k * j_xy, k * j_yy, k * j_xz, k * j_yz, k * j_zz)
    isolated, pair, half_gap = eigenvalues
    rounding = 16 * precision(pair) * maximum(isolated, pair + half_gap)
    gain, gap = 1 - min_diffusivity, pair - half_gap - isolated
    alone = where(gap > rounding, gain * coherence_diffusivity(gap), 0 * gap)
    rise = where(2 * half_gap > rounding, gain * coherence_slope(2 * half_gap), 0 * gap)
    rise = where(gap > 0, 0 * gap, rise)
    return joined(min_diffusivity + alone, min_diffusivity + rise * half_gap, -rise, p, c)
