"""Calls of the library: of a verb, which chooses for itself, or of a diffusion with a given model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from aniso import stability
from aniso.arrays import Array
from aniso.explorer.choosing.unknown_pixels import LazyMask
from aniso.models import ImageDriven
from aniso.schemes import FED, Explicit
from aniso.stencil import DeltaStencil
from aniso.verbs.plan import Plan
from aniso.verbs.table import Verb

# Explicit steps up to which a preview takes them; beyond, FED cycles are faster.
_EXPLICIT_STEPS = 12


@dataclass(frozen=True, eq=False)
class Call:
    """A function of the library, with its arguments other than the image.

    `arguments` follow the image: the mask of a verb that fills, and parameters without a default.
    """

    verb: Verb
    arguments: tuple[Any, ...]
    options: Mapping[str, Any]

    def __call__(self, image: Array, progress: Callable[[float, float], object]) -> tuple[Array, Plan | None]:
        """Return the result, and what the verb chose."""
        given = [each.mask if isinstance(each, LazyMask) else each for each in self.arguments]
        result, info = self.verb.function(image, *given, **self.options, progress=progress, return_info=True)
        return result, info

    def steering(self, info: Plan | None) -> tuple[ImageDriven, float] | None:
        """Return the model that steers the diffusion and its time; None if that is not known (yet)."""
        return None if info is None else info.steering(self.options)

    @property
    def factor(self) -> int:
        """How many times finer the result is than the image."""
        return int(self.arguments[0]) if self.verb.refines else 1

    @property
    def kind(self) -> tuple[str, ...]:
        """What the computing time per pixel depends on."""
        # A number in place of an estimate leaves fewer candidates; a voxel takes longer than a pixel.
        axes = str(len(self.options.get("spacing", (1.0, 1.0))))
        return (self.verb.name, axes, *sorted(set(self.options) - {"spacing", "noise"}))

    def steps(self, factor: int = 1) -> float:
        """Return the number of steps on a grid that is `factor` times coarser; 1 if that is not known."""
        return 1.0

    def quick(self, whole: bool) -> Call:
        """Return the call that a preview computes instead; `whole` means for one slice of a whole volume."""
        options = dict(self.options)
        for name, value in self.verb.preview.items():
            options[name] = value if isinstance(value, bool) else max(options.get(name, value), value)
        if whole:
            options = {
                name: value
                for name, value in options.items()
                if name not in self.verb.parameters or not self.verb.parameters[name].about.for_volumes
            }
        return replace(self, options=options)


@dataclass(frozen=True, eq=False)
class DiffusionCall(Call):
    """A diffusion: `arguments` are the model and the time."""

    def __call__(self, image: Array, progress: Callable[[float, float], object]) -> tuple[Array, Plan | None]:
        """Return the result; there is nothing to choose."""
        return self.verb.function(image, *self.arguments, **self.options, progress=progress), None

    def steering(self, info: Plan | None) -> tuple[ImageDriven, float]:
        """Return the model and the time that were given."""
        model, time = self.arguments
        return model, time

    @property
    def kind(self) -> tuple[str, ...]:
        """The model counts as well."""
        return (type(self.arguments[0]).__name__, *super().kind)

    def steps(self, factor: int = 1) -> float:
        """Return the number of steps; a tensor costs as much as some of them."""
        model, time = self.arguments
        cycles = list(self._quick_scheme().plan(time, factor**2 * self._largest_step()))
        # More so if the structure tensor is averaged.
        tensor = 6 if model.integration else 2
        return max(1.0, sum(tensor + len(cycle.steps) for cycle in cycles))

    def quick(self, whole: bool) -> Call:
        """Return the same diffusion with FED cycles instead of many explicit steps."""
        options = {"spacing": (1.0, 1.0, 1.0), **self.options} if whole else self.options
        call = replace(self, options=options)
        return replace(call, options={**options, "scheme": call._quick_scheme()})

    def _quick_scheme(self) -> Any:
        scheme, longest = self.options["scheme"], _EXPLICIT_STEPS * 0.9 * self._largest_step()
        return FED(4) if isinstance(scheme, Explicit) and self.arguments[1] > longest else scheme

    def _largest_step(self) -> float:
        spacing = self.options.get("spacing", (1.0, 1.0))
        stencil = self.options.get("stencil", DeltaStencil())
        return stability.stable_step(self.arguments[0], stencil, spacing, ndim=len(spacing))
