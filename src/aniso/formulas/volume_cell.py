"""A 2×2×2 cell of a volume: from corner values to modes, to fluxes, and back to corners.

The corners are named by their place along z, y and x (axes 0, 1 and 2): ``u001`` is the neighbour of
``u000`` along x. With the seven modes below, the stencil is

    −⟨u, A u⟩ = Σ_cells gᵀDg + ρᵀRρ + κt²

(unit spacing). The mean gradient g sees the diffusion tensor D; R and κ damp the hourglass modes, which
it does not see: ρ_z is the hourglass in the plane of x and y, ρ_y and ρ_x likewise, t that of all three.
All modes have the same length, √½ of a unit vector: a cell has half the eigenvalues of D, of R, and κ.
"""

from __future__ import annotations

from typing import Any


def face_modes(u00: Any, u01: Any, u10: Any, u11: Any) -> tuple[Any, Any, Any, Any]:
    """Return the sum of the corners of a face across x, and its changes along y, along z and along both.

    The corners are named by their place along z and y.
    """
    near, far = u00 + u01, u10 + u11
    near_y, far_y = u01 - u00, u11 - u10
    return near + far, near_y + far_y, far - near, far_y - near_y


def modes_between(
    s0: Any, y0: Any, z0: Any, yz0: Any, s1: Any, y1: Any, z1: Any, yz1: Any
) -> tuple[Any, Any, Any, Any, Any, Any, Any]:
    """Return the mean gradient g_x, g_y, g_z, the hourglasses ρ_x, ρ_y, ρ_z, and t, from two faces."""
    return (
        0.25 * (s1 - s0),
        0.25 * (y0 + y1),
        0.25 * (z0 + z1),
        0.25 * (yz0 + yz1),
        0.25 * (z1 - z0),
        0.25 * (y1 - y0),
        0.25 * (yz1 - yz0),
    )


def modes(
    u000: Any, u001: Any, u010: Any, u011: Any, u100: Any, u101: Any, u110: Any, u111: Any
) -> tuple[Any, Any, Any, Any, Any, Any, Any]:
    """Return the modes of a cell from its corners.

    In a cell on the boundary, whose corners come in equal pairs, all modes that change along the normal are
    exactly 0, not rounding noise: each is a difference of sums that are formed in the same way.
    """
    s0, y0, z0, yz0 = face_modes(u000, u010, u100, u110)
    s1, y1, z1, yz1 = face_modes(u001, u011, u101, u111)
    return modes_between(s0, y0, z0, yz0, s1, y1, z1, yz1)


def volume_structure(u_x: Any, u_y: Any, u_z: Any) -> tuple[Any, Any, Any, Any, Any, Any]:
    """Return ∇u ∇uᵀ of one channel of a volume, as j_xx, j_xy, j_yy, j_xz, j_yz, j_zz."""
    return u_x * u_x, u_x * u_y, u_y * u_y, u_x * u_z, u_y * u_z, u_z * u_z


def fluxes(
    x: Any, y: Any, z: Any, r_x: Any, r_y: Any, r_z: Any, t: Any,
    xx: Any, xy: Any, yy: Any, xz: Any, yz: Any, zz: Any, zeta_x: Any, zeta_y: Any, zeta_z: Any, kappa: Any,
) -> tuple[Any, Any, Any, Any, Any, Any, Any]:  # fmt: skip
    """Multiply the gradient by the tensor, and each hourglass by ζ or κ."""
    return (
        xx * x + xy * y + xz * z,
        xy * x + yy * y + yz * z,
        xz * x + yz * y + zz * z,
        zeta_x * r_x,
        zeta_y * r_y,
        zeta_z * r_z,
        kappa * t,
    )


def coupled_fluxes(
    x: Any, y: Any, z: Any, r_x: Any, r_y: Any, r_z: Any, t: Any,
    xx: Any, xy: Any, yy: Any, xz: Any, yz: Any, zz: Any, zeta_x: Any, zeta_y: Any, zeta_z: Any, kappa: Any,
) -> tuple[Any, Any, Any, Any, Any, Any, Any]:  # fmt: skip
    """Return the fluxes if the mixed entries of the tensor couple the hourglasses: R = D off its diagonal."""
    f_x, f_y, f_z, h_x, h_y, h_z, h_t = fluxes(
        x, y, z, r_x, r_y, r_z, t, xx, xy, yy, xz, yz, zz, zeta_x, zeta_y, zeta_z, kappa
    )
    return (
        f_x, f_y, f_z, h_x + (xy * r_y + xz * r_z), h_y + (xy * r_x + yz * r_z), h_z + (xz * r_x + yz * r_y),
        h_t,
    )  # fmt: skip


def face_fluxes(
    f_x: Any, f_y: Any, f_z: Any, h_x: Any, h_y: Any, h_z: Any, h_t: Any
) -> tuple[Any, Any, Any, Any, Any, Any, Any, Any]:
    """Return what the face before a cell gains and the face behind it loses, in the modes of a face."""
    return f_x, h_z - f_y, h_y - f_z, h_t - h_x, f_x, h_z + f_y, h_y + f_z, h_t + h_x


def face_shares(s: Any, y: Any, z: Any, yz: Any) -> tuple[Any, Any, Any, Any]:
    """Return what the four corners of a face gain."""
    s, y, z, yz = 0.25 * s, 0.25 * y, 0.25 * z, 0.25 * yz
    near, far, near_y, far_y = s - z, s + z, y - yz, y + yz
    return near - near_y, near + near_y, far - far_y, far + far_y


def corner_shares(
    f_x: Any, f_y: Any, f_z: Any, h_x: Any, h_y: Any, h_z: Any, h_t: Any
) -> tuple[Any, Any, Any, Any, Any, Any, Any, Any]:
    """Return what the fluxes of a cell add to A u at its corners: minus the transposed modes."""
    s0, y0, z0, yz0, s1, y1, z1, yz1 = face_fluxes(f_x, f_y, f_z, h_x, h_y, h_z, h_t)
    s000, s010, s100, s110 = face_shares(s0, y0, z0, yz0)
    s001, s011, s101, s111 = face_shares(-s1, -y1, -z1, -yz1)
    return s000, s001, s010, s011, s100, s101, s110, s111
