"""From the structure tensor of a cell of a volume to its diffusion tensor, without eigenvectors.

What :mod:`aniso.formulas.tensors` is to images. Tensors are given as xx, xy, yy, xz, yz, zz.
"""

from __future__ import annotations

from typing import Any

from aniso.formulas.diffusivities import coherence_diffusivity, coherence_slope
from aniso.formulas.operations import exp, expm1, maximum, minimum, precision, where
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


def coherence_values(isolated: Any, pair: Any, half_gap: Any, min_diffusivity: Any) -> tuple[Any, Any, Any]:
    """Return what :func:`joined` needs of f(μ1 − μ), f(s) = ε + (1 − ε)·c(s), for these eigenvalues μ.

    If the isolated eigenvalue is the largest one, f is ε there, and two values of c are needed for the pair.
    Otherwise one of the pair is; two values are needed again, and one exponential serves both cases.
    """
    beyond = isolated - (pair + half_gap)
    is_least = beyond < 0
    # μ1 − μ, exactly 0 for μ1 itself: its rounding may be large for f.
    near = maximum(beyond, 0)
    far = near + 2 * half_gap
    # (c(far) − c(near))/(far − near) is one exponential times the relative loss (1 − e⁻ˣ)/x of another: no
    # 0/0. It is c(far)/far if near is 0. As in `coherence_diffusivity`, 1/s stops growing at 32.
    t = 1 / maximum(where(is_least, -beyond, beyond), 0.03125)
    t_far = 1 / maximum(far, 0.03125)
    ratio = near * t_far
    steepness = t * t * (1 + ratio)
    x = maximum(steepness * (1 - ratio), 1e-12)
    c_far = exp(-(t_far * t_far))
    c_apart = where(is_least, exp(-x), 0 * x)
    gain = 1 - min_diffusivity
    rise = gain * (t_far * c_far * where(is_least, 1 + 0 * x, steepness * (-expm1(-x) / x)))
    return min_diffusivity + gain * c_apart, min_diffusivity + gain * c_far - rise * half_gap, -rise


def coherence_enhancing(
    j_xx: Any, j_xy: Any, j_yy: Any, j_xz: Any, j_yz: Any, j_zz: Any, per_contrast2: Any, min_diffusivity: Any
) -> Entries:
    """Return D = f(μ1·I − J/λ²), f(s) = ε + (1 − ε)·exp(−1/s²), f(0) = ε: along lines and within plates."""
    k = per_contrast2
    eigenvalues, p, c = split(k * j_xx, k * j_xy, k * j_yy, k * j_xz, k * j_yz, k * j_zz)
    isolated, pair, half_gap = eigenvalues
    at_isolated, at_pair, slope = coherence_values(isolated, pair, half_gap, min_diffusivity)
    return joined(at_isolated, at_pair, slope, p, c)


def line_values(isolated: Any, pair: Any, half_gap: Any, min_diffusivity: Any) -> tuple[Any, Any, Any]:
    """Return what :func:`joined` needs of the function of :func:`line_enhancing`."""
    rounding = 16 * precision(pair) * maximum(isolated, pair + half_gap)
    gain, gap = 1 - min_diffusivity, pair - half_gap - isolated
    alone = where(gap > rounding, gain * coherence_diffusivity(gap), 0 * gap)
    rise = where(2 * half_gap > rounding, gain * coherence_slope(2 * half_gap), 0 * gap)
    rise = where(gap > 0, 0 * gap, rise)
    return min_diffusivity + alone, min_diffusivity + rise * half_gap, -rise


def line_enhancing(
    j_xx: Any, j_xy: Any, j_yy: Any, j_xz: Any, j_yz: Any, j_zz: Any, per_contrast2: Any, min_diffusivity: Any
) -> Entries:
    """Return D = ε in all directions but that of least change, where s = (μ2 − μ3)/λ²: along lines only.

    The part of s that is rounding of the largest eigenvalue is ignored: within a plate it has no direction.
    """
    k = per_contrast2
    eigenvalues, p, c = split(k * j_xx, k * j_xy, k * j_yy, k * j_xz, k * j_yz, k * j_zz)
    isolated, pair, half_gap = eigenvalues
    at_isolated, at_pair, slope = line_values(isolated, pair, half_gap, min_diffusivity)
    return joined(at_isolated, at_pair, slope, p, c)


#: Functions of the structure tensor times the first of their numbers, and their values at its eigenvalues as
#: functions of the other numbers.
VALUES = {coherence_enhancing: coherence_values, line_enhancing: line_values}
