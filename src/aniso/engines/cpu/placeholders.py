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

#: The same in volumes, where whole layers of cells are at work.
VOLUME_STRIDE = 304

#: How many rows of cells of a volume are averaged, and turned into tensors, at a time.
AVERAGED = 8

#: How many rows at the end of the rows of cells of a volume the function of a model may write to.
SPARE = 10

#: Rows that a row of cells takes: a, b, c and ζ of an image, or the six entries of a tensor in a volume.
ENTRIES = 4

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


#: The same for a loop over rows that uses nothing of what it writes by another of its arguments: compilers
#: would compare the addresses of all rows before each loop, which takes as long as a part of a short row.
#: Those with many arguments are inlined, which saves writing them to memory and reading them again.
separate = separate_inlined = compiled

#: The same for a function that allocates; for one that becomes part of the loops that call it; for one that
#: is called from Python and kept on disk; for one that is called by address.
allocating = inlined = entry = address = compiled


def exponential_series(f: Any) -> Any:
    """e^f − 1 for ∣f∣ ≤ ½ ln 2."""
    return np.expm1(f)


def logarithm_series(f: Any) -> Any:
    """log((1 + s)/(1 − s))/s with f = s²."""
    return 2 * np.arctanh(np.sqrt(f)) / np.sqrt(f)


def weighted_sum(out: Any, o: Any, rows: Any, r: Any, numbers: Any, at: Any, count: int, n: int) -> None:
    """Write the sum of `count` rows at the distance `STRIDE`, each times one of the numbers."""
    raise NotImplementedError


def tensor(*structure_and_numbers: Any) -> tuple[Any, ...]:
    """Compute the model's tensor from the entries of the structure tensor and a tuple of numbers."""
    raise NotImplementedError


def values(isolated: Any, pair: Any, half_gap: Any, numbers: tuple[Any, ...]) -> tuple[Any, Any, Any]:
    """Compute what `joined` needs of the model's function from the eigenvalues and the formula's numbers."""
    raise NotImplementedError


def unpack(parameters: Any) -> tuple[Any, ...]:
    """Return the numbers of the model's formula as a tuple, which loops keep in registers."""
    raise NotImplementedError
