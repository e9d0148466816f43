"""Clipped pixels: where grey values end, and what is left of the noise there."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from aniso.arrays import Field, Mask

# Share of the pixels at the least or largest grey value from which on they may be clipped ones; and how much
# more frequent this value must be than the next two suggest. Zeros of counted photons are not clipped, but
# the largest counts are always rare.
_SHARE, _LOW_SPIKE, _HIGH_SPIKE = 0.002, 3.0, 1.5
# Share of clipped pixels up to which the variance of a block is corrected, and that of blocks of about the
# same mean: if only blocks with few clipped pixels were taken, they would be those with little noise.
_MOST_IN_BLOCK, _MOST_ON_AVERAGE = 0.5, 0.3
# Share of pixels of a block that are clipped at one end if others are clipped at the other end.
_OTHER_END = 0.02
# Blocks of about the same mean.
_PART, _PARTS = 40, 32


def find_clipped(window: Field, constant: Mask) -> tuple[Mask, Mask]:
    """Return the pixels that are clipped at the least and at the largest grey value, if they are.

    Constant regions do not tell what the grey values of others are.
    """
    varying = np.sort(window[~constant])
    return (
        window == varying[0] if _is_clipped(varying, _LOW_SPIKE) else np.zeros(window.shape, bool),
        window == varying[-1] if _is_clipped(-varying[::-1], _HIGH_SPIKE) else np.zeros(window.shape, bool),
    )


def _is_clipped(values: Field, spike: float) -> bool:
    """Return whether the least of sorted values is more frequent than the next ones suggest."""
    counts: list[int] = []
    start = 0
    while len(counts) < 3 and start < len(values):
        end = int(np.searchsorted(values, values[start], "right"))
        counts.append(end - start)
        start = end
    if not counts or counts[0] <= _SHARE * len(values):
        return False
    if len(counts) < 3:
        return True
    return counts[0] > spike * max(counts[1], counts[1] ** 2 / counts[2])


def judge_clipped(means: Field, shares: Sequence[Field]) -> tuple[Mask, Field]:
    """Return which blocks are clipped too much, and the part of the variance that the others have kept.

    `shares` are those of pixels at the least and at the largest grey value. Of normal noise that is clipped,
    the share of clipped pixels gives the variance that is left. Where blocks of about the same mean are
    clipped too much on average, none of them counts.
    """
    low, high = shares
    most = np.maximum(low, high)
    bad = (most > _MOST_IN_BLOCK) | (np.minimum(low, high) > _OTHER_END)
    if most.any():
        order = np.argsort(means, kind="stable")
        for part in np.array_split(order, min(max(len(means) // _PART, 1), _PARTS)):
            bad[part] |= np.mean(most[part]) > _MOST_ON_AVERAGE
    table, left = _variances_left()
    return bad, np.interp(most, table, left)


@functools.lru_cache(maxsize=1)
def _variances_left() -> tuple[Field, Field]:
    """Return shares of clipped values, and the variance of a standard normal variable that is clipped so."""
    from scipy import special

    shares = np.linspace(1e-6, _MOST_IN_BLOCK, 200)
    ends = special.ndtri(1 - shares)
    density = np.exp(-0.5 * ends**2) / np.sqrt(2 * np.pi)
    mean = ends * shares - density
    square = 1 - shares - ends * density + ends**2 * shares
    return shares, square - mean**2
