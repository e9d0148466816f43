"""What the page shows of a scene: pictures with their places, and overlays of what steers the diffusion."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import aniso
from aniso.arrays import Array, Mask
from aniso.explorer.choosing.choices import Call, DiffusionCall
from aniso.explorer.choosing.scene import Part, Scene, View, block_means
from aniso.explorer.computing import previews
from aniso.explorer.computing.previews import Slab
from aniso.explorer.computing.workers import Ticket
from aniso.explorer.showing import pictures
from aniso.formulas.views import pixel_means
from aniso.models import ImageDriven, PeronaMalik
from aniso.schemes import FED
from aniso.structure import diffusion_tensor, structure_tensor
from aniso.verbs.table import DIFFUSE

_UNKNOWN = (58, 132, 255)
# Number of pictures of a film, its largest side in pixels, and its largest slab of a volume in voxels.
_FRAMES, _LARGEST, _VOXELS = 25, 640, 2**19
# Largest side in pixels, and number of voxels, that overlays are computed from; ellipses along a side.
_OVERLAY_SIDE, _OVERLAY_VOXELS, _ELLIPSES = 384, 2**18, 26
_BINS = 48
_STOPPED = (214, 40, 90)


@dataclass(frozen=True, eq=False)
class Shot:
    """A picture for one of the page's slots; `rectangle` is left, top, right, bottom on the image."""

    slot: str
    picture: pictures.Encoded
    rectangle: tuple[int, int, int, int]
    facts: dict[str, Any] = field(default_factory=dict)


def before(scene: Scene) -> Shot:
    """Return the image itself."""
    factor = pictures.reduction(scene.shape)
    image = pictures.shown(scene.reduced(factor), scene.source.grey_range)
    rectangle = Part(0, image.shape[0], 0, image.shape[1], factor).rectangle
    return Shot("before", pictures.encode(image, lossless=factor == 1), rectangle)


def preview(scene: Scene, part: Part, image: Array, result: Array, *, difference: bool) -> Shot:
    """Return the result for a part of the image, as fast as possible."""
    seen, facts = _seen(scene, image, result, difference)
    slot = "after" if part.covers(scene.shape) else "after-detail"
    facts |= {"factor": part.factor, "preview": True}
    return Shot(slot, pictures.encode(seen, lossless=False), part.rectangle, facts)


def result(scene: Scene, image: Array, *, difference: bool) -> Shot:
    """Return the whole result, or the shown slice of it, reduced if it is very large."""
    seen, facts = _seen(scene, scene.image, scene.shown(image), difference)
    factor = pictures.reduction(seen.shape)
    if factor > 1:
        seen = block_means(seen, factor).astype(np.uint8)
    facts |= {"factor": 1, "preview": False}
    return Shot("after", pictures.encode(seen, lossless=True), scene.rectangle, facts)


def details(
    scene: Scene, result: Array | None, view: View, *, difference: bool, white: float | None = None
) -> Iterator[Shot]:
    """Yield the visible part of a large image, pixel by pixel; nothing if the whole picture is as fine.

    `white` is the difference that white stands for in the whole image.
    """
    if view.factor >= pictures.reduction(scene.shape):
        return
    height, width = scene.shape
    left, top = max(0, int(view.left)), max(0, int(view.top))
    right, bottom = min(width, int(view.right) + 1), min(height, int(view.bottom) + 1)
    start = scene.image[top:bottom, left:right]
    seen = pictures.shown(start, scene.source.grey_range)
    yield Shot("before-detail", pictures.encode(seen, lossless=False), (left, top, right, bottom))
    result = None if result is None else scene.shown(result)
    if result is not None and result.shape[:2] == scene.shape:
        seen, facts = _seen(scene, start, result[top:bottom, left:right], difference, white)
        picture = pictures.encode(seen, lossless=False)
        yield Shot("after-detail", picture, (left, top, right, bottom), facts)


def unknown(scene: Scene, mask: Mask) -> Shot:
    """Return a layer over the unknown pixels; the mask is that of the image on the page."""
    factor = pictures.reduction(scene.shape)
    strength = block_means(mask.astype(np.float32), factor) if factor > 1 else mask
    return Shot("unknown", pictures.tinted(0.85 * strength, _UNKNOWN), scene.rectangle)


def film(
    scene: Scene, call: Call, model: ImageDriven, end: float, ticket: Ticket, count: int = _FRAMES
) -> Iterator[Shot]:
    """Yield the image at `count` times from 0 to the end, closer together at first, when most happens."""
    scheme, thick = FED(1), 0
    if scene.whole:
        steering = {"model": model, "time": end, "scheme": scheme}
        options = {"spacing": (1.0, 1.0, 1.0), **call.options, **steering}
        thick = previews.halo(scene, DiffusionCall(DIFFUSE, options))
    slab = Slab.affordable(scene, call.options.get("spacing"), thick, _LARGEST, _VOXELS)
    options = {name: value for name, value in call.options.items() if name == "stencil"}
    options |= {"scheme": scheme, "channel_axis": scene.channel_axis, "spacing": slab.spacing}
    times = [end * (k / (count - 1)) ** 2 for k in range(1, count)]
    evolution = aniso.scale_space(slab.volume, model, times, **options)
    with contextlib.closing(evolution):
        for number, (time, now) in enumerate(itertools.chain([(0.0, slab.volume)], evolution)):
            ticket.progress(number, count - 1)
            seen = pictures.shown(slab.shown(now), scene.source.grey_range)
            facts = {"time": time, "number": number, "count": count, "end": end}
            yield Shot(f"frame{number}", pictures.encode(seen, lossless=False), scene.rectangle, facts)


def _seen(
    scene: Scene, before: Array, after: Array, difference: bool, white: float | None = None
) -> tuple[Any, dict[str, Any]]:
    if not difference:
        return pictures.shown(after, scene.source.grey_range), {}
    seen, full = pictures.difference(before, after, scene.source.grey_range, white)
    return seen, {"full": full}


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
        step = self._step
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
        return float(self._step * self.factor)

    @property
    def _step(self) -> int:
        return max(1, math.ceil(max(self.xx.shape) / _ELLIPSES))

    def stopped(self) -> pictures.Encoded:
        """Return a layer that is opaque where no flow crosses structures: the smaller eigenvalue is 0."""
        return pictures.tinted(0.75 * (1 - np.clip(self.eigenvalues[1], 0, 1)) ** 2, _STOPPED)


def gradients(scene: Scene, sigma: float, spacing: tuple[float, ...] | None) -> Array:
    """Return the sorted gradients after presmoothing with a Gaussian of this standard deviation.

    They do not depend on the contrast, and are kept with the scene for the next one.
    """
    if (sigma, spacing) not in scene.gradients:
        slab = _slab(scene, PeronaMalik(sigma=sigma), spacing)
        tensor = structure_tensor(_channels(slab), sigma=sigma, rho=0.0, spacing=slab.spacing, channel_axis=0)
        steepness = slab.shown(np.sqrt(np.trace(tensor)))
        scene.gradients.clear()
        scene.gradients[sigma, spacing] = np.sort(steepness, axis=None)
    return scene.gradients[sigma, spacing]


@dataclass(frozen=True)
class Histogram:
    """Histogram of gradients, and the place of the contrast among them."""

    counts: tuple[float, ...]
    low: float
    high: float
    contrast: float | None
    below: float

    @classmethod
    def of(cls, values: Array, contrast: float | None) -> Histogram:
        """Count sorted gradients in bins of a logarithmic scale."""
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
    thick = previews.thickness(scene, model, spacing) if scene.whole else 0
    return Slab.affordable(scene, spacing, thick, _OVERLAY_SIDE, _OVERLAY_VOXELS)


def _channels(slab: Slab) -> Array:
    """Return the slab in double precision, channels first, NaN replaced by the mean."""
    image, axes = slab.volume.astype(np.float64), 2 if slab.middle is None else 3
    if np.isnan(image).any():
        image = np.nan_to_num(image, nan=float(np.nanmean(image)))
    return image[np.newaxis] if image.ndim == axes else np.moveaxis(image, -1, 0)
