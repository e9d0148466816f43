"""How long previews take: measured, so that each is as fine as there is time for."""

from __future__ import annotations

from typing import Any

from aniso import schemes, stability
from aniso.explorer.choosing.choices import Call
from aniso.stencil import DeltaStencil

#: Seconds that computing a preview may take; drawing and the way to the page come on top.
BUDGET = 0.07
# Seconds per pixel at first; then they are measured. Steps of diffusions are counted.
_PACE = {"denoise": 8e-6, "enhance": 1e-5, "inpaint": 3e-6, "upsample": 4e-6, "diffuse": 8e-9}
_LEAST_PIXELS = 96**2
# Explicit steps up to which a preview takes them; beyond, cycles get there sooner.
_EXPLICIT_STEPS = 12


class Pace:
    """How long a pixel takes, for each kind of call."""

    def __init__(self) -> None:
        self._seconds: dict[tuple[str, ...], float] = {}

    def affordable(self, call: Call, factor: int = 1) -> float:
        """Pixels, `factor` times coarser, that can be computed within the budget.

        So many at least that there is something to see.
        """
        pixels = BUDGET / (self._seconds.get(_kind(call), _PACE[call.verb]) * work(call, factor))
        return max(pixels, _LEAST_PIXELS)

    def measured(self, call: Call, pixels: int, seconds: float, factor: int = 1) -> None:
        """Learn from a computation; the first one of its kind has been compiling."""
        kind, new = _kind(call), seconds / pixels / work(call, factor)
        known = self._seconds.get(kind)
        self._seconds[kind] = min(new, 3 * _PACE[call.verb]) if known is None else 0.5 * (known + new)


def work(call: Call, factor: int = 1) -> float:
    """Steps of a diffusion on a grid that is `factor` times coarser; 1 for all verbs."""
    if call.verb != "diffuse":
        return 1.0
    model, time = call.arguments
    tensors, steps = 0, 0
    for cycle in quick_scheme(call).plan(time, factor**2 * largest_step(call)):
        tensors, steps = tensors + 1, steps + len(cycle.steps)
    # A tensor costs as much as some steps, the more so if its structure is averaged.
    return max(1.0, steps + tensors * (6 if model.integration else 2))


def quick_scheme(call: Call) -> Any:
    """The scheme of a diffusion, or one that gets there sooner if it has very many steps."""
    scheme, longest = call.options["scheme"], _EXPLICIT_STEPS * 0.9 * largest_step(call)
    return schemes.FED(4) if isinstance(scheme, schemes.Explicit) and call.arguments[1] > longest else scheme


def largest_step(call: Call) -> float:
    """Of a diffusion, as it is stable."""
    spacing = call.options.get("spacing", (1.0, 1.0))
    stencil = call.options.get("stencil", DeltaStencil())
    return stability.stable_step(call.arguments[0], stencil, spacing, ndim=len(spacing))


def _kind(call: Call) -> tuple[str, ...]:
    names = [type(argument).__name__ for argument in call.arguments[:1] if call.verb == "diffuse"]
    # A number in place of an estimate leaves fewer candidates; a voxel takes longer than a pixel.
    axes = str(len(call.options.get("spacing", (1.0, 1.0))))
    return (call.verb, *names, axes, *sorted(set(call.options) - {"spacing", "noise"}))
