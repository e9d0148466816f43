"""What steers the diffusion, to be laid over the picture: tensors, where edges stop the flow, gradients."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from aniso.arrays import Array
from aniso.explorer.choosing.scene import Scene
from aniso.explorer.computing import slabs
from aniso.explorer.computing.slabs import Slab
from aniso.explorer.showing import pictures
from aniso.models import ImageDriven, PeronaMalik
from aniso.structure import diffusion_tensor, structure_tensor

# Overlays are computed on so many pixels per side at most, and show so many ellipses.
_LARGEST, _ELLIPSES = 384, 26
# Of volumes so many voxels at most.
_VOXELS = 2**18
_BINS = 48
_STOPPED = (214, 40, 90)


@dataclass(frozen=True, eq=False)
class Field:
    """Diffusion tensors over the pixels of a reduced scene."""

    xx: Array
    xy: Array
    yy: Array
    factor: int

    @classmethod
    def of(cls, scene: Scene, model: ImageDriven, spacing: tuple[float, ...] | None) -> Field:
        """The tensors with which the first step diffuses; of a volume what lies in the plane of the slice."""
        seen = _Seen.of(scene, model, spacing)
        tensor = diffusion_tensor(seen.channels, model, spacing=seen.spacing, channel_axis=0)
        y, x = -2, -1  # the slice lies across the first axis of a volume
        xx, xy, yy = (
            _at_pixels(seen.in_slice(entry)) for entry in (tensor[x, x], tensor[x, y], tensor[y, y])
        )
        return cls(xx, xy, yy, seen.factor)

    @property
    def eigenvalues(self) -> tuple[Array, Array]:
        """The larger and the smaller one."""
        mean, radius = 0.5 * (self.xx + self.yy), np.hypot(0.5 * (self.xx - self.yy), self.xy)
        return mean + radius, np.maximum(mean - radius, 0.0)

    def ellipses(self) -> list[tuple[float, float, float, float, float]]:
        """x, y, long and short half axis (1 fills its place) and angle of some tensors, in pixels.

        Half axes are roots of eigenvalues: the ellipse is where a drop of ink spreads.
        """
        step = max(1, math.ceil(max(self.xx.shape) / _ELLIPSES))
        rows, columns = (range(step // 2, n, step) for n in self.xx.shape)
        larger, smaller = self.eigenvalues
        angle = 0.5 * np.arctan2(2 * self.xy, self.xx - self.yy)
        return [
            (
                (column + 0.5) * self.factor,
                (row + 0.5) * self.factor,
                round(math.sqrt(larger[row, column]), 3),
                round(math.sqrt(smaller[row, column]), 3),
                round(float(angle[row, column]), 3),
            )
            for row in rows
            for column in columns
        ]

    @property
    def spot(self) -> float:
        """Distance of the ellipses, in pixels."""
        return float(max(1, math.ceil(max(self.xx.shape) / _ELLIPSES)) * self.factor)

    def stopped(self) -> pictures.Encoded:
        """A veil where flow across structures is stopped: opaque where the smaller eigenvalue is 0."""
        return pictures.tinted(0.75 * (1 - np.clip(self.eigenvalues[1], 0, 1)) ** 2, _STOPPED)


@dataclass(frozen=True, eq=False)
class Gradients:
    """Gradients of a scene as a model sees them, in rising order; they do not depend on its contrast."""

    scene: Scene
    sigma: float
    spacing: tuple[float, ...] | None
    values: Array

    @classmethod
    def of(cls, scene: Scene, sigma: float, spacing: tuple[float, ...] | None) -> Gradients:
        """Behind a Gaussian of this width."""
        model = PeronaMalik(sigma=sigma)
        seen = _Seen.of(scene, model, spacing)
        structure = structure_tensor(
            seen.channels, sigma=sigma, rho=0.0, spacing=seen.spacing, channel_axis=0
        )
        steepness = np.sqrt(np.trace(structure))
        if seen.middle is not None:
            steepness = steepness[seen.middle]
        return cls(scene, sigma, spacing, np.sort(steepness, axis=None))

    def are_of(self, scene: Scene, sigma: float, spacing: tuple[float, ...] | None) -> bool:
        """Whether they still hold."""
        return self.scene is scene and (self.sigma, self.spacing) == (sigma, spacing)


@dataclass(frozen=True)
class Histogram:
    """How often gradients occur, and where the contrast stands among them."""

    counts: tuple[float, ...]
    low: float
    high: float
    contrast: float | None
    below: float

    @classmethod
    def of(cls, gradients: Gradients, contrast: float | None) -> Histogram:
        """On a scale of even factors."""
        values = gradients.values
        high = float(values[-1]) or 1.0
        low = 1e-3 * high
        if contrast is not None:
            low, high = min(low, 0.5 * contrast), max(high, 2 * contrast)
        places = np.searchsorted(values, np.geomspace(low, high, _BINS + 1)[1:-1])
        counts = np.diff(places, prepend=0, append=len(values))
        below = float(np.searchsorted(values, contrast)) / len(values) if contrast is not None else 0.0
        return cls(tuple(counts / max(1, counts.max())), low, high, contrast, below)

    def place(self, gradient: float) -> float:
        """Of a gradient, between 0 and 1."""
        return math.log(gradient / self.low) / math.log(self.high / self.low)

    def svg(self) -> str:
        """A drawing of 300 × 72 units, coloured by the page's style."""
        width, height, top = 300.0, 56.0, 13.0  # the words stand above the bars
        step = width / len(self.counts)
        edge = self.place(self.contrast) * width if self.contrast is not None else width
        bars = "".join(
            f'<rect class="{"kept" if (k + 0.5) * step > edge else "smoothed"}" x="{k * step:.2f}" '
            f'y="{height - (height - top) * count:.2f}" width="{step - 0.6:.2f}" '
            f'height="{(height - top) * count:.2f}"/>'
            for k, count in enumerate(self.counts)
        )
        words = f"{self.low:.2g} to {self.high:.2g}"
        marker = ""
        if self.contrast is not None:
            anchor = "end" if edge > 0.7 * width else "start"
            shift = -4 if anchor == "end" else 4
            marker = (
                f'<line class="contrast" x1="{edge:.2f}" x2="{edge:.2f}" y1="0" y2="{height}"/>'
                f'<text x="{edge + shift:.2f}" y="9" text-anchor="{anchor}">λ = {self.contrast:.3g}, '
                f"{self.below:.0%} below</text>"
            )
            words += f", contrast {self.contrast:.3g}"
        return (
            f'<svg viewBox="0 0 {width:g} 72" role="img" aria-label="Histogram of gradients from {words}">'
            f'{bars}{marker}<text class="tick" x="0" y="70">{self.low:.2g}</text>'
            f'<text class="tick" x="{width:g}" y="70" text-anchor="end">{self.high:.3g}</text></svg>'
        )


@dataclass(frozen=True, eq=False)
class _Seen:
    """What is looked at in double precision, channels first, and how coarse it is."""

    channels: Array
    spacing: tuple[float, ...]
    factor: int
    middle: int | None

    @classmethod
    def of(cls, scene: Scene, model: ImageDriven, spacing: tuple[float, ...] | None) -> _Seen:
        """The image, or as many slices of a volume as the tensors of the shown one depend on."""
        factor = pictures.reduction(scene.shape, _LARGEST)
        if not scene.whole:
            own = spacing or (1.0, 1.0)
            return cls(_channels(scene.reduced(factor), 2), tuple(factor * h for h in own), factor, None)
        thick = slabs.thickness(scene, model, spacing)
        part = slabs.affordable_part(scene, thick, _VOXELS, factor)
        slab = Slab.of(scene, part, spacing)
        return cls(_channels(slab.volume, 3), slab.spacing, part.factor, slab.middle)

    def in_slice(self, cells: Array) -> Array:
        """Values over cells, as means of the two layers of cells on both sides of the shown slice."""
        return cells if self.middle is None else 0.5 * (cells[self.middle] + cells[self.middle + 1])


def _channels(image: Array, axes: int) -> Array:
    """In double precision, channels first, NaN filled with the mean."""
    image = image.astype(np.float64)
    if np.isnan(image).any():
        image = np.nan_to_num(image, nan=float(np.nanmean(image)))
    return image[np.newaxis] if image.ndim == axes else np.moveaxis(image, -1, 0)


def _at_pixels(cells: Array) -> Array:
    """Means of the four cells around each pixel."""
    return 0.25 * (cells[:-1, :-1] + cells[1:, :-1] + cells[:-1, 1:] + cells[1:, 1:])
