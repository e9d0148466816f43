"""Options made from the fields of the models: a new model, or a new field, appears by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import make_dataclass
from typing import Annotated, Any, Literal

import typer

from aniso import models
from aniso.cli.options import parsing
from aniso.cli.options.bundles import number_option
from aniso.parameters import Parameter, of_model

_PANEL = "Model"


def model_options() -> Any:
    """A bundle with a choice of model, and an option for each field of any of them."""
    names: Any = tuple(models.kinds())
    lines = [f"{name} ({_first_words(kind)})" for name, kind in models.kinds().items()]
    choice = typer.Option(
        "--model",
        "-m",
        help=f"What steers the diffusion: {'; '.join(lines)}.",
        rich_help_panel=_PANEL,
        metavar="NAME",
    )
    entries: list[Any] = [("model", Annotated[Literal[names], choice], "edge-enhancing")]
    for name, owners in _fields().items():
        entries.append((name, _option(name, owners), None))
    namespace = {"chosen": _chosen, "given": _given}
    return make_dataclass("ModelOptions", entries, frozen=True, namespace=namespace)


def _given(options: Any) -> list[str]:
    """The options of the model that were given."""
    return [_flag(name) for name in _fields() if getattr(options, name) is not None]


def _chosen(options: Any) -> models.ImageDriven:
    """The model that the options describe."""
    kind = models.kinds()[options.model]
    own = list(of_model(kind))
    given = {name: value for name in _fields() if (value := getattr(options, name)) is not None}
    for name in given:
        if name not in own:
            has = ", ".join(map(_flag, own)) or "no parameters"
            raise typer.BadParameter(f"{options.model} diffusion has no {_flag(name)}; it has {has}.")
    with parsing.usage():
        return kind(**given)


def _fields() -> dict[str, dict[str, Parameter]]:
    """Field name → model name → parameter."""
    found: dict[str, dict[str, Parameter]] = {}
    for name, kind in models.kinds().items():
        for parameter in of_model(kind).values():
            found.setdefault(parameter.name, {})[name] = parameter
    # As in the models: contrast before the scales before what few have.
    return dict(sorted(found.items(), key=lambda entry: (-len(entry[1]), entry[0])))


def _option(name: str, owners: Mapping[str, Parameter]) -> Any:
    about = next(iter(owners.values())).about
    if about.choices:
        kind: Any = Literal[tuple(about.choices)]
        return Annotated[
            kind | None,
            typer.Option(
                _flag(name), help=_help(owners), show_default=False, rich_help_panel=_PANEL, metavar="NAME"
            ),
        ]
    if about.switch:
        return Annotated[
            bool | None,
            typer.Option(
                f"{_flag(name)}/--no-{name.replace('_', '-')}",
                help=_help(owners),
                show_default=False,
                rich_help_panel=_PANEL,
            ),
        ]
    limits = {"low": about.low, "high": about.high, "open_low": about.open_low}
    return Annotated[float | None, number_option(_help(owners), panel=_PANEL, **limits)]


def _help(owners: Mapping[str, Parameter]) -> str:
    """Symbol, unit, range, meaning and default of a field; the defaults may differ from model to model."""
    about = next(iter(owners.values())).about
    if about.switch:
        default = "yes" if next(iter(owners.values())).default else "no"
        return f"{about.meaning[0].upper()}{about.meaning[1:]}. Default {default} ({', '.join(owners)})."
    inner = ", ".join(about.choices) if about.choices else parsing.span(about.low, about.high, about.open_low)
    limits = f"{about.unit}, {inner}" if about.unit else inner
    by_default: dict[str, list[str]] = {}
    for model, field in owners.items():
        by_default.setdefault(
            f"{field.default:g}" if isinstance(field.default, float) else field.default, []
        ).append(model)
    defaults = "; ".join(f"{value} ({', '.join(names)})" for value, names in by_default.items())
    comma = "," if ": " in about.meaning else ":"
    return f"{about.symbol} ({limits}){comma} {about.meaning}. Default {defaults}."


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _first_words(kind: type) -> str:
    """What a model does, from the first line of its docstring."""
    line = (kind.__doc__ or "").strip().splitlines()[0]
    return line.partition(": ")[2].rstrip(".") or line.rstrip(".")
