"""Eigenvalues and functions of symmetric 2×2 and 3×3 matrices, without branches and angles.

A function of a 2×2 matrix is p·I + q·J, and `spread` gives all that p and q depend on.

Of three eigenvalues one lies apart, the largest or the smallest: no other is closer to it than to the third.
Its projection is therefore well determined even where the other two coincide; and where all three do, nothing
depends on it. A function of the matrix is put together from its value at the isolated eigenvalue, and from
its value and slope between the two others: no eigenvector, no 0/0.

Matrices are given as xx, xy, yy, xz, yz, zz.
"""

from __future__ import annotations

from typing import Any

from aniso.formulas.operations import maximum, minimum, sqrt, where


def spread(j_xx: Any, j_xy: Any, j_yy: Any) -> tuple[Any, Any, Any]:
    """Return the mean of the eigenvalues, half of j_xx − j_yy, and half the gap of the eigenvalues.

    The floor under the root keeps derivatives finite where the eigenvalues coincide; what is computed
    from them is symmetric in the eigenvalues and does not feel it. Scale J to numbers of order 1 first.
    """
    slant = 0.5 * (j_xx - j_yy)
    half_gap = sqrt(maximum(slant * slant + j_xy * j_xy, 1e-36))
    return 0.5 * (j_xx + j_yy), slant, half_gap


def isolated_root(r: Any) -> tuple[Any, Any]:
    """Return x = 2·cos(⅓·arccos r) for 0 ≤ r ≤ 1, the largest root of x³ − 3x = 2r, and 1/(3x² − 3).

    It lies between √3 and 2, far from the other roots, so that Newton's method from polynomials that are good
    to 10⁻⁴ ends at rounding after two steps, and derivatives pass through. The second result is one over the
    slope at the root, found with it by Newton's method for reciprocals: divisions would take longer.
    """
    x = 1.73213 + r * (0.33066 - r * (0.08138 - 0.01864 * r))
    per_slope = 0.166652 - r * (0.0954312 - r * (0.0668506 - r * (0.0371079 - 0.0101582 * r)))
    x = x - per_slope * (x * (x * x - 3) - 2 * r)
    per_slope = per_slope * (2 - per_slope * (3 * (x * x) - 3))
    x = x - per_slope * (x * (x * x - 3) - 2 * r)
    return x, per_slope * (2 - per_slope * (3 * (x * x) - 3))


def normalized(
    xx: Any, xy: Any, yy: Any, xz: Any, yz: Any, zz: Any
) -> tuple[Any, Any, Any, Any, Any, Any, Any, Any, Any]:
    """Return mean and size of the eigenvalues of J, and half the determinant and the entries of B.

    J = mean·I + size·B, where the squares of the eigenvalues of B add up to 6.
    """
    mean = (xx + yy + zz) * (1 / 3)
    # Differences first: then the trace of B is 0 up to rounding of B itself, even if B is rounding of J.
    # Where all three eigenvalues coincide, that of x is set apart: by little, but more than the floor below.
    x_y, y_z, z_x = xx - yy + 3e-17, yy - zz, zz - xx - 3e-17
    b_xx, b_yy, b_zz = (x_y - z_x) * (1 / 3), (y_z - x_y) * (1 / 3), (z_x - y_z) * (1 / 3)
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
    return mean, size, half_determinant, b_xx, b_xy, b_yy, b_xz, b_yz, b_zz


def signed_root(half_determinant: Any) -> tuple[Any, Any]:
    """Return the isolated eigenvalue of B, and one over the slope of its polynomial there."""
    is_least = half_determinant < 0
    # Not abs(), which has no derivative at 0, where either sign gives the same in the end.
    root, per_slope = isolated_root(minimum(where(is_least, -half_determinant, half_determinant), 1))
    return where(is_least, -root, root), per_slope


def parts(
    root: Any, per_slope: Any, b_xx: Any, b_xy: Any, b_yy: Any, b_xz: Any, b_yz: Any, b_zz: Any
) -> tuple[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any]:
    """Return the projection P on the isolated direction, and C = B − root·P + ½·root·(I − P)."""
    # The projection is the adjugate of B − root·I over its trace: the slope at the root, between 6 and 9.
    m_xx, m_yy, m_zz = b_xx - root, b_yy - root, b_zz - root
    p_xx, p_yy, p_zz = m_yy * m_zz - b_yz * b_yz, m_xx * m_zz - b_xz * b_xz, m_xx * m_yy - b_xy * b_xy
    p_xy, p_xz, p_yz = b_xz * b_yz - b_xy * m_zz, b_xy * b_yz - b_xz * m_yy, b_xy * b_xz - b_yz * m_xx
    p_xx, p_yy, p_zz = p_xx * per_slope, p_yy * per_slope, p_zz * per_slope
    p_xy, p_xz, p_yz = p_xy * per_slope, p_xz * per_slope, p_yz * per_slope
    half_root = 0.5 * root
    weight = 3 * half_root
    c_xx, c_yy, c_zz = (
        b_xx + half_root - weight * p_xx,
        b_yy + half_root - weight * p_yy,
        b_zz + half_root - weight * p_zz,
    )
    c_xy, c_xz, c_yz = b_xy - weight * p_xy, b_xz - weight * p_xz, b_yz - weight * p_yz
    return p_xx, p_xy, p_yy, p_xz, p_yz, p_zz, c_xx, c_xy, c_yy, c_xz, c_yz, c_zz


def cleared(
    p_xx: Any, p_xy: Any, p_yy: Any, p_xz: Any, p_yz: Any, p_zz: Any,
    c_xx: Any, c_xy: Any, c_yy: Any, c_xz: Any, c_yz: Any, c_zz: Any,
) -> tuple[Any, Any, Any, Any, Any, Any, Any]:  # fmt: skip
    """Return half the gap of the two other eigenvalues of B, and C without what is rounding.

    C is a small difference of large numbers. What it has of the isolated direction, and its trace, are
    rounding, which a steep function would make large; so C becomes (I − P)C(I − P) without its trace.
    """
    e_xx, e_xy, e_xz = (
        p_xx * c_xx + p_xy * c_xy + p_xz * c_xz,
        p_xx * c_xy + p_xy * c_yy + p_xz * c_yz,
        p_xx * c_xz + p_xy * c_yz + p_xz * c_zz,
    )
    e_yx, e_yy, e_yz = (
        p_xy * c_xx + p_yy * c_xy + p_yz * c_xz,
        p_xy * c_xy + p_yy * c_yy + p_yz * c_yz,
        p_xy * c_xz + p_yy * c_yz + p_yz * c_zz,
    )
    e_zx, e_zy, e_zz = (
        p_xz * c_xx + p_yz * c_xy + p_zz * c_xz,
        p_xz * c_xy + p_yz * c_yy + p_zz * c_yz,
        p_xz * c_xz + p_yz * c_yz + p_zz * c_zz,
    )
    along = e_xx + e_yy + e_zz
    excess = 0.5 * (c_xx + c_yy + c_zz - along)
    both = along + excess
    c_xx, c_yy, c_zz = (
        c_xx - 2 * e_xx + (both * p_xx - excess),
        c_yy - 2 * e_yy + (both * p_yy - excess),
        c_zz - 2 * e_zz + (both * p_zz - excess),
    )
    c_xy, c_xz, c_yz = (
        c_xy - (e_xy + e_yx) + both * p_xy,
        c_xz - (e_xz + e_zx) + both * p_xz,
        c_yz - (e_yz + e_zy) + both * p_yz,
    )
    half_gap = sqrt(
        maximum(
            0.5 * (c_xx * c_xx + c_yy * c_yy + c_zz * c_zz) + (c_xy * c_xy + c_xz * c_xz + c_yz * c_yz), 1e-36
        )
    )
    return half_gap, c_xx, c_xy, c_yy, c_xz, c_yz, c_zz


def split(
    xx: Any, xy: Any, yy: Any, xz: Any, yz: Any, zz: Any
) -> tuple[tuple[Any, Any, Any], tuple[Any, ...], tuple[Any, ...]]:
    """Return the isolated eigenvalue, mean and half gap of the two others; the projection P of the first; C.

    J = isolated·P + pair·(I − P) + C, where C has the eigenvalues ± half gap in the plane of the pair: a
    function of the matrix has the values of the function as eigenvalues, even if C is nothing but rounding.
    The floors under the roots keep derivatives finite where eigenvalues coincide. Scale J to order 1 first.
    """
    mean, size, half_determinant, b_xx, b_xy, b_yy, b_xz, b_yz, b_zz = normalized(xx, xy, yy, xz, yz, zz)
    root, per_slope = signed_root(half_determinant)
    p_xx, p_xy, p_yy, p_xz, p_yz, p_zz, c_xx, c_xy, c_yy, c_xz, c_yz, c_zz = parts(
        root, per_slope, b_xx, b_xy, b_yy, b_xz, b_yz, b_zz
    )
    half_gap, c_xx, c_xy, c_yy, c_xz, c_yz, c_zz = cleared(
        p_xx, p_xy, p_yy, p_xz, p_yz, p_zz, c_xx, c_xy, c_yy, c_xz, c_yz, c_zz
    )
    return (
        (mean + size * root, mean - size * (0.5 * root), size * half_gap),
        (p_xx, p_xy, p_yy, p_xz, p_yz, p_zz),
        (size * c_xx, size * c_xy, size * c_yy, size * c_xz, size * c_yz, size * c_zz),
    )


def reduced(isolated: Any, pair: Any, half_gap: Any, offset: Any) -> tuple[Any, Any, Any, Any]:
    """Subtract an offset from the eigenvalues, at least 0; return them and the fraction of the gap left."""
    low, high = maximum(pair - half_gap - offset, 0), maximum(pair + half_gap - offset, 0)
    gap = 2 * half_gap
    # Not high − low, which would cancel.
    left = where(low > 0, gap, minimum(high, gap))
    return maximum(isolated - offset, 0), low, high, left / gap


def joined(
    at_isolated: Any, at_pair: Any, slope: Any, p: tuple[Any, ...], c: tuple[Any, ...]
) -> tuple[Any, Any, Any, Any, Any, Any]:
    """Return at_isolated·P + at_pair·(I − P) + slope·C: a function of the matrix with this P and C.

    `at_pair` is the mean of the function at the two eigenvalues of the pair, `slope` its slope between them.
    """
    return combined(at_isolated - at_pair, at_pair, slope, p, c)


def combined(
    excess: Any, at_pair: Any, slope: Any, p: tuple[Any, ...], c: tuple[Any, ...]
) -> tuple[Any, Any, Any, Any, Any, Any]:
    """Return the same from the excess of the value at the isolated eigenvalue over `at_pair`."""
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
