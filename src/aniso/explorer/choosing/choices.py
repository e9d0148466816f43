"""What was chosen on the page, and the corresponding call of the library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from aniso import schemes
from aniso.arrays import Array, Mask
from aniso.explorer.choosing.calls import Call, DiffusionCall
from aniso.explorer.choosing.scene import Scene
from aniso.explorer.choosing.unknown_pixels import LazyMask, RandomPixels
from aniso.models import CoherenceEnhancing, kinds
from aniso.parameters import TIME, About, Parameter, of_model
from aniso.stencil import DeltaStencil
from aniso.verbs.table import DIFFUSE, VERBS, Verb

__all__ = ["AUTO", "Call", "Choices", "suggest_contrast"]

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
        return self.model if self.verb.takes_model else self.method

    def value(self, name: str) -> Any:
        """Return the chosen value of a parameter, else its default; AUTO if the library chooses."""
        parameter = self.parameters[name]
        default = AUTO if parameter.automatic else parameter.initial
        return self.values.get((self.owner, name), default)

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
        given = {
            name: self.value(name)
            for name, parameter in self.parameters.items()
            if scene.whole or not parameter.about.for_volumes
        }
        kind = DiffusionCall if self.verb.takes_model else Call
        arguments, options = (self._diffusion if self.verb.takes_model else self._verb)(given, scene)
        common = {
            "stencil": self.stencil if self.verb.takes_stencil else None,
            "spacing": self.spacing(scene),
            "channel_axis": scene.channel_axis,
        }
        options |= {name: value for name, value in common.items() if value is not None}
        return kind(self.verb, arguments, options)

    def _diffusion(self, given: Mapping[str, Any], scene: Scene) -> tuple[tuple[Any, ...], dict[str, Any]]:
        kind = kinds()[self.model]
        own = {name: given[name] for name in of_model(kind) if name in given}
        if own.get("contrast") == AUTO:
            own["contrast"] = suggest_contrast(scene, self.model)
        cycles = {"cycles": int(given["cycles"])} if has_cycles(given["scheme"]) else {}
        return (kind(**own), given["time"]), {"scheme": schemes.kinds()[given["scheme"]](**cycles)}

    def _verb(self, given: Mapping[str, Any], scene: Scene) -> tuple[tuple[Any, ...], dict[str, Any]]:
        own = self.parameters
        mask = LazyMask(lambda: self.unknown(scene), lambda: self.unknown_here(scene))
        required = [value for name, value in given.items() if own[name].required]
        options = {
            name: value
            for name, value in given.items()
            if not own[name].required and value not in (AUTO, own[name].default)
        }
        return (*((mask,) if self.verb.fills else ()), *required), options

    def _check(self, scene: Scene) -> None:
        missing, infinite = scene.invalid_pixels
        filling = " or ".join(name.capitalize() for name, verb in methods().items() if verb.fills)
        if infinite:
            raise ValueError(
                f"{_count(infinite)} infinite: such values would spread over the whole image. Replace them "
                f"in the file; if they are NaN, {filling} fills them in."
            )
        if missing and not self.verb.fills:
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
    if not verb.takes_model:
        return {name: each for name, each in verb.parameters.items() if not each.about.advanced}
    fields = of_model(kinds()[model])
    if "contrast" in fields:  # can be estimated from the image; other fields have defaults that suit all
        fields["contrast"] = replace(fields["contrast"], automatic=True)
    return fields | {each.name: each for each in _DIFFUSION_PARAMETERS}


def has_cycles(scheme: str) -> bool:
    """Whether a scheme of this name has a number of cycles."""
    return "cycles" in schemes.kinds()[scheme].__dataclass_fields__


def suggest_contrast(scene: Scene, model: str) -> float:
    """Return a contrast for a model, from the typical gradient of the image, with three digits."""
    share = _COHERENCE_SHARE if issubclass(kinds()[model], CoherenceEnhancing) else 1.0
    share *= _VOLUME_SHARE if scene.whole else 1.0
    return float(f"{share * scene.measures.typical:.3g}")


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
