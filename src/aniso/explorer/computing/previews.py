"""Previews while a slider moves: the visible part of the image, as coarse as the time budget demands."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from aniso.arrays import Array
from aniso.explorer.choosing.calls import Call
from aniso.explorer.choosing.parts import Part, View
from aniso.explorer.choosing.scene import Scene
from aniso.explorer.choosing.unknown_pixels import LazyMask, known_means
from aniso.explorer.computing import slabs
from aniso.explorer.computing.slabs import Slab

#: Seconds for computing a preview; drawing and sending it come on top.
BUDGET = 0.07
_LEAST_PIXELS = 96**2
# Pixels around the visible ones that are computed as well, because they have an influence.
_MARGIN = 24


class Pace:
    """Seconds per pixel and step of each kind of call: from the table of verbs, then measured."""

    def __init__(self) -> None:
        self._seconds: dict[tuple[str, ...], float] = {}

    def affordable(self, call: Call, factor: int = 1) -> float:
        """Return the number of pixels, `factor` times coarser, that can be computed within the budget.

        It is large enough for something to be seen.
        """
        seconds = self._seconds.get(call.kind, call.verb.seconds)
        return max(BUDGET / (seconds * call.steps(factor)), _LEAST_PIXELS)

    def record(self, call: Call, pixels: int, seconds: float, factor: int = 1) -> None:
        """Learn from a computation; the first one of its kind may have included compilation."""
        new, known = seconds / pixels / call.steps(factor), self._seconds.get(call.kind)
        limit = 3 * call.verb.seconds
        self._seconds[call.kind] = min(new, limit) if known is None else 0.5 * (known + new)


@dataclass(frozen=True, eq=False)
class Trial:
    """A quick call and its input: a part of the image, or a slab of the volume with the shown slice."""

    call: Call
    image: Array
    middle: int | None = None
    words: str = ""

    def shown(self, array: Array) -> Array:
        """Return what the page shows of the image, or of the result."""
        return array if self.middle is None else array[self.middle]


def rehearse(call: Call, scene: Scene) -> Call:
    """Return the call that a preview computes instead, at full resolution.

    For a volume, a diffusion takes a slab; verbs, which try many diffusions, take the shown slice.
    """
    quick = call.quick(scene.whole)
    if not scene.whole or call.verb.takes_model or "spacing" not in quick.options:
        return quick
    return replace(quick, options={**quick.options, "spacing": scene.in_plane(quick.options["spacing"])})


def part(scene: Scene, view: View, call: Call, affordable: Callable[[Call, int], float]) -> Part:
    """Return the visible part with some margin, no finer than the screen or the time budget allows.

    `call` comes from :func:`rehearse`; `affordable` returns the number of pixels that the budget allows on a
    coarser grid. Verbs that refine get a smaller part, not a coarser one.
    """
    height, width = scene.shape
    margin = _MARGIN
    if view.right - view.left >= 0.999 * width and view.bottom - view.top >= 0.999 * height:
        margin = max(height, width)
    left, right = _span(view.left - margin, view.right + margin, width)
    top, bottom = _span(view.top - margin, view.bottom + margin, height)
    pixels = (right - left) * (bottom - top)
    if call.verb.refines:
        shrink = min(1.0, math.sqrt(affordable(call, 1) / pixels))
        return Part(*_middle(top, bottom, shrink), *_middle(left, right, shrink), 1)
    thick = slabs.halo(scene, call, call.options["scheme"]) if _takes_slab(scene, call) else 0
    coarsest = max(view.factor, min(height, width) // 16)
    f = view.factor
    # Slightly over budget is better than a grid that is twice as coarse.
    while f < coarsest and pixels / f**2 * (2 * math.ceil(thick / f) + 1) > 1.1 * affordable(call, f):
        f += 1
    return Part(top // f, -(-bottom // f), left // f, -(-right // f), f, math.ceil(thick / f))


def coarsen(call: Call, scene: Scene, part: Part) -> Trial:
    """Return a rehearsed call for a part of the scene, and its image: same lengths, larger pixels."""
    options, arguments, verb = dict(call.options), call.arguments, call.verb
    if _takes_slab(scene, call):
        slab = Slab.of(scene, part, options["spacing"])
        options["spacing"] = slab.spacing
        words = f" of {len(slab.volume)} slices"
        return Trial(replace(call, options=options), slab.volume, slab.middle, words)
    image = scene.reduced(part.factor)
    if verb.fills:
        mask = arguments[0].here
        if part.factor > 1:
            image, mask = known_means(scene.image, mask, part.factor)
        seen = part.of(mask)
        arguments = (LazyMask(lambda: seen, lambda: seen), *arguments[1:])
    if part.factor > 1:
        own = options.get("spacing", (1.0, 1.0))
        options["spacing"] = tuple(part.factor * h for h in own)
        for name, parameter in verb.parameters.items():
            if parameter.about.unit == "grey values":
                options[name] = _coarse_noise(options.get(name), parameter.about.kinds, scene, part.factor)
    notes = [verb.preview_note, "of this slice only" if scene.whole else ""]
    words = "".join(f" {note}" for note in notes if note)
    return Trial(replace(call, arguments=arguments, options=options), part.of(image), words=words)


def _coarse_noise(
    given: float | str | None, kinds: tuple[str, ...], scene: Scene, factor: int
) -> float | str:
    """Return the level of the noise in means of f × f pixels, or its kind, of which the rest is estimated."""
    if isinstance(given, str):
        return given
    if given is None and kinds and not (scene.noise.kind == "gaussian" and scene.noise.correlation == 0):
        return scene.noise.kind
    return (scene.measures.noise if given is None else given) / factor


def is_exact(call: Call, part: Part, scene: Scene) -> bool:
    """Whether the preview of a call is the result itself."""
    same = rehearse(call, scene).options == call.options
    return same and not scene.whole and part.factor == 1 and part.covers(scene.shape)


def _takes_slab(scene: Scene, call: Call) -> bool:
    return scene.whole and call.verb.takes_model


def _span(low: float, high: float, length: int) -> tuple[int, int]:
    first, last = max(0, math.floor(low)), min(length, math.ceil(high))
    return (first, last) if last > first else (0, length)


def _middle(low: int, high: int, share: float) -> tuple[int, int]:
    length = min(high - low, max(16, round(share * (high - low))))
    start = low + (high - low - length) // 2
    return start, start + length
