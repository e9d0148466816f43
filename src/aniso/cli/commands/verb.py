"""The commands of the verbs, made from their table: a new verb, or a new parameter, needs no code here."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from aniso.cli.files.masks import Unknown
from aniso.cli.options import parsing
from aniso.cli.options.bundles import (
    Cluster,
    Computing,
    Files,
    Reading,
    Reporting,
    Stencil,
    Writing,
    flag,
    number_option,
)
from aniso.parameters import Parameter
from aniso.verbs.table import Verb


def command_of(verb: Verb) -> Callable[..., None]:
    """Return the function whose signature is the options of a verb and whose docstring is its help."""
    bundles: dict[str, Any] = {"reading": Reading, "writing": Writing, "computing": Computing}
    if verb.fills:
        bundles = {"unknown": Unknown, **bundles}
    if verb.takes_stencil:
        bundles = {"stencil": Stencil, **bundles}
    if verb.stores:
        bundles["cluster"] = Cluster
    bundles["reporting"] = Reporting
    required = {name: _argument(each) for name, each in verb.parameters.items() if each.required}
    optional = {name: _option(each) for name, each in verb.parameters.items() if not each.required}
    kinds = {**required, "files": Files, **bundles, **optional}

    def command(**values: Any) -> None:
        _run(verb, **values)

    command.__doc__ = _help(verb)
    command.__annotations__ = {**kinds, "return": None}
    function: Any = command
    function.__signature__ = inspect.Signature(
        [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=None if name in optional else inspect.Parameter.empty,
                annotation=kind,
            )
            for name, kind in kinds.items()
        ]
    )
    return command


def _help(verb: Verb) -> str:
    factor = "2" if verb.refines else ""
    result = verb.output.format(stem="photo", suffix=".jpg", factor=factor)
    stores = (
        " Zarr stores, which may be larger than memory, are filtered block by block with a single diffusion; "
        "the same command continues an interrupted run."
        if verb.stores
        else ""
    )
    return f"{verb.summary}\n\n{verb.description}\n\nphoto.jpg becomes {result}.{stores}"


def _argument(parameter: Parameter) -> Any:
    about, name = parameter.about, parameter.name
    return Annotated[
        int,
        typer.Argument(
            parser=parsing.whole_argument(name, int(about.low), int(about.high)),
            help=f"{_capital(about.meaning)}, {about.low:g} to {about.high:g}.",
            metavar=name.upper(),
            show_default=False,
        ),
    ]


def _option(parameter: Parameter) -> Any:
    about, name = parameter.about, parameter.name.replace("_", "-")
    if about.switch:
        default = "yes" if parameter.default else "no"
        text = f"{'For volumes: ' if about.for_volumes else ''}{about.meaning}. Default: {default}."
        return Annotated[bool | None, flag(f"--{name}/--no-{name}", help=_capital(text))]
    words = about.auto if parameter.automatic else f"{parameter.default:g}"
    named = ", ".join(part for part in (about.symbol, about.unit) if part)
    text = f"{_capital(about.meaning)}{f' ({named})' if named else ''}. Default: {words}."
    if about.whole:
        option = typer.Option(help=text, min=int(about.low), metavar="N", show_default=False)
        return Annotated[int | None, option]
    limits: dict[str, Any] = {"low": about.low, "high": about.high, "open_low": about.open_low}
    return Annotated[float | None, number_option(text, auto=parameter.automatic, **limits)]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _run(
    verb: Verb,
    *,
    files: list[str],
    reading: Reading,
    writing: Writing,
    computing: Computing,
    reporting: Reporting,
    stencil: Stencil | None = None,
    unknown: Unknown | None = None,
    cluster: Cluster | None = None,
    **values: Any,
) -> None:
    from aniso.cli.jobs.filtering import Filter, call_verb, filter_files
    from aniso.cli.jobs.reporting import Report, Tell
    from aniso.cli.jobs.work import Work
    from aniso.cli.jobs.zarrs import InStores
    from aniso.io.pages import Page, Pages

    options = {name: value for name, value in values.items() if value is not None}
    if stencil is not None and (chosen := stencil.chosen()) is not None:
        options["stencil"] = chosen
    if unknown is not None:
        unknown.check()

    def filters(pages: Pages, report: Report) -> Filter:
        mask = None if unknown is None else unknown.mask(pages.picture, reading, report)

        def filtered(page: Page, tell: Tell) -> tuple[Any, Any]:
            masks = {} if mask is None else {"mask": pages.part_of_mask(mask, page)}
            return call_verb(verb.function, page, computing, tell, **options, **masks)

        return filtered

    stores = None
    if cluster is not None:
        from aniso.verbs.chunked_recipes import RECIPES

        default = inspect.signature(verb.function).parameters["stencil"].default
        used = {"stencil": default, **options}
        stores = InStores(
            cluster,
            lambda windows, spacings: RECIPES[verb.name](windows(), spacings, **used),
            used["stencil"],
        )
    filter_files(
        Work(verb.name, files, reading, writing, computing, reporting),
        verb.output.replace("{factor}", str(values.get("factor", ""))),
        filters,
        stores=stores,
        factor=values["factor"] if verb.refines else 1,
        unknown=verb.fills,
    )
