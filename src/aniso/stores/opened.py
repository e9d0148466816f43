"""What a Zarr array or OME-Zarr group holds, and an empty one like it."""

from __future__ import annotations

import copy
import math
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

# How axes are called that are not of space.
_CHANNEL_NAMES, _TIME_NAMES = ("c", "channel", "channels"), ("t", "time")


@dataclass(frozen=True)
class Opened:
    """A Zarr array on disk, with what is known about its axes."""

    path: Path
    key: str  # of the array within a group, or "" if the path is the array itself
    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    dtype: np.dtype[Any]
    channel_axis: int | None
    frame_axes: tuple[int, ...]
    spacing: tuple[float, ...]
    ome: dict[str, Any] | None

    @property
    def location(self) -> str:
        """Where the array itself is."""
        return str(self.path / self.key) if self.key else str(self.path)

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
        """What is written at once, along these axes."""
        return tuple(self.chunks[axis] for axis in self.spatial_axes)

    @property
    def channels(self) -> int:
        """How many channels diffuse with one tensor."""
        return 1 if self.channel_axis is None else self.shape[self.channel_axis]


def opened(path: Path, channel_axis: int | None = None) -> Opened:
    """The array at this path, or the one of full resolution if it is an OME-Zarr group."""
    import zarr

    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # on what is odd in the metadata and does not matter here
            node = zarr.open(str(path), mode="r")
    except Exception as error:
        raise ValueError(f"{path} is no Zarr array or group that can be read: {error}") from error
    ome, key, scale, names = None, "", None, None
    array: Any = node
    if isinstance(node, zarr.Group):
        ome = _multiscale(node, path)
        try:
            level = ome["datasets"][0]
            key = level["path"]
            array = node[key]
            names = [_kind(axis) for axis in ome.get("axes", [])] or None
            scale = _scale(ome, level, array.ndim)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise ValueError(
                f"{path} has OME-Zarr metadata that are not as they should be ({type(error).__name__}: "
                f"{error}). Give the path of one of its arrays."
            ) from error
    if names is None:
        names = _dimension_names(array)
    channel, frames = _axes(array, names, channel_axis, path)
    spatial = [axis for axis in range(array.ndim) if axis != channel and axis not in frames]
    spacing = tuple(1.0 if scale is None else scale[axis] for axis in spatial)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{path} holds {array.dtype}, not real numbers: there is nothing to diffuse.")
    if 0 in array.shape:
        raise ValueError(f"{path} is empty, shape {array.shape}: there is nothing to diffuse.")
    return Opened(
        path,
        key,
        array.shape,
        tuple(array.shards or array.chunks),
        array.dtype,
        channel,
        tuple(frames),
        spacing,
        ome,
    )


def array_at(location: str) -> Any:
    """A Zarr array to read from; what is odd in its metadata was looked at before."""
    import zarr

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return zarr.open_array(location, mode="r")


def part_of(array: Any, index: Any) -> np.ndarray[Any, Any]:
    """Part of a Zarr array, if its chunks can be read."""
    try:
        return np.asarray(array[index])
    except (MemoryError, OSError):
        raise
    except Exception as error:  # codecs have many ways to say that a chunk is broken
        raise ValueError(
            f"a chunk of {array.store_path} cannot be read: it is damaged or cut short ({error}). Copy the "
            "store again."
        ) from error


def create_like(source: Opened, path: Path, dtype: np.dtype[Any]) -> str:
    """An empty array with the shape, chunks, codecs and attributes of the source; its location.

    Of an OME-Zarr group only the full resolution is kept: the others would show the unfiltered image.
    """
    import zarr

    array: Any = array_at(source.location)
    options: dict[str, Any] = {
        "shape": array.shape,
        "chunks": array.chunks,
        "dtype": dtype,
        "zarr_format": array.metadata.zarr_format,
        "attributes": dict(array.attrs),
        "fill_value": dtype.type(0),
    }
    if array.metadata.zarr_format == 3:
        options |= {"shards": array.shards, "dimension_names": array.metadata.dimension_names}
    options |= {"chunk_key_encoding": _key_encoding(array)}
    if dtype == array.dtype:
        options |= {"compressors": array.compressors or None, "filters": array.filters or None}
    if source.ome is None:
        zarr.create_array(str(path), **options)
        return str(path)
    group = zarr.open_group(str(source.path), mode="r")
    attributes = _with_one_level(dict(group.attrs), source.ome)
    target = zarr.create_group(str(path), zarr_format=group.metadata.zarr_format, attributes=attributes)
    target.create_array(source.key, **{name: v for name, v in options.items() if name != "zarr_format"})
    return str(path / source.key)


def _multiscale(group: Any, path: Path) -> dict[str, Any]:
    attributes = dict(group.attrs)
    holder = attributes.get("ome", attributes)
    listed = holder.get("multiscales") if isinstance(holder, dict) else None
    first = listed[0] if listed and isinstance(listed, list) else None
    if not isinstance(first, dict) or not first.get("datasets"):
        arrays = ", ".join(sorted(name for name, _ in group.arrays())) or "none"
        raise ValueError(
            f"{path} is a Zarr group without OME-Zarr metadata. Give the path of one of its arrays: {arrays}."
        )
    return first


def _with_one_level(attributes: dict[str, Any], ome: dict[str, Any]) -> dict[str, Any]:
    attributes = copy.deepcopy(attributes)
    holder = attributes.get("ome", attributes)
    only = copy.deepcopy(ome)
    only["datasets"] = only["datasets"][:1]
    holder["multiscales"] = [only]
    return attributes


def _scale(ome: dict[str, Any], level: dict[str, Any], ndim: int) -> list[float]:
    """The product of the scales of the level and of all levels."""
    scale = [1.0] * ndim
    for transformation in (
        *level.get("coordinateTransformations", ()),
        *ome.get("coordinateTransformations", ()),
    ):
        if transformation.get("type") == "scale":
            factors = transformation.get("scale", ())
            if len(factors) == ndim:
                scale = [old * float(factor) for old, factor in zip(scale, factors, strict=True)]
    return [h if math.isfinite(h) and h > 0 else 1.0 for h in scale]


def _kind(axis: Any) -> str:
    """The name of an axis; its type, where there is one, says whether it is a channel or time."""
    if isinstance(axis, str):
        return axis.lower()
    kind = axis.get("type")
    return {"channel": "c", "time": "t"}.get(kind, str(axis.get("name", "")).lower())


def _dimension_names(array: Any) -> list[str] | None:
    names = getattr(array.metadata, "dimension_names", None) or array.attrs.get("_ARRAY_DIMENSIONS")
    return None if names is None else [str(name).lower() for name in names]


def _axes(
    array: Any, names: list[str] | None, channel_axis: int | None, path: Path
) -> tuple[int | None, list[int]]:
    """The axis of the channels, and those along which images follow one another."""
    names = names or [""] * array.ndim
    frames = [axis for axis, name in enumerate(names) if name in _TIME_NAMES]
    channels = [axis for axis, name in enumerate(names) if name in _CHANNEL_NAMES]
    channel = channels[0] if channels else None
    if channel_axis is not None:
        if not -array.ndim <= channel_axis < array.ndim:
            raise ValueError(f"{path} has no axis {channel_axis}: its shape is {array.shape}.")
        channel = channel_axis % array.ndim
        frames = [axis for axis in frames if axis != channel]
    spatial = array.ndim - len(frames) - (channel is not None)
    if spatial not in (2, 3):
        raise ValueError(
            f"{path} has shape {array.shape} and axes {', '.join(names) if any(names) else 'without names'}: "
            "an image has two axes besides channels and time, a volume three. Say which axis holds channels."
        )
    return channel, frames


def _key_encoding(array: Any) -> Any:
    if array.metadata.zarr_format == 2:
        return {"name": "v2", "separator": array.metadata.dimension_separator}
    encoding = array.metadata.chunk_key_encoding
    return {"name": encoding.name, "separator": encoding.separator}
