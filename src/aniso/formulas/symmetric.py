"""Symmetric 3×3 matrices: eigenvalues and functions of a matrix, without branches and without angles.

Of three eigenvalues one lies apart, the largest or the smallest: no other is closer to it than to the third.
Its projection is therefore well determined even where the other two coincide; and where all three do, nothing
depends on it. A function of the matrix is put together from its value at the isolated eigenvalue, and from
its value and slope between the two others: no eigenvector, no 0/0.

Matrices are given as xx, xy, yy, xz, yz, zz.
"""

from __future__ import annotations

from typing import Any

from aniso.formulas.operations import maximum, minimum, sqrt, where


def isolated_root(r: Any) -> Any:
    """2·cos(⅓·arccos r) for 0 ≤ r ≤ 1: the largest root of x³ − 3x = 2r.

    It lies between √3 and 2, far from the other roots, so that Newton's method from a parabola that is good
    to 10⁻³ ends at rounding after three steps, and derivatives pass through.
    """
    x = 1.7328 + r * (0.3197 - 0.0529 * r)
    x = x - (x * (x * x - 3) - 2 * r) / (3 * (x * x - 1))
    x = x - (x * (x * x - 3) - 2 * r) / (3 * (x * x - 1))
    return x - (x * (x * x - 3) - 2 * r) / (3 * (x * x - 1))


def split(
    xx: Any, xy: Any, yy: Any, xz: Any, yz: Any, zz: Any
) -> tuple[tuple[Any, Any, Any], tuple[Any, ...], tuple[Any, ...]]:
    """The isolated eigenvalue, mean and half gap of the two others; the projection P of the first; C.

    J = isolated·P + pair·(I − P) + C, where C has the eigenvalues ± half gap in the plane of the pair.
    The floors under the roots keep derivatives finite where eigenvalues coincide. Scale J to order 1 first.
    """
    mean = (xx + yy + zz) * (1 / 3)
    b_xx, b_yy, b_zz = xx - mean, yy - mean, zz - mean
    size = sqrt(
        maximum(
            (b_xx * b_xx + b_yy * b_yy + b_zz * b_zz + 2 * (xy * xy + xz * xz + yz * yz)) * (1 / 6), 1e-36
        )
    )
    per_size = 1 / size
    b_xx, b_yy, b_zz = b_xx * per_size, b_yy * per_size, b_zz * per_size
    b_xy, b_xz, b_yz = xy * per_size, xz * per_size, yz * per_size
    half_determinant = 0.5 * (
        b_xx * (b_yy * b_zz - b_yz * b_yz)
        - b_xy * (b_xy * b_zz - b_xz * b_yz)
        + b_xz * (b_xy * b_yz - b_xz * b_yy)
    )
    root = isolated_root(minimum(abs(half_determinant), 1))
    root = where(half_determinant < 0, -root, root)
    # The projection is the adjugate of B − root·I over its trace, which lies between 6 and 9.
    m_xx, m_yy, m_zz = b_xx - root, b_yy - root, b_zz - root
    p_xx, p_yy, p_zz = m_yy * m_zz - b_yz * b_yz, m_xx * m_zz - b_xz * b_xz, m_xx * m_yy - b_xy * b_xy
    p_xy, p_xz, p_yz = b_xz * b_yz - b_xy * m_zz, b_xy * b_yz - b_xz * m_yy, b_xy * b_xz - b_yz * m_xx
    per_trace = 1 / (p_xx + p_yy + p_zz)
    p_xx, p_yy, p_zz = p_xx * per_trace, p_yy * per_trace, p_zz * per_trace
    p_xy, p_xz, p_yz = p_xy * per_trace, p_xz * per_trace, p_yz * per_trace
    half_root = 0.5 * root
    weight = 3 * half_root
    c_xx, c_yy, c_zz = (
        b_xx + half_root - weight * p_xx,
        b_yy + half_root - weight * p_yy,
        b_zz + half_root - weight * p_zz,
    )
    c_xy, c_xz, c_yz = b_xy - weight * p_xy, b_xz - weight * p_xz, b_yz - weight * p_yz
    half_gap = size * sqrt(
        maximum(
            0.5 * (c_xx * c_xx + c_yy * c_yy + c_zz * c_zz) + (c_xy * c_xy + c_xz * c_xz + c_yz * c_yz), 1e-36
        )
    )
    return (
        (mean + size * root, mean - size * half_root, half_gap),
        (p_xx, p_xy, p_yy, p_xz, p_yz, p_zz),
        (size * c_xx, size * c_xy, size * c_yy, size * c_xz, size * c_yz, size * c_zz),
    )


def joined(
    at_isolated: Any, at_pair: Any, slope: Any, p: tuple[Any, ...], c: tuple[Any, ...]
) -> tuple[Any, Any, Any, Any, Any, Any]:
    """at_isolated·P + at_pair·(I − P) + slope·C: a function of the matrix from which P and C come.

    `at_pair` is the mean of the function at the two eigenvalues of the pair, `slope` its slope between them.
    """
    excess = at_isolated - at_pair
    p_xx, p_xy, p_yy, p_xz, p_yz, p_zz = p
    c_xx, c_xy, c_yy, c_xz, c_yz, c_zz = c
    return (
        at_pair + (excess * p_xx + slope * c_xx),
        excess * p_xy + slope * c_xy,
        at_pair + (excess * p_yy + slope * c_yy),
        excess * p_xz + slope * c_xz,
        excess * p_yz + slope * c_yz,
        at_pair + (excess * p_zz + slope * c_zz),
    )
