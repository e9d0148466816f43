"""The lower resolutions of an OME-Zarr result: means of the next finer one, written chunk by chunk."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from aniso.blocks.stores.places import Lease, Place, explain_write_errors
from aniso.blocks.stores.zarr_array import (
    ZarrArray,
    chunks_at,
    copy_description,
    edit_json,
    read_only,
    read_scale,
    rescale,
)
from aniso.io.picture import as_dtype

# A store with one level gets lower ones until the longest side has at most this many pixels.
_SIDE = 256
Window = tuple[slice, ...]


@dataclass(frozen=True)
class Level:
    """A lower resolution: its key in the group, its shape, and how it is reduced from the level before."""

    key: str
    like: str  # the key of the array of the source that it resembles
    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    factors: tuple[int, ...]
    dataset: dict[str, Any]  # its OME-Zarr metadata

    def windows(self) -> Iterator[Window]:
        """Return the windows of all chunks."""
        starts = (range(0, n, size) for n, size in zip(self.shape, self.chunks, strict=True))
        for place in itertools.product(*starts):
            ends = zip(place, self.chunks, self.shape, strict=True)
            yield tuple(slice(i, min(i + size, n)) for i, size, n in ends)


def levels_of(source: ZarrArray, scale: Sequence[int]) -> tuple[Level, ...]:
    """Return the levels below the full resolution: those of the source, or halves of it if it has none.

    The full resolution of the result is finer by a scale along each spatial axis.
    """
    if source.ome is None:
        raise ValueError(
            f"{source.path} has no OME-Zarr metadata, and so no lower resolutions. Leave the pyramid out."
        )
    finer = [1] * len(source.shape)
    for axis, factor in zip(source.spatial_axes, scale, strict=True):
        finer[axis] = factor
    found: list[Level] = []
    before = tuple(source.shape)
    for dataset in source.ome["datasets"][1:]:
        array = read_only(source.path / dataset["path"])
        if len(array.shape) != len(before) or any(n > m for n, m in zip(array.shape, before, strict=True)):
            raise ValueError(
                f"level {dataset['path']} of {source.path} has shape {array.shape}, which is not a reduction "
                f"of {before}. Leave the pyramid out."
            )
        factors = tuple(max(1, round(m / n)) for m, n in zip(before, array.shape, strict=True))
        shape = tuple(n * factor for n, factor in zip(array.shape, finer, strict=True))
        chunks = tuple(array.shards or array.chunks)
        found.append(Level(dataset["path"], dataset["path"], shape, chunks, factors, dataset))
        before = tuple(array.shape)
    if found:
        return tuple(found)
    return tuple(_halves(source, [n * factor for n, factor in zip(source.shape, finer, strict=True)]))


def _halves(source: ZarrArray, shape: Sequence[int]) -> Iterator[Level]:
    assert source.ome is not None
    first = source.ome["datasets"][0]
    steps, _ = read_scale(first, len(shape))
    total = [1] * len(shape)
    for number in itertools.count(1):
        if max(shape[axis] for axis in source.spatial_axes) <= _SIDE:
            return
        factors = tuple(
            2 if axis in source.spatial_axes and shape[axis] > 1 else 1 for axis in range(len(shape))
        )
        shape = [-(-n // factor) for n, factor in zip(shape, factors, strict=True)]
        total = [old * factor for old, factor in zip(total, factors, strict=True)]
        coarse = [h * f for h, f in zip(steps, total, strict=True)]
        head, slash, _ = source.key.rpartition("/")
        key = f"{head}{slash}{number}"
        dataset = {"path": key, "coordinateTransformations": rescale(first, coarse)}
        yield Level(key, source.key, tuple(shape), source.chunks, factors, dataset)


def create_levels(source: ZarrArray, store: Place, levels: Sequence[Level]) -> None:
    """Describe the levels in a new store, each like an array of the source."""
    for level in levels:
        copy_description(source.path / level.like, store / level.key)
        with edit_json(store / level.key, ".zarray") as found:
            found["shape"] = list(level.shape)


def reduce_window(
    level: Level, window: Window, fine: Any, array: Any, target: Place, done: Place | None, lease: Lease
) -> str:
    """Write the means of a window of the next finer level to a level, whose place is `target`, on a worker.

    `done` is the list of complete windows, if workers add to it.
    """
    limits = zip(window, level.factors, fine.shape, strict=True)
    needed = tuple(slice(min(part.start * f, n - 1), min(part.stop * f, n)) for part, f, n in limits)
    means = np.asarray(fine[needed], np.float64)
    for axis, (part, factor, wide) in enumerate(zip(window, level.factors, needed, strict=True)):
        if factor > 1:
            length = wide.stop - wide.start
            starts = np.minimum(np.arange(part.stop - part.start) * factor, length - 1)
            counts = np.minimum(starts + factor, length) - starts
            shape = [-1 if k == axis else 1 for k in range(means.ndim)]
            means = np.add.reduceat(means, starts, axis=axis) / counts.reshape(shape)
    lease.check()
    with explain_write_errors(target):
        array[window] = as_dtype(means, array.dtype)
        target.persist(key for key, _ in chunks_at(array, window))
    if done is not None:
        (done / name_of(window)).write(b"")
    return name_of(window)


def name_of(window: Window) -> str:
    """Return the name of a window in lists of complete ones."""
    return ".".join(str(part.start) for part in window)
