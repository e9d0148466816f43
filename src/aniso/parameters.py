"""Parameters as data: what a reader, a command line or a slider has to know about each of them.

Models describe their fields, verbs the arguments of their functions. Options, sliders, defaults and tables in
the documentation are generated from these descriptions.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from math import inf
from typing import Any, get_type_hints

_KEY = "about"


@dataclass(frozen=True, kw_only=True)
class About:
    """The description of one parameter.

    A parameter is a number in [low, high] (or (low, high], if `open_low`), one of `choices`, or a switch.
    `for_volumes` means that images do not depend on it, `advanced` that the explorer does not show it.
    `slider` is the range of a slider where the unit alone does not suggest one, in pixels for lengths. `auto`
    says in words what "auto" does. `kinds` are words that may stand for a number, or before one, as in
    "rician:12". `needed` means that the command line and the explorer require a value, even if the function
    does not; a parameter that `replaces` it gives one too. `per_axis` means that there may be one number for
    each axis. `unless` is a parameter and its value with which this one has no meaning.
    """

    meaning: str
    symbol: str = ""
    unit: str = ""
    low: float = 0.0
    high: float = inf
    open_low: bool = False
    choices: tuple[Any, ...] = ()
    switch: bool = False
    whole: bool = False
    for_volumes: bool = False
    advanced: bool = False
    slider: tuple[float, float] | None = None
    auto: str = "estimated"
    kinds: tuple[str, ...] = ()
    needed: bool = False
    replaces: str = ""
    per_axis: bool = False
    unless: tuple[str, str] | None = None

    def field(self, default: Any) -> Any:
        """Return a dataclass field with this description."""
        return field(default=default, metadata={_KEY: self})


@dataclass(frozen=True)
class Parameter:
    """A parameter with its name, default and description.

    `automatic` means that "auto" leaves the choice to the library. A parameter without a default is
    `required`.
    """

    name: str
    default: Any
    about: About
    automatic: bool = False

    @property
    def kind(self) -> str:
        """One of "number", "choice" and "switch"."""
        return "switch" if self.about.switch else "choice" if self.about.choices else "number"

    @property
    def required(self) -> bool:
        """Whether a value has to be given."""
        return self.default is inspect.Parameter.empty or self.about.needed

    @property
    def initial(self) -> Any:
        """The value with which a control starts: the default, or the first choice without one."""
        if not self.required:
            return self.default
        return self.about.choices[0] if self.about.choices else self.about.low


def of_model(model: Any) -> dict[str, Parameter]:
    """Return the parameters of a model, a class or an instance, by name."""
    found = {}
    for each in fields(model):
        default = inspect.Parameter.empty if each.default is MISSING else each.default
        found[each.name] = Parameter(each.name, default, each.metadata[_KEY])
    return found


def of_function(function: Callable[..., Any]) -> dict[str, Parameter]:
    """Return the parameters of a function that are annotated with a description, by name."""
    found: dict[str, Parameter] = {}
    hints = get_type_hints(function, include_extras=True)
    for name, parameter in inspect.signature(function).parameters.items():
        for about in getattr(hints[name], "__metadata__", ()):
            if isinstance(about, About):
                default = True if about.switch and parameter.default is None else parameter.default
                found[name] = Parameter(
                    name, default, about, automatic=default in ("auto", None) and not about.needed
                )
    return found


# Descriptions that several models and verbs share.
CONTRAST = About(
    symbol="λ",
    unit="grey values per unit length",
    open_low=True,
    meaning="gradients above it are edges to be kept, gradients below it are smoothed",
)
SIGMA = About(
    symbol="σ", unit="length", meaning="standard deviation of the presmoothing Gaussian (noise scale)"
)
RHO = About(
    symbol="ρ",
    unit="length",
    meaning="standard deviation of the Gaussian that averages the structure tensor (integration scale)",
)
PLATES = About(
    switch=True,
    for_volumes=True,
    meaning="treat plates (layers, membranes) as structures too, not only lines",
)
NOISE = About(unit="grey values", meaning="standard deviation of the noise")
TIME = About(
    symbol="t",
    unit="length²",
    open_low=True,
    meaning="diffusion time; a time t blurs flat regions like a Gaussian of standard deviation √(2t)",
)
