"""From a diffusion tensor (a b; b c) in a cell to the weights of the stencil there.

a belongs to x (axis 1), c to y (axis 0), b to both. Spacing enters by ``scaled``; afterwards the
grid has unit spacing.
"""

from __future__ import annotations

from typing import Any

from aniso.formulas.operations import maximum


def scaled(a: Any, b: Any, c: Any, per_x: Any, per_y: Any) -> tuple[Any, Any, Any]:
    """Scale the tensor to unit spacing; per_x and per_y are 1/h_x and 1/h_y."""
    return a * (per_x * per_x), b * (per_x * per_y), c * (per_y * per_y)


def delta(a: Any, b: Any, c: Any, alpha: Any, gamma: Any, beta: Any) -> Any:
    """Return δ = α(a + c) + γ(1 − 2α)|b| + βb, the free parameter of the splitting into four directions."""
    return alpha * (a + c) + gamma * (1 - 2 * alpha) * abs(b) + beta * b


def hourglass_weight(a: Any, b: Any, c: Any, alpha: Any, gamma: Any, beta: Any) -> Any:
    """Return ζ = a + c − 2δ, which is all that the choice of a stencil determines.

    The factored form keeps its digits near α = ½, where a + c and 2δ nearly cancel.
    """
    return maximum((1 - 2 * alpha) * (a + c - 2 * gamma * abs(b)) - 2 * beta * b, 0)


def free_hourglass_weight(a: Any, c: Any, delta: Any) -> Any:
    """Return ζ = a + c − 2δ for a δ given by the user."""
    return maximum(a + c - 2 * delta, 0)


def directional_weights(a: Any, b: Any, c: Any, delta: Any) -> tuple[Any, Any, Any, Any]:
    """Return w0..w3, the diffusivities of the 1-D diffusions along x, ↘, y and ↙ (y points downwards).

    Parameters
    ----------
    a, b, c : float or array
        Entries of the diffusion tensor, a along x (axis 1), c along y (axis 0).
    delta : float or array
        The free parameter δ of the stencil, in the units of the tensor.

    Returns
    -------
    tuple of four floats or arrays
        a − δ, δ + b, c − δ and δ − b. Where none is negative, a maximum principle holds.

    Examples
    --------
    >>> import aniso
    >>> aniso.stencil.directional_weights(1.0, 0.25, 0.5, delta=0.25)
    (0.75, 0.5, 0.25, 0.0)
    """
    return a - delta, delta + b, c - delta, delta - b


def stencil_entries(nw: Any, ne: Any, sw: Any, se: Any) -> tuple[tuple[Any, ...], ...]:
    """Return the 3×3 entries at a pixel, row by row, from the directional weights of its four cells.

    Entries on the axes average the two cells that share the edge.
    """
    west, east = 0.5 * (nw[0] + sw[0]), 0.5 * (ne[0] + se[0])
    north, south = 0.5 * (nw[2] + ne[2]), 0.5 * (sw[2] + se[2])
    north_west, south_east = 0.5 * nw[1], 0.5 * se[1]
    north_east, south_west = 0.5 * ne[3], 0.5 * sw[3]
    centre = -(west + east + north + south + north_west + south_east + north_east + south_west)
    return (north_west, north, north_east), (west, centre, east), (south_west, south, south_east)


def without_normal_flux(tangential: Any, mixed: Any, normal: Any) -> Any:
    """Return the tangential entry for zero normal flux (Schur complement)."""
    return maximum(tangential - mixed * mixed / normal_divisor(normal, tangential), 0)


def normal_divisor(normal: Any, tangential: Any) -> Any:
    """Return the normal entry as a divisor.

    Where it is 0 up to rounding of the tangential entries, so are the mixed ones, and any divisor will do.
    """
    scale = tangential + (tangential == 0)
    return normal + scale * (normal <= 1e-15 * tangential)
