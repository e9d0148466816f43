"""The commands of the verbs, generated from their table: a new verb or parameter needs no code here."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any

import typer

from aniso.cli.options import parsing
from aniso.cli.options.diffusion_options import StencilOptions
from aniso.cli.options.plan_options import PlanOptions
from aniso.cli.options.shared import (
    ClusterOptions,
    ComputingOptions,
    Files,
    MaskOptions,
    ReadingOptions,
    ReportingOptions,
    WritingOptions,
    default_words,
    describe,
    number,
    option,
)
from aniso.parameters import Parameter
from aniso.verbs.table import Verb


def make_command(verb: Verb) -> Callable[..., None]:
    """Return a function whose signature has the options of a verb and whose docstring is its help."""
    shared: list[tuple[str, Any]] = [
        ("files", Files),
        *([("stencil", StencilOptions)] if verb.takes_stencil else []),
        *([("plans", PlanOptions)] if verb.choose else []),
        *([("unknown", MaskOptions)] if verb.fills else []),
        *[("reading", ReadingOptions), ("writing", WritingOptions), ("computing", ComputingOptions)],
        *([("cluster", ClusterOptions)] if verb.choose else []),
        ("reporting", ReportingOptions),
    ]
    required = [(each.name, _argument(each)) for each in verb.parameters.values() if each.required]
    optional = [(each.name, *_option(each)) for each in verb.parameters.values() if not each.required]

    def command(**values: Any) -> None:
        _run(verb, **values)

    function: Any = command
    function.__doc__ = _help(verb)
    rows = [*((*row, inspect.Parameter.empty) for row in [*required, *shared]), *optional]
    function.__annotations__ = {name: kind for name, kind, _ in rows}
    function.__signature__ = inspect.Signature(
        [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
            for name, _, default in rows
        ]
    )
    return command


def _help(verb: Verb) -> str:
    result = verb.output.format(stem="photo", suffix=".jpg", factor="2")
    stores = (
        " Zarr stores, which may be larger than memory, are filtered block by block; repeat the command to "
        "continue an interrupted run."
        if verb.choose
        else ""
    )
    return f"{verb.summary}\n\n{verb.description}\n\nThe result of photo.jpg is {result}.{stores}"


def _argument(parameter: Parameter) -> Any:
    about, name = parameter.about, parameter.name
    return Annotated[
        int,
        typer.Argument(
            parser=parsing.integer_argument(name, int(about.low), int(about.high)),
            help=f"{about.meaning[0].upper()}{about.meaning[1:]}, {about.low:g} to {about.high:g}.",
            metavar=name.upper(),
            show_default=False,
        ),
    ]


def _option(parameter: Parameter) -> tuple[Any, Any]:
    """Return the type and the option of a parameter."""
    about, name = parameter.about, parameter.name.replace("_", "-")
    text = f"{describe(about)} Default: {default_words(parameter)}."
    if about.switch:
        return bool | None, option(text, f"--{name}/--no-{name}")
    if about.whole:
        return int | None, option(text, min=int(about.low), metavar="N")
    if about.kinds:
        text = (
            f"{describe(about)} Or its kind: {', '.join(about.kinds)}, or e.g. {about.kinds[1]}:2. Default: "
            + (f"{default_words(parameter)}.")
        )
        return str | None, option(text, parser=parsing.noise, metavar="NOISE")
    limits: dict[str, Any] = {"low": about.low, "high": about.high, "open_low": about.open_low}
    return float | None, number(text, auto=parameter.automatic, **limits)


def _run(
    verb: Verb,
    *,
    files: list[str],
    reading: ReadingOptions,
    writing: WritingOptions,
    computing: ComputingOptions,
    reporting: ReportingOptions,
    stencil: StencilOptions | None = None,
    unknown: MaskOptions | None = None,
    plans: PlanOptions | None = None,
    cluster: ClusterOptions | None = None,
    **values: Any,
) -> None:
    from aniso.cli.files.reading import unknown_pixels
    from aniso.cli.jobs.file_job import FileJob
    from aniso.cli.jobs.filtering import Filter, filter_files
    from aniso.cli.jobs.plans import PlanFile, read_plan, reject_options
    from aniso.cli.jobs.reporting import Report, Tell
    from aniso.cli.jobs.zarrs import StoreFilter
    from aniso.io.pages import Page, Pages
    from aniso.verbs.plan import note_spacing

    options = {name: value for name, value in values.items() if value is not None}
    if stencil is not None and (chosen := stencil.chosen()) is not None:
        options["stencil"] = chosen
    if unknown is not None:
        unknown.check()

    frames = plans is not None and plans.frames
    if frames:
        if reading.volume:
            raise typer.BadParameter("--frames and --volume contradict each other. Give one of them.")
        reading = replace(reading, volume=False)
    job = FileJob(verb.name, files, reading, writing, computing, reporting)
    plan, saved = None, None
    if plans is not None:
        plans.check()
        if plans.save_plan is not None:
            saved = PlanFile(plans.save_plan, verb.name, writing.force, frames)
        if plans.plan is not None:
            spaced = ["spacing"] if computing.spacing is not None else []
            needed = [name for name, each in verb.parameters.items() if each.required]
            reject_options([name for name in (*options, *spaced) if name not in needed])
            with job.report.attempt(str(plans.plan)):
                plan = read_plan(plans.plan, verb.name)
            if plan is None:
                job.report.finish()

    def filters(pages: Pages, report: Report) -> Filter:
        mask = None if unknown is None else unknown_pixels(unknown, pages.picture, reading, report)
        common = _plan_of_frames(verb, pages, computing, options) if frames and plan is None else plan
        if plan is not None:
            note_spacing(plan, pages.spacing, report.note)

        def filter_page(page: Page, tell: Tell) -> tuple[Any, Any]:
            if common is not None:
                used = computing.arguments(page)
                del used["spacing"]  # the plan has its own
                return common.apply(page.image, **used, progress=tell), common
            masks = {} if mask is None else {"mask": pages.part_of_mask(mask, page)}
            described = {**options, **masks, **computing.arguments(page)}
            result, info = verb.function(page.image, **described, progress=tell, return_info=True)
            return result, info

        return filter_page

    stores = None
    if cluster is not None:
        stores = StoreFilter(cluster, plan or verb, {} if plan else options, saved)
    filter_files(
        job,
        verb.output.replace("{factor}", str(values.get("factor", ""))),
        filters,
        stores=stores,
        saved=saved,
        factor=values["factor"] if verb.refines else 1,
        unknown=verb.fills,
    )


def _plan_of_frames(verb: Verb, pages: Any, computing: ComputingOptions, options: dict[str, Any]) -> Any:
    """Return one plan for all pages."""
    from aniso.verbs.choosing import make_plan
    from aniso.verbs.source import Frames, ImageSource, sampled_frames

    numbers = sampled_frames(pages.count)
    used: dict[str, Any] = {}
    sources = []
    for page in pages:
        if page.number - 1 in numbers:
            used = computing.arguments(page)
            sources.append(ImageSource.check(page.image, used.pop("channel_axis")))
    frames = Frames(sources[0].array, sources[0].channel_axis, tuple(sources), 0)
    return make_plan(verb, frames, options, **used)
