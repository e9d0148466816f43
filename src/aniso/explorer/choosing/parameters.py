"""What can be chosen for each method: fields of the models, and options of the verbs in the same form."""

from __future__ import annotations

from dataclasses import replace

from aniso.models import kinds
from aniso.parameters import TIME, About, Parameter, of_model
from aniso.verbs.table import VERBS

#: Method → what it is for.
METHODS = {**{verb.name: verb.summary for verb in VERBS.values()}, "diffuse": "Diffuse with any model."}

_TIME = Parameter("time", 10.0, replace(TIME, open_low=False))
_SCHEME = (
    Parameter(
        "scheme",
        "fed",
        About(
            choices=("explicit", "fed", "fsi"),
            meaning="explicit: a tensor for every step; fed, fsi: cycles that reach long times sooner",
        ),
    ),
    Parameter(
        "cycles",
        5,
        About(
            choices=(1, 2, 3, 5, 8, 12, 20),
            meaning="number of tensors that fed and fsi compute; more follow the image more closely",
        ),
    ),
)


def of(method: str, model: str) -> dict[str, Parameter]:
    """The parameters of a method by name; `model` counts for "diffuse" alone.

    Examples
    --------
    >>> from aniso.explorer import parameters
    >>> list(parameters.of("diffuse", "edge-enhancing"))
    ['contrast', 'sigma', 'diffusivity', 'time', 'scheme', 'cycles']
    >>> parameters.of("diffuse", "edge-enhancing")["sigma"].about.symbol
    'σ'
    """
    if method != "diffuse":
        own = VERBS[method].parameters
        return {name: parameter for name, parameter in own.items() if not parameter.about.advanced}
    own = [
        # A contrast that suits the image can be estimated; other fields have defaults that suit all.
        replace(parameter, automatic=parameter.name == "contrast")
        for parameter in of_model(kinds()[model]).values()
    ]
    return {parameter.name: parameter for parameter in (*own, _TIME, *_SCHEME)}
