"""What was chosen on the page, and the call of the library that it amounts to."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

import aniso
from aniso.explorer.choosing import masks, parameters
from aniso.explorer.choosing.scene import Scene
from aniso.models import CoherenceEnhancing, EdgeContinuing, FixedTensor, ImageDriven, kinds
from aniso.parameters import Parameter
from aniso.stencil import DeltaStencil

Array = npt.NDArray[Any]
#: In place of a value: the library, or an estimate, chooses.
AUTO = "auto"
# Structures are to be enhanced well below the strength that they typically have.
_COHERENCE_SHARE = 0.4
# In volumes half as much, as for enhance: there is more to average over.
_VOLUME_SHARE = 0.5


@dataclass(frozen=True, eq=False)
class Choices:
    """All that the user chose; what is not in `values` is as by default.

    `values` has the keys (method or model, parameter), so that each keeps its own.
    """

    method: str = "denoise"
    model: str = "edge-enhancing"
    values: Mapping[tuple[str, str], Any] = field(default_factory=dict)
    stencil: DeltaStencil | None = None
    file_spacing: bool = False
    random_pixels: masks.RandomPixels | None = field(default_factory=masks.RandomPixels)
    drawn: masks.Mask | None = None

    @property
    def parameters(self) -> dict[str, Parameter]:
        """What can be chosen now."""
        return parameters.of(self.method, self.model)

    @property
    def owner(self) -> str:
        """Whose parameters they are."""
        return self.model if self.method == "diffuse" else self.method

    def value(self, name: str) -> Any:
        """Of a parameter: what was chosen, else its default; AUTO where that is left to the library."""
        parameter = self.parameters[name]
        usual = AUTO if parameter.automatic else parameter.default
        return self.values.get((self.owner, name), usual)

    def with_value(self, name: str, value: Any) -> Choices:
        """With another value of a parameter; None brings the default back."""
        values = {key: old for key, old in self.values.items() if key != (self.owner, name)}
        if value is not None:
            values[self.owner, name] = value
        return replace(self, values=values)

    def chosen_unknown(self, scene: Scene) -> masks.Mask | None:
        """Pixels to be filled in that were chosen at random or drawn, not those that are NaN."""
        if self.random_pixels is not None:
            return self.random_pixels.mask(scene.extent)
        return self.drawn if self.drawn is not None and self.drawn.shape == scene.extent else None

    def unknown(self, scene: Scene) -> masks.Mask:
        """All pixels to be filled in, in a new array."""
        return _with_missing(scene.filtered, scene.channel_axis, self.chosen_unknown(scene))

    def unknown_here(self, scene: Scene) -> masks.Mask:
        """Those of the image on the page: much fewer than in a volume."""
        chosen = self.chosen_unknown(scene)
        shown = None if chosen is None else scene.shown(chosen)
        return _with_missing(scene.image, scene.channel_axis, shown)

    def spacing(self, scene: Scene) -> tuple[float, ...] | None:
        """Distance of the pixels; None is 1."""
        return scene.spacing if self.file_spacing else scene.voxel_shape

    def call(self, scene: Scene) -> Call:
        """The call that computes the result for the whole image or volume."""
        self._check(scene)
        options: dict[str, Any] = {}
        arguments: tuple[Any, ...] = ()
        given = {
            name: self.value(name)
            for name, parameter in self.parameters.items()
            if scene.whole or not parameter.about.for_volumes
        }
        if self.method == "diffuse":
            arguments = self._model(given, scene), given["time"]
            options["scheme"] = _scheme(given["scheme"], given["cycles"])
        else:
            options = {
                name: value
                for name, value in given.items()
                if value not in (AUTO, self.parameters[name].default)
            }
        if self.method == "upsample":
            options.pop("factor", None)
            arguments = (given["factor"],)
        if self.method == "inpaint":
            arguments = (Unknown(lambda: self.unknown(scene), lambda: self.unknown_here(scene)),)
        if self.stencil is not None and self.method in ("denoise", "enhance", "diffuse"):
            options["stencil"] = self.stencil
        spacing = self.spacing(scene)
        if spacing is not None:
            options["spacing"] = spacing
        if scene.channel_axis is not None:
            options["channel_axis"] = scene.channel_axis
        return Call(self.method, arguments, options)

    def _check(self, scene: Scene) -> None:
        missing, infinite = scene.refused_pixels
        if infinite:
            raise ValueError(
                f"{_count(infinite)} infinite: such values would spread over the whole image. Replace them "
                "in the file; where they are NaN, Inpaint fills them in."
            )
        if missing and self.method != "inpaint":
            raise ValueError(
                f"{_count(missing)} NaN: such values would spread over the whole image. Choose Inpaint, "
                "which fills them in."
            )

    def _model(self, given: Mapping[str, Any], scene: Scene) -> ImageDriven:
        kind = kinds()[self.model]
        own = {name: value for name, value in given.items() if name in _fields(kind)}
        if own.get("contrast") == AUTO:
            own["contrast"] = suggested_contrast(scene, self.model)
        return kind(**own)


def suggested_contrast(scene: Scene, model: str) -> float:
    """A contrast for a model, from the typical gradient of the image, in three digits."""
    share = _COHERENCE_SHARE if issubclass(kinds()[model], CoherenceEnhancing) else 1.0
    share *= _VOLUME_SHARE if scene.whole else 1.0
    return float(f"{share * scene.measures.typical:.3g}")


class Unknown:
    """A mask that is made when it is needed, by the thread that needs it: it may be large.

    `make` gives it for all that is filtered, `make_here` for the image on the page.
    """

    def __init__(self, make: Callable[[], masks.Mask], make_here: Callable[[], masks.Mask]) -> None:
        self._make, self._make_here = make, make_here

    @functools.cached_property
    def mask(self) -> masks.Mask:
        """True where a pixel is unknown."""
        return self._make()

    @functools.cached_property
    def here(self) -> masks.Mask:
        """The same for the image on the page."""
        return self._make_here()


@dataclass(frozen=True, eq=False)
class Call:
    """A function of the library, with what it gets besides the image."""

    verb: str
    arguments: tuple[Any, ...]
    options: Mapping[str, Any]

    @property
    def function(self) -> Callable[..., Any]:
        """The function itself."""
        function: Callable[..., Any] = getattr(aniso, self.verb)
        return function

    def __call__(self, image: Array, progress: Callable[[float, float], object]) -> tuple[Array, Any]:
        """The result, and what the verb says about it."""
        if self.verb == "diffuse":
            return self.function(image, *self.arguments, **self.options, progress=progress), None
        given = [each.mask if isinstance(each, Unknown) else each for each in self.arguments]
        result, info = self.function(image, *given, **self.options, progress=progress, return_info=True)
        return result, info

    def steering(self, info: Any) -> tuple[ImageDriven, float] | None:
        """The model that steers the diffusion and its time; None if that is not known (yet)."""
        if self.verb == "diffuse":
            model, time = self.arguments
            return model, time
        if info is None:
            return None
        if self.verb == "denoise":
            return None if info.model is None else (info.model, info.time)
        if self.verb == "enhance":
            plates = self.options.get("plates", True)
            model = CoherenceEnhancing(info.contrast, info.sigma, info.rho, plates=plates)
            return model, info.time
        edges = EdgeContinuing(info.contrast, info.sigma, info.rho)
        return edges, 10.0 if self.verb == "inpaint" else info.time


def _count(values: int) -> str:
    return "one value of the image is" if values == 1 else f"{values} values of the image are"


def _with_missing(image: Array, channel_axis: int | None, chosen: masks.Mask | None) -> masks.Mask:
    """The chosen pixels and those that are NaN."""
    if image.dtype.kind == "f":
        missing = np.isnan(image)
        mask: masks.Mask = missing if channel_axis is None else np.any(missing, axis=-1)
    else:
        mask = np.zeros(image.shape if channel_axis is None else image.shape[:-1], bool)
    if chosen is not None:
        mask |= chosen
    return mask


def _fields(kind: type[ImageDriven] | type[FixedTensor]) -> set[str]:
    return set(kind.__dataclass_fields__)


def _scheme(name: str, cycles: int) -> Any:
    if name == "explicit":
        return aniso.Explicit()
    return {"fed": aniso.FED, "fsi": aniso.FSI}[name](int(cycles))
