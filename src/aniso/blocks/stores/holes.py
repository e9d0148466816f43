"""Stores with unknown pixels: which they are, and what is computed on coarser grids before the first pass.

The passes diffuse on the finest grid. They start from the coarser grids, which are a fraction of the array
and are computed in the memory of all workers together. The known pixels, the coarser grid and the range of
the known values are stored in the folder of the run, so that an interrupted run has them again.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from aniso import arrays
from aniso.arrays import Mask, is_dask
from aniso.blocks.halo import Window
from aniso.blocks.stores import ends, journal
from aniso.blocks.stores.ends import End, Frame, ImageEnd, read_index
from aniso.blocks.stores.places import Options, Place, explain_write_errors
from aniso.blocks.stores.urls import place_of
from aniso.blocks.stores.zarr_array import ZarrArray, open_array, read_only
from aniso.verbs.grids import double_window
from aniso.verbs.holes import HoledSource
from aniso.verbs.inpaint_solver import Solver

# The side of chunks of the coarser grid, by the number of axes.
_SIDES = {2: 512, 3: 64}
_DONE = "start.json"


@dataclass(frozen=True, eq=False)
class UnknownPixels:
    """Which pixels of a store are unknown.

    They are those where a mask (the path of a Zarr store, or an array) is not 0, or is 0 if `invert`; those
    whose channels all have a `value`; or those that are NaN in a channel, or infinite if `infinite`.
    """

    mask: Place | Mask | None = None
    invert: bool = False
    value: float | None = None
    infinite: bool = False

    @classmethod
    def of(cls, mask: Any, options: Options | None = None) -> UnknownPixels:
        """Return the unknown pixels that a caller gave: a path or URL, an array or None."""
        if isinstance(mask, cls):
            return mask
        if mask is None or isinstance(mask, str | os.PathLike):
            return cls(None if mask is None else place_of(mask, options))
        if is_dask(mask):
            raise TypeError("mask must be the path of a Zarr store or a NumPy array, got a Dask array.")
        given = np.asarray(mask)
        return cls(arrays.check_mask("mask", mask, given.shape, "a pixel is unknown"))

    def describe(self) -> str:
        """Return what must be the same for an interrupted run to continue."""
        if isinstance(self.mask, Place):
            identity = journal.fingerprint(open_array(self.mask, kinds="biuf"))
        else:
            identity = (
                "" if self.mask is None else hashlib.sha256(np.packbits(self.mask).tobytes()).hexdigest()[:32]
            )
        return f"{identity} invert={self.invert} value={self.value} infinite={self.infinite}"

    def source(self, store: ZarrArray, frame: Frame) -> HoledSource:
        """Return a frame of a store as a Dask array, with its unknown pixels."""
        image, axis = ends.frame_array(store, frame)
        return HoledSource.check_holes(image, self._mask_of(store, frame, image, axis), axis)

    def _mask_of(self, store: ZarrArray, frame: Frame, image: Any, axis: int | None) -> Any:
        """Return a Dask array of bool, True where a pixel is unknown; None if NaN says so."""
        import dask.array as da

        channels: Any = arrays.channels_first(image, axis)
        if self.value is not None:
            return (channels == self.value).all(axis=0)
        if self.mask is None:
            unknown = ~da.isfinite(channels) if self.infinite else da.isnan(channels)
            return unknown.any(axis=0) if image.dtype.kind == "f" else None
        each = self._whole_mask(store, channels.chunks[1:])
        own = each[frame] if each.ndim > len(store.spatial_axes) else each
        return own == 0 if self.invert else own != 0

    def _whole_mask(self, store: ZarrArray, chunks: Any) -> Any:
        """Return the mask of one frame, or of all frames."""
        import dask.array as da

        if isinstance(self.mask, Place):
            about = open_array(self.mask, kinds="biuf")
            mask: Any = da.from_array(read_only(about.location), chunks=about.chunks, name=False)
            if about.channel_axis is not None:
                mask = (mask != 0).any(axis=about.channel_axis)
            name = str(self.mask)
        else:
            mask, name = da.from_array(self.mask), "mask"
        axes = (*store.frame_axes, *store.spatial_axes)
        frames = tuple(store.shape[axis] for axis in store.frame_axes)
        if mask.shape == store.spatial_shape:
            return mask.rechunk(chunks)
        ordered = tuple(store.shape[axis] for axis in sorted(axes))
        if frames and mask.shape == ordered:
            return mask.transpose([sorted(axes).index(axis) for axis in axes])
        raise ValueError(
            f"{name} has shape {mask.shape}, but the image without channels has {ordered}. Give a mask of "
            "the same shape" + (f", or {store.spatial_shape} for all frames." if frames else ".")
        )


@dataclass(frozen=True, eq=False)
class Filling:
    """What a run needs before its first pass: known pixels, the start between them, and limits."""

    store: ZarrArray
    unknown: UnknownPixels
    solver: Solver

    def prepare(self, folder: Place, client: Any) -> None:
        """Compute it with the workers, unless an interrupted run did."""
        if (folder / _DONE).read() is not None:
            return
        with explain_write_errors(folder):
            stores = self._create_stores(folder)
        with client.as_current():
            limits = {_name(frame): self._solve(frame, *stores) for frame in ends.frame_indices(self.store)}
        with explain_write_errors(folder):
            for name in ("known", "coarse"):
                _location(folder, name).persist()
            journal.write_json(folder / _DONE, limits)

    def _create_stores(self, folder: Place) -> tuple[Any, Any]:
        """Return empty arrays for the known pixels and for the coarser grid of all frames."""
        import zarr

        known, coarse = (_location(folder, name) for name in ("known", "coarse"))
        known.remove()
        coarse.remove()
        frames, count = tuple(self.store.shape[axis] for axis in self.store.frame_axes), self.store.channels
        shape, half = self.store.spatial_shape, _half(self.store)
        ones, dtype = (1,) * len(frames), arrays.result_type(self.store.dtype)
        sides = (*ones, count, *(min(n, _SIDES[len(shape)]) for n in half))
        return (
            zarr.create_array(
                known.node, shape=(*frames, *shape), chunks=(*ones, *self.store.spatial_chunks), dtype=bool
            ),
            zarr.create_array(coarse.node, shape=(*frames, count, *half), chunks=sides, dtype=dtype),
        )

    def _solve(self, frame: Frame, *stores: Any) -> list[list[float]]:
        """Store known pixels and the coarser grid of a frame; return the range of each channel."""
        import dask.array as da
        from dask.base import compute

        source = self.unknown.source(self.store, frame)
        pixels = source.pixels
        coarse: Any = self.solver.coarse_lazily(pixels, source.known)
        sides = (_SIDES[len(source.shape)],) * len(source.shape)
        found = [source.known, coarse.rechunk((-1, *sides))]  # as they are stored
        regions: Any = [(*frame, *(slice(0, n) for n in each.shape)) for each in found]
        stored = da.store(found, list(stores), regions=regions, lock=False, compute=False)
        _, low, high = compute(stored, *source.limits(pixels))
        return [low.ravel().tolist(), high.ravel().tolist()]

    def start(self, folder: Place) -> End:
        """Return where the first pass finds the image."""
        known, coarse = (_location(folder, name) for name in ("known", "coarse"))
        arrays = {"known": read_only(known), "coarse": read_only(coarse)}
        margins = (0,) * len(self.store.spacing)
        return HoledEnd(None, self.store.location, self.store, margins, **arrays)

    def known(self, folder: Place) -> End:
        """Return where all passes find the known pixels."""
        return MaskEnd(None, _location(folder, "known"))

    def result(self, folder: Place, end: ImageEnd) -> ImageEnd:
        """Return where the last pass writes the image, limited to the range of the known values."""
        limits = json.loads((folder / _DONE).read() or b"{}")
        return FilledEnd(**vars(end), limits=limits)


@dataclass(frozen=True)
class MaskEnd(End):
    """A mask of all frames, without channels."""

    def index(self, frame: Frame, window: Window) -> Any:
        """Return the index of a window of the grid."""
        return (*frame, *window)


@dataclass(frozen=True)
class HoledEnd(ImageEnd):
    """A source with unknown pixels: between the known ones, it is the coarser grid, interpolated."""

    known: Any = None
    coarse: Any = None

    def read(self, array: Any, frame: Frame, window: Window) -> Any:
        """Return pixels (channels, …) in the type of results."""
        pixels = ends.read_channels(array, self.origin, frame, window)
        known = read_index(self.known, (*frame, *window))

        def read_coarse(needed: Window) -> Any:
            return read_index(self.coarse, (*frame, slice(None), *needed))

        fine = double_window(read_coarse, window, _half(self.origin))
        np.copyto(fine, pixels, where=known, casting="unsafe")
        return fine


@dataclass(frozen=True)
class FilledEnd(ImageEnd):
    """A result whose values lie between the least and the greatest known value of their channel."""

    limits: dict[str, Sequence[Sequence[float]]] = field(default_factory=dict)

    def write(self, array: Any, frame: Frame, window: Window, pixels: Any) -> None:
        """Write pixels (channels, …) of a window."""
        for channel, low, high in zip(pixels, *self.limits[_name(frame)], strict=True):
            np.clip(channel, channel.dtype.type(low), channel.dtype.type(high), out=channel)
        super().write(array, frame, window, pixels)


def _half(store: ZarrArray) -> tuple[int, ...]:
    """Return the shape of the coarser grid."""
    return tuple((n + 1) // 2 for n in store.spatial_shape)


def _location(folder: Place, name: str) -> Place:
    return folder / f"start-{name}.zarr"


def _name(frame: Frame) -> str:
    return ".".join(map(str, frame))
