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


#: The same, into the loops that call it; to be called from Python and kept on disk; to be called by address.
inlined = entry = address = compiled


def exponential_series(f: Any) -> Any:
    """e^f − 1 for ∣f∣ ≤ ½ ln 2."""
    return np.expm1(f)


def tensor(*structure_and_numbers: Any) -> tuple[Any, ...]:
    """Compute the model's tensor from the entries of the structure tensor and a tuple of numbers."""
    raise NotImplementedError


def unpack(parameters: Any) -> tuple[Any, ...]:
    """Return the numbers of the model's formula as a tuple, which loops keep in registers."""
    raise NotImplementedError
