"""Filter one Zarr store into another: choose from a sample, then run pass after pass over all blocks."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from aniso import arrays, checks, stability
from aniso.blocks.sample import windows
from aniso.blocks.stores import journal, passes
from aniso.blocks.stores.cluster import capacity, connect
from aniso.blocks.stores.zarr_array import ZarrArray, open_array, read_only
from aniso.checks import Spacing
from aniso.engines import Problem
from aniso.io.pages import voxel_shape
from aniso.models import Homogeneous
from aniso.stencil import Stencil
from aniso.verbs.chunked_recipes import Recipe

#: Returns the diffusion for an array, from a function that reads windows (channels, …) of it and its spacing.
Choose = Callable[[Callable[[], list[Any]], tuple[float, ...]], Recipe]
#: Receives the kind of a note, and its text.
Note = Callable[[str, str], object]


@dataclass(frozen=True)
class Filtered:
    """What was filtered, with which diffusion, and in which blocks and passes."""

    source: ZarrArray
    recipe: Recipe
    run: passes.StoreRun


def filter_store(
    source: Path,
    target: Path,
    choose: Choose,
    *,
    stencil: Stencil,
    channel_axis: int | None = None,
    spacing: Spacing | str | None = None,
    engine: str = "cpu",
    threads: int = 1,
    scheduler: str | None = None,
    workers: int = 2,
    memory: str | int | None = None,
    tell: passes.Report = lambda done, total: None,
    note: Note = lambda kind, text: None,
) -> Filtered:
    """Filter a Zarr store into a new one, which appears when it is complete.

    Parameters
    ----------
    source, target : Path
        A Zarr array or OME-Zarr group, and the store to create. An interrupted run is continued.
    choose : callable
        Returns the diffusion, given a function that reads windows of the array, and the spacing.
    stencil : Stencil
        The stencil of the diffusion.
    channel_axis : int, optional
        Axis of the channels; by default as the store says.
    spacing : float, one float per axis, or "file", optional
        Pixel spacing along each axis. "file" takes that of the store. By default only the voxel shape of the
        store is used, in units of the shortest side.
    engine : str
        Engine of the workers.
    threads : int
        Threads of each worker's engine.
    scheduler : str, optional
        Address of a Dask scheduler. By default workers are started on this machine.
    workers : int
        Number of these workers.
    memory : str or int, optional
        Memory limit of each of them.
    tell : callable
        Called as tell(done, total) with the number of blocks.
    note : callable
        Receives notes about the run: a kind and a text.
    """
    found = open_array(source, channel_axis)
    journal.check_place(target)
    spacings = spacing_of(found, spacing, note)
    with connect(scheduler, workers, memory) as client:
        available = capacity(client)
        note("dashboard", f"watch the workers at {client.dashboard_link}{bokeh_hint(scheduler)}")
        recipe = choose(partial(_read_windows, found), spacings)
        model = recipe.model or Homogeneous()
        limit = stability.stable_step(model, stencil, spacings, len(spacings))
        cycles = tuple(recipe.scheme.plan(recipe.time, limit)) if recipe.model else ()
        problem = Problem(model, stencil, spacings, None, threads, engine)
        try:
            run = passes.StoreRun.plan(found, problem, cycles, *available)
        except MemoryError as error:  # of the workers, not of this process
            raise ValueError(str(error)) from error
        if not cycles:
            note("copy", f"the sample or the time leaves nothing to do: {target} is a copy")
        if journal.folder_of(target).exists():
            note("continued", f"an interrupted run to {target} is continued")
        run = passes.carry_out(run, target, client, tell)
    return Filtered(found, recipe, run)


def spacing_of(store: ZarrArray, spacing: Spacing | str | None, note: Note) -> tuple[float, ...]:
    """Return the spacing along each spatial axis: as given, of the store, or the shape of its voxels."""
    if store.odd_units is not None and (spacing is None or spacing == "file"):
        note(
            "units",
            f"lengths of {store.path} are in {store.odd_units}, which cannot be compared: the spacing is "
            "assumed to be the same along all axes. Give it with --spacing.",
        )
    if isinstance(spacing, str):
        return store.spacing
    return voxel_shape(store.spacing) if spacing is None else checks.axis_spacing(spacing, len(store.spacing))


def bokeh_hint(scheduler: str | None) -> str:
    """Return what the dashboard of local workers lacks: Dask draws it with Bokeh, but does not require it."""
    if scheduler or importlib.util.find_spec("bokeh"):
        return ""
    return " (this page needs Bokeh: pip install bokeh)"


def _read_windows(store: ZarrArray) -> list[Any]:
    """Read a sample of the first frame, (channels, …)."""
    array = read_only(store.location)
    frame, dtype = (0,) * len(store.frame_axes), arrays.result_type(store.dtype)
    return [
        passes.read_window(array, store, frame, window).astype(dtype)
        for window in windows(store.spatial_shape)
    ]
