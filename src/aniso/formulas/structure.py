"""What the smoothed image looks like in a cell: the structure tensor (j_xx j_xy; j_xy j_yy)."""

from __future__ import annotations

from typing import Any

from aniso.formulas.operations import maximum, sqrt


def structure(u_x: Any, u_y: Any) -> tuple[Any, Any, Any]:
    """∇u ∇uᵀ of one channel, as j_xx, j_xy, j_yy."""
    return u_x * u_x, u_x * u_y, u_y * u_y


def volume_structure(u_x: Any, u_y: Any, u_z: Any) -> tuple[Any, Any, Any, Any, Any, Any]:
    """∇u ∇uᵀ of one channel of a volume, as j_xx, j_xy, j_yy, j_xz, j_yz, j_zz."""
    return u_x * u_x, u_x * u_y, u_y * u_y, u_x * u_z, u_y * u_z, u_z * u_z


def spread(j_xx: Any, j_xy: Any, j_yy: Any) -> tuple[Any, Any, Any]:
    """Mean of the eigenvalues, half of j_xx − j_yy, and half of the eigenvalues' gap.

    The floor under the root keeps derivatives finite where the eigenvalues coincide; what is computed
    from them is symmetric in the eigenvalues and does not feel it. Scale J to numbers of order 1 first.
    """
    slant = 0.5 * (j_xx - j_yy)
    half_gap = sqrt(maximum(slant * slant + j_xy * j_xy, 1e-36))
    return 0.5 * (j_xx + j_yy), slant, half_gap
