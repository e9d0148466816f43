"""The pictures of a scene, its result and its scale space, and their places on the image."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import aniso
from aniso.arrays import Array, Mask
from aniso.explorer.choosing.calls import Call, DiffusionCall
from aniso.explorer.choosing.parts import Part, View, block_means
from aniso.explorer.choosing.scene import Scene
from aniso.explorer.computing import slabs
from aniso.explorer.computing.slabs import Slab
from aniso.explorer.computing.workers import Ticket
from aniso.explorer.showing import pictures
from aniso.models import ImageDriven
from aniso.schemes import FED
from aniso.verbs.table import DIFFUSE

_UNKNOWN = (58, 132, 255)
# Number of pictures of a film, its largest side in pixels, and its largest slab of a volume in voxels.
_FRAMES, _LARGEST, _VOXELS = 25, 640, 2**19


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
    image = pictures.shown(scene.reduced(factor), scene.grey_range)
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
    return Shot("after", pictures.encode(seen, lossless=True), _whole(scene), facts)


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
    seen = pictures.shown(start, scene.grey_range)
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
    return Shot("unknown", pictures.tinted(0.85 * strength, _UNKNOWN), _whole(scene))


def film(
    scene: Scene, call: Call, model: ImageDriven, end: float, ticket: Ticket, count: int = _FRAMES
) -> Iterator[Shot]:
    """Yield the image at `count` times from 0 to the end, closer together at first, when most happens."""
    scheme, thick = FED(1), 0
    if scene.whole:
        thick = slabs.halo(scene, DiffusionCall(DIFFUSE, (model, end), call.options), scheme)
    slab = Slab.affordable(scene, call.options.get("spacing"), thick, _LARGEST, _VOXELS)
    options = {name: value for name, value in call.options.items() if name == "stencil"}
    options |= {"scheme": scheme, "channel_axis": scene.channel_axis, "spacing": slab.spacing}
    times = [end * (k / (count - 1)) ** 2 for k in range(1, count)]
    evolution = aniso.scale_space(slab.volume, model, times, **options)
    with contextlib.closing(evolution):
        for number, (time, now) in enumerate(itertools.chain([(0.0, slab.volume)], evolution)):
            ticket.progress(number, count - 1)
            seen = pictures.shown(slab.shown(now), scene.grey_range)
            facts = {"time": time, "number": number, "count": count, "end": end}
            yield Shot(f"frame{number}", pictures.encode(seen, lossless=False), _whole(scene), facts)


def _seen(
    scene: Scene, before: Array, after: Array, difference: bool, white: float | None = None
) -> tuple[Any, dict[str, Any]]:
    if not difference:
        return pictures.shown(after, scene.grey_range), {}
    seen, full = pictures.difference(before, after, scene.grey_range, white)
    return seen, {"full": full}


def _whole(scene: Scene) -> tuple[int, int, int, int]:
    height, width = scene.shape
    return 0, 0, width, height
