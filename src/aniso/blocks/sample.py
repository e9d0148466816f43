"""Windows of a large array, from which parameters are estimated: the same ones for all chunks."""

from __future__ import annotations

import math
from collections.abc import Sequence

from aniso.blocks.halo import Window

# Length of a window along each axis, in 2-D and 3-D; and the number of windows.
_SIDE = {2: 256, 3: 64}
_COUNT = 9


def windows(shape: Sequence[int]) -> list[Window]:
    """Return windows spread over an array of this shape (without channels), one of them in the middle.

    Their centres are multiples of irrational steps, so that they do not coincide with regular structures.
    """
    sides = [min(n, _SIDE[len(shape)]) for n in shape]
    if all(side == n for side, n in zip(sides, shape, strict=True)):
        return [tuple(slice(0, n) for n in shape)]
    # The generalised golden ratio spreads points evenly in any number of dimensions.
    ratio = 2.0
    for _ in range(30):
        ratio = (1 + ratio) ** (1 / (len(shape) + 1))
    found = []
    for number in range(_COUNT):
        shares = [math.fmod(0.5 + number / ratio ** (axis + 1), 1.0) for axis in range(len(shape))]
        starts = [int(share * (n - side + 1)) for share, n, side in zip(shares, shape, sides, strict=True)]
        found.append(tuple(slice(start, start + side) for start, side in zip(starts, sides, strict=True)))
    return found
