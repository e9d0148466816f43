"""Zarr arrays and OME-Zarr groups: their axes and spacing, and empty copies of them."""

from __future__ import annotations

import itertools
import json
import math
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from aniso.blocks.stores.places import DESCRIPTIONS, ExplainedError, Place
from aniso.blocks.stores.urls import place_of
from aniso.io import units

# The attributes of arrays and groups of Zarr 2; those of Zarr 3 are in their descriptions.
_ATTRIBUTES = ".zattrs"
# Bytes of the chunks that are read or written at the same time.
_IN_FLIGHT = 2**25
# Names of axes that are not spatial.
_CHANNEL_NAMES, _TIME_NAMES = ("c", "channel", "channels"), ("t", "time")


@dataclass(frozen=True)
class ZarrArray:
    """A Zarr array in a store with its axes."""

    path: Place
    key: str  # of the array within a group, or "" if the path is the array itself
    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    dtype: np.dtype[Any]
    channel_axis: int | None
    frame_axes: tuple[int, ...]
    spacing: tuple[float, ...]
    odd_units: str | None  # units of length, if they cannot be compared
    ome: dict[str, Any] | None

    @property
    def location(self) -> Place:
        """The location of the array itself."""
        return self.path / self.key if self.key else self.path

    @property
    def spatial_axes(self) -> tuple[int, ...]:
        """The two or three axes of an image or volume."""
        other = {self.channel_axis, *self.frame_axes}
        return tuple(axis for axis in range(len(self.shape)) if axis not in other)

    @property
    def spatial_shape(self) -> tuple[int, ...]:
        """The shape of one image or volume, without channels."""
        return tuple(self.shape[axis] for axis in self.spatial_axes)

    @property
    def spatial_chunks(self) -> tuple[int, ...]:
        """The chunks along these axes."""
        return tuple(self.chunks[axis] for axis in self.spatial_axes)

    def refine(self, scale: Sequence[int]) -> ZarrArray:
        """Return the same array with a finer grid along the spatial axes, and chunks of the same size."""
        shape = list(self.shape)
        for axis, factor in zip(self.spatial_axes, scale, strict=True):
            shape[axis] *= factor
        return replace(self, shape=tuple(shape))

    @property
    def channels(self) -> int:
        """The number of channels that share one tensor."""
        return 1 if self.channel_axis is None else self.shape[self.channel_axis]


def open_array(
    path: Place | str | os.PathLike[str],
    channel_axis: int | str | None = None,
    frame_axis: int | None = None,
    kinds: str = "iuf",
) -> ZarrArray:
    """Open the array at this path, or the one of full resolution in an OME-Zarr group.

    `frame_axis` is one besides those that are named as such. `kinds` are those of its data type, as NumPy
    calls them.
    """
    import zarr

    path = place_of(path)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist.")
    path = path.absolute()  # workers may have another working directory
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about metadata that are not used here
            node = zarr.open(path.node, mode="r")
    except ExplainedError:
        raise
    except Exception as error:
        raise ValueError(f"{path} cannot be read as a Zarr array or group: {error}") from error
    array: Any = node
    ome, key = None, ""
    names: list[str] = []
    lengths: list[str] = []
    scale: list[float] = []
    if isinstance(node, zarr.Group):
        ome = _multiscale(node, path)
        try:
            level = ome["datasets"][0]
            array = node[level["path"]]
            # Without a leading slash, which would lead out of the store.
            key = array.path.removeprefix(f"{node.path}/" if node.path else "")
            axes = ome.get("axes", [])
            scale = _scale(ome, level, array.ndim)
            names, lengths = [_kind(axis) for axis in axes], [_unit(axis) for axis in axes]
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise ValueError(
                f"{path} has invalid OME-Zarr metadata ({type(error).__name__}: "
                f"{error}). Give the path of one of its arrays."
            ) from error
    if names and len(names) != array.ndim:
        raise ValueError(
            f"{path} has metadata for {len(names)} axes, but its array has shape {array.shape}. Give the "
            "path of the array itself."
        )
    names, lengths = names or _dimension_names(array), lengths or [""] * array.ndim
    scale = scale or [1.0] * array.ndim
    channel, frames = _axes(array, names, channel_axis, frame_axis, path)
    spatial = [axis for axis in range(array.ndim) if axis != channel and axis not in frames]
    spacing = _spacing([scale[axis] for axis in spatial], [lengths[axis] for axis in spatial])
    if array.dtype.kind not in kinds:
        raise TypeError(f"{path} must have a real numeric dtype, got {array.dtype}.")
    if 0 in array.shape:
        raise ValueError(f"{path} is empty, shape {array.shape}: there is nothing to diffuse.")
    return ZarrArray(
        path=path,
        key=key,
        shape=array.shape,
        chunks=tuple(array.shards or array.chunks),
        dtype=array.dtype,
        channel_axis=channel,
        frame_axes=tuple(frames),
        spacing=spacing or (1.0,) * len(spatial),
        odd_units=None if spacing else " and ".join(sorted({lengths[axis] or "none" for axis in spatial})),
        ome=ome,
    )


def read_only(location: Place) -> Any:
    """Open a Zarr array for reading, without warnings about its metadata."""
    import zarr

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return zarr.open_array(location.node, mode="r")


def to_write(location: Place, data: Place) -> Any:
    """Open the Zarr array that is described at a location, to write its data, perhaps elsewhere."""
    import zarr

    array = zarr.open_array(location.node, mode="r+")
    if data == location:
        return array
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return zarr.Array(zarr.AsyncArray(metadata=array.metadata, store_path=data.node))


def concurrency(array: Any) -> int:
    """Return how many chunks to read or write at the same time: they are in memory at the same time.

    Object stores answer late, but many requests at once.
    """
    from zarr.storage import LocalStore

    if isinstance(array.store, LocalStore):
        return 2
    size = math.prod(array.shards or array.chunks) * array.dtype.itemsize
    return max(2, min(16, _IN_FLIGHT // size))


def chunks_at(array: Any, index: Sequence[slice | int]) -> Iterator[tuple[str, tuple[slice, ...]]]:
    """Yield the key and the place of each chunk, or shard, that an index touches."""
    ranges = []
    sizes = array.shards or array.chunks
    for part, length, size in zip(index, array.shape, sizes, strict=True):
        start, stop, _ = (part if isinstance(part, slice) else slice(part, part + 1)).indices(length)
        ranges.append(range(start // size, -(-stop // size)))
    for place in itertools.product(*ranges):
        parts = tuple(slice(i * size, (i + 1) * size) for i, size in zip(place, sizes, strict=True))
        yield array.metadata.encode_chunk_key(place), parts


def create_like(
    source: ZarrArray, path: Place, scale: Sequence[int] = (), lower: Sequence[dict[str, Any]] = ()
) -> Place:
    """Create an empty array with the metadata of the source, and return its location.

    Of an OME-Zarr group, the full resolution is kept, and the `lower` ones that will be written: others would
    show the unfiltered image. The grid may be finer by a scale along each spatial axis.
    """
    place, copy = source.path, path
    copy_description(place, copy)
    for part in PurePosixPath(source.key).parts:
        place, copy = place / part, copy / part
        copy_description(place, copy)
    finer = dict(zip(source.spatial_axes, scale or (1,) * len(source.spacing), strict=True))
    factors = [finer.get(axis, 1) for axis in range(len(source.shape))]
    if source.ome is not None:
        _keep_levels(path, source.ome, factors, lower)
    if max(factors) > 1:
        with edit_json(copy, ".zarray") as found:
            found["shape"] = [n * factor for n, factor in zip(source.shape, factors, strict=True)]
    return copy


def copy_description(source: Place, target: Place) -> None:
    """Copy what describes an array or group."""
    for name in (_ATTRIBUTES, *DESCRIPTIONS):
        if (text := (source / name).read()) is not None:
            (target / name).write(text)


@contextmanager
def edit_json(folder: Place, old_name: str) -> Iterator[dict[str, Any]]:
    """Edit the description of an array or group: `zarr.json`, or a file of this name in Zarr 2."""
    file = folder / "zarr.json"
    if (text := file.read()) is None:
        file = folder / old_name
        text = file.read()
    found = json.loads(text or b"{}")
    yield found
    file.write(json.dumps(found, indent=2, ensure_ascii=False).encode())


def _keep_levels(
    path: Place, ome: dict[str, Any], factors: Sequence[int], lower: Sequence[dict[str, Any]]
) -> None:
    """Remove other levels of resolution and other images from the metadata."""
    levels = [ome["datasets"][0], *lower]
    if max(factors) > 1:
        for number, level in enumerate(levels):
            finer = [
                h / factor for h, factor in zip(read_scale(level, len(factors))[0], factors, strict=True)
            ]
            levels[number] = {**level, "coordinateTransformations": rescale(level, finer)}
    with edit_json(path, _ATTRIBUTES) as found:
        found.pop("consolidated_metadata", None)
        attributes = found["attributes"] if "node_type" in found else found
        attributes.get("ome", attributes)["multiscales"] = [{**ome, "datasets": levels}]


def rescale(level: dict[str, Any], new: Sequence[float]) -> list[dict[str, Any]]:
    """Return the transformations of a level of another scale, whose first pixel has another centre."""
    scale, translation = read_scale(level, len(new))
    moved = [x + (other - h) / 2 for x, h, other in zip(translation, scale, new, strict=True)]
    return [{"type": "scale", "scale": list(new)}, {"type": "translation", "translation": moved}]


def read_scale(level: dict[str, Any], ndim: int) -> tuple[list[float], list[float]]:
    """Return the scale and the translation of a level."""
    found = {"scale": [1.0] * ndim, "translation": [0.0] * ndim}
    for each in level.get("coordinateTransformations", ()):
        values = each.get(each.get("type"), ())
        if each.get("type") in found and len(values) == ndim:
            found[each["type"]] = [float(value) for value in values]
    return found["scale"], found["translation"]


def _multiscale(group: Any, path: Place) -> dict[str, Any]:
    attributes = dict(group.attrs)
    holder = attributes.get("ome", attributes)
    listed = holder.get("multiscales") if isinstance(holder, dict) else None
    first = listed[0] if listed and isinstance(listed, list) else None
    if not isinstance(first, dict) or not first.get("datasets"):
        try:
            arrays = ", ".join(sorted(name for name, _ in group.arrays())) or "none"
        except Exception:  # web servers have no lists
            arrays = "unknown"
        raise ValueError(
            f"{path} is a Zarr group without OME-Zarr metadata. Give the path of one of its arrays: {arrays}."
        )
    return first


def _scale(ome: dict[str, Any], level: dict[str, Any], ndim: int) -> list[float]:
    """Return the product of the scale of the level and that of all levels."""
    (own, _), (common, _) = read_scale(level, ndim), read_scale(ome, ndim)
    scale = [h * factor for h, factor in zip(own, common, strict=True)]
    return [h if math.isfinite(h) and h > 0 else 1.0 for h in scale]


def _kind(axis: Any) -> str:
    """Return the name of an axis, or "c" and "t" if its type is channel or time."""
    if isinstance(axis, str):
        return axis.lower()
    kind = axis.get("type")
    return {"channel": "c", "time": "t"}.get(kind, str(axis.get("name", "")).lower())


def _spacing(scale: list[float], lengths: list[str]) -> tuple[float, ...] | None:
    """Return the spacing along the spatial axes in the unit of the last one; None if units are unknown."""
    ratios = [1.0 if unit == lengths[-1] else units.ratio(unit, lengths[-1]) for unit in lengths]
    found = tuple(h * ratio for h, ratio in zip(scale, ratios, strict=True) if ratio is not None)
    return found if len(found) == len(scale) else None


def _unit(axis: Any) -> str:
    """Return the unit of length, or "" without one."""
    return "" if isinstance(axis, str) else str(axis.get("unit") or "")


def _dimension_names(array: Any) -> list[str]:
    names = getattr(array.metadata, "dimension_names", None) or array.attrs.get("_ARRAY_DIMENSIONS")
    return [] if names is None else [str(name).lower() for name in names]


def _axes(
    array: Any, names: list[str], channel_axis: int | str | None, frame_axis: int | None, path: Place
) -> tuple[int | None, list[int]]:
    """Return the axis of the channels, and the axes of frames."""
    names = names or [""] * array.ndim
    frames = [axis for axis, name in enumerate(names) if name in _TIME_NAMES]
    channels = [axis for axis, name in enumerate(names) if name in _CHANNEL_NAMES]
    channel = channels[0] if channels else None
    if channel_axis == "none":  # channels are images of their own
        channel, frames = None, sorted({*frames, *channels})
    elif isinstance(channel_axis, str):
        raise ValueError(f'channel_axis must be the number of an axis or "none", got {channel_axis!r}.')
    elif channel_axis is not None:
        channel = _check_axis(array, channel_axis, path)
        frames = [axis for axis in frames if axis != channel]
    if frame_axis is not None:
        frames = sorted({*frames, _check_axis(array, frame_axis, path)} - {channel})
    spatial = array.ndim - len(frames) - (channel is not None)
    if spatial not in (2, 3):
        raise ValueError(
            f"{path} has shape {array.shape} and axes {', '.join(names) if any(names) else 'without names'}: "
            "an image has two axes besides channels and frames, a volume three. Give their axes."
        )
    return channel, frames


def _check_axis(array: Any, axis: int, path: Place) -> int:
    if not -array.ndim <= axis < array.ndim:
        raise ValueError(f"{path} has no axis {axis}: its shape is {array.shape}.")
    return axis % int(array.ndim)
