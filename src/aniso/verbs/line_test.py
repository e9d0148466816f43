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
from aniso.line_energy import SCALE, around_widths, coarse_grid, line_energy, line_weight, spread
from aniso.verbs.corrections import smooth


@dataclass(frozen=True)
class KeepToLines(Stage):
    """Replace "diffused" by the image after a Gaussian where "image" has no lines.

    Lines are where structure about one `wavelength` apart is more coherent, within a Gaussian `window`, than
    noise is, see :mod:`aniso.line_energy`. The Gaussian elsewhere has half of the standard deviation
    `sigma`. All of them are in units of length. The margins around an array of this shape do not count: they
    continue lines, real or not.
    """

    shape: tuple[int, ...]
    margins: tuple[int, ...]
    spacings: tuple[float, ...]
    wavelength: float
    window: float
    sigma: float
    threads: int | None

    cost = 5e-8

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
            wide = gaussian_radius(self.window / (h * places.step)) + gaussian_radius(around)
            found.append(max(near + wide * places.step + seen, gaussian_radius(0.5 * self.sigma / h)))
        return tuple(found)

    def working(self, channels: Channels, ndim: int) -> int:
        """Count the weight, and three images for one channel at a time."""
        return 4

    def channels(self, before: Channels) -> Channels:
        """Return the same channels."""
        return before

    def run(self, state: State, region: Region, tick: Callable[[], object]) -> None:
        """Mix the diffused image with the smoothed one; "trust" is 1 where there are no lines."""
        weight = self._weight(state["image"], region)
        widths = [0.5 * self.sigma / h for h in self.spacings]
        for start, result in zip(state["image"], state["diffused"], strict=True):
            plain = smooth(start, widths, self.threads)
            result -= plain
            result *= weight
            result += plain
        (trust,) = state["trust"]
        # 1 − weight·(1 − trust)
        trust -= 1
        trust *= weight
        trust += 1

    def _weight(self, image: Array, region: Region) -> Array:
        """Return 1 where there are lines, 0 where there may be none."""
        # In coordinates of the array, without margins:
        whole = [
            range(part.start - m, part.stop - m) for part, m in zip(region.needed, self.margins, strict=True)
        ]
        known = [range(max(one.start, 0), min(one.stop, n)) for one, n in zip(whole, self.shape, strict=True)]
        inner = tuple(slice(k.start - w.start, k.stop - w.start) for k, w in zip(known, whole, strict=True))
        places = [_within(all_places, part) for all_places, part in zip(self._grid, known, strict=True)]

        def mirrored(pixels: Array, widths: Sequence[float]) -> Array:
            return smooth(pixels, widths, self.threads, "reflect")

        channels = (np.ascontiguousarray(channel[inner]) for channel in image)
        _, coherence = line_energy(channels, self.wavelength, self.spacings, self.window, mirrored, places)
        weight = line_weight(coherence, self.wavelength, self.spacings, mirrored, places)
        shifted = [
            range(one.start + part.start, one.stop + part.start, one.step)
            for one, part in zip(places, inner, strict=True)
        ]
        return spread(weight, shifted, image.shape[1:])


def _within(places: range, part: range) -> range:
    """Return the places within a part of the array, counted from its start."""
    first = max(0, -((places.start - part.start) // places.step))
    last = min(len(places), (part.stop - 1 - places.start) // places.step + 1)
    chosen = places[first:last]
    return range(chosen.start - part.start, chosen.stop - part.start, places.step)
