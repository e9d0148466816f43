"""The operations of the formulas for compiled scalars: branch-free, so that loops vectorise.

This text becomes part of every generated kernel module, see :mod:`aniso.engines.cpu.generate`.
"""

from __future__ import annotations

import math

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from aniso.engines.cpu.placeholders import (
    EPSILON,
    LN2_HIGH,
    LN2_LOW,
    LOWEST,
    SPACED,
    STRIDE,
    exponential_series,
    index,
    inlined,
    logarithm_series,
    real,
)
from aniso.formulas.cell import modes, structure


@intrinsic
def nearest(typing_context, x):
    """The nearest whole number, as a floating point number."""

    def build(context, builder, signature, arguments):
        kind = arguments[0].type
        return builder.call(builder.module.declare_intrinsic("llvm.rint", [kind]), arguments)

    return x(x), build


@intrinsic
def two_to_the(typing_context, n):
    """2ⁿ for a whole number n given as a floating point number: its bits are those of the exponent."""
    digits, bias, width = (23, 127, 32) if n == types.float32 else (52, 1023, 64)

    def build(context, builder, signature, arguments):
        kind, word = arguments[0].type, ir.IntType(width)
        whole = builder.fptosi(arguments[0], ir.IntType(32))
        whole = whole if width == 32 else builder.sext(whole, word)
        exponent = builder.add(whole, ir.Constant(word, bias))
        return builder.bitcast(builder.shl(exponent, ir.Constant(word, digits)), kind)

    return n(n), build


@intrinsic
def exponent(typing_context, x):
    """The whole number n with √½ ≤ x/2ⁿ < √2, as a floating point number; x must be positive and normal."""
    digits, half, width = (23, 0x3F3504F3, 32) if x == types.float32 else (52, 0x3FE6A09E667F3BCD, 64)

    def build(context, builder, signature, arguments):
        word = ir.IntType(width)
        bits = builder.bitcast(arguments[0], word)
        whole = builder.ashr(builder.sub(bits, ir.Constant(word, half)), ir.Constant(word, digits))
        whole = whole if width == 32 else builder.trunc(whole, ir.IntType(32))
        return builder.sitofp(whole, arguments[0].type)

    return x(x), build


@inlined
def maximum(x, floor):
    """The larger of x and floor; NaN stays NaN."""
    return floor if x < floor else x


@inlined
def minimum(x, ceiling):
    """The smaller of x and ceiling; NaN stays NaN."""
    return ceiling if x > ceiling else x


@inlined
def where(condition, x, y):
    """X where the condition holds, y elsewhere."""
    return x if condition else y


@inlined
def precision(x):
    """The relative rounding error of numbers like x."""
    return EPSILON


@inlined
def sqrt(x):
    """√x."""
    return math.sqrt(x)


@inlined
def _reduce(x):
    """The whole number n and e^f − 1 with x = n·ln 2 + f, |f| ≤ ½ ln 2."""
    x = maximum(x, LOWEST)
    n = nearest(x * (real(1.0) / (LN2_HIGH + LN2_LOW)))
    f = (x - n * LN2_HIGH) - n * LN2_LOW
    return n, exponential_series(f)


@inlined
def exp(x):
    """eˣ for x ≤ 0."""
    n, loss = _reduce(x)
    scale = two_to_the(n)
    return scale * loss + scale


@inlined
def expm1(x):
    """eˣ − 1 for x ≤ 0."""
    n, loss = _reduce(x)
    scale = two_to_the(n)
    return scale * loss + (scale - real(1.0))


@inlined
def log1p(x):
    """log(1 + x) for x ≥ 0, up to the rounding error of 1 + x."""
    y = real(1.0) + x
    n = exponent(y)
    f = y * two_to_the(-n) - real(1.0)
    s = f / (real(2.0) + f)
    return n * LN2_HIGH + (s * logarithm_series(s * s) + n * LN2_LOW)


@inlined
def logistic(x):
    """1/(1 + e⁻ˣ)."""
    e = exp(-abs(x))
    return where(x >= real(0.0), real(1.0), e) / (real(1.0) + e)


@inlined
def pair(rows, at, j):
    """Corners j and j + 1 in the row that starts at this offset."""
    return rows[at + j], rows[at + j + index(1)]


@inlined
def load_entries(cells, j):
    """The six entries of cell j of a volume, which are in rows at the distance `STRIDE`."""
    xx, xy, yy = cells[j], cells[j + index(STRIDE)], cells[j + index(2 * STRIDE)]
    xz, yz, zz = cells[j + index(3 * STRIDE)], cells[j + index(4 * STRIDE)], cells[j + index(5 * STRIDE)]
    return xx, xy, yy, xz, yz, zz


@inlined
def store_entries(cells, j, xx, xy, yy, xz, yz, zz):
    """Write them."""
    cells[j], cells[j + index(STRIDE)], cells[j + index(2 * STRIDE)] = xx, xy, yy
    cells[j + index(3 * STRIDE)], cells[j + index(4 * STRIDE)], cells[j + index(5 * STRIDE)] = xz, yz, zz


@inlined
def unit_structure(smooth, top, bottom, j, per_x, per_y):
    """Products of derivatives in cell j between two rows, per unit of length."""
    u00, u01 = pair(smooth, top, j)
    u10, u11 = pair(smooth, bottom, j)
    x, y, _ = modes(u00, u01, u10, u11)
    if SPACED:
        x, y = x * per_x, y * per_y
    return structure(x, y)
