"""The margin around an image of lines: it continues them beyond the boundary."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from aniso import estimates
from aniso.arrays import Array, Field
from aniso.blocks.halo import Region, within
from aniso.blocks.stages import Stage, State
from aniso.formulas.gaussian import gaussian_radius

# Keeps lines that are parallel to the boundary from taking values from far away.
_STRAIGHT = 0.02
# The largest a·√(1 − a²)/(a² + _STRAIGHT): pixels to the side over pixels outside, see `Extend`.
_ASIDE = 0.5 / math.sqrt(_STRAIGHT * (1 + _STRAIGHT))


@dataclass(frozen=True)
class Extend(Stage):
    """Add a margin around an array of this shape, filled along the lines.

    Each new pixel takes the value of a pixel of the image in the direction of the lines at the nearest pixel
    inside: at the offset s·t with the least ∣s·t − way∣, where t is the direction and the way counts the axes
    on which the pixel lies outside. For lines parallel to the boundary that would be far away; the constant
    in the divisor makes it go straight instead.
    """

    shape: tuple[int, ...]
    margins: tuple[int, ...]
    spacings: tuple[float, ...]
    sigma: float
    rho: float

    @property
    def reach(self) -> tuple[int, ...]:
        """The farther one of two distances from a new pixel: to what determines t, and to its source.

        The tensor is that of a pixel that lies `trim` pixels inside the boundary, and its Gaussians and the
        difference between neighbours need pixels around it. The source lies at s·t, s = way·t / (a² + c),
        where a is the length of the part of t along the axes on which the pixel lies outside, so that
        ∣way·t∣ ≤ ∣way∣·a. Along such an axis ∣s·t∣ is at most ∣way∣·a²/(a² + c) < ∣way∣; along another axis,
        on which the way is 0, at most ∣way∣·a·√(1 − a²)/(a² + c), which has its maximum
        ∣way∣/√(4c(1 + c)) = 3.5 ∣way∣ at a² = c/(1 + 2c). One pixel more is needed for interpolation.
        """
        ways = [m * h for m, h in zip(self.margins, self.spacings, strict=True)]
        found = []
        for axis, (m, h, around) in enumerate(zip(self.margins, self.spacings, self._around, strict=True)):
            others = math.hypot(*(way for k, way in enumerate(ways) if k != axis))
            farthest = max(_ASIDE * others, math.hypot(*ways)) / h
            found.append(max(m + math.ceil(2 * self.sigma / h) + around, math.ceil(farthest) + 1))
        return tuple(found)

    @property
    def _around(self) -> list[int]:
        """The distance within which a tensor needs the image."""
        return [gaussian_radius(self.sigma / h) + gaussian_radius(self.rho / h) + 1 for h in self.spacings]

    @property
    def _trim(self) -> list[int]:
        """Pixels at the boundary whose gradients are not used, since they are those of a mirrored image."""
        pairs = zip(self.spacings, self.shape, strict=True)
        return [min(math.ceil(2 * self.sigma / h), (n - 1) // 4) for h, n in pairs]

    def run(self, state: State, region: Region, tick: Callable[[], object]) -> None:
        """Replace the part of the array by that of the wider grid, if it is not inside the array."""
        whole, known = region.in_array(self.margins, self.shape)
        if whole == known:
            return
        image = state["image"]
        wide = np.empty((len(image), *map(len, whole)), image.dtype)
        wide[(slice(None), *within(whole, known))] = image
        for axis, outer in enumerate(whole):
            # Corners belong to the first of their axes.
            area = [*known[:axis], outer, *whole[axis + 1 :]]
            low, high = range(outer.start, 0), range(self.shape[axis], outer.stop)
            for layers, face in ((low, self._trim[axis]), (high, self.shape[axis] - 1 - self._trim[axis])):
                if not layers:
                    continue
                along = self._directions(image, known, axis, face)
                for layer in layers:
                    area[axis] = range(layer, layer + 1)
                    values = self._layer(image, known, area, axis, along)
                    wide[(slice(None), *within(whole, area))] = values
        state["image"] = wide

    def _directions(self, image: Array, known: list[range], axis: int, face: int) -> Field:
        """Return the direction of the lines (…, ndim) on a plane of the image, without trimmed pixels."""
        # Only pixels around the plane matter.
        near = self._around[axis]
        strip = list(known)
        strip[axis] = range(max(face - near, known[axis].start), min(face + near + 1, known[axis].stop))
        inner = [
            slice(max(cut - s.start, 0), min(n - cut, s.stop) - s.start)
            for s, cut, n in zip(strip, self._trim, self.shape, strict=True)
        ]
        tensor = estimates.structure_tensor(
            image[(slice(None), *within(known, strip))], self.sigma, self.rho, self.spacings, tuple(inner)
        )
        plane: Field = np.take(tensor, face - strip[axis].start - inner[axis].start, axis + 2)
        return np.linalg.eigh(np.moveaxis(plane, (0, 1), (-2, -1)))[1][..., 0]

    def _layer(self, image: Array, known: list[range], area: list[range], axis: int, along: Field) -> Array:
        """Return the values of new pixels (channels, …) next to a plane with these directions."""
        from scipy import ndimage

        place = np.stack(np.meshgrid(*area, indexing="ij"), -1)
        nearest = []
        for k, (r, cut, n) in enumerate(zip(area, self._trim, self.shape, strict=True)):
            if k != axis:
                # The plane starts at the first pixel that is known and not trimmed.
                first, last = max(cut, known[k].start), min(n - cut, known[k].stop) - 1
                nearest.append(np.clip(r, first, last) - first)
        direction = np.expand_dims(along[np.ix_(*nearest)], axis)
        last = np.subtract(self.shape, 1)
        way = (np.clip(place, 0, last) - place) * self.spacings
        divisor = np.sum(np.where(way != 0, direction**2, 0), axis=-1) + _STRAIGHT
        reach = np.sum(way * direction, axis=-1) / divisor
        source = np.clip(place + reach[..., np.newaxis] * direction / self.spacings, 0, last)
        source = np.moveaxis(source - [one.start for one in known], -1, 0)
        # Sources beyond the known pixels are those of pixels in the halo, which nobody needs.
        return np.stack(
            [ndimage.map_coordinates(channel, source, order=1, mode="nearest") for channel in image]
        )
