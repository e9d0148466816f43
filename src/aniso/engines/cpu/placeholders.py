"""Names that each generated kernel module defines for itself, so that the loops can be read as Python."""

from __future__ import annotations

from typing import Any

import numpy as np

#: The floating point type.
real: Any = np.float64

#: The type of an index that is not negative.
index: Any = int

#: Whether pixels have another spacing than 1.
SPACED = True

#: Distance of rows that are written together; a tile is narrower.
STRIDE = 1072

#: Below it an exponential is as good as 0 in that type.
LOWEST: Any = real(-120.0)

#: The relative rounding error of that type.
EPSILON: Any = real(np.finfo(np.float64).eps)

#: ln 2 in two parts, the first with so few digits that its multiples are exact.
LN2_HIGH: Any = real(0.693145751953125)
LN2_LOW: Any = real(1.42860682030941723212e-6)


def compiled(function: Any) -> Any:
    """Compile for Numba; here, leave as it is."""
    return function


def inlined(function: Any) -> Any:
    """Compile for Numba, into the loops that call it; here, leave as it is."""
    return function


def entry(function: Any) -> Any:
    """Compile for Numba, to be called from Python and kept on disk; here, leave as it is."""
    return function


def address(function: Any) -> Any:
    """Compile for Numba, to be called by its address; here, leave as it is."""
    return function


def exponential_series(f: Any) -> Any:
    """e^f − 1 for ∣f∣ ≤ ½ ln 2."""
    return np.expm1(f)


def tensor(j_xx: Any, j_xy: Any, j_yy: Any, p: Any, q: Any) -> tuple[Any, Any, Any]:
    """The model's tensor formula with its two numbers."""
    raise NotImplementedError


def volume_tensor(
    j_xx: Any, j_xy: Any, j_yy: Any, j_xz: Any, j_yz: Any, j_zz: Any, p: Any, q: Any
) -> tuple[Any, Any, Any, Any, Any, Any]:
    """The model's tensor formula for volumes with its two numbers."""
    raise NotImplementedError
