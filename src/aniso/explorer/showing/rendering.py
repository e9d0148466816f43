"""The pictures of a scene and its result, and their places on the image."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from aniso.arrays import Array, Mask
from aniso.explorer.choosing.parts import Part, View, block_means
from aniso.explorer.choosing.scene import Scene
from aniso.explorer.showing import pictures

_UNKNOWN = (58, 132, 255)


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
