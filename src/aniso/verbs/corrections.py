"""Corrections of diffusion along lines, which weakens lines with gaps and removes curved structure.

Both are found by comparison with what is usual in the image. A test for lines keeps diffusion from drawing
them into noise.
"""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar, Literal

import numpy as np

from aniso.arrays import Array
from aniso.blocks.halo import Region, within
from aniso.blocks.stages import Channels, Flow, Stage, State
from aniso.engines.cpu.threads import ThreadTeam, default_threads
from aniso.formulas.gaussian import gaussian_radius
from aniso.line_energy import AROUND, SCALE, LineScale, coarse_grid, spread

#: What lies beyond the boundary, in the words of SciPy.
Mode = Literal["nearest", "reflect"]

# Standard deviations of Gaussians, as parts of the wavelength.
_COMPARED, _MEAN, _NEIGHBOURHOOD, _PATTERN, _LOST = 0.12, 0.5, 0.25, 1.2, 0.35
# The energy of a gap at single lines of an image, as a part of that of the diffused one.
_AT_SINGLE_LINES = 0.3
#: Scales at which lost structure is put back, one after another, as parts of the wavelength.
PUT_BACK = (0.15, 0.1, 0.05, 0.025)
# Standard deviations, as fractions of the wavelength, of the Gaussian that smooths regions without lines and
# of the Gaussian window for the local variance; the ratio of local variance to noise variance up to which a
# region counts as noise.
_SMOOTHED, _VARIANCE, _NOISE = 0.12, 0.25, 1.5
# The former in pixels, at most: the wavelength of an image without lines has no meaning.
_MOST_PIXELS = 2.0
# Standard deviation over the wavelength of the Gaussian around a gap; the factor of the mean weight in it.
_AROUND_GAP, _NEAR_LINES = 0.5, 4.0


@dataclass(frozen=True)
class Correction(Stage):
    """Correct "diffused", the diffused image, where it differs from "image" by more than is usual.

    `wavelengths` are in pixels along each axis. `usual` is a factor times a quantile of the differences, over
    the image or over windows of it.
    """

    wavelengths: tuple[float, ...]
    threads: int | None
    usual: float

    #: The quantile and the factor, by the number of axes.
    quantiles: ClassVar[dict[int, tuple[float, float]]]

    @abstractmethod
    def observe(self, state: State) -> tuple[Array, ...]:
        """Return the differences whose quantile counts, and what else `correct` needs."""

    @abstractmethod
    def correct(self, state: State, *observed: Array) -> Array:
        """Correct the image with what was observed, and return where and how much, from 0 to 1."""

    def run(self, state: State, region: Region, tick: Callable[[], object]) -> None:
        """Correct the image."""
        self.correct(state, *self.observe(state))

    def _smooth(self, image: Array, part: float) -> Array:
        """Return an image (…) after a Gaussian whose standard deviation is this part of the wavelength."""
        return smooth(image, [part * wavelength for wavelength in self.wavelengths], self.threads)

    def _radii(self, *parts: float) -> tuple[int, ...]:
        """Return how far such Gaussians reach one after another."""
        return tuple(sum(gaussian_radius(part * w) for part in parts) for w in self.wavelengths)


@dataclass(frozen=True)
class FillGaps(Correction):
    """Replace the image by the diffused one where a line is interrupted.

    There the image departs from the diffused one towards the mean, by more than 2.5 of the usual departure,
    and has less than ¾ of its energy around. If lines are expected in `patterns`, it has less than 0.3 at
    single lines, with less energy farther away: they may just meet or cross. The last one leaves "trust": 1
    where the image counts.
    """

    last: bool
    patterns: bool

    cost = 8e-8
    # The standard deviation of normal differences. In an image with few lines, where few differences are
    # large, that of a high quantile is larger than that of the median.
    quantiles: ClassVar = {2: (0.8, 1 / 1.2816), 3: (0.5, 1.4826)}

    @property
    def reach(self) -> tuple[int, ...]:
        """The radii of the mean, of the neighbourhood and of the pattern around it."""
        pattern = (_PATTERN,) if self.patterns else ()
        return self._radii(max(_MEAN, _COMPARED), _NEIGHBOURHOOD, *pattern)

    def working(self, channels: Channels, ndim: int) -> int:
        """Count the departure, and the images for sums and for one channel at a time."""
        return channels["image"] + 8

    def flow(self, before: Channels) -> Flow:
        """Change all images, and the last time make "trust"."""
        return Flow(set(before), before | {"trust": 1} if self.last else before)

    def observe(self, state: State) -> tuple[Array, ...]:
        """Return the departure from the diffused image."""
        pairs = zip(state["image"], state["diffused"], strict=True)
        return (np.stack([self._smooth(start - result, _COMPARED) for start, result in pairs]),)

    def correct(self, state: State, *observed: Array) -> Array:
        """Fill the gaps in "diffused", from which diffusion starts again; return where they are."""
        image, diffused, (departure,) = state["image"], state["diffused"], observed
        tiny = float(np.finfo(image.dtype).tiny)
        # Channel by channel: the order of a sum over an axis would depend on the shape.
        towards_mean, faint, energy = (np.zeros(image.shape[1:], image.dtype) for _ in range(3))
        for start, result, change in zip(image, diffused, departure, strict=True):
            mean = self._smooth(result, _MEAN)
            wave = result - mean
            seen = np.subtract(self._smooth(start, _COMPARED), mean, out=mean)
            towards_mean -= np.multiply(change, wave, out=change)
            energy += np.multiply(wave, wave, out=wave)
            faint += np.multiply(seen, seen, out=seen)
        del mean, wave, seen
        towards_mean /= np.sqrt(np.maximum(energy, tiny))
        seen, energy = (self._smooth(each, _NEIGHBOURHOOD) for each in (faint, energy))
        # The share of the energy that a gap has at most, in a pattern of lines and at single lines.
        most = np.full_like(energy, 0.75)
        if self.patterns:
            wide = self._smooth(energy, _PATTERN)
            most = np.divide(wide, energy, out=np.ones_like(wide), where=wide < energy)
            most = np.clip((most - 0.7) / 0.25, 0, 1, out=most)
            most *= 0.75 - _AT_SINGLE_LINES
            most += _AT_SINGLE_LINES
        # Where nothing is missing, the quotient does not matter, and might overflow.
        left = np.divide(seen, energy, out=np.ones_like(seen), where=seen < energy)
        most -= left
        most *= 4
        faint = np.clip(most, 0, 1, out=most)
        excess = np.maximum(towards_mean, 0, out=towards_mean)
        excess *= faint
        scale = max(2.5 * self.usual, tiny)
        # Beyond 1000 times the scale nothing changes, but quotients and powers may overflow.
        np.minimum(excess, 1e3 * scale, out=excess)
        excess /= scale
        trust = excess * excess * excess
        trust *= trust
        trust += 1
        np.divide(1, trust, out=trust)
        gaps: Array = 1 - trust
        for start, result in zip(image, diffused, strict=True):
            result *= gaps
            result += trust * start
        if self.last:
            state["trust"] = trust[np.newaxis]
        return gaps


@dataclass(frozen=True)
class PutBack(Correction):
    """Add lost structure of one scale: the smoothed residual where it has more than the usual energy."""

    part: float

    cost = 2.5e-8
    quantiles: ClassVar = {2: (0.5, 2.0), 3: (0.5, 2.0)}

    @property
    def reach(self) -> tuple[int, ...]:
        """The radii of both Gaussians."""
        return self._radii(self.part, _LOST)

    def working(self, channels: Channels, ndim: int) -> int:
        """Count the residual, its energy and its share."""
        return channels["image"] + 4

    def observe(self, state: State) -> tuple[Array, ...]:
        """Return the energy of the residual in the neighbourhood, and the residual itself."""
        (trust,) = state["trust"]
        pairs = zip(state["image"], state["diffused"], strict=True)
        lost = np.stack([self._smooth(trust * (start - result), self.part) for start, result in pairs])
        energy = np.zeros_like(trust)
        for channel in lost:
            energy += channel * channel / len(lost)
        return self._smooth(energy, _LOST), lost

    def correct(self, state: State, *observed: Array) -> Array:
        """Add the residual to "diffused"; return its share."""
        energy, lost = observed
        usual = np.divide(self.usual, energy, out=np.ones_like(energy), where=energy > self.usual)
        share: Array = np.subtract(1, usual, out=usual)
        for result, channel in zip(state["diffused"], lost, strict=True):
            result += np.multiply(share, channel, out=channel)
        return share


@dataclass(frozen=True)
class KeepToLines(Stage):
    """Replace "diffused" by the image where "image" has no lines, smoothed unless it has other structure.

    Lines are where structure about one `wavelength` apart is more coherent, within a Gaussian `window`, than
    noise is, see :mod:`aniso.line_energy`. Elsewhere the image is smoothed by a Gaussian as far as its local
    variance is that of the noise. Both are in units of length, `noise` is a standard deviation. The margins
    around an array of this shape do not count: they continue lines, real or not.
    """

    shape: tuple[int, ...]
    margins: tuple[int, ...]
    spacings: tuple[float, ...]
    wavelength: float
    window: float
    noise: float
    threads: int | None

    cost = 8e-8

    @cached_property
    def _grid(self) -> list[range]:
        return coarse_grid(self.wavelength, self.shape, self.spacings)

    @property
    def reach(self) -> tuple[int, ...]:
        """The distance to the nearest place of the coarse grid, and the radii of all Gaussians."""
        found = []
        for m, h, places in zip(self.margins, self.spacings, self._grid, strict=True):
            near = max(m + places.start, places.step)
            seen = gaussian_radius(SCALE * self.wavelength / h) + 2
            window, around = (each / (h * places.step) for each in (self.window, AROUND * self.wavelength))
            wide = sum(gaussian_radius(width) for width in (0.5 * window, window, around))
            variance = 2 * gaussian_radius(_VARIANCE * self.wavelength / h)
            around_gap = gaussian_radius(_AROUND_GAP * self.wavelength / h)
            found.append(max(near + wide * places.step + seen + around_gap, variance))
        return tuple(found)

    def working(self, channels: Channels, ndim: int) -> int:
        """Count weight, variance, and three images for one channel at a time."""
        return 5

    def run(self, state: State, region: Region, tick: Callable[[], object]) -> None:
        """Mix the diffused image with the smoothed one; "trust" is 1 where there are no lines."""
        (trust,) = state["trust"]
        weight = self._weight(state["image"], region)
        # Gaps are regions without lines that are surrounded by lines.
        gaps = (1 - trust) * np.minimum(_NEAR_LINES * self._smooth(weight, _AROUND_GAP), 1)
        weight = np.maximum(weight, gaps, out=weight)
        other = self._other_structure(state["image"])
        for start, result in zip(state["image"], state["diffused"], strict=True):
            widths = [min(_SMOOTHED * self.wavelength / h, _MOST_PIXELS) for h in self.spacings]
            plain = smooth(start, widths, self.threads)
            plain += other * (start - plain)
            result -= plain
            result *= weight
            result += plain
        # 1 − weight·(1 − trust)
        trust -= 1
        trust *= weight
        trust += 1

    def _other_structure(self, image: Array) -> Array:
        """Return 0 where the image varies as noise does, and 1 where it varies far more."""
        variance = np.zeros(image.shape[1:], image.dtype)
        for channel in image:
            rest = channel - self._smooth(channel, _VARIANCE)
            variance += self._smooth(rest * rest, _VARIANCE)
        noise = np.asarray(_NOISE * len(image) * self.noise**2, image.dtype)
        share = np.divide(noise, variance, out=np.ones_like(variance), where=variance > noise)
        return np.subtract(1, share, out=share)

    def _smooth(self, image: Array, part: float) -> Array:
        """Return an image (…) after a Gaussian whose standard deviation is this part of the wavelength."""
        return smooth(image, [part * self.wavelength / h for h in self.spacings], self.threads)

    def _weight(self, image: Array, region: Region) -> Array:
        """Return 1 where there are lines, 0 where there may be none."""
        whole, known = region.in_array(self.margins, self.shape)
        inner = within(whole, known)
        # The places within this part, and all of them, counted from its start:
        places = [_within(every, part) for every, part in zip(self._grid, known, strict=True)]
        whole = [_shift(every, -part.start) for every, part in zip(self._grid, known, strict=True)]

        def mirrored(pixels: Array, widths: Sequence[float]) -> Array:
            return smooth(pixels, widths, self.threads, "reflect")

        channels = (np.ascontiguousarray(channel[inner]) for channel in image)
        lines = LineScale(self.wavelength, self.spacings, mirrored, places, whole)
        weight = lines.weight(lines.tensor(channels), self.window)
        shifted = [_shift(one, part.start) for one, part in zip(places, inner, strict=True)]
        return spread(weight, shifted, image.shape[1:])


def _within(places: range, part: range) -> range:
    """Return the places within a part of the array, counted from its start."""
    first = max(0, -((places.start - part.start) // places.step))
    last = min(len(places), (part.stop - 1 - places.start) // places.step + 1)
    return _shift(places[first:last], -part.start)


def _shift(places: range, by: int) -> range:
    return range(places.start + by, places.stop + by, places.step)


def smooth(image: Array, widths: Sequence[float], threads: int | None, mode: Mode = "nearest") -> Array:
    """Return an image (…) after a Gaussian with these standard deviations along its axes, in pixels."""
    threads = threads or default_threads()
    result = np.empty_like(image)
    with contextlib.closing(ThreadTeam(threads)) as team:
        for axis, width in enumerate(widths):
            # Lines along one axis do not depend on each other: they are shared out along another one.
            bands = [
                np.array_split(whole, threads, int(axis == 0))
                for whole in (result if axis else image, result)
            ]
            team.run(partial(_smooth_band, bands, axis, width, mode), threads)
    return result


def _smooth_band(bands: list[list[Array]], axis: int, width: float, mode: Mode, number: int) -> None:
    from scipy import ndimage

    before, after = (each[number] for each in bands)
    ndimage.gaussian_filter1d(before, width, axis, output=after, mode=mode)
