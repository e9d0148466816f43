"""What can be chosen for each method: fields of the models, and options of the verbs in the same form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from aniso.cli.options.model_options import kinds
from aniso.models import EdgeContinuing

#: Method → what it is for.
METHODS = {
    "denoise": "Remove noise; all parameters are estimated.",
    "enhance": "Free lines and flow-like patterns from noise and close their gaps.",
    "inpaint": "Fill in unknown pixels.",
    "upsample": "Make the image finer.",
    "diffuse": "Diffuse with any model.",
}


@dataclass(frozen=True)
class Parameter:
    """A parameter, with the metadata that the fields of models have.

    `automatic` says whether it can be left to the library (or, for models, to an estimate), `for_volumes`
    whether images do not depend on it.
    """

    name: str
    default: Any
    about: Mapping[str, Any]
    automatic: bool = False
    for_volumes: bool = False

    @property
    def kind(self) -> str:
        """One of "number", "choice" and "switch"."""
        return "switch" if "switch" in self.about else "choice" if "choices" in self.about else "number"


def _number(
    name: str, symbol: str, unit: str, meaning: str, default: float | None = None, **limits: Any
) -> Parameter:
    about = {"symbol": symbol, "unit": unit, "low": 0.0, "high": float("inf"), "open_low": False}
    return Parameter(name, default, {**about, "meaning": meaning, **limits}, automatic=default is None)


def _switch(name: str, meaning: str, *, for_volumes: bool = False) -> Parameter:
    about = {"symbol": "", "unit": "", "switch": True, "meaning": meaning}
    return Parameter(name, True, about, for_volumes=for_volumes)


def _of_edges(name: str, **changes: Any) -> Parameter:
    """A parameter of the model behind inpainting and upsampling, which choose it by themselves."""
    about = next(field.metadata for field in fields(EdgeContinuing) if field.name == name)
    return Parameter(name, None, {**about, **changes}, automatic=True)


_NOISE = _number("noise", "", "grey values", "standard deviation of the noise")
_TIME_MEANING = "how long to diffuse; a time t blurs flat regions like a Gaussian of width √(2t)"
_TIME = _number("time", "t", "length²", _TIME_MEANING, open_low=True)

_VERBS: dict[str, tuple[Parameter, ...]] = {
    "denoise": (
        _NOISE,
        _of_edges("contrast"),
        _TIME,
        _switch("mix", "mix several diffusions, or take the best single one"),
    ),
    "enhance": (
        _NOISE,
        _number("wavelength", "", "length", "distance from line to line; all scales follow", open_low=True),
        _of_edges("contrast", meaning="structures that are more coherent than this are enhanced"),
        _TIME,
        _switch("plates", "whether layers are structures too; else only lines are", for_volumes=True),
        _switch("refine", "close gaps and put back what was lost, or diffuse only once"),
    ),
    "inpaint": (
        _of_edges("contrast"),
        _of_edges("sigma"),
        _of_edges("rho"),
        _number(
            "tolerance",
            "",
            "",
            "stop when a cycle changes less than this share of the grey range",
            5e-3,
            low=1e-4,
            high=0.1,
        ),
    ),
    "upsample": (
        Parameter(
            "factor", 2, {"symbol": "", "unit": "×", "choices": (2, 3, 4, 6, 8), "meaning": "how much finer"}
        ),
        _of_edges("contrast"),
        _of_edges("sigma"),
        _of_edges("rho"),
        _TIME,
    ),
}

_SCHEME = (
    Parameter(
        "scheme",
        "fed",
        {
            "symbol": "",
            "unit": "",
            "choices": ("explicit", "fed", "fsi"),
            "meaning": "explicit: a tensor for every step; fed, fsi: cycles that reach long times sooner",
        },
    ),
    Parameter(
        "cycles",
        5,
        {
            "symbol": "",
            "unit": "",
            "choices": (1, 2, 3, 5, 8, 12, 20),
            "meaning": "tensors that fed and fsi compute on their way; more follow the image more closely",
        },
    ),
)


def of(method: str, model: str) -> dict[str, Parameter]:
    """The parameters of a method by name; `model` counts for "diffuse" alone.

    Examples
    --------
    >>> from aniso.explorer import parameters
    >>> list(parameters.of("diffuse", "edge-enhancing"))
    ['contrast', 'sigma', 'diffusivity', 'time', 'scheme', 'cycles']
    >>> parameters.of("diffuse", "edge-enhancing")["sigma"].about["symbol"]
    'σ'
    """
    if method != "diffuse":
        return {parameter.name: parameter for parameter in _VERBS[method]}
    own = [
        # A contrast that suits the image can be estimated; other fields have defaults that suit all.
        Parameter(
            field.name,
            field.default,
            field.metadata,
            automatic=field.name == "contrast",
            for_volumes=field.name == "plates",
        )
        for field in fields(kinds()[model])
    ]
    time = _number("time", "t", "length²", _TIME_MEANING, 10.0)
    return {parameter.name: parameter for parameter in (*own, time, *_SCHEME)}
