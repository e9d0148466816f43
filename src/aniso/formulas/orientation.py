"""Direction and coherence of structures, from structure tensors with trace 1, or 0 without structure.

Matrices are given as xx, xy, yy and, for volumes, xz, yz, zz. With μ1 ≥ μ2 (≥ μ3) their eigenvalues, the
direction of least change is the eigenvector of the last one.
"""

from __future__ import annotations

from typing import Any

from aniso.formulas.operations import arctan2, maximum, minimum, sqrt, where
from aniso.formulas.symmetric import split


def least_angle(xx: Any, xy: Any, yy: Any) -> Any:
    """Return the direction of least change in [−π/2, π/2], from x towards y; 0 without structure."""
    # Not −2xy, which would be −0 for 0, and the angle of the y axis −π/2.
    return 0.5 * arctan2(0 - 2 * xy, yy - xx)


def least_direction(xx: Any, xy: Any, yy: Any, xz: Any, yz: Any, zz: Any) -> tuple[Any, Any, Any]:
    """Return the direction of least change in a volume as a unit vector x, y, z; 0 without structure.

    Of the vector and its opposite, the one with x > 0 is taken; if x is 0 that with y > 0, and so on.
    """
    (isolated, pair, half_gap), p, c = split(xx, xy, yy, xz, yz, zz)
    alone = isolated < pair
    # The projection onto the direction: P itself, or the part of I − P that belongs to the lower of the pair.
    m_xx, m_xy, m_yy, m_xz, m_yz, m_zz = (
        where(alone, own, 0.5 * (one - own - other / half_gap))
        for own, other, one in zip(p, c, (1, 0, 1, 0, 0, 1), strict=True)
    )
    # Its longest column.
    along_x, along_y = (m_xx >= m_yy) & (m_xx >= m_zz), m_yy >= m_zz
    x = where(along_x, m_xx, where(along_y, m_xy, m_xz))
    y = where(along_x, m_xy, where(along_y, m_yy, m_yz))
    z = where(along_x, m_xz, where(along_y, m_yz, m_zz))
    turned = (x < 0) | ((x == 0) & ((y < 0) | ((y == 0) & (z < 0))))
    # The trace is 1, or 0 where there is no direction.
    length = (xx + yy + zz > 0.5) / sqrt(x * x + y * y + z * z)
    length = where(turned, -length, length)
    return x * length, y * length, z * length


def image_coherence(xx: Any, xy: Any, yy: Any) -> Any:
    """Return ((μ1 − μ2)/(μ1 + μ2))²; 0 without structure."""
    return minimum((xx - yy) * (xx - yy) + 4 * (xy * xy), 1)


def volume_coherence(xx: Any, xy: Any, yy: Any, xz: Any, yz: Any, zz: Any, *, plates: bool) -> Any:
    """Return ((μ1 − μ3)/(μ1 + μ3))², or μ2 − μ3 above if plates are not structures; 0 without structure."""
    (isolated, pair, half_gap), _, _ = split(xx, xy, yy, xz, yz, zz)
    low = maximum(minimum(isolated, pair - half_gap), 0)
    high = maximum(isolated, pair + half_gap)
    trace = xx + yy + zz
    gap = high - low if plates else maximum(trace - high - 2 * low, 0)
    share = gap / (high + low)
    return where(trace > 0.5, minimum(share * share, 1), 0 * trace)
