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
from aniso.formulas.views import pixel_means
from aniso.models import ImageDriven, PeronaMalik
from aniso.structure import diffusion_tensor, structure_tensor

# Largest side in pixels, and number of voxels, that overlays are computed from; ellipses along a side.
_LARGEST, _VOXELS, _ELLIPSES = 384, 2**18, 26
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
        """Return the tensors of the first step; of a volume their part in the plane of the slice."""
        slab = _slab(scene, model, spacing)
        tensor = diffusion_tensor(_channels(slab), model, spacing=slab.spacing, channel_axis=0)
        y, x = -2, -1  # the slice is perpendicular to the first axis of a volume
        cells = [tensor[x, x], tensor[x, y], tensor[y, y]]
        if slab.middle is not None:  # the two layers of cells on both sides of the slice
            cells = [0.5 * (entry[slab.middle] + entry[slab.middle + 1]) for entry in cells]
        xx, xy, yy = map(pixel_means, cells)
        return cls(xx, xy, yy, slab.factor)

    @property
    def eigenvalues(self) -> tuple[Array, Array]:
        """The larger and the smaller one."""
        mean, radius = 0.5 * (self.xx + self.yy), np.hypot(0.5 * (self.xx - self.yy), self.xy)
        return mean + radius, np.maximum(mean - radius, 0.0)

    def ellipses(self) -> list[tuple[float, float, float, float, float]]:
        """Return x, y, semi-axes (1 fills the space) and angle of some tensors, in pixels.

        Semi-axes are roots of eigenvalues: the ellipse shows how a drop of ink spreads.
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
        """Distance between ellipses, in pixels."""
        return float(max(1, math.ceil(max(self.xx.shape) / _ELLIPSES)) * self.factor)

    def stopped(self) -> pictures.Encoded:
        """Return a layer that is opaque where no flow crosses structures: the smaller eigenvalue is 0."""
        return pictures.tinted(0.75 * (1 - np.clip(self.eigenvalues[1], 0, 1)) ** 2, _STOPPED)


@dataclass(frozen=True, eq=False)
class Gradients:
    """Sorted gradients of a scene after presmoothing; they do not depend on the contrast."""

    scene: Scene
    sigma: float
    spacing: tuple[float, ...] | None
    values: Array

    @classmethod
    def of(cls, scene: Scene, sigma: float, spacing: tuple[float, ...] | None) -> Gradients:
        """Compute the gradients after presmoothing with a Gaussian of this standard deviation."""
        slab = _slab(scene, PeronaMalik(sigma=sigma), spacing)
        tensor = structure_tensor(_channels(slab), sigma=sigma, rho=0.0, spacing=slab.spacing, channel_axis=0)
        steepness = slab.shown(np.sqrt(np.trace(tensor)))
        return cls(scene, sigma, spacing, np.sort(steepness, axis=None))

    def are_of(self, scene: Scene, sigma: float, spacing: tuple[float, ...] | None) -> bool:
        """Whether they are the gradients for these arguments."""
        return self.scene is scene and (self.sigma, self.spacing) == (sigma, spacing)


@dataclass(frozen=True)
class Histogram:
    """Histogram of gradients, and the place of the contrast among them."""

    counts: tuple[float, ...]
    low: float
    high: float
    contrast: float | None
    below: float

    @classmethod
    def of(cls, gradients: Gradients, contrast: float | None) -> Histogram:
        """Count the gradients in bins of a logarithmic scale."""
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
        """Return the place of a gradient, between 0 and 1."""
        return math.log(gradient / self.low) / math.log(self.high / self.low)

    def svg(self) -> str:
        """Return a drawing of 300 × 72 units, coloured by the style of the page."""
        width, height, top = 300.0, 56.0, 13.0  # the text is above the bars
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


def _slab(scene: Scene, model: ImageDriven, spacing: tuple[float, ...] | None) -> Slab:
    """Return the image, or as many slices of a volume as the tensors of the shown one depend on."""
    thick = slabs.thickness(scene, model, spacing) if scene.whole else 0
    return Slab.affordable(scene, spacing, thick, _LARGEST, _VOXELS)


def _channels(slab: Slab) -> Array:
    """Return the slab in double precision, channels first, NaN replaced by the mean."""
    image, axes = slab.volume.astype(np.float64), 2 if slab.middle is None else 3
    if np.isnan(image).any():
        image = np.nan_to_num(image, nan=float(np.nanmean(image)))
    return image[np.newaxis] if image.ndim == axes else np.moveaxis(image, -1, 0)
