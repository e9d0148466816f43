"""Zarr stores on the command line: which store to read, where to write, and what to report."""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from aniso.cli.jobs.file_job import FileJob
from aniso.cli.jobs.reporting import columns
from aniso.cli.options.shared import ClusterOptions
from aniso.stencil import Stencil
from aniso.verbs.plan import format_value, summary_rows
from aniso.verbs.table import DIFFUSE, VERBS

if TYPE_CHECKING:
    from aniso.blocks.stores.filtering import Choose

_SUFFIX = ".zarr"


@dataclass(frozen=True)
class StoreFilter:
    """What a command does to a Zarr store, and on which workers."""

    cluster: ClusterOptions
    choose: Choose
    stencil: Stencil


def are_stores(files: Sequence[str]) -> bool:
    """Whether these are Zarr stores rather than files."""
    return any(_is_store(word) for word in files)


def filter_store(job: FileJob, pattern: str, filters: StoreFilter | None) -> None:
    """Filter one store into another; `pattern` is the default name of the result."""
    if filters is None:
        *others, last = [verb.name for verb in (*VERBS.values(), DIFFUSE) if verb.stores]
        raise typer.BadParameter(
            f"{job.command} does not support Zarr stores; {', '.join(others)} and {last} do. In Python, "
            "aniso.inpaint takes Dask arrays, e.g. from dask.array.from_zarr."
        )
    source, target = store_places(job, pattern)
    with job.report.attempt(str(source)):
        check_packages()
        _run(job, source, target, filters)
    job.report.finish()


def _run(job: FileJob, source: Path, target: Path, filters: StoreFilter) -> None:
    from aniso.blocks.stores import filtering

    start, report = time.perf_counter(), job.report
    with report.progress(source.name) as tell:
        done = filtering.filter_store(
            source,
            target,
            filters.choose,
            stencil=filters.stencil,
            channel_axis=job.reading.channel_axis,
            spacing=job.computing.spacing,
            engine=job.computing.engine or "cpu",
            threads=job.computing.threads or 1,
            **asdict(filters.cluster),
            tell=tell,
            note=report.note,
        )
    seconds = time.perf_counter() - start
    store, info, run = done.source, done.recipe.info, done.run
    size = " × ".join(map(str, store.shape))
    report.say(f"{source} → {target}  ({size}, {store.dtype}, {seconds:.1f} s)")
    chosen = summary_rows([info]) if info else [("model", format_value(done.recipe.model))]
    blocks = " × ".join(map(str, run.block))
    report.say(columns([*chosen, ("blocks", blocks), ("passes", str(len(run.passes)))]))
    report.results.append(
        {
            "input": source,
            "output": target,
            "shape": list(store.shape),
            "dtype": str(store.dtype),
            "info": info,
            "blocks": list(run.block),
            "passes": len(run.passes),
            "seconds": round(seconds, 3),
        }
    )


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


def check_packages() -> None:
    """Raise an error if a package that stores need is missing."""
    if any(importlib.util.find_spec(name) is None for name in ("dask", "distributed", "zarr")):
        raise ImportError('Zarr stores need Dask and Zarr. Install them with: pip install "aniso[dask]".')
