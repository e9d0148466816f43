"""Axes of colour on which brightness is separate."""

from __future__ import annotations

import numpy as np

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


def check_axes(axes: Axes, channels: int) -> None:
    """Reject axes that are not an orthonormal basis of the channels."""
    rows = np.array(axes) if {len(row) for row in axes} == {channels} else np.empty((0, 0))
    if rows.shape != (channels, channels) or not np.allclose(rows @ rows.T, np.eye(channels), atol=1e-6):
        raise ValueError(f"the axes of a plan for {channels} channels must be orthonormal.")
