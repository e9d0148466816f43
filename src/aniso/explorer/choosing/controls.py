"""Controls of the page, generated from parameters: unit, range for this image, and the estimated value."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from aniso.estimates import pixel_size
from aniso.explorer.choosing.choices import AUTO, Choices, suggest_contrast
from aniso.explorer.choosing.scene import Scene
from aniso.parameters import Parameter

#: How the position of a slider maps to values: linear, finer near the low end, or logarithmic.
LINEAR, ROOT, LOG = "linear", "root", "log"


@dataclass(frozen=True)
class Control:
    """A control as the page shows it.

    The value of a number may also be AUTO or one of `kinds`: then the number is estimated.
    """

    name: str
    label: str
    symbol: str
    unit: str
    meaning: str
    kind: str
    value: Any
    default: Any
    low: float = 0.0
    high: float = 1.0
    scale: str = LINEAR
    choices: tuple[Any, ...] = ()
    kinds: tuple[str, ...] = ()
    automatic: bool = False
    chosen: float | None = None

    @classmethod
    def of(cls, parameter: Parameter, **others: Any) -> Control:
        """Return the control of a parameter at its default, but for `others`."""
        about = parameter.about
        default = AUTO if parameter.automatic else parameter.initial
        own = {
            "label": parameter.name.replace("_", " ").capitalize(),
            "unit": about.unit,
            "value": default,
            "default": default,
            **{name: getattr(about, name) for name in ("symbol", "meaning", "choices", "kinds")},
        }
        return cls(parameter.name, kind=parameter.kind, **(own | others))


def controls(choices: Choices, scene: Scene, found: dict[str, float]) -> list[Control]:
    """Return the controls of a method for a scene; `found` are the estimated values, as far as known."""
    return [
        _control(parameter, choices, scene, found)
        for name, parameter in choices.parameters.items()
        if choices.applies(name, scene)
    ]


def estimated(plan: Any, names: Iterable[str]) -> dict[str, float]:
    """Return the numbers of these names that a verb chose."""
    values = {name: getattr(plan, name, None) for name in names}
    return {
        name: float(value)
        for name, value in values.items()
        if isinstance(value, float | int) and not isinstance(value, bool) and math.isfinite(value)
    }


def _control(parameter: Parameter, choices: Choices, scene: Scene, found: dict[str, float]) -> Control:
    unit, value = _unit(parameter.about.unit, choices, scene), choices.value(parameter.name)
    control = Control.of(parameter, unit=unit, value=value)
    if parameter.kind != "number":
        return control
    low, high, scale = limits(parameter, choices, scene)
    chosen = found.get(parameter.name)
    if choices.verb.takes("model") and parameter.automatic:
        chosen = suggest_contrast(scene, choices.model)
    return replace(control, low=low, high=high, scale=scale, automatic=parameter.automatic, chosen=chosen)


def limits(parameter: Parameter, choices: Choices, scene: Scene) -> tuple[float, float, str]:
    """Return the low and high end of a slider for this scene, and its scale.

    They follow from the unit, so that a parameter of a new model gets a sensible range too. Values outside
    can still be typed in.
    """
    about, measures, spacing = parameter.about, scene.statistics.measures, choices.spacing(scene)
    pixel = 1.0 if spacing is None else pixel_size(spacing)
    if about.unit == "grey values per unit length":
        return _digits(0.03 * measures.typical / pixel), _digits(2 * measures.steepest / pixel), LOG
    if about.unit == "grey values":
        low, high = scene.source.grey_range
        return 0.0, _digits(max(4 * measures.noise, 0.1 * (high - low))), ROOT
    if about.unit == "length²":
        return 0.0, 100.0 * pixel**2, ROOT
    if about.unit == "length":
        low, high = about.slider or (0.0, 12.0)
        return low * pixel, _digits(max(4.0, min(high, measures.side / 8)) * pixel), ROOT
    low, high = about.slider or (float(about.low), min(float(about.high), 1e3))
    small = isinstance(parameter.default, float) and parameter.default < 0.1 * high
    return low, high, ROOT if small and low == 0 else LOG if small else LINEAR


def _unit(unit: str, choices: Choices, scene: Scene) -> str:
    """Return the unit to show: lengths are in pixels, unless the spacing of the file is used."""
    length = (scene.source.picture.unit or "units") if choices.file_spacing and scene.spacing else "px"
    per = length if length != "units" else "unit"
    words = {
        "length": length,
        "length²": f"{length}²",
        "grey values": "grey",
        "grey values per unit length": f"grey/{per}",
    }
    return words.get(unit, unit)


def _digits(value: float) -> float:
    """Round the end of a slider to two digits."""
    return float(f"{value:.2g}")
