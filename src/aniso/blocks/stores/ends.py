"""What a pass reads and writes: the source, the result, an image between two passes; frames of a source."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from aniso import arrays
from aniso.blocks.halo import Window, within, without_margins
from aniso.blocks.lazy import check_pixels
from aniso.blocks.stores.places import ExplainedError, Place
from aniso.blocks.stores.zarr_array import ZarrArray, chunks_at, read_only, to_write
from aniso.io.picture import as_dtype

#: The index of an image along the axes that are neither spatial nor channels.
Frame = tuple[int, ...]
Index = tuple[Any, ...]


@dataclass(frozen=True)
class End(ABC):
    """An array of images, which a pass reads or writes. Windows are those of the pipeline's grid."""

    store: Place | None  # None for the source
    location: Place

    def open_to_write(self) -> Any:
        """Open the array."""
        return to_write(self.location, self.location)

    @abstractmethod
    def index(self, frame: Frame, window: Window) -> Index:
        """Return the index of a window."""

    def read(self, array: Any, frame: Frame, window: Window) -> Any:
        """Return pixels (channels, …)."""
        return read_index(array, self.index(frame, window))

    def write(self, array: Any, frame: Frame, window: Window, pixels: Any) -> None:
        """Write pixels (channels, …)."""
        array[self.index(frame, window)] = pixels


@dataclass(frozen=True)
class ImageEnd(End):
    """The source or the result, with its axes.

    The grid is wider than the array by `margins` on each side, and finer by `scale`.
    """

    origin: ZarrArray
    margins: tuple[int, ...]
    scale: tuple[int, ...] = ()
    data: Place | None = None  # if they are not where the array is described

    def open_to_write(self) -> Any:
        """Open the array."""
        return to_write(self.location, self.data or self.location)

    def index(self, frame: Frame, window: Window) -> Index:
        """Return the index of the part of a window that lies in the array."""
        return index_of(self.origin, frame, self._inside(window))

    def read(self, array: Any, frame: Frame, window: Window) -> Any:
        """Return pixels (channels, …); reject NaN and infinity, and name their chunk."""
        inside = self._inside(window)
        pixels = read_channels(array, self.origin, frame, inside)
        chunks = self.origin.spatial_chunks

        def chunk_of(place: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(i // n for i, n in zip(place, chunks, strict=True))

        return check_pixels(pixels, [part.start for part in inside], chunk_of, frame)

    def write(self, array: Any, frame: Frame, window: Window, pixels: Any) -> None:
        """Write pixels (channels, …) of a window, without margins, in the type of the array."""
        inside = self._inside(window)
        starts = (whole.start - m for whole, m in zip(window, self.margins, strict=True))
        crop = within([slice(start, None) for start in starts], inside)
        values = arrays.channels_back(pixels[(slice(None), *crop)], channel_axis_of_frame(self.origin))
        array[index_of(self.origin, frame, inside)] = as_dtype(values, array.dtype)

    def _inside(self, window: Window) -> Window:
        return without_margins(window, self.margins, self.origin.spatial_shape, self.scale)


@dataclass(frozen=True)
class StateEnd(End):
    """An image of the state on the whole grid, for each frame, with axes (frames, channels, …).

    The grid begins at an offset, so that the blocks of the array begin at chunks of the store.
    """

    offset: tuple[int, ...]

    def index(self, frame: Frame, window: Window) -> Index:
        """Return the index of a window of the grid."""
        parts = zip(window, self.offset, strict=True)
        return (*frame, slice(None), *(slice(part.start + o, part.stop + o) for part, o in parts))


def index_of(origin: ZarrArray, frame: Frame, window: Window) -> Index:
    """Return the index of a window of a frame, all channels."""
    index: list[Any] = [slice(None)] * len(origin.shape)
    for axis, number in zip(origin.frame_axes, frame, strict=True):
        index[axis] = number
    for axis, part in zip(origin.spatial_axes, window, strict=True):
        index[axis] = part
    return tuple(index)


def channel_axis_of_frame(origin: ZarrArray) -> int | None:
    """Return the axis of the channels in one frame."""
    if origin.channel_axis is None:
        return None
    return origin.channel_axis - sum(axis < origin.channel_axis for axis in origin.frame_axes)


def read_channels(array: Any, origin: ZarrArray, frame: Frame, window: Window) -> Any:
    """Return pixels of the source, (channels, …)."""
    pixels = read_index(array, index_of(origin, frame, window))
    return arrays.channels_first(pixels, channel_axis_of_frame(origin))


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
    frame: Frame

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


def read_index(array: Any, index: Index) -> Any:
    """Read a part of an array; a chunk that cannot be read is named."""
    try:
        return np.asarray(array[index])
    except ExplainedError:
        raise
    except Exception as error:  # whatever a codec raises
        raise OSError(
            f"{_find_damaged(array, index)} of {array.store_path} cannot be read: {error}. The store appears "
            "to be corrupt; copy it again."
        ) from error


def _find_damaged(array: Any, index: Index) -> str:
    """Name the first chunk that cannot be read by itself; without one, all chunks of the index."""
    for key, parts in chunks_at(array, index):
        try:
            array[parts]
        except Exception:
            return f"chunk {key}"
    return "a chunk among " + ", ".join(key for key, _ in chunks_at(array, index))
