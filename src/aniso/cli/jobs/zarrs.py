"""Zarr stores: filtered by workers, pass after pass, and continued where a run was interrupted."""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from aniso import arrays, stability
from aniso.blocks.sample import windows
from aniso.cli.jobs.reporting import columns, figures, worded
from aniso.cli.jobs.work import Work
from aniso.cli.options.bundles import Cluster
from aniso.engines import Problem
from aniso.io.pages import voxel_shape
from aniso.models import Homogeneous
from aniso.stencil import Stencil

if TYPE_CHECKING:
    from aniso.blocks.stores.passes import StoreRun
    from aniso.blocks.stores.zarr_array import ZarrArray
    from aniso.verbs.chunked_recipes import Recipe

_SUFFIX = ".zarr"


@dataclass(frozen=True)
class InStores:
    """What a command does to a Zarr store, and who does it.

    `recipe` goes from the spacing of an array to what is done to it; if it calls the function it is given,
    windows (channels, …) of the array are read.
    """

    cluster: Cluster
    recipe: Callable[[Callable[[], list[Any]], tuple[float, ...]], Recipe]
    stencil: Stencil


def wanted(files: Sequence[str]) -> bool:
    """Whether these are Zarr stores and not files."""
    return any(_is_zarr(word) for word in files)


def filter_store(work: Work, usual: str, filters: InStores | None) -> None:
    """Filter one store into another, which appears when it is complete."""
    if filters is None:
        raise typer.BadParameter(
            f"{work.command} takes no Zarr stores; denoise, enhance and diffuse do. In Python, aniso.inpaint "
            "takes Dask arrays, e.g. of dask.array.from_zarr."
        )
    source, target = store_places(work, usual)
    with work.report.attempt(str(source)):
        check_packages()
        _filtered(work, source, target, filters)
    work.report.finish()


def _filtered(work: Work, source: Path, target: Path, filters: InStores) -> None:
    from aniso.blocks.stores import journal, passes
    from aniso.blocks.stores.cluster import capacity, connect
    from aniso.blocks.stores.zarr_array import open_array

    begin = time.perf_counter()
    report, cluster = work.report, filters.cluster
    found = open_array(source, work.reading.channel_axis)
    journal.check_place(target)
    spacings = store_spacings(found, work)
    with connect(cluster.scheduler, cluster.workers, cluster.memory) as client:
        available = capacity(client)
        report.note("dashboard", f"watch the workers at {client.dashboard_link}{_page_needs(cluster)}")
        recipe = filters.recipe(partial(_windows, found), spacings)
        job = _job(found, recipe, filters.stencil, spacings, work, *available)
        if not job.cycles:
            report.note("copy", f"there is nothing to do, by the sample or the time: {target} is a copy")
        if journal.folder_of(target).exists():
            report.note("continued", f"an interrupted run to {target} goes on")
        with report.progress(source.name) as tell:
            job = passes.carry_out(job, target, client, tell)
    seconds = time.perf_counter() - begin
    size = " × ".join(map(str, found.shape))
    blocks = " × ".join(map(str, job.block))
    report.say(f"{source} → {target}  ({size}, {found.dtype}, {seconds:.1f} s)")
    chosen = figures([recipe.info]) if recipe.info else [("model", worded(recipe.model))]
    rows = [*chosen, ("blocks", blocks), ("passes", str(len(job.passes)))]
    report.say(columns(rows))
    report.results.append(
        {
            "input": source,
            "output": target,
            "shape": list(found.shape),
            "dtype": str(found.dtype),
            "info": recipe.info,
            "blocks": list(job.block),
            "passes": len(job.passes),
            "seconds": round(seconds, 3),
        }
    )


def _job(
    found: ZarrArray,
    recipe: Recipe,
    stencil: Stencil,
    spacings: tuple[float, ...],
    work: Work,
    memory: float,
    workers: int,
) -> StoreRun:
    """The passes over the store; none of them changes anything if the recipe says so."""
    from aniso.blocks.stores.passes import StoreRun

    model = recipe.model or Homogeneous()
    limit = stability.stable_step(model, stencil, spacings, len(spacings))
    cycles = tuple(recipe.scheme.plan(recipe.time, limit)) if recipe.model else ()
    computing = work.computing
    problem = Problem(model, stencil, spacings, None, computing.threads or 1, computing.engine or "cpu")
    try:
        return StoreRun.plan(found, problem, cycles, memory, workers)
    except MemoryError as error:  # of the workers, not of this process
        raise ValueError(str(error)) from error


def store_places(work: Work, usual: str) -> tuple[Path, Path]:
    """The store to read, and the one to write: the second name, --output, or the usual one."""
    names = [Path(os.path.normpath(word)) for word in work.files]
    if not all(_is_zarr(word) for word in work.files) or len(names) > 2:
        raise typer.BadParameter(
            "Zarr stores are filtered one by one: give IN.zarr, and OUT.zarr if you like."
        )
    if len(names) == 2 and work.writing.output is not None:
        raise typer.BadParameter("the output was given twice, as second name and as --output.")
    if len(names) == 2:
        target = names[1]
    elif work.writing.output is not None:
        target = Path(os.path.normpath(work.writing.output))
        if not _is_zarr(str(target)):
            raise typer.BadParameter(f"--output {target} is no Zarr store: its name must end with {_SUFFIX}.")
    else:
        store = next(part for part in (names[0], *names[0].parents) if part.suffix == _SUFFIX)
        target = store.with_name(usual.format(stem=store.stem, suffix=_SUFFIX))
    if os.path.realpath(target) == os.path.realpath(names[0]):
        raise typer.BadParameter(f"{target} is the input itself. Give another output.")
    return names[0], target


def _is_zarr(word: str) -> bool:
    """Whether this is the name of a store, or of an array within one."""
    path = Path(os.path.normpath(word))
    return any(part.suffix == _SUFFIX for part in (path, *path.parents))


def _page_needs(cluster: Cluster) -> str:
    """What the page of this machine's workers lacks: Dask draws it with Bokeh, but does not bring that."""
    if cluster.scheduler or importlib.util.find_spec("bokeh"):
        return ""
    return " (this page needs Bokeh: pip install bokeh)"


def check_packages() -> None:
    """Refuse to go on without the packages that stores need."""
    if any(importlib.util.find_spec(name) is None for name in ("dask", "distributed", "zarr")):
        raise ImportError('Zarr stores need Dask and Zarr. Install them with: pip install "aniso[dask]".')


def store_spacings(found: ZarrArray, work: Work) -> tuple[float, ...]:
    """As for volumes in files: the shape of the voxels, their shortest side 1, unless something is given."""
    own, given = found.spacing, work.computing.spacing
    if found.odd_units is not None and given in (None, "file"):
        work.report.note(
            "units",
            f"lengths of {found.path} are given in {found.odd_units}, which cannot be compared: distances "
            "are taken for equal along all axes. Give them by --spacing.",
        )
    if given == "file":
        return own
    if given is None:
        return voxel_shape(own)
    values = tuple(np.atleast_1d(given).astype(float).tolist())
    values = values * len(own) if len(values) == 1 else values
    if len(values) != len(own):
        raise typer.BadParameter(f"--spacing has {len(values)} numbers, and the array {len(own)} axes.")
    return values


def _windows(found: ZarrArray) -> list[Any]:
    """A sample of the first frame, (channels, …)."""
    from aniso.blocks.stores.passes import read_window
    from aniso.blocks.stores.zarr_array import read_only

    array = read_only(found.location)
    frame, dtype = (0,) * len(found.frame_axes), arrays.result_type(found.dtype)
    chosen = windows(found.spatial_shape)
    return [read_window(array, found, frame, window).astype(dtype) for window in chosen]
