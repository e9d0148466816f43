"""What to compute while a hand moves: the visible part of the image, as coarse as time demands."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy.typing as npt

from aniso import schemes, stability
from aniso.explorer import masks
from aniso.explorer.choices import Call
from aniso.explorer.scene import Scene
from aniso.stencil import DeltaStencil

Array = npt.NDArray[Any]

#: Seconds that computing a preview may take; drawing and the way to the page come on top.
BUDGET = 0.07
# Seconds per pixel at first; then they are measured. Steps of diffusions are counted.
_PACE = {"denoise": 8e-6, "enhance": 1e-5, "inpaint": 3e-6, "upsample": 4e-6, "diffuse": 8e-9}
_LEAST_PIXELS = 128**2
# Pixels around the visible ones that are computed with them, since they flow in.
_MARGIN = 24
# Explicit steps up to which a preview takes them; beyond, cycles get there sooner.
_EXPLICIT_STEPS = 12


@dataclass(frozen=True)
class View:
    """The part of the image that the page shows, in pixels, and screen pixels per pixel."""

    left: float
    top: float
    right: float
    bottom: float
    scale: float

    @property
    def factor(self) -> int:
        """Pixels of the image that share one of the screen, along each side."""
        return max(1, math.floor(1 / self.scale)) if self.scale > 0 else 1

    @classmethod
    def of_all(cls, shape: tuple[int, int]) -> View:
        """The whole image, pixel by pixel."""
        return cls(0, 0, shape[1], shape[0], 1.0)


@dataclass(frozen=True)
class Part:
    """A window of the image, in blocks of factor × factor pixels."""

    top: int
    bottom: int
    left: int
    right: int
    factor: int

    @property
    def rectangle(self) -> tuple[int, int, int, int]:
        """Left, top, right, bottom in pixels of the image."""
        f = self.factor
        return self.left * f, self.top * f, self.right * f, self.bottom * f

    def covers(self, shape: tuple[int, int]) -> bool:
        """Whether an image of this shape lies in it."""
        left, top, right, bottom = self.rectangle
        return left <= 0 and top <= 0 and right >= shape[1] and bottom >= shape[0]

    @property
    def pixels(self) -> int:
        """How many have to be computed."""
        return (self.bottom - self.top) * (self.right - self.left)

    def of(self, array: Array) -> Array:
        """What an array over the blocks holds there."""
        return array[self.top : self.bottom, self.left : self.right]


class Pace:
    """How long a pixel takes: measured, for each kind of call."""

    def __init__(self) -> None:
        self._seconds: dict[tuple[str, ...], float] = {}

    def affordable(self, call: Call) -> float:
        """Pixels that can be computed within the budget; so many at least that there is something to see."""
        pixels = BUDGET / (self._seconds.get(_kind(call), _PACE[call.verb]) * work(call))
        return max(pixels, _LEAST_PIXELS)

    def measured(self, call: Call, pixels: int, seconds: float) -> None:
        """Learn from a computation; the first one of its kind has been compiling."""
        kind, new = _kind(call), seconds / pixels / work(call)
        known = self._seconds.get(kind)
        self._seconds[kind] = min(new, 3 * _PACE[call.verb]) if known is None else 0.5 * (known + new)


def part(shape: tuple[int, int], view: View, call: Call, affordable: float) -> Part:
    """The visible part with some margin, no finer than the screen shows it or time allows.

    Upsampling is about finest detail: it gets a smaller part, not a coarser one.
    """
    height, width = shape
    margin = _MARGIN
    if view.right - view.left >= 0.999 * width and view.bottom - view.top >= 0.999 * height:
        margin = max(shape)
    left, right = _span(view.left - margin, view.right + margin, width)
    top, bottom = _span(view.top - margin, view.bottom + margin, height)
    pixels = (right - left) * (bottom - top)
    if call.verb == "upsample":
        shrink = min(1.0, math.sqrt(affordable / pixels))
        return Part(*_middle(top, bottom, shrink), *_middle(left, right, shrink), 1)
    factor = min(max(view.factor, math.ceil(math.sqrt(pixels / affordable) - 0.05)), max(1, min(shape) // 16))
    f = factor
    return Part(top // f, -(-bottom // f), left // f, -(-right // f), f)


def coarse(call: Call, scene: Scene, part: Part) -> tuple[Call, Array]:
    """The call and the image for a part of the scene: lengths stay what they are, pixels are larger."""
    image, options, arguments = scene.reduced(part.factor), dict(call.options), call.arguments
    if call.verb == "diffuse":
        options["scheme"] = _quick_scheme(call)
    if call.verb == "inpaint":
        mask: Any = arguments[0]
        if part.factor > 1:
            image, mask = masks.known_means(scene.image, mask, part.factor)
        mask = part.of(mask)
        arguments = (mask,)
        options["tolerance"] = max(options.get("tolerance", 0.0), 0.02)
    if part.factor > 1:
        own = options.get("spacing", (1.0, 1.0))
        options["spacing"] = tuple(part.factor * h for h in own)
        if call.verb in ("denoise", "enhance"):
            # Means of f × f pixels have 1/f of the noise.
            options["noise"] = options.get("noise", scene.measures.noise) / part.factor
    return replace(call, arguments=arguments, options=options), part.of(image)


def is_exact(call: Call, quick: Call, part: Part, scene: Scene) -> bool:
    """Whether a preview is the result itself."""
    same = call.options.get("scheme") == quick.options.get("scheme")
    return part.factor == 1 and part.covers(scene.shape) and same and call.verb != "inpaint"


def work(call: Call) -> float:
    """Steps of a diffusion; 1 for all verbs."""
    if call.verb != "diffuse":
        return 1.0
    model, time = call.arguments
    limit = stability.stable_step(model, call.options.get("stencil", DeltaStencil()))
    tensors, steps = 0, 0
    for cycle in _quick_scheme(call).plan(time, limit):
        tensors, steps = tensors + 1, steps + len(cycle.steps)
    # A tensor costs as much as some steps, the more so if its structure is averaged.
    return max(1.0, steps + tensors * (6 if model.integration else 2))


def _quick_scheme(call: Call) -> Any:
    scheme = call.options["scheme"]
    model, time = call.arguments
    limit = stability.stable_step(model, call.options.get("stencil", DeltaStencil()))
    if isinstance(scheme, schemes.Explicit) and time > _EXPLICIT_STEPS * 0.9 * limit:
        return schemes.FED(4)
    return scheme


def _kind(call: Call) -> tuple[str, ...]:
    names = [type(argument).__name__ for argument in call.arguments[:1] if call.verb == "diffuse"]
    # A number in place of an estimate leaves fewer candidates.
    return (call.verb, *names, *sorted(set(call.options) - {"spacing", "noise"}))


def _span(low: float, high: float, length: int) -> tuple[int, int]:
    first, last = max(0, math.floor(low)), min(length, math.ceil(high))
    return (first, last) if last > first else (0, length)


def _middle(low: int, high: int, share: float) -> tuple[int, int]:
    length = min(high - low, max(16, round(share * (high - low))))
    start = low + (high - low - length) // 2
    return start, start + length
