"""Filter one Zarr store into another: choose from a sample, then run pass after pass over all blocks."""

from __future__ import annotations

import importlib.util
import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from aniso import checks
from aniso.blocks.stores import journal, passes
from aniso.blocks.stores.cluster import capacity, check_memory, connect
from aniso.blocks.stores.ends import frame_array, frame_indices
from aniso.blocks.stores.holes import Filling, UnknownPixels
from aniso.blocks.stores.places import Place
from aniso.blocks.stores.plates import copy_groups, fields_of
from aniso.blocks.stores.pyramid import levels_of
from aniso.blocks.stores.urls import options_for, place_of
from aniso.blocks.stores.zarr_array import ZarrArray, open_array
from aniso.checks import Spacing
from aniso.io.pages import voxel_shape
from aniso.settings import Progress, check_progress, report_progress
from aniso.stencil import FreeStencil
from aniso.verbs.plan import Plan, make_plan, note_spacing
from aniso.verbs.source import ImageSource, sampled_frames
from aniso.verbs.table import DIFFUSE, VERBS, Verb

__all__ = ["FilteredStore", "filter_store"]

#: Receives the kind of a note, and its text.
Note = Callable[[str, str], object]


@dataclass(frozen=True)
class StoreProgress:
    """How far a run is. `seconds` are those of this call, `before` the blocks that earlier ones completed."""

    blocks: int
    total: int
    before: int
    seconds: float

    @property
    def rate(self) -> float:
        """Blocks per second of this call, 0 if there are none yet."""
        return (self.blocks - self.before) / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """The expected time that is left, if it is known."""
        return (self.total - self.blocks) / self.rate if self.rate > 0 else None


@dataclass(frozen=True)
class FilteredStore:
    """What :func:`aniso.filter_store` did: the plan, and how the array was cut into blocks and passes."""

    plan: Plan
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    block: tuple[int, ...]
    passes: int
    fields: tuple[str, ...] = ()  # of a plate or well; the others are those of the last one


def filter_store(
    source: str | os.PathLike[str] | Place,
    target: str | os.PathLike[str] | Place,
    plan_or_verb: Plan | str | Callable[..., Any],
    *,
    mask: str | os.PathLike[str] | npt.ArrayLike | UnknownPixels | None = None,
    channel_axis: int | str | None = None,
    frame_axis: int | None = None,
    pyramid: bool = False,
    fields: bool = False,
    spacing: Spacing | str | None = None,
    engine: str | None = None,
    threads: int | None = None,
    workers: int = 2,
    scheduler: str | None = None,
    memory: str | int | None = None,
    storage_options: Mapping[str, Any] | None = None,
    progress: Progress = None,
    note: Note | None = None,
    watch: Callable[[StoreProgress], object] | None = None,
    **options: Any,
) -> FilteredStore:
    """Filter a Zarr store, which may be larger than memory, into a new one.

    The array is filtered block by block by worker processes. The new store appears when it is complete. If a
    run was interrupted, the same call continues it. Values are the same as for an array in memory, bit for
    bit on the ``"cpu"`` engine.

    Parameters
    ----------
    source : str or path
        A Zarr array, or an OME-Zarr group, of which the full resolution is filtered: a path, or a URL with
        ``s3://``, ``gs://``, ``az://``, ``https://`` or ``file://``.
    target : str or path
        The store to create, a path or a URL (not ``https://``), with the type, chunks and metadata of the
        source; ``"upsample"`` changes the shape, and the scale in OME-Zarr metadata.
    plan_or_verb : Plan, str or function
        A plan that a verb returned with ``return_info=True``; or a verb, as its name or its function, e.g.
        ``"denoise"`` or ``aniso.denoise``, which makes a plan from samples of several frames; or
        ``"diffuse"``.
    mask : str, path or array, optional
        For ``"inpaint"``: a Zarr store that is not 0 where a pixel is unknown, or an array of bool, with the
        shape of the array without channels, or that of one frame. By default pixels that are NaN in at least
        one channel are unknown.
    channel_axis : int or "none", optional
        Axis of the channels; by default as the metadata of the store say. With "none", each channel is
        filtered separately, as time points are, all with one plan.
    frame_axis : int, optional
        An axis of frames: of a time series, or of slices that are filtered one by one. Axes that the metadata
        call time are axes of frames, too; an array without names of axes has none by default.
    pyramid : bool
        Write the lower resolutions of an OME-Zarr result too, as means of the full resolution: those that the
        source has, or halves down to 256 pixels if it has none. By default there is only the full
        resolution.
    fields : bool
        Filter all fields of an OME-Zarr plate or well, with one plan that is made from several of them.
    spacing : float, one float per axis, or "file", optional
        Pixel spacing along each spatial axis. "file" takes that of the store. By default only the voxel shape
        of the store is used, in units of the shortest side. Not with a plan, which has a spacing.
    engine : str, optional
        Engine of the workers, by default ``"cpu"``.
    threads : int, optional
        Number of threads of each worker's engine, by default 1.
    workers : int
        Number of worker processes on this machine, if no scheduler is given.
    scheduler : str, optional
        Address of a Dask scheduler whose workers are used.
    memory : str or int, optional
        Memory limit of each worker on this machine, e.g. ``"4GB"``; by default an equal share.
    storage_options : dict, optional
        Options of object stores, e.g. ``{"region": "eu-west-1", "endpoint": "https://…"}``, as obstore names
        them; ``"source.region"`` and ``"target.region"`` are for one of the stores. Environment variables
        such as ``AWS_ACCESS_KEY_ID`` are used too. Options are sent to the workers, environment variables
        are not: workers use their own.
    progress : bool or callable, optional
        True shows a bar on the terminal; a function is called as progress(done, 1.0).
    note : callable, optional
        Receives notes about the run, e.g. the address of Dask's dashboard, as note(kind, text).
    watch : callable, optional
        Called with the number of complete blocks and all blocks (`blocks`, `total`), their `rate` per second
        and the expected `seconds_left`, after each block.
    **options
        Parameters of the verb, e.g. ``noise=12``; for ``"diffuse"`` model, time and scheme. Not with a plan.

    Returns
    -------
    FilteredStore
        The plan, and the size of blocks and the number of passes that were used.

    Examples
    --------
    >>> import aniso
    >>> done = aniso.filter_store("in.zarr", "out.zarr", "denoise", memory="4GB")  # doctest: +SKIP
    >>> print(done.plan)  # doctest: +SKIP
    """
    check_packages()
    check_progress(progress)
    tell_note: Note = note or (lambda kind, text: None)
    if checks.whole("workers", workers, "Give e.g. workers=2.") < 1:
        raise ValueError(f"workers must be at least 1, got {workers}. Give e.g. workers=2.")
    check_memory(memory)  # before anything else is done
    given = find_verb(plan_or_verb)
    source_options = options_for("source", storage_options)
    goal, origin = place_of(target, options_for("target", storage_options)), place_of(source, source_options)
    if fields:
        common: dict[str, Any] = {
            "mask": mask, "channel_axis": channel_axis, "frame_axis": frame_axis, "pyramid": pyramid,
            "engine": engine, "threads": threads, "note": tell_note, "watch": watch, "progress": progress,
        }  # fmt: skip
        with connect(scheduler, workers, memory) as client:
            common["scheduler"] = client.scheduler.address
            return _filter_fields(origin, goal, given, {**options, "spacing": spacing}, common)
    store = open_array(origin, channel_axis, frame_axis)
    goal.check_writable()
    journal.folder_of(goal).check_lock()
    unknown = _check_unknown(given, mask, source_options)
    frame = _sampled_frames(store, unknown)
    if isinstance(given, Plan):
        plan = given
        _reject_with_plan(plan, options if spacing is None else {**options, "spacing": spacing})
        plan.check_fit(frame)
        note_spacing(plan, voxel_shape(store.spacing), tell_note)
    else:
        spacings = spacing_of(store, spacing, tell_note)
        if isinstance(options.get("stencil"), FreeStencil):
            raise ValueError("stores do not support a FreeStencil, whose δ is an array. Use a DeltaStencil.")
        plan = make_plan(given, frame, options, spacing=spacings, engine=engine)
    settings = plan.settings(engine, 1 if threads is None else threads)
    pipeline = plan.pipeline(frame.shape, settings)
    facts = {**json.loads(plan.to_json()), "engine": engine or "cpu"}
    filling = None
    if unknown is not None:
        filler: Any = plan
        filling = Filling(store, unknown, filler.solver(frame.shape, settings))
        facts["mask"] = unknown.describe()
    with connect(scheduler, workers, memory) as client:
        available = capacity(client)
        tell_note("dashboard", f"watch the workers at {client.dashboard_link}{bokeh_hint(scheduler)}")
        try:
            run = passes.StoreRun.plan(store, pipeline, facts, *available, filling)
            if pyramid:
                run = replace(run, levels=levels_of(store, pipeline.scale))
        except MemoryError as error:  # of the workers, not of this process
            raise ValueError(str(error)) from error
        if not (pipeline.stages or (filling and isinstance(given, Plan))):
            why = "no noise, structure or unknown pixel was found in the sample, or the time is 0"
            tell_note("copy", f"{why}: {goal} is a copy")
        if (journal.folder_of(goal) / journal.DESCRIPTION).read() is not None:
            tell_note("continued", f"an interrupted run to {goal} is continued")
        with report_progress(progress, 1.0) as report:
            run = passes.carry_out(run, goal, client, _teller(report, watch))
    return FilteredStore(plan, run.result.shape, store.dtype, run.block, len(run.passes))


def _filter_fields(
    source: Place, target: Place, given: Plan | Verb, options: dict[str, Any], common: dict[str, Any]
) -> FilteredStore:
    """Filter all fields of a plate or well with one plan; those that are complete are left as they are."""
    if target.is_described():
        raise FileExistsError(f"{target} already exists. Choose another name, or delete it first.")
    fields = fields_of(source)
    note: Note = common["note"]
    if isinstance(given, Verb):
        places = [source / fields[number] for number in sampled_frames(len(fields))]
        stores = [open_array(place, common["channel_axis"], common["frame_axis"]) for place in places]
        unknown = _check_unknown(given, common["mask"], {})
        found: list[Any] = [_sampled_frames(store, unknown) for store in stores]
        shapes = {store.shape for store in stores}
        if len(shapes) > 1:
            raise ValueError(
                f"fields of {source} have different shapes ({', '.join(map(str, sorted(shapes)))}), so that "
                "one plan cannot be made from them. Filter them one by one."
            )
        spacings = spacing_of(stores[0], options.pop("spacing"), note)
        joined = replace(found[0], images=tuple(image for one in found for image in one.images))
        plan = make_plan(given, joined, options, spacing=spacings, engine=common["engine"])
    else:
        plan = given
        _reject_with_plan(given, {name: value for name, value in options.items() if value is not None})
    done = None
    folder = journal.folder_of(target)
    journal.write_json(folder / journal.FIELDS, fields)  # for `aniso status`
    for number, name in enumerate(fields, 1):
        note(f"field {name}", f"field {name}, {number} of {len(fields)}")
        if (target / name).is_described():
            continue
        (target / name).make_parents()
        done = filter_store(source / name, target / name, plan, **common)
    copy_groups(source, target, fields)
    folder.remove()
    if done is None:  # an interrupted run had completed all of them
        last = open_array(target / fields[-1], common["channel_axis"], common["frame_axis"])
        done = FilteredStore(plan, last.shape, last.dtype, last.spatial_shape, 0)
    return replace(done, fields=tuple(fields))


def _teller(
    report: Callable[[float], object], watch: Callable[[StoreProgress], object] | None
) -> passes.Report:
    """Return a function that reports blocks."""
    start = time.monotonic()
    before: list[int] = []

    def tell(done: float, total: float) -> None:
        report(done / total)
        if not before:
            before.append(int(done))
        if watch is not None:
            watch(StoreProgress(int(done), int(total), before[0], time.monotonic() - start))

    return tell


def find_verb(plan_or_verb: Any) -> Plan | Verb:
    """Return a plan, or the verb of this name or function."""
    if isinstance(plan_or_verb, Plan):
        return plan_or_verb
    known = [*VERBS.values(), DIFFUSE]
    for verb in known:
        if plan_or_verb is verb.function or (isinstance(plan_or_verb, str) and plan_or_verb == verb.name):
            return verb
    raise TypeError(
        f"plan_or_verb must be a plan, or one of {', '.join(verb.name for verb in known)} as a name or a "
        f"function, got {plan_or_verb!r}."
    )


def _check_unknown(given: Plan | Verb, mask: Any, options: Mapping[str, Any]) -> UnknownPixels | None:
    """Return which pixels are unknown, for verbs that fill them in."""
    name = given.verb if isinstance(given, Plan) else given.name
    if VERBS.get(name, DIFFUSE).fills:
        return UnknownPixels.of(mask, options)
    if mask is not None:
        raise ValueError(f"{name} takes no mask for stores. Fill in their unknown pixels with inpaint first.")
    return None


def _reject_with_plan(plan: Plan, options: dict[str, Any]) -> None:
    if options:
        raise ValueError(
            f"a plan has all parameters of {plan.verb}, got {', '.join(options)} too. Leave them out, or "
            "give the verb in place of the plan."
        )


def _sampled_frames(store: ZarrArray, unknown: UnknownPixels | None) -> ImageSource:
    """Return some of the frames as Dask arrays, with their axes in the order of the store."""
    indices = frame_indices(store)
    found: list[Any] = []
    for number in sampled_frames(len(indices)):
        if unknown is None:
            found.append(ImageSource.check(*frame_array(store, indices[number])))
        else:
            found.append(unknown.source(store, indices[number]))
    joined: ImageSource = found[0].join(found, 0)
    return joined


def spacing_of(store: ZarrArray, spacing: Spacing | str | None, note: Note) -> tuple[float, ...]:
    """Return the spacing along each spatial axis: as given, of the store, or the shape of its voxels."""
    if store.odd_units is not None and (spacing is None or spacing == "file"):
        note(
            "units",
            f"lengths of {store.path} are in {store.odd_units}, which cannot be compared: the spacing is "
            "assumed to be the same along all axes. Give it with --spacing.",
        )
    if isinstance(spacing, str):
        if spacing != "file":
            raise ValueError(f'spacing must be a number, one number per axis, or "file", got {spacing!r}.')
        return store.spacing
    return voxel_shape(store.spacing) if spacing is None else checks.axis_spacing(spacing, len(store.spacing))


def bokeh_hint(scheduler: str | None) -> str:
    """Return what the dashboard of local workers lacks: Dask draws it with Bokeh, but does not require it."""
    if scheduler or importlib.util.find_spec("bokeh"):
        return ""
    return " (this page needs Bokeh: pip install bokeh)"


def check_packages() -> None:
    """Raise an error if a package that stores need is missing."""
    if any(importlib.util.find_spec(name) is None for name in ("dask", "distributed", "zarr")):
        raise ImportError('Zarr stores need Dask and Zarr. Install them with: pip install "aniso[dask]".')
