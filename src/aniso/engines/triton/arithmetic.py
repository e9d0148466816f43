"""The operations of the formulas for Triton, under the names of :mod:`aniso.formulas.operations`.

Numbers in formulas take the precision of the tensors that they meet.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

#: Whether kernels run in the interpreter, on CPU tensors.
INTERPRETED: bool = triton.knobs.runtime.interpret


def inlined(function: Any) -> Any:
    """Make a function that kernels call; in the interpreter, a plain function does the same in less time."""
    return function if INTERPRETED else triton.jit(function)


@inlined
def maximum(x, floor):
    """The larger of x and floor; NaN stays NaN."""
    return tl.where(x < floor, floor, x)


@inlined
def minimum(x, ceiling):
    """The smaller of x and ceiling; NaN stays NaN."""
    return tl.where(x > ceiling, ceiling, x)


@inlined
def where(condition, x, y):
    """X where the condition holds, y elsewhere."""
    return tl.where(condition, x, y)


@inlined
def absolute(x):
    """The magnitude of x."""
    return tl.abs(x)


@inlined
def precision(x):
    """The relative rounding error of numbers like x."""
    if x.dtype == tl.float64:
        return 2.0**-52
    else:
        return 2.0**-23


@inlined
def sqrt(x):
    """√x."""
    return tl.sqrt(x)


@inlined
def exp(x):
    """eˣ."""
    return tl.exp(x)


@inlined
def expm1(x):
    """eˣ − 1 for x ≤ 0: 2ⁿeᶠ − 1 with x = n·ln 2 + f, |f| ≤ ½ ln 2, and a series for eᶠ − 1.

    Below −40, in double precision −120, it does not change any more.
    """
    double: tl.constexpr = x.dtype == tl.float64
    terms: tl.constexpr = 13 if double else 7
    x = tl.maximum(x, -120.0 if double else -40.0, propagate_nan=tl.PropagateNan.ALL)
    n = tl.floor(x * 1.4426950408889634 + 0.5)
    # The first part of ln 2 has so few digits that its product with n is exact.
    f = (x - n * 0.693145751953125) - n * 1.42860682030941723212e-6
    series = 1 + f * (1 / terms)
    for number in tl.static_range(2, terms):
        series = 1 + series * f * (1 / (terms + 1 - number))
    # 2ⁿ from its bits.
    if double:
        power = ((n.to(tl.int64) + 1023) << 52).to(tl.float64, bitcast=True)
    else:
        power = ((n.to(tl.int32) + 127) << 23).to(tl.float32, bitcast=True)
    return power * (f * series) + (power - 1)


@inlined
def log1p(x):
    """log(1 + x) for x ≥ 0: the logarithm of the rounded sum, and what the rounding left out."""
    rounded = 1 + x
    return tl.log(rounded) + (x - (rounded - 1)) / rounded


@inlined
def logistic(x):
    """1/(1 + e⁻ˣ)."""
    small = tl.exp(-tl.abs(x))
    return tl.where(x < 0, small, 1) / (1 + small)
