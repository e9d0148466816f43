"""Zarr stores on the command line: which store to read, where to write, and what to report."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import typer

from aniso.cli.files.reading import read_mask
from aniso.cli.jobs.file_job import FileJob
from aniso.cli.jobs.plans import PlanFile
from aniso.cli.jobs.reporting import columns
from aniso.cli.options.shared import ClusterOptions, MaskOptions
from aniso.verbs.plan import Plan, summary_rows, summary_values
from aniso.verbs.table import DIFFUSE, VERBS, Verb

_SUFFIX = ".zarr"


@dataclass(frozen=True)
class StoreFilter:
    """What a command does to a Zarr store, and on which workers."""

    cluster: ClusterOptions
    plan_or_verb: Plan | Verb
    options: Mapping[str, Any] = field(default_factory=dict)
    saved: PlanFile | None = None
    #: Rows that are printed before the plan.
    summary: Sequence[tuple[str, str]] = ()
    #: Which pixels are unknown, for commands that fill them in.
    unknown: MaskOptions | None = None


def are_stores(files: Sequence[str]) -> bool:
    """Whether these are Zarr stores rather than files."""
    return any(_is_store(word) for word in files)


def filter_store(job: FileJob, pattern: str, filters: StoreFilter | None) -> None:
    """Filter one store into another; `pattern` is the default name of the result."""
    if filters is None:
        *others, last = [verb.name for verb in (*VERBS.values(), DIFFUSE) if verb.choose]
        raise typer.BadParameter(
            f"{job.command} does not support Zarr stores; {', '.join(others)} and {last} do."
        )
    source, target = store_places(job, pattern)
    with job.report.attempt(str(source)):
        _run(job, source, target, filters)
    job.report.finish()


def _run(job: FileJob, source: Path, target: Path, filters: StoreFilter) -> None:
    from aniso.blocks.stores import filtering

    start, report, given = time.perf_counter(), job.report, filters.plan_or_verb
    if filters.saved is not None:
        filters.saved.check()
    masks = {} if filters.unknown is None else {"mask": _unknown_pixels(job, filters.unknown)}
    with report.progress(source.name) as tell:
        done = filtering.filter_store(
            source,
            target,
            given.name if isinstance(given, Verb) else given,
            channel_axis=job.reading.channel_axis,
            spacing=job.computing.spacing,
            engine=job.computing.engine,
            threads=job.computing.threads,
            **asdict(filters.cluster),
            progress=tell,
            note=report.note,
            **masks,
            **filters.options,
        )
    if filters.saved is not None:
        filters.saved.write(done.plan)
    seconds = time.perf_counter() - start
    size = " × ".join(map(str, done.shape))
    report.say(f"{source} → {target}  ({size}, {done.dtype}, {seconds:.1f} s)")
    blocks = " × ".join(map(str, done.block))
    rows = [*filters.summary, *summary_rows([done.plan]), ("blocks", blocks), ("passes", str(done.passes))]
    report.say(columns(rows))
    report.results.append(
        {
            "input": source,
            "output": target,
            "shape": list(done.shape),
            "dtype": str(done.dtype),
            "info": summary_values(done.plan),
            "blocks": list(done.block),
            "passes": done.passes,
            "seconds": round(seconds, 3),
        }
    )


def _unknown_pixels(job: FileJob, wanted: MaskOptions) -> Any:
    """Return which pixels of a store are unknown; the mask may be a store or a file."""
    from aniso.blocks.stores.holes import UnknownPixels

    mask: Any = wanted.mask_file
    if mask is not None and not _is_store(str(mask)):
        mask = read_mask(mask, job.reading, job.report)
    return UnknownPixels(mask, wanted.invert, wanted.mask_value, infinite=True)


def store_places(job: FileJob, pattern: str) -> tuple[Path, Path]:
    """Return the store to read and the one to write: the second name, --output, or the default."""
    names = [Path(os.path.normpath(word)) for word in job.files]
    if not all(_is_store(word) for word in job.files) or len(names) > 2:
        raise typer.BadParameter(
            "Zarr stores are filtered one at a time: give IN.zarr and, optionally, OUT.zarr."
        )
    if len(names) == 2 and job.writing.output is not None:
        raise typer.BadParameter("the output was given twice, as second name and as --output.")
    if len(names) == 2:
        target = names[1]
    elif job.writing.output is not None:
        target = Path(os.path.normpath(job.writing.output))
        if not _is_store(str(target)):
            raise typer.BadParameter(
                f"--output {target} must be a Zarr store: a name that ends in {_SUFFIX}."
            )
    else:
        store = next(part for part in (names[0], *names[0].parents) if part.suffix == _SUFFIX)
        target = store.with_name(pattern.format(stem=store.stem, suffix=_SUFFIX))
    if os.path.realpath(target) == os.path.realpath(names[0]):
        raise typer.BadParameter(f"{target} is the input itself. Give another output.")
    return names[0], target


def _is_store(word: str) -> bool:
    """Whether this is the name of a store, or of an array within one."""
    path = Path(os.path.normpath(word))
    return any(part.suffix == _SUFFIX for part in (path, *path.parents))
