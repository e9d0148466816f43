"""Options generated from the fields of the models: a new model, or a new field, appears automatically."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import make_dataclass
from typing import Annotated, Any, Literal

import typer

from aniso import models
from aniso.cli.options import parsing
from aniso.cli.options.bundles import default_words, describe, number_option
from aniso.parameters import Parameter, of_model

_PANEL = "Model"


def model_options() -> Any:
    """Return a bundle with a choice of model, and an option for each field of any of them."""
    names: Any = tuple(models.kinds())
    lines = [f"{name} ({_first_words(kind)})" for name, kind in models.kinds().items()]
    choice = typer.Option(
        "--model",
        "-m",
        help=f"Diffusion model: {'; '.join(lines)}.",
        rich_help_panel=_PANEL,
        metavar="NAME",
    )
    entries: list[Any] = [("model", Annotated[Literal[names], choice], "edge-enhancing")]
    for name, owners in _fields().items():
        entries.append((name, _option(name, owners), None))
    namespace = {"chosen": _chosen, "given": _given}
    return make_dataclass("ModelOptions", entries, frozen=True, namespace=namespace)


def _given(options: Any) -> list[str]:
    """Return the options of the model that were given."""
    return [_flag(name) for name in _fields() if getattr(options, name) is not None]


def _chosen(options: Any) -> models.ImageDriven:
    """Return the model that the options describe."""
    kind = models.kinds()[options.model]
    own = list(of_model(kind))
    given = {name: value for name in _fields() if (value := getattr(options, name)) is not None}
    for name in given:
        if name not in own:
            has = ", ".join(map(_flag, own)) or "no parameters"
            raise typer.BadParameter(f"the model {options.model} has no {_flag(name)}; it has {has}.")
    with parsing.usage():
        return kind(**given)


def _fields() -> dict[str, dict[str, Parameter]]:
    """Return field name → model name → parameter."""
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
    """Return meaning, symbol, unit, range and default of a field; defaults may differ between models."""
    about = next(iter(owners.values())).about
    limits = (
        ", ".join(about.choices) if about.choices else parsing.span(about.low, about.high, about.open_low)
    )
    values = "" if about.switch else f" Values: {limits}."
    by_default: dict[str, list[str]] = {}
    for model, field in owners.items():
        by_default.setdefault(default_words(field), []).append(model)
    defaults = "; ".join(f"{value} ({', '.join(names)})" for value, names in by_default.items())
    return f"{describe(about)}{values} Default: {defaults}."


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _first_words(kind: type) -> str:
    """Return what a model does, from the first line of its docstring."""
    line = (kind.__doc__ or "").strip().splitlines()[0]
    return line.partition(": ")[2].rstrip(".") or line.rstrip(".")
