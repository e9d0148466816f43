"""What is seen of the noise in small blocks: their means, and the energy of their second differences."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from aniso.arrays import Field, Mask

#: Distances in pixels over which second differences are taken.
STEPS = (1, 2, 3, 4, 6)
#: Sides of the blocks in pixels, by the number of axes.
SIDES = {1: 64, 2: 8, 3: 4}
# Flatness is seen through a Gaussian of this width, and averaged by another one.
SEEN, _AVERAGED = 1.5, 2.0
# Share of the pixels at the least or largest grey value from which on they are taken for clipped ones.
_CLIPPED_SHARE = 0.002
# With fewer blocks, overlapping ones are taken as well.
_MANY_BLOCKS = 1500
# No more flat blocks than these are needed.
_MOST_BLOCKS = 4000
# How many blocks there must be to leave out those with clipped pixels, or with constant regions.
_ENOUGH_BLOCKS = 150


@dataclass(frozen=True)
class Blocks:
    """Blocks of one channel: means, flatness, and the mean squares of second differences for each step."""

    means: Field
    steepness: Field
    energies: dict[int, Field]
    side: int
    ndim: int

    def __len__(self) -> int:
        return len(self.means)

    def take(self, chosen: Any) -> Blocks:
        """Return some of the blocks."""
        energies = {step: energy[chosen] for step, energy in self.energies.items()}
        return Blocks(self.means[chosen], self.steepness[chosen], energies, self.side, self.ndim)

    def flattest(self, share: float, steepness: Field, limit: float = 0.0) -> Blocks:
        """Return a share of the blocks of about the same mean, the flattest ones, and all up to a limit."""
        parts = np.array_split(np.argsort(self.means, kind="stable"), min(max(len(self) // 60, 1), 16))
        chosen = [part[steepness[part] <= max(limit, np.quantile(steepness[part], share))] for part in parts]
        found = np.concatenate(chosen)
        return self.take(found[:: -(-len(found) // _MOST_BLOCKS)])


def collect_blocks(windows: Sequence[Field], masks: Sequence[Mask] | None = None) -> Blocks | None:
    """Return the blocks of windows without channels, or None if they are too small.

    Blocks with untrusted pixels (`masks`), clipped ones, or constant regions do not count. If hardly any
    block is left, those with clipped pixels do, and then those with constant regions.
    """
    ndim = windows[0].ndim
    side = SIDES[ndim]
    steps = [k for k in STEPS if all(min(window.shape) >= 2 * k + 2 * side for window in windows)]
    if not steps:
        return None
    parts = []
    for number, window in enumerate(windows):
        doubt = _find_doubt(window, None if masks is None else masks[number])
        count = math.prod((n - 2 * steps[-1]) // side for n in window.shape)
        halves = (0, side // 2) if count < _MANY_BLOCKS else (0,)
        fields = _fields(window, steps)
        for start in itertools.product(halves, repeat=ndim):
            inner = tuple(
                slice(steps[-1] + first, n - steps[-1]) for first, n in zip(start, window.shape, strict=True)
            )
            parts.append([_average(field[inner], side) for field in fields] + [_largest(doubt[inner], side)])
    means, steepness, *energies, doubts = (np.concatenate(each) for each in zip(*parts, strict=True))
    blocks = Blocks(means, steepness, dict(zip(steps, energies, strict=True)), side, ndim)
    for allowed in (0, 1, 2):
        if np.count_nonzero(doubts <= allowed) >= _ENOUGH_BLOCKS:
            break
    trusted = doubts <= allowed
    return blocks.take(trusted) if trusted.any() else None


def _fields(window: Field, steps: Sequence[int]) -> list[Field]:
    """Return the window, its steepness, and the squares of second differences, all of the same shape."""
    from scipy import ndimage

    smooth = ndimage.gaussian_filter(window, SEEN, mode="reflect")
    steepness = np.zeros_like(window)
    for axis in range(window.ndim):
        steepness += np.square(ndimage.correlate1d(smooth, [-0.5, 0.0, 0.5], axis, mode="reflect"))
    fields = [window, ndimage.gaussian_filter(steepness, _AVERAGED, mode="reflect")]
    for step in steps:
        weights = np.zeros(2 * step + 1)
        weights[[0, step, -1]] = np.array([1.0, -2.0, 1.0]) / math.sqrt(6)
        seen = window
        for axis in range(window.ndim):
            seen = ndimage.correlate1d(seen, weights, axis, mode="reflect")
        fields.append(np.square(seen, out=seen))
    return fields


def _find_doubt(window: Field, mask: Mask | None) -> Field:
    """Return 3 near pixels that are not to be trusted, 2 in constant regions, 1 near clipped ones, else 0."""
    from scipy import ndimage

    doubt = np.zeros(window.shape, np.int8)
    for end in (window.min(), window.max()):
        at_end = window == end
        if at_end.mean() > _CLIPPED_SHARE:
            doubt[at_end] = 1
    constant = ndimage.maximum_filter(window, 3) == ndimage.minimum_filter(window, 3)
    doubt[constant] = 2
    if mask is not None:
        doubt[mask] = 3
    return ndimage.maximum_filter(doubt, 5, mode="reflect")


def _split(field: Field, side: int) -> Field:
    """Return a view with two axes for each: blocks, and pixels in a block."""
    counts = [n // side for n in field.shape]
    whole = field[tuple(slice(0, n * side) for n in counts)]
    return whole.reshape([n for count in counts for n in (count, side)])


def _average(field: Field, side: int) -> Field:
    found: Field = _split(field, side).mean(axis=tuple(range(1, 2 * field.ndim, 2))).ravel()
    return found


def _largest(field: Field, side: int) -> Field:
    found: Field = _split(field, side).max(axis=tuple(range(1, 2 * field.ndim, 2))).ravel()
    return found
