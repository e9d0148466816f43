"""Previews while a slider moves: the visible part of the image, as coarse as the time budget demands."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeGuard

import numpy as np

from aniso.arrays import Array
from aniso.blocks.halo import reach, tensor_reach
from aniso.explorer.choosing.choices import Call, DiffusionCall
from aniso.explorer.choosing.scene import Part, Scene, View, block_means, real
from aniso.explorer.choosing.unknown_pixels import LazyMask, known_means
from aniso.explorer.showing.pictures import reduction
from aniso.models import ImageDriven

# Diffusion spreads over √(2t); almost nothing arrives from more than this many times farther away.
_SPREADS = 3.0
#: Seconds for computing a preview; drawing and sending it come on top.
BUDGET = 0.07
_LEAST_PIXELS = 96**2
# Pixels around the visible ones that are computed as well, because they have an influence.
_MARGIN = 24


@dataclass(frozen=True, eq=False)
class Slab:
    """Slices of a volume as means of blocks of voxels, their own axis first; `middle` is the shown one.

    For an image, `volume` is the image and `middle` is None.
    """

    volume: Array
    middle: int | None
    spacing: tuple[float, ...]
    factor: int

    @classmethod
    def of(cls, scene: Scene, part: Part, spacing: tuple[float, ...] | None) -> Slab:
        """Return the part with `part.depth` slices on both sides, as far as they exist."""
        volume, f = np.moveaxis(scene.source.pixels, scene.axis, 0), part.factor
        # The shown slice lies in the middle of its block.
        first = scene.index - f // 2
        starts = [first + f * k for k in range(-part.depth, part.depth + 1)]
        starts = [start for start in starts if start + f > 0 and start < len(volume)]
        rows, columns = slice(part.top * f, part.bottom * f), slice(part.left * f, part.right * f)
        layers = [volume[max(0, start) : start + f, rows, columns] for start in starts]
        coarse = [
            layer[0] if f == 1 else block_means(layer.mean(axis=0, dtype=real(volume)), f) for layer in layers
        ]
        own = spacing or (1.0, 1.0, 1.0)
        distances = (own[scene.axis], *scene.in_plane(own))
        return cls(np.stack(coarse), starts.index(first), tuple(f * h for h in distances), f)

    @classmethod
    def affordable(
        cls, scene: Scene, spacing: tuple[float, ...] | None, thick: int, largest: int, voxels: int
    ) -> Slab:
        """Return the whole image or slice, coarse enough for the largest side in pixels.

        Of a volume it has `thick` slices on both sides, and is coarse enough for this number of voxels.
        """
        factor, (height, width) = reduction(scene.shape, largest), scene.shape
        if not scene.whole:
            own = spacing or (1.0, 1.0)
            return cls(scene.reduced(factor), None, tuple(factor * h for h in own), factor)
        while True:
            rows, columns, depth = -(-height // factor), -(-width // factor), math.ceil(thick / factor)
            if rows * columns * (2 * depth + 1) <= voxels or min(rows, columns) <= 16:
                return cls.of(scene, Part(0, rows, 0, columns, factor, depth), spacing)
            factor += 1

    def shown(self, array: Array) -> Array:
        """Return what the page shows of the slab, or of a result for it."""
        return array if self.middle is None else array[self.middle]


def thickness(scene: Scene, model: ImageDriven, spacing: tuple[float, ...] | None) -> int:
    """Return the number of slices on each side that the tensors of the shown one depend on."""
    h = (spacing or (1.0, 1.0, 1.0))[scene.axis]
    return 1 + tensor_reach(model, (h,))[0]


def halo(scene: Scene, call: DiffusionCall) -> int:
    """Return the number of slices on each side that influence the shown one in a diffusion."""
    model, time, scheme, spacing = (call.options[name] for name in ("model", "time", "scheme", "spacing"))
    h = spacing[scene.axis]
    exact = sum(reach(cycle, model, (h,))[0] for cycle in scheme.plan(time, call.largest_step()))
    return min(exact, math.ceil(_SPREADS * math.sqrt(2 * time) / h) + thickness(scene, model, spacing))


class Pace:
    """Seconds per pixel and step of each kind of call: from the table of verbs, then measured."""

    def __init__(self) -> None:
        self._seconds: dict[tuple[str, ...], float] = {}

    def affordable(self, call: Call, factor: int = 1) -> float:
        """Return the number of pixels, `factor` times coarser, that can be computed within the budget.

        It is large enough for something to be seen.
        """
        seconds = self._seconds.get(_kind(call, factor), call.verb.seconds)
        return max(BUDGET / (seconds * call.steps(factor)), _LEAST_PIXELS)

    def record(self, call: Call, pixels: int, seconds: float, factor: int = 1) -> None:
        """Learn from a computation; the first one of its kind may have included compilation."""
        kind = _kind(call, factor)
        new, known = seconds / pixels / call.steps(factor), self._seconds.get(kind)
        limit = 3 * call.verb.seconds
        self._seconds[kind] = min(new, limit) if known is None else 0.5 * (known + new)


def _kind(call: Call, factor: int) -> tuple[str, ...]:
    """Return what the time per pixel depends on, on a grid that is this many times coarser."""
    return (*call.kind, "coarse") if factor > 1 and call.verb.coarse else call.kind


@dataclass(frozen=True, eq=False)
class Trial:
    """A quick call and its input: a part of the image, or a slab of the volume with the shown slice."""

    call: Call
    slab: Slab
    words: str


def rehearse(call: Call, scene: Scene) -> Call:
    """Return the call that a preview computes instead, at full resolution.

    For a volume, a diffusion takes a slab; verbs, which try many diffusions, take the shown slice.
    """
    quick = call.quick(scene.whole)
    if not scene.whole or call.verb.takes("model") or "spacing" not in quick.options:
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
    thick = halo(scene, call) if _takes_slab(call, scene) else 0
    coarsest = max(view.factor, min(height, width) // 16)
    f = view.factor
    # Slightly over budget is better than a grid that is twice as coarse.
    while f < coarsest and pixels / f**2 * (2 * math.ceil(thick / f) + 1) > 1.1 * affordable(call, f):
        f += 1
    return Part(top // f, -(-bottom // f), left // f, -(-right // f), f, math.ceil(thick / f))


def coarsen(call: Call, scene: Scene, part: Part) -> Trial:
    """Return a rehearsed call for a part of the scene, and its image: same lengths, larger pixels."""
    options, verb = dict(call.options), call.verb
    if _takes_slab(call, scene):
        slab = Slab.of(scene, part, options["spacing"])
        options["spacing"] = slab.spacing
        return Trial(replace(call, options=options), slab, f" of {len(slab.volume)} slices")
    image = scene.reduced(part.factor)
    if "mask" in options:
        mask = options["mask"].here()
        if part.factor > 1:
            image, mask = known_means(scene.image, mask, part.factor)
        seen = part.of(mask)
        options["mask"] = LazyMask(lambda: seen, lambda: seen)
    spacing = tuple(part.factor * h for h in options.get("spacing", (1.0, 1.0)))
    notes = [verb.preview_note, "of this slice only" if scene.whole else ""]
    if part.factor > 1:
        options["spacing"] = spacing
        for name, value in verb.coarse.items():
            if options.get(name, "auto") == "auto":
                options[name] = value
                notes.append(f"with {name} {value}")
        for name, parameter in verb.parameters.items():
            if parameter.about.unit == "grey values":
                options[name] = _coarse_noise(options.get(name), parameter.about.kinds, scene, part.factor)
    words = "".join(f" {note}" for note in notes if note)
    slab = Slab(part.of(image), None, spacing, part.factor)
    return Trial(replace(call, options=options), slab, words)


def _coarse_noise(
    given: float | str | None, kinds: tuple[str, ...], scene: Scene, factor: int
) -> float | str:
    """Return the level of the noise in means of f × f pixels, or its kind, of which the rest is estimated."""
    if isinstance(given, str):
        return given
    noise = scene.statistics.noise if given is None and kinds else None
    if noise is not None and not (noise.kind == "gaussian" and noise.correlation == 0):
        return noise.kind
    return (scene.statistics.measures.noise if given is None else given) / factor


def is_exact(call: Call, part: Part, scene: Scene) -> bool:
    """Whether the preview of a call is the result itself."""
    same = rehearse(call, scene).options == call.options
    return same and not scene.whole and part.factor == 1 and part.covers(scene.shape)


def _takes_slab(call: Call, scene: Scene) -> TypeGuard[DiffusionCall]:
    return scene.whole and isinstance(call, DiffusionCall)


def _span(low: float, high: float, length: int) -> tuple[int, int]:
    first, last = max(0, math.floor(low)), min(length, math.ceil(high))
    return (first, last) if last > first else (0, length)


def _middle(low: int, high: int, share: float) -> tuple[int, int]:
    length = min(high - low, max(16, round(share * (high - low))))
    start = low + (high - low - length) // 2
    return start, start + length
