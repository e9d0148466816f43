"""Commands that read images and write filtered ones: files page by page, or a Zarr store."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import typer

from aniso.blocks.stores.places import Place
from aniso.blocks.stores.urls import is_url, options_for, place_of
from aniso.cli.files import read_mask
from aniso.cli.jobs.file_job import FileJob, divide_progress, each_file
from aniso.cli.jobs.reporting import Rows, Tell, columns
from aniso.cli.options.shared import ClusterOptions, MaskOptions
from aniso.io.pages import Page, Pages
from aniso.io.picture import FileError
from aniso.verbs.plan import Plan, summary_rows, summary_values
from aniso.verbs.source import sampled_frames
from aniso.verbs.table import Verb

_SUFFIX = ".zarr"
#: Takes a page and a progress function; returns the result, and what was chosen for it.
Filter = Callable[[Page, Tell], tuple[Any, Any]]
#: Takes the pages of a picture; returns the function that filters a page.
Chosen = Callable[[Pages], Filter]


@dataclass(frozen=True)
class StoreFilter:
    """What a command does to a Zarr store, and on which workers."""

    cluster: ClusterOptions
    plan_or_verb: Plan | Verb
    options: Mapping[str, Any] = field(default_factory=dict)
    #: Rows that are printed before the plan.
    summary: Rows = ()
    #: Which pixels are unknown, for commands that fill them in.
    unknown: MaskOptions | None = None


def are_stores(files: Sequence[str]) -> bool:
    """Whether these are Zarr stores rather than files."""
    return any(_is_store(word) for word in files)


def _filter_store(job: FileJob, pattern: str, filters: StoreFilter) -> None:
    """Filter one store into another; `pattern` is the default name of the result."""
    source, target = store_places(job, pattern)
    start, report, given = time.perf_counter(), job.report, filters.plan_or_verb
    with report.attempt(str(source)):
        from aniso.blocks.stores import filtering

        job.check_saved_plan()
        if job.writing.dtype is not None:
            raise FileError("Zarr stores keep their dtype. Remove --dtype, or convert the result.")
        masks = {} if filters.unknown is None else {"mask": _unknown_pixels(job, filters.unknown)}
        with report.blocks(source.name) as watch:
            done = filtering.filter_store(
                source,
                target,
                given.name if isinstance(given, Verb) else given,
                channel_axis=job.reading.channel_axis,
                frame_axis=frame_axis_of(source, job, filters.cluster.fields),
                **asdict(job.computing),
                **filters.cluster.arguments(),
                watch=watch,
                note=report.note,
                **masks,
                **filters.options,
            )
        job.save_plan(done.plan)
        blocks = " × ".join(map(str, done.block))
        rows = [*filters.summary, *summary_rows([done.plan]), ("blocks", blocks)]
        rows.append(("passes", str(done.passes)))
        facts = {"info": summary_values(done.plan), "blocks": list(done.block), "passes": done.passes}
        if done.fields:
            rows.append(("fields", str(len(done.fields))))
            facts["fields"] = list(done.fields)
        report_store(job, source, target, start, done, rows, **facts)
    report.finish()


def frame_axis_of(source: Place, job: FileJob, fields: bool = False) -> int | None:
    """Return the axis of frames that --frames or --slices ask for: the first one of a volume."""
    from aniso.blocks.stores.plates import fields_of
    from aniso.blocks.stores.zarr_array import open_array

    if not (job.plans.frames or job.reading.volume is False):
        return None
    image = source / fields_of(source)[0] if fields else source
    spatial = open_array(image, job.reading.channel_axis).spatial_axes
    return spatial[0] if len(spatial) == 3 else None


def report_store(
    job: FileJob, source: Place, target: Place, start: float, result: Any, rows: Rows, **facts: Any
) -> None:
    """Report what was written, which has a shape and a type, and the time since the start."""
    seconds = time.perf_counter() - start
    size = " × ".join(map(str, result.shape))
    job.report.say(f"{source} → {target}  ({size}, {result.dtype}, {seconds:.1f} s)")
    job.report.say(columns(rows))
    about = {"shape": list(result.shape), "dtype": str(result.dtype), **facts, "seconds": round(seconds, 3)}
    job.report.results.append({"input": str(source), "output": str(target), **about})


def _unknown_pixels(job: FileJob, wanted: MaskOptions) -> Any:
    """Return which pixels of a store are unknown; the mask may be a store or a file."""
    from aniso.blocks.stores.holes import UnknownPixels

    mask: Any = wanted.mask_file
    if mask is not None and not _is_store(mask):
        mask = read_mask(Path(mask), job.reading, job.report)
    elif mask is not None:
        mask = place_of(mask, options_for("source", job.storage))
    return UnknownPixels(mask, wanted.invert, wanted.mask_value, infinite=True)


def store_places(job: FileJob, pattern: str) -> tuple[Place, Place]:
    """Return the store to read and the one to write: the second name, --output, or the default."""
    if not all(_is_store(word) for word in job.files):
        raise typer.BadParameter(
            "files and Zarr stores cannot be filtered by one command: give files, or IN.zarr and OUT.zarr."
        )
    if len(job.files) > 2:
        raise typer.BadParameter(
            "Zarr stores are filtered one at a time: give IN.zarr and, optionally, OUT.zarr."
        )
    output = job.writing.output
    given = [*job.files[1:], *([] if output is None else [output])]
    if len(given) > 1:
        raise typer.BadParameter("the output was given twice, as second name and as --output.")
    source = _place(job, job.files[0], "source")
    if given:
        target = _place(job, given[0], "target")
        if not _is_store(given[0]):
            raise typer.BadParameter(
                f"--output {target} must be a Zarr store: a name that ends in {_SUFFIX}."
            )
    else:
        inside = (place for place in (source, *source.parents) if place.name.endswith(_SUFFIX))
        store = next(inside, source)
        target = store.rename(pattern.format(stem=store.name.removesuffix(_SUFFIX), suffix=_SUFFIX))
    if str(target) == str(source) or os.path.realpath(str(target)) == os.path.realpath(str(source)):
        raise typer.BadParameter(f"{target} is the input itself. Give another output.")
    return source, target


def _place(job: FileJob, word: str, end: str) -> Place:
    """Return the place of a store, with the options for this end."""
    try:
        return place_of(word if is_url(word) else os.path.normpath(word), options_for(end, job.storage))
    except (ValueError, ImportError) as error:
        raise typer.BadParameter(str(error)) from error


def _is_store(word: str) -> bool:
    """Whether this is the name of a store, or of an array within one; files have no URLs."""
    if is_url(word):
        return True
    path = Path(os.path.normpath(word))
    return any(part.suffix == _SUFFIX for part in (path, *path.parents))


def filter_files(
    job: FileJob,
    usual: str,
    chosen: Chosen,
    *,
    stores: StoreFilter,
    choose_for_all: Callable[[list[Pages]], object] | None = None,
    factors: Callable[[Pages], Sequence[int]] | None = None,
    unknown: bool = False,
    facts: Mapping[str, Any] | None = None,
    summary: Rows = (),
) -> None:
    """Filter all files page by page and write the results; or a Zarr store, as `stores` says.

    `usual` is the default pattern of their names. `choose_for_all` makes a plan from some of the files,
    before all are filtered with it. Results are finer by `factors`. `unknown`: whether pixels may be NaN.
    `facts` and `summary` are what is the same for all files.
    """
    if are_stores(job.files):
        _filter_store(job, usual, stores)
        return
    (targets,) = job.targets(usual)
    saved: list[Any] = []

    def opened(number: int, *, unknown: bool = unknown) -> Pages:
        stack = job.open(job.paths[number], [targets[number]], factors=factors, unknown=unknown)
        job.check_saved_plan(stack.count, written=bool(saved))
        return stack

    def action(path: Path, number: int, tell: Tell) -> tuple[dict[str, Any], list[str]]:
        stack, target = opened(number - 1), targets[number - 1]
        filter_page, tell_of = chosen(stack), divide_progress(stack, tell)
        results, infos = zip(*(filter_page(page, tell_of(page)) for page in stack), strict=True)
        written = job.write(target, stack, results)
        if not saved:
            job.save_plan(infos[0])
            saved.append(infos[0])
        known = [info for info in infos if info is not None]
        rows = [*summary, *(summary_rows(known) if known else ())]
        about, lines = job.report_result(path, target, written, stack, rows)
        return {**about, "info": [summary_values(info) for info in known]}, lines

    if choose_for_all is not None:
        some = []
        for number in sampled_frames(len(job.paths)):
            with job.report.attempt(str(job.paths[number])):
                some.append(opened(number, unknown=stores.unknown is not None))
        if not job.report.errors:
            with job.report.attempt(str(job.plans.save_plan)):
                choose_for_all(some)
        if job.report.errors:
            job.report.finish()
    each_file(job.report, job.paths, action)
    if choose_for_all is not None and saved:
        job.report.say(columns(summary_rows(saved)))
    job.report.finish(**(facts or {}))
