"""Zarr stores: filtered by workers, pass after pass, and continued where a run was interrupted."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import typer

from aniso import layouts, stability
from aniso.commands.bundles import Cluster
from aniso.commands.pages import voxel_shape
from aniso.commands.reporting import columns, figures
from aniso.commands.work import Work
from aniso.engines import Problem
from aniso.in_blocks.recipes import Recipe
from aniso.in_blocks.sample import windows
from aniso.stencil import Stencil

#: From windows of the array (channels, …) and its spacing to what is done to it.
Chosen = Callable[[list[Any], tuple[float, ...]], Recipe]

_SUFFIX = ".zarr"


def wanted(files: Sequence[str]) -> bool:
    """Whether these are Zarr stores and not files."""
    return any(_is_zarr(word) for word in files)


def filter_store(work: Work, cluster: Cluster, usual: str, chosen: Chosen, stencil: Stencil) -> None:
    """Filter one store into another, which appears when it is complete."""
    source, target = _places(work, usual)
    with work.report.attempt(str(source)):
        _filtered(work, cluster, source, target, chosen, stencil)
    work.report.finish()


def _filtered(
    work: Work,
    cluster: Cluster,
    source: Path,
    target: Path,
    chosen: Chosen,
    stencil: Stencil,
) -> None:
    _check_package()
    report = work.report
    from aniso.engines.tiled.blocks import Work as BlockWork
    from aniso.stores import passes, progress
    from aniso.stores.cluster import connected, worker_memory
    from aniso.stores.opened import opened

    begin = time.perf_counter()
    if target.exists():
        raise FileExistsError(f"{target} exists already. Choose another name, or delete it first.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {target.parent}. Make it first.")
    found = opened(source, work.reading.channel_axis)
    spacings = _spacings(found.spacing, work.computing.spacing)
    recipe = chosen(_windows(found), spacings)
    if recipe.model is None:
        raise ValueError("there is nothing to do: no noise or no structure was found in the sample.")
    problem = Problem(recipe.model, stencil, spacings, None, work.computing.threads or 1)
    limit = stability.stable_step(recipe.model, stencil, spacings, len(spacings))
    cycles = tuple(recipe.scheme.plan(recipe.time, limit))
    if not cycles:
        raise ValueError("there is nothing to do: the diffusion time is 0.")
    with connected(cluster.scheduler, cluster.workers, cluster.memory) as client:
        report.note("dashboard", f"watch the workers at {client.dashboard_link}")
        job = passes.Run.of(
            found, BlockWork(problem, work.computing.engine or "cpu"), cycles, worker_memory(client)
        )
        if progress.folder_of(target).exists():
            report.note("continued", f"an interrupted run to {target} goes on")
        with report.progress(source.name) as tell:
            passes.run(job, target, client, tell)
    seconds = time.perf_counter() - begin
    size = " × ".join(map(str, found.shape))
    blocks = " × ".join(map(str, job.block))
    report.say(f"{source} → {target}  ({size}, {found.dtype}, {seconds:.1f} s)")
    rows = [*figures([recipe.info]), ("blocks", blocks), ("passes", str(len(job.passes)))]
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


def _places(work: Work, usual: str) -> tuple[Path, Path]:
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
        target = names[0].with_name(usual.format(stem=names[0].stem, suffix=_SUFFIX))
    if os.path.realpath(target) == os.path.realpath(names[0]):
        raise typer.BadParameter(f"{target} is the input itself. Give another output.")
    return names[0], target


def _is_zarr(word: str) -> bool:
    return Path(os.path.normpath(word)).suffix == _SUFFIX


def _check_package() -> None:
    import importlib.util

    if any(importlib.util.find_spec(name) is None for name in ("dask", "distributed", "zarr")):
        raise ImportError("Zarr stores need Dask and Zarr. Install them with: pip install 'aniso[dask]'")


def _spacings(own: tuple[float, ...], given: Any) -> tuple[float, ...]:
    """As for volumes in files: the shape of the voxels, their shortest side 1, unless something is given."""
    if given == "file":
        return own
    if given is None:
        return voxel_shape(own)
    values = tuple(np.atleast_1d(given).astype(float).tolist())
    values = values * len(own) if len(values) == 1 else values
    if len(values) != len(own):
        raise typer.BadParameter(f"--spacing has {len(values)} numbers, and the array {len(own)} axes.")
    return values


def _windows(found: Any) -> list[Any]:
    """A sample of the first frame, (channels, …)."""
    import zarr

    from aniso.stores.passes import channels_of, index_of

    array: Any = zarr.open_array(found.location, mode="r")
    frame = (0,) * len(found.frame_axes)
    sample = []
    for window in windows(found.spatial_shape):
        pixels = channels_of(np.asarray(array[index_of(found, frame, window)]), found)
        layouts.checked_image(pixels, 0)
        sample.append(pixels.astype(layouts.result_type(found.dtype)))
    return sample
