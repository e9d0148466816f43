"""Impulses: single pixels far from all of their neighbours, such as hot ones, or salt and pepper.

Such a pixel is unknown rather than noisy: it is replaced by a mean of trusted neighbours.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from aniso.arrays import Array, Mask

# A pixel is not an impulse if at least this number of neighbours is similar, by the number of axes: on one
# side of a jump in a signal, on a line of one pixel in images and volumes.
_ALIKE = {1: 1, 2: 2, 3: 2}
# How many times farther from its neighbours than usual a hot pixel is, and one of a suspicious grey value.
_HOT, _SUSPICIOUS = 6.0, 2.0
# A pixel of a suspicious value is part of a region if more than this number of them lie side by side.
_REGION = {1: 2, 2: 4, 3: 9}
# What is usual is the mean over this radius in pixels of the values up to this multiple of the median.
_AROUND, _MOST_USUAL = 3, 4.0
# The distance within which trusted neighbours are looked for.
_NEAR = 2
# Where the known pixels are on which the error of filling is measured, relative to impulses.
_ELSEWHERE = (3, 2, 1)
#: Variance of the difference of two pixels, one of them the mean of two others, over that of the noise.
FILLED_NOISE = 1.5
#: The distance in pixels within which other pixels have an influence.
REACH = 1 + _AROUND + _NEAR
# A grey value is suspicious if this share of the pixels has it and is far from its neighbours, if most of the
# pixels that have it are, and if the next part of the scale has fewer of them by this factor: clipped noise
# has more there. The last number is how many values are tried.
_LEAST_SHARE, _ISOLATED, _NEXT, _MORE, _CANDIDATES = 5e-4, 0.6, 0.05, 2.0, 6
# There are hot pixels if at least this share of the pixels is found, and this part of them still with twice
# the threshold: the distances of texture and of noise decrease faster. Otherwise larger thresholds are tried,
# since the pixels of some cameras have noise of different levels.
_LEAST_HOT, _FAR_HOT, _THRESHOLDS = 3e-5, 0.25, (_HOT, 2 * _HOT, 4 * _HOT)
# Corners and tips of sharp structure lie side by side: within this square, this share more than by chance.
_BESIDE, _MOST_BESIDE = 5, 0.35
# Single photons in the dark are as far from their neighbours, but more than this share of the pixels.
_MOST_HOT = 0.03
# And if the image is noisy: usual distance over the range of grey values.
_NOISY = 0.004


@dataclass(frozen=True)
class Impulses:
    """How impulses are distinguished from other pixels, and their share of the pixels."""

    share: float
    usual: float  # distance of a pixel from its neighbours
    values: tuple[float, ...]  # suspicious grey values
    threshold: float  # distance of a hot pixel over what is usual around it; 0 if there are none

    @property
    def hot(self) -> bool:
        """Whether there are hot pixels."""
        return self.threshold > 0

    def find(self, image: Array) -> Mask:
        """Return a mask (…) of pixels that are impulses in any channel of an image (channels, …)."""
        found = np.zeros(image.shape[1:], bool)
        for channel in image:
            if self.hot:
                found |= _excess_of(_distance(channel), self.usual) > self.threshold
            for value in self.values:
                found |= _scattered(channel == value)
        return found

    def fill(self, image: Array) -> Array:
        """Return an image (channels, …) in which impulses are means of trusted neighbours."""
        return _fill(image, self.find(image))

    def fill_windows(self, windows: Sequence[Array]) -> tuple[list[Array], float]:
        """Return windows without impulses, and the mean squared error of filling a pixel, noise included.

        It is that of other pixels in the same pattern, whose values are known.
        """
        found, total, count = [], 0.0, 0
        for window in windows:
            impulses = self.find(window)
            found.append(_fill(window, impulses))
            others = np.roll(impulses, _ELSEWHERE[: impulses.ndim], tuple(range(impulses.ndim))) & ~impulses
            change = (_fill(window, impulses | others) - window)[:, others].astype(np.float64)
            total, count = total + float(np.vdot(change, change)), count + change.size
        return found, total / max(count, 1)


def look_for_impulses(windows: Sequence[Array]) -> Impulses | None:
    """Return how to find the impulses of windows (channels, …) of an image; None without any."""
    channels = [channel for window in windows for channel in window]
    if min(min(channel.shape) for channel in channels) < 2 * _AROUND + 1:
        return None
    distances = [_distance(channel) for channel in channels]
    positive = np.concatenate([one[one > 0] for one in distances])
    if not positive.size:
        return None
    usual = float(np.median(positive))
    excesses = [_excess_of(distance, usual) for distance in distances]
    size = sum(channel.size for channel in channels)
    values = _suspicious_values(channels, excesses)
    known = [np.isin(channel, values) for channel in channels]
    others = [np.where(one, 0, excess) for one, excess in zip(known, excesses, strict=True)]
    low, high = np.quantile(np.concatenate([channel.ravel() for channel in channels]), [0.02, 0.98])
    noisy = usual > _NOISY * float(high - low)  # otherwise corners and tips are as far from their neighbours
    threshold = _hot_threshold(others) if noisy else 0.0
    if not (values or threshold):
        return None
    found = Impulses(0.0, usual, tuple(values), threshold)
    count = sum(int(found.find(window).sum()) * len(window) for window in windows)
    return replace(found, share=count / size)


def _hot_threshold(excesses: Sequence[Array]) -> float:
    """Return the least distance from neighbours, over what is usual, of hot pixels; 0 if there are none."""
    size = sum(excess.size for excess in excesses)
    for threshold in _THRESHOLDS:
        near, far = (sum(int((one > k * threshold).sum()) for one in excesses) for k in (1, 2))
        if _LEAST_HOT * size < near < _MOST_HOT * size and far > _FAR_HOT * near:
            side_by_side = sum(_count_side_by_side(excess > threshold) for excess in excesses) / near
            by_chance = 1 - (1 - near / size) ** (_BESIDE ** excesses[0].ndim - 1)
            if side_by_side < by_chance + _MOST_BESIDE:
                return threshold
    return 0.0


def _count_side_by_side(pixels: Mask) -> int:
    """Return how many pixels of a mask are near others."""
    from scipy import ndimage

    around = ndimage.uniform_filter(pixels.astype(np.float64), _BESIDE, mode="constant")
    return int(np.count_nonzero(pixels & (around * _BESIDE**pixels.ndim > 1.5)))


def _suspicious_values(channels: Sequence[Array], excesses: Sequence[Array]) -> list[float]:
    """Return grey values of pixels that are mostly alone among others, as salt and pepper are."""
    size = sum(channel.size for channel in channels)
    alone = np.concatenate([channel[e > _SUSPICIOUS] for channel, e in zip(channels, excesses, strict=True)])
    found, counts = np.unique(alone, return_counts=True)
    lowest, highest = min(float(one.min()) for one in channels), max(float(one.max()) for one in channels)
    values = []
    for number in np.argsort(counts, kind="stable")[: -_CANDIDATES - 1 : -1]:
        value, count = float(found[number]), int(counts[number])
        every = sum(int(np.count_nonzero(channel == value)) for channel in channels)
        near = np.abs(found - value) <= _NEXT * (highest - lowest)
        near[max(number - 1, 0) : number + 2] = True  # few photons have few grey values
        next_to = int(counts[near].sum()) - count
        if count > max(_LEAST_SHARE * size, _ISOLATED * every, _MORE * next_to):
            values.append(value)
    return sorted(values)


def _scattered(pixels: Mask) -> Mask:
    """Return the pixels of a mask without those that form regions."""
    from scipy import ndimage

    side = np.ones((3,) * pixels.ndim, np.int8)
    same = ndimage.convolve(pixels.astype(np.int8), side, mode="nearest")  # with the pixel itself
    found: Mask = pixels & (same <= _REGION[pixels.ndim])
    return found


def _excess_of(distance: Array, usual: float) -> Array:
    """Return distances from neighbours over what is usual around a pixel."""
    from scipy import ndimage

    # Impulses hardly count for what is usual around them.
    ordinary = np.minimum(distance, _MOST_USUAL * usual)
    around = ndimage.uniform_filter(ordinary, 2 * _AROUND + 1, mode="nearest")
    found: Array = distance / np.maximum(around, 0.5 * usual)
    return found


def _distance(channel: Array) -> Array:
    """Return the distance from the neighbour that is the last of a few alike ones."""
    padded = np.pad(channel, 1, mode="reflect")
    nearest = np.full((_ALIKE[channel.ndim], *channel.shape), np.inf, channel.dtype)
    for shift in itertools.product((-1, 0, 1), repeat=channel.ndim):
        if not any(shift):
            continue
        window = tuple(slice(1 + s, 1 + s + n) for s, n in zip(shift, channel.shape, strict=True))
        new = np.abs(padded[window] - channel)
        for each in nearest:  # insertion into the sorted few
            larger = np.maximum(each, new)
            np.minimum(each, new, out=each)
            new = larger
    last: Array = nearest[-1]
    return last


def _fill(image: Array, impulses: Mask) -> Array:
    """Return an image (channels, …) in which impulses are means of trusted neighbours.

    Of all pairs of opposite neighbours, the one with the smallest difference is taken, so that edges and
    lines go on. Without such a pair, it is the mean of all trusted pixels nearby; without any, the pixel
    keeps its value.
    """
    if not impulses.any():
        return image
    places = np.nonzero(impulses)
    ndim = impulses.ndim
    result = image.copy()

    def neighbours(shift: tuple[int, ...]) -> tuple[Array, ...]:
        moved = (place + s for place, s in zip(places, shift, strict=True))
        return tuple(np.clip(m, 0, n - 1) for m, n in zip(moved, impulses.shape, strict=True))

    near = [s for s in itertools.product(range(-_NEAR, _NEAR + 1), repeat=ndim) if any(s)]
    pairs = [s for s in itertools.product((-1, 0, 1), repeat=ndim) if s > (0,) * ndim]
    for channel, target in zip(image, result, strict=True):
        total, weight = np.zeros(len(places[0])), np.zeros(len(places[0]))
        for shift in near:
            at = neighbours(shift)
            trust = ~impulses[at] / sum(s * s for s in shift) ** 2
            total += trust * channel[at]
            weight += trust
        value = np.where(weight > 0, total / np.maximum(weight, 1e-12), channel[places])
        smallest = np.full(len(places[0]), np.inf)
        for shift in pairs:
            ahead, behind = neighbours(shift), neighbours(tuple(-s for s in shift))
            one, other = channel[ahead].astype(np.float64), channel[behind].astype(np.float64)
            gap = np.abs(one - other)
            better = ~impulses[ahead] & ~impulses[behind] & (gap < smallest)
            value = np.where(better, 0.5 * (one + other), value)
            smallest = np.where(better, gap, smallest)
        target[places] = value
    return result
