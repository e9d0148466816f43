"""What is seen of the noise in small blocks: their means, and the energy of their differences."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from aniso.arrays import Field, Mask
from aniso.noise.clipping import find_clipped, judge_clipped
from aniso.noise.constants import CONSTANT_SIDES, find_constant
from aniso.noise.correlation import ACROSS, AVERAGED, SEEN, SIDES, Probe, stencil
from aniso.noise.selection import steepness_axes

#: The differences that are taken, from fine to coarse. Those of order 4 see the least of texture.
PROBES: tuple[Probe, ...] = ((4, 1), (2, 1), (4, 2), (2, 2), (2, 3), (2, 4), (2, 6))
# Lines are seen through a Gaussian of this width. A block consists of them if the energies of second
# derivatives across and along them differ by more than this part of their sum.
_LINE_SEEN, _COHERENT = 1.0, 0.8
# With fewer blocks, overlapping ones are taken as well. How much each of them tells then.
_MANY_BLOCKS, _OVERLAPPING = 1500, 0.5
# Width, in sides of a block, of the Gaussian that averages its surroundings; and by how many standard
# deviations the mean of a block may differ from it.
_SURROUNDINGS, _SAME_MEAN = 0.6, 2.5
# No more flat blocks than these are needed.
_MOST_BLOCKS = 2000
# How many blocks there must be to leave out those with clipped pixels, or with constant regions.
# And those near masked pixels; more than this share of a block must not be masked.
_ENOUGH_BLOCKS, _MOST_MASKED = (150, 16, 16), 0.5

# More half blocks than there are along an axis of a window.
_PLACES = 2**15


@dataclass(frozen=True)
class Blocks:
    """Blocks of one channel: means, flatness, and the mean squares of differences for each probe.

    `wider` are means over their surroundings as well, and `spreads` the variances of grey values within the
    blocks that a Gaussian leaves. The steepness of blocks that consist of lines is
    infinite. `weight` is less than 1 for overlapping blocks, which repeat each other. `limits` are the
    largest steepness up to which blocks of such a mean were chosen.
    `places` are numbers of blocks, and those of neighbours along an axis differ by :func:`next_place`.
    `dark` is the number of pixels that are not positive, if it is known, and `quantum` the distance of grey
    values.
    """

    means: Field
    wider: Field
    spreads: Field
    steepness: Field
    energies: dict[Probe, Field]
    places: npt.NDArray[np.int64]
    side: int
    ndim: int
    weight: float = 1.0
    limits: Field | None = None
    dark: float = math.inf
    quantum: float = 0.0

    def __len__(self) -> int:
        return len(self.means)

    def take(self, chosen: Any) -> Blocks:
        """Return some of the blocks."""
        energies = {probe: energy[chosen] for probe, energy in self.energies.items()}
        return replace(
            self,
            means=self.means[chosen],
            wider=self.wider[chosen],
            spreads=self.spreads[chosen],
            steepness=self.steepness[chosen],
            energies=energies,
            places=self.places[chosen],
            limits=None if self.limits is None else self.limits[chosen],
        )

    def greys(self, kind: str) -> Field:
        """Return the grey values that the variance of a kind follows: root mean squares for speckle."""
        return np.sqrt(self.means**2 + self.spreads) if kind == "speckle" else self.means

    def steady(self, variances: Field, correlation: float) -> Blocks:
        """Return blocks whose means are those of their surroundings, where only noise makes them differ.

        Otherwise the means of coarse noise would vary so much that no curve is straight.
        """
        # Pixels of correlated noise vary together within this area, and means accordingly more.
        area = max((4 * math.pi * correlation**2) ** (0.5 * self.ndim), 1.0)
        together = min(area / self.side**self.ndim, 1.0)
        near = np.square(self.wider - self.means) <= _SAME_MEAN**2 * together * variances
        return replace(self, means=np.where(near, self.wider, self.means))

    def flattest(self, share: float, unit: Field, limit: float = 0.0) -> Blocks:
        """Return a share of the blocks of about the same mean, the flattest ones, and all up to a limit.

        Steepness and limit are in units that each block has.
        """
        parts = np.array_split(np.argsort(self.means, kind="stable"), min(max(len(self) // 60, 1), 16))
        steepness, limits = self.steepness / unit, np.zeros(len(self))
        for part in parts:
            limits[part] = max(limit, float(np.quantile(steepness[part], share, method="lower")))
        found = np.concatenate([part[steepness[part] <= limits[part]] for part in parts])
        chosen = found[:: -(-len(found) // _MOST_BLOCKS)]
        return replace(self.take(chosen), limits=(limits * unit)[chosen])


def collect_blocks(
    windows: Sequence[Field], masks: Sequence[Mask] | None = None, calm: Sequence[Field] | None = None
) -> Blocks | None:
    """Return the blocks of windows without channels, or None if they are too small.

    Means and differences are those of `calm`, if it is given: the windows without stripes.
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
    for number, original in enumerate(windows):
        window = original if calm is None else calm[number]
        count = math.prod((n - 2 * margin) // side for n in window.shape)
        halves = (0, side // 2) if count < _MANY_BLOCKS / len(windows) else (0,)
        weight = _OVERLAPPING if len(halves) > 1 else weight
        fields = _fields(window, probes)
        doubts = _doubts(original, None if masks is None else masks[number])
        lines = _line_energies(window) if ndim == 2 else []
        for start in itertools.product(halves, repeat=ndim):
            inner = tuple(
                slice(margin + first, n - margin) for first, n in zip(start, window.shape, strict=True)
            )
            averages = [average_blocks(field[inner], side) for field in fields]
            means, wider, smooth, squares, steepness, *energies = averages
            spreads = np.maximum(squares - smooth**2, 0.0)
            if lines:
                coherence = _coherence([average_blocks(line[inner], side) for line in lines])
                steepness[coherence > _COHERENT] = np.inf
            shares = [average_blocks(each[inner], side) for each in doubts]
            places = _number_blocks(window[inner].shape, side, number, start)
            parts.append([*shares, places, means, wider, spreads, steepness, *energies])
    found = [np.concatenate(each) for each in zip(*parts, strict=True)]
    low, high, *shares, places, means, wider, spreads, steepness = found[: len(found) - len(probes)]
    clipped, left = judge_clipped(means, (low, high))
    energies = [energy / left for energy in found[-len(probes) :]]
    doubt = _doubt_blocks(clipped, shares)
    for allowed, enough in enumerate((*_ENOUGH_BLOCKS, 0)):
        if np.count_nonzero(doubt <= allowed) >= enough:
            break
    trusted = doubt <= allowed
    if allowed >= 2 and energies[0].any():
        trusted &= energies[0] > 0  # not within the constant regions
    if allowed == 3 and masks is not None:
        covered = _seen_of_covered(masks, probes, margin)
        energies = [each / part for each, part in zip(energies, covered, strict=True)]
    seen = dict(zip(probes, energies, strict=True))
    blocks = Blocks(means, wider, spreads, steepness, seen, places, side, ndim, weight)
    return blocks.take(trusted) if trusted.any() else None


def next_place(axis: int, ndim: int) -> int:
    """Return the difference between the places of neighbouring blocks."""
    return 2 * _PLACES ** (ndim - 1 - axis)


def _number_blocks(
    shape: tuple[int, ...], side: int, window: int, start: tuple[int, ...]
) -> npt.NDArray[np.int64]:
    """Return the places of blocks, in half blocks, as one number."""
    found = np.int64(window)
    for along, first in zip(np.indices([n // side for n in shape]), start, strict=True):
        found = found * _PLACES + 2 * along + (first > 0)
    return np.ravel(found)


def _seen_of_covered(masks: Sequence[Mask], probes: Sequence[Probe], margin: int) -> Field:
    """Return what differences see of white unit noise in which masked pixels are copies of others.

    Pixels up to the margin, where differences may reach beyond the border, do not count.
    """
    random, seen = np.random.default_rng(0), []
    for mask in masks:
        white = cover_masked(random.normal(size=mask.shape), mask)
        inner = tuple(slice(margin, n - margin) for n in mask.shape)
        seen.append([float(np.mean(field[inner])) for field in _fields(white, probes)[-len(probes) :]])
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
    """Return the window, means around pixels, their squares, steepness, and squares of differences."""
    from scipy import ndimage

    smooth = ndimage.gaussian_filter(window, SEEN[window.ndim], mode="reflect")
    steepness = np.zeros_like(window)
    for axes, weight in steepness_axes(window.ndim):
        derivative = smooth
        for axis in axes:
            derivative = _combine(derivative, ACROSS, 1, axis)
        steepness += weight * np.square(_spread(derivative, window.shape))
    wider = ndimage.gaussian_filter(window, _SURROUNDINGS * SIDES[window.ndim], mode="reflect")
    fields = [window, wider, smooth, smooth**2, ndimage.gaussian_filter(steepness, AVERAGED, mode="reflect")]
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
    first, mixed, second = (
        _spread(_combine(_combine(smooth, ACROSS, 1, one), ACROSS, 1, two), window.shape)
        for one, two in ((0, 0), (0, 1), (1, 1))
    )
    return [first**2 + mixed**2, mixed * (first + second), second**2 + mixed**2]


def _coherence(energies: Sequence[Field]) -> Field:
    """Return by which part of their sum the energies along and across lines differ: from 0 to 1."""
    first, mixed, second = energies
    found: Field = np.hypot(first - second, 2 * mixed) / np.maximum(first + second, 1e-300)
    return found


def _doubts(window: Field, mask: Mask | None) -> list[Mask]:
    """Return where pixels are clipped (low, high), near constant regions or untrusted ones, and untrusted."""
    from scipy import ndimage

    constant = find_constant(window)
    around = CONSTANT_SIDES[window.ndim] + 2
    untrusted = np.zeros(window.shape, bool) if mask is None else mask
    return [
        *find_clipped(window, constant),
        ndimage.maximum_filter(constant, around, mode="reflect") if constant.any() else constant,
        ndimage.maximum_filter(untrusted, 5, mode="reflect") if untrusted.any() else untrusted,
        untrusted,
    ]


def _doubt_blocks(clipped: Mask, shares: Sequence[Field]) -> Field:
    """Return 3 or 4 for blocks with some or many untrusted pixels, 2 for constant, 1 for clipped, else 0."""
    constant, near_untrusted, untrusted = shares
    found: Field = np.where(clipped, 1, 0)
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
