"""From a diffusion tensor in a cell of a volume to the weights of the stencil there.

What :mod:`aniso.formulas.weights` is to images. Tensors are given as xx, xy, yy, xz, yz, zz.
"""

from __future__ import annotations

from typing import Any

from aniso.formulas.operations import maximum, minimum, sqrt
from aniso.formulas.weights import hourglass_weight, normal_divisor


def volume_scaled(
    xx: Any, xy: Any, yy: Any, xz: Any, yz: Any, zz: Any, per_x: Any, per_y: Any, per_z: Any
) -> tuple[Any, Any, Any, Any, Any, Any]:
    """Scale the tensor to unit spacing; per_x, per_y, per_z are 1/h."""
    return (
        xx * (per_x * per_x),
        xy * (per_x * per_y),
        yy * (per_y * per_y),
        xz * (per_x * per_z),
        yz * (per_y * per_z),
        zz * (per_z * per_z),
    )


def hourglass_weights(
    xx: Any, xy: Any, yy: Any, xz: Any, yz: Any, zz: Any, alpha: Any, gamma: Any, beta: Any
) -> tuple[Any, Any, Any, Any]:
    """Return ζ_x, ζ_y, ζ_z, each for the plane of the two other axes, and κ, their mean."""
    zeta_x = hourglass_weight(yy, yz, zz, alpha, gamma, beta)
    zeta_y = hourglass_weight(xx, xz, zz, alpha, gamma, beta)
    zeta_z = hourglass_weight(xx, xy, yy, alpha, gamma, beta)
    return zeta_x, zeta_y, zeta_z, (zeta_x + zeta_y + zeta_z) * (1 / 3)


def split_weights(
    xx: Any, xy: Any, yy: Any, xz: Any, yz: Any, zz: Any, alpha: Any
) -> tuple[Any, Any, Any, Any]:
    """Return the same for the splitting into nine 1-D diffusions, with δ_ij = α(d_ii + d_jj − d_kk)."""
    slack = 1 - 2 * alpha
    zeta_x = slack * (yy + zz) + 2 * alpha * xx
    zeta_y = slack * (xx + zz) + 2 * alpha * yy
    zeta_z = slack * (xx + yy) + 2 * alpha * zz
    return zeta_x, zeta_y, zeta_z, maximum(slack * (xx + yy + zz), 0)


def plane_without_normal_flux(
    first: Any, both: Any, second: Any, mixed_first: Any, mixed_second: Any, normal: Any
) -> tuple[Any, Any, Any]:
    """Return the entries of the two tangential axes for zero normal flux (Schur complement).

    All three are divided by the same, or they would not be semidefinite together; nor may the mixed one be
    more than rounding has left of the others.
    """
    divisor = normal_divisor(normal, first + second)
    left_first = maximum(first - mixed_first * mixed_first / divisor, 0)
    left_second = maximum(second - mixed_second * mixed_second / divisor, 0)
    limit = sqrt(left_first) * sqrt(left_second)
    left_both = minimum(maximum(both - mixed_first * mixed_second / divisor, -limit), limit)
    return left_first, left_both, left_second
