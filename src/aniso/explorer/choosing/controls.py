"""Controls of the page, generated from parameters: unit, range for this image, and what auto chose."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from aniso.explorer.choosing.choices import AUTO, Choices, suggested_contrast
from aniso.explorer.choosing.scene import Scene
from aniso.parameters import Parameter

#: How a slider's way maps to values: even steps, finer near the low end, or even factors.
LINEAR, ROOT, LOG = "linear", "root", "log"


@dataclass(frozen=True)
class Control:
    """All that the page has to know to show one."""

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
    automatic: bool = False
    chosen: float | None = None

    def as_props(self) -> dict[str, Any]:
        """For the component in the browser."""
        return asdict(self)


def controls(choices: Choices, scene: Scene, found: dict[str, float]) -> list[Control]:
    """The controls of a method for a scene; `found` is what was chosen automatically, as far as known."""
    own = choices.parameters
    if "scheme" in own and choices.value("scheme") == "explicit":
        del own["cycles"]  # explicit steps have none
    return [
        _control(parameter, choices, scene, found)
        for parameter in own.values()
        if scene.whole or not parameter.about.for_volumes
    ]


def _control(parameter: Parameter, choices: Choices, scene: Scene, found: dict[str, float]) -> Control:
    about, value = parameter.about, choices.value(parameter.name)
    common = {
        "name": parameter.name,
        "label": parameter.name.replace("_", " ").capitalize(),
        "symbol": about.symbol,
        "unit": _unit(about.unit, choices, scene),
        "meaning": about.meaning,
        "kind": parameter.kind,
        "default": AUTO if parameter.automatic else parameter.default,
        "value": value,
    }
    if parameter.kind == "choice":
        return Control(**common, choices=tuple(about.choices))
    if parameter.kind == "switch":
        return Control(**common)
    low, high, scale = limits(parameter, choices, scene)
    chosen = found.get(parameter.name)
    if choices.method == "diffuse" and parameter.name == "contrast":
        chosen = suggested_contrast(scene, choices.model)
    return Control(
        **common,
        low=low,
        high=high,
        scale=scale,
        automatic=parameter.automatic,
        chosen=chosen,
    )


def limits(parameter: Parameter, choices: Choices, scene: Scene) -> tuple[float, float, str]:
    """Low and high end of a slider for this scene, and its scale.

    They follow from the unit, so that a parameter of a new model gets a sensible range too. Values outside
    can still be typed in.
    """
    about, measures = parameter.about, scene.measures
    pixel = _pixel(choices, scene)
    if about.unit == "grey values per unit length":
        return _digits(0.03 * measures.typical / pixel), _digits(2 * measures.steepest / pixel), LOG
    if about.unit == "grey values":
        low, high = scene.grey_range
        return 0.0, _digits(max(4 * measures.noise, 0.1 * (high - low))), ROOT
    if about.unit == "length²":
        return 0.0, 100.0 * pixel**2, ROOT
    if about.unit == "length":
        low, high = about.slider or (0.0, 12.0)
        return low * pixel, _digits(max(4.0, min(high, measures.side / 8)) * pixel), ROOT
    low, high = about.slider or (float(about.low), min(float(about.high), 1e3))
    small = isinstance(parameter.default, float) and parameter.default < 0.1 * high
    return low, high, ROOT if small and low == 0 else LOG if small else LINEAR


def _pixel(choices: Choices, scene: Scene) -> float:
    from aniso.estimates import pixel_size

    spacing = choices.spacing(scene)
    return 1.0 if spacing is None else pixel_size(spacing)


def _unit(unit: str, choices: Choices, scene: Scene) -> str:
    """Units of length are pixels, unless the file's own are used."""
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
    """Two digits are enough for the end of a slider."""
    return float(f"{value:.2g}")
