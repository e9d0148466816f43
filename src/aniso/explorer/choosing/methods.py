"""The methods of the explorer and their parameters: the verbs, and diffusion with any model."""

from __future__ import annotations

from dataclasses import replace

from aniso import schemes
from aniso.models import kinds
from aniso.parameters import TIME, About, Parameter, of_model
from aniso.verbs.table import DIFFUSE, VERBS, Verb

_TIME = Parameter("time", 10.0, replace(TIME, open_low=False))
_SCHEME = Parameter(
    "scheme",
    "fed",
    About(
        choices=tuple(schemes.kinds()),
        meaning="explicit computes a tensor for every step; the cycles of fed and fsi reach long times "
        "faster",
    ),
)
_CYCLES = Parameter(
    "cycles",
    5,
    About(
        choices=(1, 2, 3, 5, 8, 12, 20),
        meaning="number of cycles of fed and fsi, with one tensor each; more cycles are more accurate",
    ),
)


def methods() -> dict[str, Verb]:
    """Return the methods by name, in the order in which they are shown."""
    return {**VERBS, DIFFUSE.name: DIFFUSE}


def parameters_of(method: str, model: str) -> dict[str, Parameter]:
    """Return the parameters of a method by name; `model` is used if the method takes one.

    Examples
    --------
    >>> from aniso.explorer.choosing.methods import parameters_of
    >>> list(parameters_of("diffuse", "edge-enhancing"))
    ['contrast', 'sigma', 'diffusivity', 'time', 'scheme', 'cycles']
    >>> parameters_of("diffuse", "edge-enhancing")["sigma"].about.symbol
    'σ'
    """
    verb = methods()[method]
    if not verb.takes_model:
        return {name: each for name, each in verb.parameters.items() if not each.about.advanced}
    fields = of_model(kinds()[model])
    if "contrast" in fields:  # can be estimated from the image; other fields have defaults that suit all
        fields["contrast"] = replace(fields["contrast"], automatic=True)
    return {**fields, "time": _TIME, "scheme": _SCHEME, "cycles": _CYCLES}


def has_cycles(scheme: str) -> bool:
    """Whether a scheme of this name has a number of cycles."""
    return "cycles" in schemes.kinds()[scheme].__dataclass_fields__


def scheme_of(name: str, cycles: float) -> schemes.Scheme:
    """Return the scheme of this name; `cycles` is used if it has them."""
    return schemes.kinds()[name](**({"cycles": int(cycles)} if has_cycles(name) else {}))
