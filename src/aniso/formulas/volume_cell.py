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


def modes(
    u000: Any, u001: Any, u010: Any, u011: Any, u100: Any, u101: Any, u110: Any, u111: Any
) -> tuple[Any, Any, Any, Any, Any, Any, Any]:
    """Return the mean gradient g_x, g_y, g_z, the hourglasses ρ_x, ρ_y, ρ_z, and t.

    Differences are formed before sums: in a cell on the boundary, whose corners come in equal pairs, all
    modes that change along the normal are then exactly 0, not rounding noise.
    """
    # Differences along x, added and subtracted along y and z.
    x00, x01, x10, x11 = u001 - u000, u011 - u010, u101 - u100, u111 - u110
    near, far = x00 + x01, x10 + x11
    near_y, far_y = x01 - x00, x11 - x10
    # Differences along y of sums along x, and along z of the sums of all four.
    y0, y1 = (u010 - u000) + (u011 - u001), (u110 - u100) + (u111 - u101)
    z = ((u100 - u000) + (u101 - u001)) + ((u110 - u010) + (u111 - u011))
    return (
        0.25 * (near + far),
        0.25 * (y0 + y1),
        0.25 * z,
        0.25 * (y1 - y0),
        0.25 * (far - near),
        0.25 * (near_y + far_y),
        0.25 * (far_y - near_y),
    )


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


def corner_shares(
    f_x: Any, f_y: Any, f_z: Any, h_x: Any, h_y: Any, h_z: Any, h_t: Any
) -> tuple[Any, Any, Any, Any, Any, Any, Any, Any]:
    """Return what the fluxes of a cell add to A u at its corners: minus the transposed modes."""
    # What does not change along x at the four places of (z, y), and what does.
    sum_yz, difference_yz = 0.25 * (f_y + f_z), 0.25 * (f_y - f_z)
    twist = 0.25 * h_x
    e00, e01, e10, e11 = sum_yz - twist, twist - difference_yz, twist + difference_yz, -sum_yz - twist
    along, across = 0.25 * (f_x + h_t), 0.25 * (f_x - h_t)
    sum_h, difference_h = 0.25 * (h_y + h_z), 0.25 * (h_y - h_z)
    o00, o01, o10, o11 = along - sum_h, across - difference_h, across + difference_h, along + sum_h
    return e00 + o00, e00 - o00, e01 + o01, e01 - o01, e10 + o10, e10 - o10, e11 + o11, e11 - o11
