"""Zarr stores made for tests, and runs over them."""

import json
from typing import Any

import zarr as zarr_package

import aniso
from aniso.blocks.stores import passes
from aniso.blocks.stores.zarr_array import open_array
from aniso.evolve import DiffusePlan

MODEL = aniso.EdgeEnhancing(12.0, sigma=0.5)
# A group may hold groups and arrays, which types cannot tell apart.
zarr: Any = zarr_package


def ome_group(path, image, axes, scale, version="0.5", units=None, **options):
    """An OME-Zarr group with two levels of resolution; `units` go from names of axes to theirs."""
    kinds = {"t": "time", "c": "channel"}
    units = {name: {"unit": unit} for name, unit in (units or {}).items()}
    multiscale = {
        "version": version,
        "name": "sample",
        "axes": [{"name": name, "type": kinds.get(name, "space"), **units.get(name, {})} for name in axes],
        "datasets": [
            {"path": "0", "coordinateTransformations": [{"type": "scale", "scale": list(scale)}]},
            {"path": "1", "coordinateTransformations": [{"type": "scale", "scale": [2 * h for h in scale]}]},
        ],
    }
    new = version == "0.5"
    attributes = (
        {"ome": {"version": "0.5", "multiscales": [multiscale]}} if new else {"multiscales": [multiscale]}
    )
    group = zarr.open_group(str(path), mode="w", zarr_format=3 if new else 2, attributes=attributes)
    array = group.create_array("0", shape=image.shape, dtype=image.dtype, **options)
    array[:] = image
    group.create_array("1", shape=image.shape, dtype=image.dtype, **options)
    return path


def job(path, time=2.0, memory=None, block=None, together=None, model=MODEL, channel_axis=None):
    """A run in given blocks, with this number of steps in a pass; or in those that suit the memory."""
    source = open_array(path, channel_axis)
    plan = DiffusePlan(
        spacings=source.spacing,
        channel_axis=channel_axis,
        channels=source.channels,
        stencil=aniso.DeltaStencil(),
        model=model,
        time=time,
        scheme=aniso.Explicit(),
    )
    pipeline = plan.pipeline(source.spatial_shape, plan.settings(threads=1))
    facts = json.loads(plan.to_json())
    if block is None:
        return passes.StoreRun.plan(source, pipeline, facts, memory or 1e9, 2)
    widest = max((max(stage.reach) for stage in pipeline.parts()), default=0)
    return passes.StoreRun(source, pipeline, facts, block, together * widest)


def run(client, path, target, **options):
    passes.carry_out(job(path, **options), target, client, lambda done, total: None)


def result_of(path):
    """The pixels of an array, or of the full resolution of a group."""
    node = zarr.open(str(path), mode="r")
    return (node["0"] if isinstance(node, zarr.Group) else node)[:]
