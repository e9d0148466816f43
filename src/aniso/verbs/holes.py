"""An image with unknown pixels: checked once, sampled to choose, and filled."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from aniso import arrays, checks
from aniso.arrays import Array, Mask, is_dask
from aniso.blocks import lazy, sample
from aniso.blocks.halo import Window
from aniso.settings import Progress, check_progress
from aniso.verbs.grids import halve
from aniso.verbs.inpaint_solver import nothing_known
from aniso.verbs.source import Frames, ImageSource, sampled_frames, split_frames

# The meaning of True in a mask.
_UNKNOWN = "a pixel is unknown"
# How often cells are doubled in which pixels are counted, and how many of them are looked at.
_HALVINGS, _CELLS = 4, 3


@dataclass(frozen=True, eq=False)
class HoledSource(ImageSource):
    """A NumPy or Dask array, and a mask that is True where a pixel is known (without channels)."""

    known: Any

    @classmethod
    def check_holes(
        cls,
        image: Any,
        mask: Any,
        channel_axis: int | None,
        progress: Progress = None,
        frame_axis: int | None = None,
    ) -> HoledSource | HoledFrames:
        """Return an array that is an image at its known pixels, or images along `frame_axis`.

        Dask arrays are checked when computed. Frames may share a mask.
        """
        check_progress(progress)
        if frame_axis is not None:
            each, of_frame, along = split_frames(image, channel_axis, frame_axis)
            masks = _split_mask(mask, each[0].ndim - (of_frame is not None), len(each), along, of_frame)
            pairs = zip(each, masks, strict=True)
            return cls.join([cls.check_holes(one, own, of_frame, progress) for one, own in pairs], along)
        if is_dask(image):
            lazy.check_chunks(image, channel_axis)
            lazy.reject_progress(progress)
            return cls(image, channel_axis, _known_lazily(arrays.channels_first(image, channel_axis), mask))
        given = arrays.check_layout(image, channel_axis)
        return cls(given, channel_axis, _known_pixels(arrays.channels_first(given, channel_axis), mask))

    @property
    def pixels(self) -> Any:
        """The array (channels, …) in the type of results; Dask arrays are 0 where they are unknown."""
        if not self.is_lazy:
            return self.channels.astype(self.dtype, copy=False)
        import dask.array as da

        whole = da.where(self.known, self.channels.rechunk({0: -1}), 0)
        return lazy.check_finite(whole).astype(self.dtype)

    def limits(self, pixels: Any) -> tuple[Any, Any]:
        """Return the least and the greatest known value of each channel of the Dask array `pixels`."""
        import dask.array as da

        axes = tuple(range(1, pixels.ndim))
        low = da.where(self.known, pixels, np.inf).min(axis=axes, keepdims=True)
        high = da.where(self.known, pixels, -np.inf).max(axis=axes, keepdims=True)
        return low.astype(pixels.dtype), high.astype(pixels.dtype)

    @staticmethod
    def join(frames: Sequence[Any], frame_axis: int) -> HoledFrames:
        """Return images of one shape as frames."""
        return HoledFrames(frames[0].array, frames[0].channel_axis, tuple(frames), frame_axis)

    def sample_holes(self, share: int = 1) -> list[tuple[Array, Mask]]:
        """Return windows of the array and of its known pixels; those of Dask arrays are computed now.

        If none of them has both known and unknown pixels, some that have both are added. `share` is the
        number of images that are sampled together.
        """
        chosen = sample.windows(self.shape, share * len(self.channels))
        found = self._take(chosen)
        if len(found) > 1 and all(known.all() or not known.any() for _, known in found):
            found += self._take(self._mixed_windows(chosen[0]))
        return found

    def sample_known(self, share: int = 1) -> list[Mask]:
        """Return masks of the known pixels in the windows that `sample` returns."""
        return [known for _, known in self._take(sample.windows(self.shape, share * len(self.channels)))]

    def hide(self, result: Any) -> Any:
        """Return an array with the axes of the image that is NaN where pixels are unknown."""
        if self.is_lazy:
            import dask.array as da

            hidden = da.where(self.known, arrays.channels_first(result, self.channel_axis), np.nan)
            return arrays.channels_back(hidden.astype(result.dtype), self.channel_axis)
        hidden = np.where(self.known, arrays.channels_first(result, self.channel_axis), np.nan)
        return arrays.channels_back(hidden.astype(result.dtype), self.channel_axis)

    def _take(self, chosen: list[Window]) -> list[tuple[Array, Mask]]:
        pixels = self.pixels
        found: Any = [(pixels[(slice(None), *window)], self.known[window]) for window in chosen]
        if self.is_lazy:
            from dask.base import compute

            found = compute(*found)
        # In one order in memory, so that sums over them have the same bits.
        return [(np.ascontiguousarray(one), known) for one, known in found]

    def _mixed_windows(self, like: Window) -> list[Window]:
        """Return windows of the same size around cells that have both known and unknown pixels."""
        known, unknown = (_count_in_cells(mask) for mask in (self.known, ~self.known))
        if not known.any():
            raise nothing_known()
        counts = np.minimum(known, unknown)
        if not counts.any():  # holes that end between cells
            counts = min(known, unknown, key=np.sum)
        places = np.argwhere(counts >= max(counts.max() / 2, 1))
        found = []
        for k in range(min(_CELLS, len(places))):
            # In different parts of the image.
            place = places[(2 * k + 1) * len(places) // (2 * _CELLS)]
            window = []
            for i, part, n in zip(place, like, self.shape, strict=True):
                side = part.stop - part.start
                middle = (2 * int(i) + 1) * 2 ** (_HALVINGS - 1)
                start = min(max(middle - side // 2, 0), n - side)
                window.append(slice(start, start + side))
            found.append(tuple(window))
        return found


def _count_in_cells(mask: Any) -> Array:
    """Return how often a mask is True in each cell."""
    counts: Any = mask[np.newaxis].astype(np.float32)
    for _ in range(_HALVINGS):
        counts = halve(counts)
    return np.asarray(counts[0])


@dataclass(frozen=True, eq=False)
class HoledFrames(Frames):
    """Images with unknown pixels that are filled alike; `frames` are `HoledSource` objects."""

    def sample_holes(self) -> list[tuple[Array, Mask]]:
        """Return windows of some of the frames, from the first to the last.

        If none of them has both known and unknown pixels, those of the first frame with both are added.
        """
        numbers = sampled_frames(len(self.frames))
        frames: Any = self.frames
        found = [window for k in numbers for window in frames[k].sample_holes(len(numbers))]
        if all(known.all() or not known.any() for _, known in found):
            mixed = (frame for frame in frames if bool(frame.known.any()) and not bool(frame.known.all()))
            found += [window for frame in itertools.islice(mixed, 1) for window in frame.sample_holes()]
        return found

    def sample_known(self, share: int = 1) -> list[Mask]:
        """Return masks of the known pixels in the windows that `sample` returns."""
        numbers = sampled_frames(len(self.frames))
        frames: Any = [self.frames[k] for k in numbers]
        return [known for frame in frames for known in frame.sample_known(share * len(numbers))]

    def hide(self, result: Any) -> Any:
        """Return frames that are NaN where pixels are unknown."""
        each: Any = np.moveaxis(result, self.frame_axis, 0)
        hidden = [frame.hide(one) for frame, one in zip(self.frames, each, strict=True)]  # type: ignore[attr-defined]
        if self.is_lazy:
            import dask.array as da

            return da.stack(hidden, axis=self.frame_axis)
        return np.stack(hidden, axis=self.frame_axis)


def _split_mask(mask: Any, ndim: int, count: int, along: int, of_frame: int | None) -> list[Any]:
    """Return the mask of each frame; one with the axes of a frame serves all."""
    if mask is None or np.ndim(mask) != ndim + 1:
        return [mask] * count
    axis = along - (of_frame is not None and of_frame < along)
    each: Any = np.moveaxis(mask if hasattr(mask, "shape") else np.asarray(mask), axis, 0)
    if len(each) != count:
        raise ValueError(
            f"mask has {len(each)} frames along axis {axis}, but the image has {count}. Give a mask for each "
            "frame, or one for all."
        )
    return [each[k] for k in range(count)]


def _known_pixels(channels: Array, mask: Any) -> Mask:
    """Return a mask that is True where a pixel is known."""
    shape = channels.shape[1:]
    if mask is None:
        known = np.ones(shape, np.bool_)
        if channels.dtype.kind == "f":
            for channel in channels:
                known &= ~np.isnan(channel)
    else:
        unknown = arrays.check_mask("mask", mask, shape, _UNKNOWN)
        known = ~np.asarray(unknown)
    if not known.any():
        raise nothing_known()
    if channels.dtype.kind == "f":
        for number, channel in enumerate(channels):
            bad = known & ~np.isfinite(channel)
            if bad.any():
                first = tuple(int(i) for i in np.argwhere(bad)[0])
                raise checks.refusal(
                    ValueError,
                    f"image holds {int(bad.sum())} known pixels that are NaN or infinite, the first at index "
                    f"{first} of channel {number}: they would spread into the unknown ones.",
                    python="Make them True in the mask.",
                    command="Mark them in the mask, too.",
                )
    return known


def _known_lazily(channels: Any, mask: Any) -> Any:
    """Return a Dask array that is True where a pixel is known, with the chunks of the image."""
    import dask.array as da

    shape, chunks = channels.shape[1:], channels.chunks[1:]
    if mask is None:
        if channels.dtype.kind != "f":
            return da.ones(shape, dtype=bool, chunks=chunks)
        return ~da.isnan(channels).any(axis=0)
    unknown: Any = arrays.check_mask("mask", mask, shape, _UNKNOWN)
    if not is_dask(unknown):
        unknown = da.from_array(unknown, chunks=chunks)
    return ~unknown.rechunk(chunks)
