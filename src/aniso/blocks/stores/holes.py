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
from pathlib import Path
from typing import Any

import numpy as np

from aniso import arrays
from aniso.arrays import Mask, is_dask
from aniso.blocks.halo import Window
from aniso.blocks.stores import journal
from aniso.blocks.stores.ends import End, Frame, ImageEnd, StateEnd, read_channels, read_index
from aniso.blocks.stores.frames import frame_array, frame_indices
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

    mask: Path | Mask | None = None
    invert: bool = False
    value: float | None = None
    infinite: bool = False

    @classmethod
    def of(cls, mask: Any) -> UnknownPixels:
        """Return the unknown pixels that a caller gave: a path, an array or None."""
        if isinstance(mask, cls):
            return mask
        if mask is None or isinstance(mask, str | os.PathLike):
            return cls(None if mask is None else Path(mask))
        if is_dask(mask):
            raise TypeError("mask must be the path of a Zarr store or a NumPy array, got a Dask array.")
        given = np.asarray(mask)
        return cls(arrays.check_mask("mask", mask, given.shape, "a pixel is unknown"))

    def describe(self) -> str:
        """Return what must be the same for an interrupted run to continue."""
        if isinstance(self.mask, Path):
            identity = journal.fingerprint(open_array(self.mask, kinds="biuf"))
        else:
            identity = (
                "" if self.mask is None else hashlib.sha256(np.packbits(self.mask).tobytes()).hexdigest()[:32]
            )
        return f"{identity} invert={self.invert} value={self.value} infinite={self.infinite}"

    def source(self, store: ZarrArray, frame: Frame) -> HoledSource:
        """Return a frame of a store as a Dask array, with its unknown pixels."""
        image, axis = frame_array(store, frame)
        found = HoledSource.check_holes(image, self._mask_of(store, frame, image, axis), axis)
        assert isinstance(found, HoledSource)
        return found

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

        if isinstance(self.mask, Path):
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

    def prepare(self, folder: Path, client: Any) -> None:
        """Compute it with the workers, unless an interrupted run did."""
        if (folder / _DONE).exists():
            return
        import dask.array as da
        import zarr
        from dask.base import compute

        known_store, coarse_store = (_location(folder, name) for name in ("known", "coarse"))
        frames = frame_indices(self.store)
        lengths = tuple(self.store.shape[axis] for axis in self.store.frame_axes)
        shape, chunks = self.store.spatial_shape, self.store.spatial_chunks
        side = _SIDES[len(shape)]
        half = tuple((n + 1) // 2 for n in shape)
        ones = (1,) * len(lengths)
        for place in (known_store, coarse_store):
            journal.forget(place)
        known: Any = zarr.create_array(
            str(known_store), shape=(*lengths, *shape), chunks=(*ones, *chunks), dtype=bool
        )
        coarse: Any = zarr.create_array(
            str(coarse_store),
            shape=(*lengths, self.store.channels, *half),
            chunks=(*ones, self.store.channels, *(min(n, side) for n in half)),
            dtype=arrays.result_type(self.store.dtype),
        )
        limits = {}
        with client.as_current():
            for frame in frames:
                source = self.unknown.source(self.store, frame)
                pixels = source.pixels
                start = self.solver.coarse_lazily(pixels, source.known).rechunk((-1, *(side,) * len(shape)))
                regions: Any = [
                    (*frame, *(slice(0, n) for n in each.shape)) for each in (source.known, start)
                ]
                stored = da.store(
                    [source.known, start], [known, coarse], regions=regions, lock=False, compute=False
                )
                _, low, high = compute(stored, *source.limits(pixels))
                limits[_name(frame)] = [low.ravel().tolist(), high.ravel().tolist()]
        with journal.explain_write_errors(folder):
            for place in (known_store, coarse_store):
                journal.persist_all(place)
            journal.write_json(folder / _DONE, limits)

    def start(self, folder: Path) -> End:
        """Return where the first pass finds the image."""
        known, coarse = (str(_location(folder, name)) for name in ("known", "coarse"))
        return HoledEnd(None, self.store.location, self.store, self._margins, (), known, coarse)

    def known(self, folder: Path) -> End:
        """Return where all passes find the known pixels."""
        return MaskEnd(None, str(_location(folder, "known")), self._margins)

    def result(self, folder: Path, end: ImageEnd) -> ImageEnd:
        """Return where the last pass writes the image, limited to the range of the known values."""
        limits = json.loads((folder / _DONE).read_text("utf-8"))
        return FilledEnd(end.store, end.location, end.origin, end.margins, end.scale, limits)

    @property
    def _margins(self) -> tuple[int, ...]:
        return (0,) * len(self.store.spacing)


@dataclass(frozen=True)
class MaskEnd(StateEnd):
    """A mask of all frames, without channels."""

    def index(self, frame: Frame, window: Window) -> Any:
        """Return the index of a window of the grid."""
        return (*frame, *window)


@dataclass(frozen=True)
class HoledEnd(ImageEnd):
    """A source with unknown pixels: between the known ones, it is the coarser grid, interpolated."""

    known: str = ""
    coarse: str = ""

    def read(self, array: Any, frame: Frame, window: Window) -> Any:
        """Return pixels (channels, …) in the type of results."""
        pixels = read_channels(array, self.origin, frame, window)
        known = read_index(read_only(self.known), (*frame, *window))

        def read_coarse(needed: Window) -> Any:
            return read_index(read_only(self.coarse), (*frame, slice(None), *needed))

        fine = double_window(read_coarse, window, tuple((n + 1) // 2 for n in self.origin.spatial_shape))
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


def _location(folder: Path, name: str) -> Path:
    return folder / f"start-{name}.zarr"


def _name(frame: Frame) -> str:
    return ".".join(map(str, frame))
