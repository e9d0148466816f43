"""Axes of colour on which brightness is separate."""

from __future__ import annotations

#: Rows of an orthonormal basis of the channels.
Axes = tuple[tuple[float, ...], ...]
#: Brightness and two differences of colours.
OPPONENT: Axes = (
    (3**-0.5, 3**-0.5, 3**-0.5),
    (2**-0.5, -(2**-0.5), 0.0),
    (6**-0.5, 6**-0.5, -2 * 6**-0.5),
)
#: What they are, in words.
OPPONENT_NAMES = ("brightness", "difference of colours", "difference of colours")
