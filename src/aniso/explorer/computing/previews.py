"""What to compute while a hand moves: the visible part of the image, as coarse as time demands."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy.typing as npt

from aniso.explorer.choosing import masks
from aniso.explorer.choosing.choices import Call, Unknown
from aniso.explorer.choosing.parts import Part, View
from aniso.explorer.choosing.scene import Scene
from aniso.explorer.computing import slabs
from aniso.explorer.computing.pace import quick_scheme
from aniso.explorer.computing.slabs import Slab

Array = npt.NDArray[Any]

# Pixels around the visible ones that are computed with them, since they flow in.
_MARGIN = 24


@dataclass(frozen=True, eq=False)
class Trial:
    """A quick call, and what it gets: a part of the image, or a slab of the volume with the shown slice."""

    call: Call
    image: Array
    middle: int | None = None
    words: str = ""

    def shown(self, array: Array) -> Array:
        """What the page shows of the image, or of the result."""
        return array if self.middle is None else array[self.middle]


def rehearsed(call: Call, scene: Scene) -> Call:
    """What a preview computes in place of the call for everything, at full resolution.

    Diffusions with many explicit steps take cycles, and enhance diffuses only once: its remedies take ten
    times as long. Of a volume, diffusions take a slab, and the verbs, which try many of them, the shown slice
    as an image.
    """
    options = dict(call.options)
    if call.verb == "diffuse":
        if scene.whole:
            options.setdefault("spacing", (1.0, 1.0, 1.0))
        return replace(call, options={**options, "scheme": quick_scheme(replace(call, options=options))})
    if call.verb == "enhance":
        options["refine"] = False
    if call.verb == "inpaint":
        options["tolerance"] = max(options.get("tolerance", 0.0), 0.02)
    if scene.whole:
        options.pop("plates", None)
        if "spacing" in options:
            options["spacing"] = scene.in_plane(options["spacing"])
    return replace(call, options=options)


def part(scene: Scene, view: View, call: Call, affordable: Callable[[Call, int], float]) -> Part:
    """The visible part with some margin, no finer than the screen shows it or time allows.

    `call` is a rehearsed one, `affordable` says how many pixels there is time for on a coarser grid.
    Upsampling is about finest detail: it gets a smaller part, not a coarser one.
    """
    height, width = scene.shape
    margin = _MARGIN
    if view.right - view.left >= 0.999 * width and view.bottom - view.top >= 0.999 * height:
        margin = max(height, width)
    left, right = _span(view.left - margin, view.right + margin, width)
    top, bottom = _span(view.top - margin, view.bottom + margin, height)
    pixels = (right - left) * (bottom - top)
    if call.verb == "upsample":
        shrink = min(1.0, math.sqrt(affordable(call, 1) / pixels))
        return Part(*_middle(top, bottom, shrink), *_middle(left, right, shrink), 1)
    thick = slabs.halo(scene, call, call.options["scheme"]) if _takes_slab(scene, call) else 0
    coarsest = max(view.factor, min(height, width) // 16)
    f = view.factor
    # A little more than there is time for is better than a grid that is twice as coarse.
    while f < coarsest and pixels / f**2 * (2 * math.ceil(thick / f) + 1) > 1.1 * affordable(call, f):
        f += 1
    return Part(top // f, -(-bottom // f), left // f, -(-right // f), f, math.ceil(thick / f))


def coarse(call: Call, scene: Scene, part: Part) -> Trial:
    """A rehearsed call, and its image, for a part of the scene: lengths stay the same, pixels are larger."""
    options, arguments = dict(call.options), call.arguments
    if _takes_slab(scene, call):
        slab = Slab.of(scene, part, options["spacing"])
        options["spacing"] = slab.spacing
        words = f" of {len(slab.volume)} slices"
        return Trial(replace(call, options=options), slab.volume, slab.middle, words)
    image = scene.reduced(part.factor)
    if call.verb == "inpaint":
        mask = arguments[0].here
        if part.factor > 1:
            image, mask = masks.known_means(scene.image, mask, part.factor)
        seen = part.of(mask)
        arguments = (Unknown(lambda: seen, lambda: seen),)
    if part.factor > 1:
        own = options.get("spacing", (1.0, 1.0))
        options["spacing"] = tuple(part.factor * h for h in own)
        if call.verb in ("denoise", "enhance"):
            # Means of f × f pixels have 1/f of the noise.
            options["noise"] = options.get("noise", scene.measures.noise) / part.factor
    words = (" by one diffusion" if call.verb == "enhance" else "") + (
        " of the slice by itself" if scene.whole else ""
    )
    return Trial(replace(call, arguments=arguments, options=options), part.of(image), words=words)


def is_exact(call: Call, part: Part, scene: Scene) -> bool:
    """Whether the preview of a call is the result itself."""
    same = rehearsed(call, scene).options == call.options
    return same and not scene.whole and part.factor == 1 and part.covers(scene.shape)


def _takes_slab(scene: Scene, call: Call) -> bool:
    return scene.whole and call.verb == "diffuse"


def _span(low: float, high: float, length: int) -> tuple[int, int]:
    first, last = max(0, math.floor(low)), min(length, math.ceil(high))
    return (first, last) if last > first else (0, length)


def _middle(low: int, high: int, share: float) -> tuple[int, int]:
    length = min(high - low, max(16, round(share * (high - low))))
    start = low + (high - low - length) // 2
    return start, start + length
