"""A 2×2 cell: from corner values to modes, to fluxes, and back to corners.

The corners are named by row and column: ``u00`` top left, ``u01`` to its right (x, axis 1),
``u10`` below it (y, axis 0), ``u11`` opposite. With the modes X, Y, Z below, the whole δ-stencil is

    −⟨u, A u⟩ = Σ_cells aX² + 2bXY + cY² + ζZ²

(unit spacing; the modes are orthonormal, so this is also the spectrum of a cell).
"""

from __future__ import annotations

from typing import Any


def modes(u00: Any, u01: Any, u10: Any, u11: Any) -> tuple[Any, Any, Any]:
    """Return X and Y, the mean gradient of a cell, and Z, its hourglass mode.

    Differences are formed before sums: in a cell on the boundary, whose corners come in equal
    pairs, the normal derivative and the hourglass are then exactly 0, not rounding noise.
    """
    top, bottom = u01 - u00, u11 - u10
    left, right = u10 - u00, u11 - u01
    return 0.5 * (top + bottom), 0.5 * (left + right), 0.5 * (bottom - top)


def structure(u_x: Any, u_y: Any) -> tuple[Any, Any, Any]:
    """Return ∇u ∇uᵀ of one channel, as j_xx, j_xy, j_yy."""
    return u_x * u_x, u_x * u_y, u_y * u_y


def fluxes(x: Any, y: Any, z: Any, a: Any, b: Any, c: Any, zeta: Any) -> tuple[Any, Any, Any]:
    """Multiply the gradient by the tensor and the hourglass by ζ."""
    return a * x + b * y, b * x + c * y, zeta * z


def corner_shares(fx: Any, fy: Any, fz: Any) -> tuple[Any, Any, Any, Any]:
    """Return what the fluxes of a cell add to A u at its corners: minus the transposed modes."""
    along, across = 0.5 * (fx + fy), 0.5 * (fx - fy)
    hourglass = 0.5 * fz
    return along - hourglass, hourglass - across, across + hourglass, -along - hourglass
