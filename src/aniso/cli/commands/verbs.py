"""The commands of the verbs, generated from their table: a new verb or parameter needs no code here."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import make_dataclass, replace
from typing import Any

import typer

from aniso.cli.options import parsing, shared
from aniso.cli.options.diffusion_options import StencilOptions
from aniso.cli.options.shared import default_words, describe, option, value_option
from aniso.parameters import Parameter
from aniso.verbs.table import Verb

_OTHER_IMAGE = "whose estimates are of the image from which it was made"


def make_command(verb: Verb) -> Callable[..., None]:
    """Return a function whose signature has the options of a verb and whose docstring is its help."""
    groups: dict[str, Any] = {
        "files": shared.Files,
        **({"stencil": StencilOptions} if verb.takes("stencil") else {}),
        "plans": shared.PlanOptions,
        **({"unknown": shared.MaskOptions} if verb.takes("mask") else {}),
        "reading": shared.ReadingOptions,
        "writing": shared.WritingOptions,
        "computing": shared.ComputingOptions,
        "cluster": shared.ClusterOptions,
        "reporting": shared.ReportingOptions,
        "own": make_dataclass("Own", [(each.name, *_option(each)) for each in verb.parameters.values()]),
    }

    def command(**values: Any) -> None:
        _run(verb, **values)

    function: Any = command
    function.__doc__ = _help(verb)
    function.__annotations__ = groups
    parameters = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in groups]
    function.__signature__ = inspect.Signature(parameters)
    return command


def _help(verb: Verb) -> str:
    result = verb.output.format(stem="photo", suffix=".jpg", factors="x2")
    return (
        f"{verb.summary}\n\n{verb.description}\n\nThe result of photo.jpg is {result}. Zarr stores, which "
        "may be larger than memory, are filtered block by block; repeat the command to continue an "
        "interrupted run."
    )


def _option(parameter: Parameter) -> tuple[Any, Any]:
    """Return the type and the option of a parameter."""
    about, text = parameter.about, describe(parameter.about)
    if not parameter.required:
        text = f"{text} Default: {default_words(parameter)}."
    if about.per_axis:
        text = f"{text[:-1]}, {about.low:g} to {about.high:g}: one number, or one per axis, e.g. 3,1,1."
        parser = parsing.wholes(int(about.low), int(about.high))
        return Any, option(text, parser=parser, metavar="N")
    if about.choices:
        text = f"{text} Values: {', '.join(map(str, about.choices))}."
    if about.whole:
        limits = {} if about.high == math.inf else {"max": int(about.high)}
        return int | None, option(text, min=int(about.low), **limits)
    if about.kinds:
        text = (
            f"{describe(about)} Or its kind: {', '.join(about.kinds)}, or e.g. {about.kinds[1]}:2. Default: "
            f"{default_words(parameter)}."
        )
        return str | None, option(text, parser=parsing.noise, metavar="NOISE")
    return value_option(about, parameter.name, text, auto=parameter.automatic)


def _run(
    verb: Verb,
    *,
    files: list[str],
    reading: shared.ReadingOptions,
    writing: shared.WritingOptions,
    computing: shared.ComputingOptions,
    reporting: shared.ReportingOptions,
    plans: shared.PlanOptions,
    cluster: shared.ClusterOptions,
    own: Any,
    stencil: StencilOptions | None = None,
    unknown: shared.MaskOptions | None = None,
) -> None:
    from aniso.checks import axis_spacing
    from aniso.cli.files import unknown_pixels
    from aniso.cli.jobs.file_job import FileJob
    from aniso.cli.jobs.filtering import Filter, StoreFilter, are_stores, filter_files
    from aniso.cli.jobs.reporting import Report, Tell
    from aniso.io.pages import Page, Pages
    from aniso.verbs.plan import Plan, note_spacing

    options = {name: value for name, value in vars(own).items() if value is not None}
    if stencil is not None and (chosen := stencil.chosen()) is not None:
        options["stencil"] = chosen
    if unknown is not None:
        unknown.check()
        if not (verb.fills or unknown.given):
            unknown = None
    if plans.plan is None:
        _check_needed(verb, options)
    if options.get("isotropic") and computing.spacing is None:
        computing = replace(computing, spacing="file")

    if plans.frames and reading.volume:
        raise typer.BadParameter(
            "--frames and --volume contradict each other. Give one of them; frames of a series of volumes "
            "are volumes without --volume."
        )
    report = Report(verb.name, reporting)
    job = FileJob(report, files, reading, writing, computing, plans, cluster.storage)
    for_all = plans.save_plan is not None and not are_stores(files) and len(job.paths) > 1
    if unknown is not None and not verb.fills and (plans.frames or for_all):
        what = "--frames" if plans.frames else "--save-plan for several files"
        raise typer.BadParameter(f"{what} takes no mask. Fill in unknown pixels with aniso inpaint first.")
    plan: Plan | None = None
    plans.check([*options, *(["spacing"] if computing.spacing is not None else [])])
    with report.attempt(str(plans.plan)):
        plan = job.read_plan()
    if report.errors:
        report.finish()

    def mask_of(pages: Pages) -> Any:
        return None if unknown is None else unknown_pixels(unknown, pages.picture, reading, report)

    def choose_for_all(some: list[Pages]) -> None:
        nonlocal plan
        plan = _plan_of_frames(verb, [(pages, mask_of(pages)) for pages in some], computing, options)

    def filters(pages: Pages) -> Filter:
        mask = mask_of(pages)
        common = plan
        if plan is None and plans.frames:
            common = _plan_of_frames(verb, [(pages, mask)], computing, options)
        if plan is not None:
            note_spacing(plan, pages.spacing, report.note)

        def filter_page(page: Page, tell: Tell) -> tuple[Any, Any]:
            used = computing.arguments(page)
            if mask is not None:
                used["mask"] = pages.part_of_mask(mask, page)
            if common is not None:
                del used["spacing"]  # the plan has its own
                return common.apply(page.image, **used, progress=tell), common
            return verb.function(page.image, **options, **used, progress=tell, return_info=True)

        return filter_page

    def factors(pages: Pages) -> tuple[int, ...]:
        if plan is not None:
            return plan.factors if len(plan.factors) == pages.ndim else ()  # which is rejected later
        return verb.factors(axis_spacing(pages.spacing, pages.ndim), options)

    summary = [] if plan is None else [("plan", f"{plans.plan}, {_OTHER_IMAGE}")]
    finer = _factor_word(options.get("factor") if plan is None else plan.factors)
    filter_files(
        job,
        verb.output.replace("{factors}", finer),
        filters,
        stores=StoreFilter(cluster, plan or verb, {} if plan else options, summary, unknown),
        choose_for_all=choose_for_all if for_all else None,
        factors=factors,
        unknown=verb.takes("mask"),
        summary=summary,
    )


def _check_needed(verb: Verb, options: Mapping[str, Any]) -> None:
    """Reject parameters that are missing or given in two ways."""
    for name in (name for name, each in verb.parameters.items() if each.required):
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
    verb: Verb,
    stacks: Sequence[tuple[Any, Any]],
    computing: shared.ComputingOptions,
    options: dict[str, Any],
) -> Any:
    """Return one plan for all pages of stacks, each with its mask or None."""
    from aniso.io.picture import FileError
    from aniso.verbs.holes import HoledSource
    from aniso.verbs.plan import make_plan
    from aniso.verbs.source import ImageSource, sampled_frames

    pages = [(stack, page, mask) for stack, mask in stacks for page in stack]
    shapes = {page.image.shape for _, page, _ in pages}
    if len(shapes) > 1:
        raise FileError(
            f"inputs have different shapes ({', '.join(map(str, sorted(shapes)))}), so that one plan cannot "
            "be made from them. Make it from one of them, then filter all of them with --plan."
        )
    chosen = [pages[number] for number in sampled_frames(len(pages))]
    used = computing.arguments(chosen[0][1])
    axis = used.pop("channel_axis")
    sources: list[Any] = [
        ImageSource.check(page.image, axis)
        if mask is None
        else HoledSource.check_holes(page.image, stack.part_of_mask(mask, page), axis)
        for stack, page, mask in chosen
    ]
    return make_plan(verb, sources[0].join(sources, 0), options, **used)
