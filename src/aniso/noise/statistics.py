"""What is seen of the noise in small blocks: their means, and the energy of their differences."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from aniso.arrays import Field, Mask
from aniso.noise.correlation import Probe, stencil

#: The differences that are taken, from fine to coarse. Those of order 4 see the least of texture.
PROBES: tuple[Probe, ...] = ((4, 1), (2, 1), (4, 2), (2, 2), (2, 3), (2, 4), (2, 6))
_MARGIN = max(math.prod(probe) for probe in PROBES) // 2
#: Sides of the blocks in pixels, by the number of axes.
SIDES = {1: 64, 2: 8, 3: 4}
# Flatness is seen through a Gaussian of this width, and averaged by another one.
SEEN, _AVERAGED = 1.5, 2.0
# Lines are seen through a Gaussian of this width. A block consists of them if the energies of second
# derivatives across and along them differ by more than this part of their sum.
_LINE_SEEN, _COHERENT = 1.0, 0.8
# Share of the pixels at the least or largest grey value from which on they may be clipped ones; and how much
# more frequent this value must be than the next two suggest. Zeros of counted photons are not clipped.
_CLIPPED_SHARE, _CLIPPED_SPIKE = 0.002, 3.0
# Share of clipped pixels that a block may have.
_CLIPPED_IN_BLOCK = 0.02
# Sides of the smallest constant regions, by the number of axes.
_CONSTANT = {1: 16, 2: 5, 3: 3}
# With fewer blocks, overlapping ones are taken as well. How much each of them tells then.
_MANY_BLOCKS, _OVERLAPPING = 1500, 0.5
# No more flat blocks than these are needed.
_MOST_BLOCKS = 2000
# How many blocks there must be to leave out those with clipped pixels, or with constant regions.
# And those near masked pixels; more than this share of a block must not be masked.
_ENOUGH_BLOCKS, _MOST_MASKED = (150, 16, 16), 0.5


@dataclass(frozen=True)
class Blocks:
    """Blocks of one channel: means, flatness, and the mean squares of differences for each probe.

    The steepness of blocks that consist of lines is infinite. `weight` is less than 1 for overlapping blocks,
    which repeat each other.
    """

    means: Field
    steepness: Field
    energies: dict[Probe, Field]
    side: int
    ndim: int
    weight: float = 1.0

    def __len__(self) -> int:
        return len(self.means)

    def take(self, chosen: Any) -> Blocks:
        """Return some of the blocks."""
        energies = {probe: energy[chosen] for probe, energy in self.energies.items()}
        return replace(self, means=self.means[chosen], steepness=self.steepness[chosen], energies=energies)

    def flattest(self, share: float, steepness: Field, limit: float = 0.0) -> Blocks:
        """Return a share of the blocks of about the same mean, the flattest ones, and all up to a limit."""
        parts = np.array_split(np.argsort(self.means, kind="stable"), min(max(len(self) // 60, 1), 16))
        chosen = []
        for part in parts:
            usual = np.quantile(steepness[part], share, method="lower")
            chosen.append(part[steepness[part] <= max(limit, usual)])
        found = np.concatenate(chosen)
        return self.take(found[:: -(-len(found) // _MOST_BLOCKS)])


def collect_blocks(windows: Sequence[Field], masks: Sequence[Mask] | None = None) -> Blocks | None:
    """Return the blocks of windows without channels, or None if they are too small.

    Blocks with untrusted pixels (`masks`), clipped ones, or constant regions do not count. If hardly any
    block is left, those with clipped pixels do, then those with constant regions, then those with some
    untrusted pixels.
    """
    ndim = windows[0].ndim
    side = SIDES[ndim]
    shortest = min(min(window.shape) for window in windows)
    probes = [probe for probe in PROBES if shortest >= math.prod(probe) + 2 * side]
    if not probes:
        return None
    margin = max(math.prod(probe) for probe in probes) // 2
    parts, weight = [], 1.0
    for number, window in enumerate(windows):
        count = math.prod((n - 2 * margin) // side for n in window.shape)
        halves = (0, side // 2) if count < _MANY_BLOCKS / len(windows) else (0,)
        weight = _OVERLAPPING if len(halves) > 1 else weight
        fields = _fields(window, probes)
        doubts = _doubts(window, None if masks is None else masks[number])
        lines = _line_energies(window) if ndim == 2 else []
        for start in itertools.product(halves, repeat=ndim):
            inner = tuple(
                slice(margin + first, n - margin) for first, n in zip(start, window.shape, strict=True)
            )
            means, steepness, *energies = (average_blocks(field[inner], side) for field in fields)
            if lines:
                coherence = _coherence([average_blocks(line[inner], side) for line in lines])
                steepness[coherence > _COHERENT] = np.inf
            doubt = _doubt_blocks([average_blocks(each[inner], side) for each in doubts])
            parts.append([doubt, means, steepness, *energies])
    doubt, means, steepness, *energies = (np.concatenate(each) for each in zip(*parts, strict=True))
    for allowed, enough in enumerate((*_ENOUGH_BLOCKS, 0)):
        if np.count_nonzero(doubt <= allowed) >= enough:
            break
    trusted = doubt <= allowed
    if allowed >= 2 and energies[0].any():
        trusted &= energies[0] > 0  # not within the constant regions
    if allowed == 3 and masks is not None:
        energies = [each / seen for each, seen in zip(energies, _seen_of_covered(masks, probes), strict=True)]
    blocks = Blocks(means, steepness, dict(zip(probes, energies, strict=True)), side, ndim, weight)
    return blocks.take(trusted) if trusted.any() else None


def _seen_of_covered(masks: Sequence[Mask], probes: Sequence[Probe]) -> Field:
    """Return what differences see of white unit noise in which masked pixels are copies of others."""
    random, seen = np.random.default_rng(0), []
    for mask in masks:
        white = cover_masked(random.normal(size=mask.shape), mask)
        inner = tuple(slice(_MARGIN, n - _MARGIN) for n in mask.shape)
        seen.append([float(np.mean(field[inner])) for field in _fields(white, probes)[2:]])
    return np.mean(seen, axis=0)


def cover_masked(window: Field, mask: Mask) -> Field:
    """Return a window in which masked pixels have the value of the nearest other one, which has noise."""
    from scipy import ndimage

    if not mask.any() or mask.all():
        return np.zeros_like(window) if mask.any() else window
    nearest = ndimage.distance_transform_edt(mask, return_distances=False, return_indices=True)
    found: Field = window[tuple(nearest)]
    return found


def _fields(window: Field, probes: Sequence[Probe]) -> list[Field]:
    """Return the window, its steepness, and the squares of differences, all of the same shape."""
    from scipy import ndimage

    smooth = ndimage.gaussian_filter(window, SEEN, mode="reflect")
    steepness = np.zeros_like(window)
    for axis in range(window.ndim):
        steepness += np.square(_spread(_combine(smooth, (-0.5, 0.0, 0.5), 1, axis), window.shape))
    fields = [window, ndimage.gaussian_filter(steepness, _AVERAGED, mode="reflect")]
    for order, step in probes:
        seen = window
        for axis in range(window.ndim):
            seen = _combine(seen, stencil(order), step, axis)
        fields.append(_spread(np.square(seen, out=seen), window.shape))
    return fields


def _combine(field: Field, weights: Sequence[float] | Field, step: int, axis: int) -> Field:
    """Return sums of values along an axis that are `step` apart, where all of them exist."""
    length = field.shape[axis] - (len(weights) - 1) * step
    found: Any = 0.0
    for number, weight in enumerate(weights):
        if weight != 0:
            part = (*(slice(None),) * axis, slice(number * step, number * step + length))
            found = found + weight * field[part]
    return np.asarray(found)


def _spread(field: Field, shape: tuple[int, ...]) -> Field:
    """Return a field in the middle of zeros, which lie in the margin that no block reaches."""
    found = np.zeros(shape)
    found[tuple(slice((n - m) // 2, (n + m) // 2) for n, m in zip(shape, field.shape, strict=True))] = field
    return found


def _line_energies(window: Field) -> list[Field]:
    """Return the entries of the square of the matrix of second derivatives, which is blind to ramps."""
    from scipy import ndimage

    smooth = ndimage.gaussian_filter(window, _LINE_SEEN, mode="reflect")
    across = (-0.5, 0.0, 0.5)
    first, mixed, second = (
        _spread(_combine(_combine(smooth, across, 1, one), across, 1, two), window.shape)
        for one, two in ((0, 0), (0, 1), (1, 1))
    )
    return [first**2 + mixed**2, mixed * (first + second), second**2 + mixed**2]


def _coherence(energies: Sequence[Field]) -> Field:
    """Return by which part of their sum the energies along and across lines differ: from 0 to 1."""
    first, mixed, second = energies
    found: Field = np.hypot(first - second, 2 * mixed) / np.maximum(first + second, 1e-300)
    return found


def _doubts(window: Field, mask: Mask | None) -> list[Mask]:
    """Return where pixels are clipped, near constant regions, near untrusted ones, and untrusted."""
    from scipy import ndimage

    side = _CONSTANT[window.ndim]
    constant = np.zeros(window.shape, bool)
    if _has_runs(window):
        constant = ndimage.maximum_filter(window, side) == ndimage.minimum_filter(window, side)
    clipped = np.zeros(window.shape, bool)
    varying = np.sort(window[~constant])
    for sign, values in ((1, varying), (-1, -varying[::-1])):
        if _is_clipped(values):
            clipped |= sign * window == values[0]
    untrusted = np.zeros(window.shape, bool) if mask is None else mask
    return [
        clipped,
        ndimage.maximum_filter(constant, side + 2, mode="reflect") if constant.any() else constant,
        ndimage.maximum_filter(untrusted, 5, mode="reflect") if untrusted.any() else untrusted,
        untrusted,
    ]


def _has_runs(window: Field) -> bool:
    """Return whether any two neighbours along the last axis are equal, and their neighbours too."""
    equal = window[..., 1:] == window[..., :-1]
    return bool(np.any(equal[..., 1:] & equal[..., :-1]))


def _is_clipped(values: Field) -> bool:
    """Return whether the least of sorted values is more frequent than the next ones suggest."""
    counts: list[int] = []
    start = 0
    while len(counts) < 3 and start < len(values):
        end = int(np.searchsorted(values, values[start], "right"))
        counts.append(end - start)
        start = end
    if not counts or counts[0] <= _CLIPPED_SHARE * len(values):
        return False
    if len(counts) < 3:
        return True
    return counts[0] > _CLIPPED_SPIKE * max(counts[1], counts[1] ** 2 / counts[2])


def _doubt_blocks(shares: Sequence[Field]) -> Field:
    """Return 3 or 4 for blocks with some or many untrusted pixels, 2 for constant, 1 for clipped, else 0."""
    clipped, constant, near_untrusted, untrusted = shares
    found: Field = np.where(clipped > _CLIPPED_IN_BLOCK, 1, 0)
    found = np.where(constant > 0, 2, found)
    found = np.where(near_untrusted > 0, 3, found)
    return np.where(untrusted > _MOST_MASKED, 4, found)


def average_blocks(field: Any, side: int) -> Field:
    """Return the means of blocks."""
    found = field[tuple(slice(0, n // side * side) for n in field.shape)].astype(np.float64, copy=False)
    for axis in range(field.ndim):
        parts = (found[(*(slice(None),) * axis, slice(first, None, side))] for first in range(side))
        found = functools.reduce(np.add, parts) / side
    return np.asarray(found).ravel()
