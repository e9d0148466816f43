"""What was chosen on the page, and the corresponding call of the library."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np

from aniso import schemes, stability
from aniso.arrays import Array, Mask
from aniso.explorer.choosing.scene import Scene
from aniso.explorer.choosing.unknown_pixels import LazyMask, RandomPixels
from aniso.models import CoherenceEnhancing, ImageDriven, kinds
from aniso.parameters import TIME, About, Parameter, of_model
from aniso.schemes import FED, Explicit
from aniso.stencil import DeltaStencil
from aniso.verbs.plan import Plan
from aniso.verbs.table import DIFFUSE, VERBS, Verb

# Explicit steps up to which a preview takes them; beyond, FED cycles are faster.
_EXPLICIT_STEPS = 12
#: In place of a value: it is estimated.
AUTO = "auto"
# Structures are enhanced well below the strength that they typically have.
_COHERENCE_SHARE = 0.4
# In volumes half as much, as for enhance: there is more to average over.
_VOLUME_SHARE = 0.5
_SCHEMES = "explicit computes a tensor for every step; the cycles of fed and fsi reach long times faster"
_CYCLES = "number of cycles of fed and fsi, with one tensor each; more cycles are more accurate"
# Of diffusion with any model, after the fields of the model.
_DIFFUSION_PARAMETERS = (
    Parameter("time", 10.0, replace(TIME, open_low=False)),
    Parameter("scheme", "fed", About(choices=tuple(schemes.kinds()), meaning=_SCHEMES)),
    Parameter("cycles", 5, About(choices=(1, 2, 3, 5, 8, 12, 20), meaning=_CYCLES)),
)


@dataclass(frozen=True, eq=False)
class Call:
    """A function of the library, with its arguments other than the image."""

    verb: Verb
    options: Mapping[str, Any]

    def __call__(self, image: Array, progress: Callable[[float, float], object]) -> tuple[Array, Plan | None]:
        """Return the result, and what the verb chose."""
        given = dict(self.options)
        if "mask" in given:
            given["mask"] = given["mask"].mask()
        result, info = self.verb.function(image, **given, progress=progress, return_info=True)
        return result, info

    def steering(self, info: Plan | None) -> tuple[ImageDriven, float] | None:
        """Return the model that steers the diffusion and its time; None if that is not known (yet)."""
        return None if info is None else info.steering(self.options)

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
    """A diffusion, with its model and its time among the options."""

    def __call__(self, image: Array, progress: Callable[[float, float], object]) -> tuple[Array, Plan | None]:
        """Return the result; there is nothing to choose."""
        return self.verb.function(image, **self.options, progress=progress), None

    def steering(self, info: Plan | None = None) -> tuple[ImageDriven, float]:
        """Return the model and the time that were given."""
        return self.options["model"], self.options["time"]

    @property
    def kind(self) -> tuple[str, ...]:
        """The model counts as well."""
        return (type(self.options["model"]).__name__, *super().kind)

    def steps(self, factor: int = 1) -> float:
        """Return the number of steps; a tensor costs as much as some of them."""
        model, time = self.steering()
        cycles = list(self._quick_scheme().plan(time, factor**2 * self.largest_step()))
        # More so if the structure tensor is averaged.
        tensor = 6 if model.integration else 2
        return max(1.0, sum(tensor + len(cycle.steps) for cycle in cycles))

    def quick(self, whole: bool) -> Call:
        """Return the same diffusion with FED cycles instead of many explicit steps."""
        options = {"spacing": (1.0, 1.0, 1.0), **self.options} if whole else self.options
        call = replace(self, options=options)
        return replace(call, options={**options, "scheme": call._quick_scheme()})

    def _quick_scheme(self) -> Any:
        scheme, longest = self.options["scheme"], _EXPLICIT_STEPS * 0.9 * self.largest_step()
        return FED(4) if isinstance(scheme, Explicit) and self.options["time"] > longest else scheme

    def largest_step(self) -> float:
        """Return the largest stable step."""
        spacing = self.options.get("spacing", (1.0, 1.0))
        stencil = self.options.get("stencil", DeltaStencil())
        return stability.stable_step(self.options["model"], stencil, spacing, ndim=len(spacing))


@dataclass(frozen=True, eq=False)
class Choices:
    """All choices of the user; parameters that are not in `values` have their defaults.

    `values` has the keys (method or model, parameter), so that each keeps its own.
    """

    method: str = next(iter(VERBS))
    model: str = "edge-enhancing"
    values: Mapping[tuple[str, str], Any] = field(default_factory=dict)
    stencil: DeltaStencil | None = None
    file_spacing: bool = False
    random_pixels: RandomPixels | None = field(default_factory=RandomPixels)
    drawn: Mask | None = None

    @property
    def verb(self) -> Verb:
        """The row of the method in the table of verbs."""
        return methods()[self.method]

    @property
    def parameters(self) -> dict[str, Parameter]:
        """The parameters that can be chosen now."""
        return parameters_of(self.method, self.model)

    @property
    def owner(self) -> str:
        """The method or model whose parameters they are."""
        return self.model if self.verb.takes("model") else self.method

    def value(self, name: str) -> Any:
        """Return the chosen value of a parameter, else its default; AUTO if the library chooses."""
        parameter = self.parameters[name]
        default = AUTO if parameter.automatic else parameter.initial
        return self.values.get((self.owner, name), default)

    def applies(self, name: str, scene: Scene) -> bool:
        """Return whether a parameter has a meaning for a scene, given the values of the others."""
        about = self.parameters[name].about
        if name == "cycles" and name not in schemes.kinds()[self.value("scheme")].__dataclass_fields__:
            return False
        other, value = about.unless or ("", None)
        return (scene.whole or not about.for_volumes) and not (other and self.value(other) == value)

    def with_value(self, name: str, value: Any) -> Choices:
        """Return choices with another value of a parameter; None restores the default."""
        values = {key: old for key, old in self.values.items() if key != (self.owner, name)}
        if value is not None:
            values[self.owner, name] = value
        return replace(self, values=values)

    def chosen_unknown(self, scene: Scene) -> Mask | None:
        """Return the unknown pixels that were chosen at random or drawn, without those that are NaN."""
        if self.random_pixels is not None:
            return self.random_pixels.mask(scene.extent)
        return self.drawn if self.drawn is not None and self.drawn.shape == scene.extent else None

    def unknown(self, scene: Scene) -> Mask:
        """Return all unknown pixels, in a new array."""
        return _with_missing(scene.filtered, scene.channel_axis, self.chosen_unknown(scene))

    def unknown_here(self, scene: Scene) -> Mask:
        """Return those of the image on the page: far fewer than in a volume."""
        chosen = self.chosen_unknown(scene)
        shown = None if chosen is None else scene.shown(chosen)
        return _with_missing(scene.image, scene.channel_axis, shown)

    def spacing(self, scene: Scene) -> tuple[float, ...] | None:
        """Return the pixel spacing along each axis; None is 1."""
        return scene.spacing if self.file_spacing else scene.voxel_shape

    def call(self, scene: Scene) -> Call:
        """Return the call that computes the result for the whole image or volume."""
        self._check(scene)
        given = {name: self.value(name) for name in self.parameters if self.applies(name, scene)}
        kind = DiffusionCall if self.verb.takes("model") else Call
        options = (self._diffusion if self.verb.takes("model") else self._verb)(given, scene)
        common = {
            "stencil": self.stencil if self.verb.takes("stencil") else None,
            "spacing": self.spacing(scene),
            "channel_axis": scene.channel_axis,
        }
        options |= {name: value for name, value in common.items() if value is not None}
        return kind(self.verb, options)

    def _diffusion(self, given: Mapping[str, Any], scene: Scene) -> dict[str, Any]:
        kind = kinds()[self.model]
        own = {name: given[name] for name in of_model(kind) if name in given}
        if own.get("contrast") == AUTO:
            own["contrast"] = suggest_contrast(scene, self.model)
        cycles = {"cycles": int(given["cycles"])} if "cycles" in given else {}
        scheme = schemes.kinds()[given["scheme"]](**cycles)
        return {"model": kind(**own), "time": given["time"], "scheme": scheme}

    def _verb(self, given: Mapping[str, Any], scene: Scene) -> dict[str, Any]:
        own = self.parameters
        mask = LazyMask(cache(lambda: self.unknown(scene)), cache(lambda: self.unknown_here(scene)))
        return ({"mask": mask} if self.verb.fills else {}) | {
            name: value
            for name, value in given.items()
            if own[name].required or value not in (AUTO, own[name].default)
        }

    def _check(self, scene: Scene) -> None:
        missing, infinite = scene.statistics.invalid_pixels
        filling = " or ".join(name.capitalize() for name, verb in methods().items() if verb.fills)
        if infinite:
            raise ValueError(
                f"{_count(infinite)} infinite: such values would spread over the whole image. Replace them "
                f"in the file; if they are NaN, {filling} fills them in."
            )
        if missing and not self.verb.takes("mask"):
            raise ValueError(
                f"{_count(missing)} NaN: such values would spread over the whole image. Choose {filling}, "
                "which fills them in."
            )


def methods() -> dict[str, Verb]:
    """Return the methods by name, in the order in which they are shown."""
    return {**VERBS, DIFFUSE.name: DIFFUSE}


def parameters_of(method: str, model: str) -> dict[str, Parameter]:
    """Return the parameters of a method by name; `model` is used if the method takes one."""
    verb = methods()[method]
    if not verb.takes("model"):
        return {name: each for name, each in verb.parameters.items() if not each.about.advanced}
    fields = of_model(kinds()[model])
    if "contrast" in fields:  # can be estimated from the image; other fields have defaults that suit all
        fields["contrast"] = replace(fields["contrast"], automatic=True)
    return fields | {each.name: each for each in _DIFFUSION_PARAMETERS}


def suggest_contrast(scene: Scene, model: str) -> float:
    """Return a contrast for a model, from the typical gradient of the image, with three digits."""
    share = _COHERENCE_SHARE if issubclass(kinds()[model], CoherenceEnhancing) else 1.0
    share *= _VOLUME_SHARE if scene.whole else 1.0
    return float(f"{share * scene.statistics.measures.typical:.3g}")


def _count(values: int) -> str:
    return "one value of the image is" if values == 1 else f"{values} values of the image are"


def _with_missing(image: Array, channel_axis: int | None, chosen: Mask | None) -> Mask:
    """Return the chosen pixels and those that are NaN."""
    if image.dtype.kind == "f":
        missing = np.isnan(image)
        mask: Mask = missing if channel_axis is None else np.any(missing, axis=-1)
    else:
        mask = np.zeros(image.shape if channel_axis is None else image.shape[:-1], bool)
    if chosen is not None:
        mask |= chosen
    return mask
