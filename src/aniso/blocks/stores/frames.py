"""Frames of a Zarr array as Dask arrays."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from aniso.blocks.stores.ends import Frame, channel_axis_of_frame, read_index
from aniso.blocks.stores.zarr_array import ZarrArray, read_only


def frame_indices(store: ZarrArray) -> list[Frame]:
    """Return the indices of all frames; a store without axes of frames has one."""
    return list(itertools.product(*(range(store.shape[axis]) for axis in store.frame_axes)))


def frame_array(store: ZarrArray, frame: Frame) -> tuple[Any, int | None]:
    """Return a frame with its axes in the order of the store, and its axis of channels."""
    import dask.array as da

    chunks = tuple(n for axis, n in enumerate(store.chunks) if axis not in store.frame_axes)
    view = _FrameView(store, frame)
    lazy = da.from_array(view, chunks=chunks, name=False, asarray=False, fancy=False)
    return lazy, channel_axis_of_frame(store)


@dataclass(frozen=True)
class _FrameView:
    """A frame as an array; a chunk that cannot be read is named."""

    store: ZarrArray
    frame: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(n for axis, n in enumerate(self.store.shape) if axis not in self.store.frame_axes)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.store.dtype

    @cached_property
    def _array(self) -> Any:
        return read_only(self.store.location)

    def __getitem__(self, index: Any) -> Any:
        given, frame = iter(index), iter(self.frame)
        axes = range(len(self.store.shape))
        return read_index(
            self._array, tuple(next(frame if axis in self.store.frame_axes else given) for axis in axes)
        )
