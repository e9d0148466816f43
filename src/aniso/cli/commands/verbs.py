"""The commands of the verbs, generated from their table: a new verb or parameter needs no code here."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
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

_OTHER_IMAGE = "whose estimates are of the image from which it was made"


def make_command(verb: Verb) -> Callable[..., None]:
    """Return a function whose signature has the options of a verb and whose docstring is its help."""
    shared: list[tuple[str, Any]] = [
        ("files", Files),
        *([("stencil", StencilOptions)] if verb.takes_stencil else []),
        *([("plans", PlanOptions)] if verb.choose else []),
        *([("unknown", MaskOptions)] if verb.takes_mask else []),
        *[("reading", ReadingOptions), ("writing", WritingOptions), ("computing", ComputingOptions)],
        *([("cluster", ClusterOptions)] if verb.choose else []),
        ("reporting", ReportingOptions),
    ]
    arguments, options = _split(verb)
    required = [(each.name, _argument(each)) for each in arguments]
    optional = [(each.name, *_option(each)) for each in options]

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


def _split(verb: Verb) -> tuple[list[Parameter], list[Parameter]]:
    """Return the parameters that are arguments, and those that are options."""
    known = list(verb.parameters.values())
    return [one for one in known if one.has_no_default], [one for one in known if not one.has_no_default]


def _help(verb: Verb) -> str:
    result = verb.output.format(stem="photo", suffix=".jpg", factors="x2")
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
    text = describe(about) if about.needed else f"{describe(about)} Default: {default_words(parameter)}."
    if about.per_axis:
        text = f"{text[:-1]}, {about.low:g} to {about.high:g}: one number, or one per axis, e.g. 3,1,1."
        parser = parsing.wholes(int(about.low), int(about.high))
        return Any, option(text, parser=parser, metavar="N")
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
    from aniso.checks import axis_spacing
    from aniso.cli.files.reading import unknown_pixels
    from aniso.cli.jobs.file_job import FileJob
    from aniso.cli.jobs.filtering import Filter, filter_files
    from aniso.cli.jobs.plans import PlanFile, read_plan, reject_options
    from aniso.cli.jobs.reporting import Report, Tell
    from aniso.cli.jobs.zarrs import StoreFilter, are_stores
    from aniso.io.pages import Page, Pages
    from aniso.verbs.plan import note_spacing

    options = {name: value for name, value in values.items() if value is not None}
    if stencil is not None and (chosen := stencil.chosen()) is not None:
        options["stencil"] = chosen
    if unknown is not None:
        unknown.check()
    if plans is None or plans.plan is None:
        _check_needed(verb, options)
    if options.get("isotropic") and computing.spacing is None:
        computing = replace(computing, spacing="file")

    frames = plans is not None and plans.frames
    if frames:
        if reading.volume:
            raise typer.BadParameter("--frames and --volume contradict each other. Give one of them.")
        reading = replace(reading, volume=False)
    masked = unknown is not None and (verb.fills or unknown.given)
    alone = not frames and (plans is None or plans.plan is None)
    if masked and not verb.fills and (not alone or are_stores(files)):
        raise typer.BadParameter(
            f"{verb.name} takes a mask for single images, not with --plan, --frames or Zarr stores. Run "
            "aniso inpaint with the mask first."
        )
    job = FileJob(verb.name, files, reading, writing, computing, reporting)
    plan, saved = None, None
    if plans is not None:
        plans.check()
        if plans.save_plan is not None:
            saved = PlanFile(plans.save_plan, verb.name, writing.force, frames)
        if plans.plan is not None:
            spaced = ["spacing"] if computing.spacing is not None else []
            arguments = [each.name for each in _split(verb)[0]]
            reject_options([name for name in (*options, *spaced) if name not in arguments])
            with job.report.attempt(str(plans.plan)):
                plan = read_plan(plans.plan, verb.name)
            if plan is None:
                job.report.finish()

    def filters(pages: Pages, report: Report) -> Filter:
        mask = unknown_pixels(unknown, pages.picture, reading, report) if unknown and masked else None
        common = _plan_of_frames(verb, pages, mask, computing, options) if frames and plan is None else plan
        if plan is not None:
            note_spacing(plan, pages.spacing, report.note)

        def filter_page(page: Page, tell: Tell) -> tuple[Any, Any]:
            used = computing.arguments(page)
            if mask is not None:
                used["mask"] = pages.part_of_mask(mask, page)
            if common is not None:
                del used["spacing"]  # the plan has its own
                return common.apply(page.image, **used, progress=tell), common
            result, info = verb.function(page.image, **options, **used, progress=tell, return_info=True)
            return result, info

        return filter_page

    def factors(pages: Pages) -> tuple[int, ...]:
        if plan is not None:
            return plan.factors if len(plan.factors) == pages.ndim else ()  # which is rejected later
        return verb.factors(axis_spacing(pages.spacing, pages.ndim), options)

    summary = [] if plans is None or plan is None else [("plan", f"{plans.plan}, {_OTHER_IMAGE}")]
    stores = None
    if cluster is not None:
        marked = unknown if verb.fills else None
        stores = StoreFilter(cluster, plan or verb, {} if plan else options, saved, summary, marked)
    filter_files(
        job,
        verb.output.replace(
            "{factors}", _factor_word(options.get("factor") if plan is None else plan.factors)
        ),
        filters,
        stores=stores,
        saved=saved,
        factors=factors,
        unknown=verb.fills or (verb.takes_mask and alone),
        summary=summary,
    )


def _check_needed(verb: Verb, options: Mapping[str, Any]) -> None:
    """Reject parameters that are missing or given in two ways."""
    for name in (name for name, each in verb.parameters.items() if each.about.needed):
        others = [other for other, each in verb.parameters.items() if each.about.replaces == name]
        flags = " or ".join(f"--{one}" for one in (f"{name} N", *others))
        given = [one for one in (name, *others) if options.get(one)]
        if not given:
            raise typer.BadParameter(f"{verb.name} needs {flags}, or a plan. For example: {verb.examples[0]}")
        if len(given) > 1:
            raise typer.BadParameter(f"{flags} can be given, not both. Remove one of them.")


def _factor_word(factors: int | tuple[int, ...] | None) -> str:
    """Return how factors are called in names of files."""
    if factors is None:
        return "isotropic"
    each = factors if isinstance(factors, tuple) else (factors,)
    return "x" + "x".join(map(str, each[:1] if len(set(each)) == 1 else each))


def _plan_of_frames(
    verb: Verb, pages: Any, mask: Any, computing: ComputingOptions, options: dict[str, Any]
) -> Any:
    """Return one plan for all pages."""
    from aniso.verbs.choosing import make_plan
    from aniso.verbs.holes import HoledSource
    from aniso.verbs.source import ImageSource, sampled_frames

    numbers = sampled_frames(pages.count)
    used: dict[str, Any] = {}
    sources = []
    for page in pages:
        if page.number - 1 in numbers:
            used = computing.arguments(page)
            axis = used.pop("channel_axis")
            if mask is None:
                sources.append(ImageSource.check(page.image, axis))
            else:
                sources.append(HoledSource.check_holes(page.image, pages.part_of_mask(mask, page), axis))
    return make_plan(verb, sources[0].join(sources, 0), options, **used)
