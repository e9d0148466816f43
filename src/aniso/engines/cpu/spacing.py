"""What both kinds of generated module need: structure per unit of length."""

from __future__ import annotations

from aniso.engines.cpu.placeholders import SPACED, inlined
from aniso.formulas.cell import modes
from aniso.formulas.structure import structure


@inlined
def unit_structure(u00, u01, u10, u11, per_x, per_y):
    """Products of derivatives, per unit of length."""
    x, y, _ = modes(u00, u01, u10, u11)
    if SPACED:
        x, y = x * per_x, y * per_y
    return structure(x, y)
