"""How many operations an explicit step takes per pixel: counted, by sending counters through the formulas."""

from __future__ import annotations

from typing import Any

import aniso
from aniso.formulas import bounds, cell
from aniso.formulas.gaussian import gaussian_radius

#: An exponential is a reduction of the argument, a polynomial of degree seven and a scaling.
EXPONENTIAL = 28


class Counter:
    """A number that counts what is done to it and to all others with the same tally.

    Sums, products, quotients and comparisons count one each. Signs are free: they are single bits.
    """

    def __init__(self, tally: list[int]) -> None:
        self.tally = tally

    def _one(self, other: Any = None, operations: int = 1) -> Counter:
        self.tally[0] += operations
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _one

    def __neg__(self) -> Counter:
        return self

    __abs__ = __neg__

    def clamp(self, min: Any) -> Counter:
        return self._one()

    def sqrt(self) -> Counter:
        return self._one()

    def exp(self) -> Counter:
        return self._one(operations=EXPONENTIAL)

    expm1 = exp


def operations_per_pixel(model: aniso.models.ImageDriven, stencil: aniso.DeltaStencil) -> int:
    """Of one explicit step of one channel without integration scale; there is a cell for every pixel."""
    tally = [0]
    u = Counter(tally)
    taps = 2 * gaussian_radius(model.presmoothing) + 1
    smoothing = 2 * (2 * taps - 1) if taps > 1 else 0

    u_x, u_y, _ = cell.modes(u, u, u, u)
    a, b, c = model.tensor_formula(1)(*cell.structure(u_x, u_y))
    zeta = stencil.hourglass_weight(a, b, c)
    shares = cell.corner_shares(*cell.fluxes(*cell.modes(u, u, u, u), a, b, c, zeta))
    rate = shares[0] + shares[1] + shares[2] + shares[3]
    bounds.explicit_step(u, rate, 1.0)
    return smoothing + tally[0]
