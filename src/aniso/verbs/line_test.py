"""Where there are lines: the test that keeps enhancement from drawing lines into noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from aniso.arrays import Array
from aniso.blocks.halo import Region
from aniso.blocks.stages import Channels, Stage, State
from aniso.formulas.gaussian import gaussian_radius
from aniso.line_energy import SCALE, around_widths, coarse_grid, line_tensor, line_weight, spread
from aniso.verbs.corrections import smooth

# Standard deviations, as fractions of the wavelength, of the Gaussian that smooths regions without lines and
# of the Gaussian window for the local variance; the ratio of local variance to noise variance up to which a
# region counts as noise.
_SMOOTHED, _VARIANCE, _NOISE = 0.12, 0.25, 1.5
# The former in pixels, at most: the wavelength of an image without lines has no meaning.
_MOST_PIXELS = 2.0
# Standard deviation over the wavelength of the Gaussian around a gap; the factor of the mean weight in it.
_AROUND_GAP, _NEAR_LINES = 0.5, 4.0


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
        widths = around_widths(self.wavelength, self.spacings, self._grid)
        for m, h, places, around in zip(self.margins, self.spacings, self._grid, widths, strict=True):
            near = max(m + places.start, places.step)
            seen = gaussian_radius(SCALE * self.wavelength / h) + 2
            window = self.window / (h * places.step)
            wide = sum(gaussian_radius(width) for width in (0.5 * window, window, around))
            variance = 2 * gaussian_radius(_VARIANCE * self.wavelength / h)
            around_gap = gaussian_radius(_AROUND_GAP * self.wavelength / h)
            found.append(max(near + wide * places.step + seen + around_gap, variance))
        return tuple(found)

    def working(self, channels: Channels, ndim: int) -> int:
        """Count weight, variance, and three images for one channel at a time."""
        return 5

    def channels(self, before: Channels) -> Channels:
        """Return the same channels."""
        return before

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
        # In coordinates of the array, without margins:
        whole = [
            range(part.start - m, part.stop - m) for part, m in zip(region.needed, self.margins, strict=True)
        ]
        known = [range(max(one.start, 0), min(one.stop, n)) for one, n in zip(whole, self.shape, strict=True)]
        inner = tuple(slice(k.start - w.start, k.stop - w.start) for k, w in zip(known, whole, strict=True))
        # The places within this part, and all of them, counted from its start:
        places = [_within(every, part) for every, part in zip(self._grid, known, strict=True)]
        whole = [_shift(every, -part.start) for every, part in zip(self._grid, known, strict=True)]

        def mirrored(pixels: Array, widths: Sequence[float]) -> Array:
            return smooth(pixels, widths, self.threads, "reflect")

        channels = (np.ascontiguousarray(channel[inner]) for channel in image)
        tensor = line_tensor(channels, self.wavelength, self.spacings, mirrored, places)
        weight = line_weight(tensor, self.wavelength, self.window, self.spacings, mirrored, places, whole)
        shifted = [_shift(one, part.start) for one, part in zip(places, inner, strict=True)]
        return spread(weight, shifted, image.shape[1:])


def _within(places: range, part: range) -> range:
    """Return the places within a part of the array, counted from its start."""
    first = max(0, -((places.start - part.start) // places.step))
    last = min(len(places), (part.stop - 1 - places.start) // places.step + 1)
    return _shift(places[first:last], -part.start)


def _shift(places: range, by: int) -> range:
    return range(places.start + by, places.stop + by, places.step)
