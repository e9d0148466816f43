"""An image with unknown pixels: checked once, sampled to choose, and filled."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from aniso import arrays, checks
from aniso.arrays import Array, Mask, is_dask
from aniso.blocks import lazy, sample
from aniso.blocks.halo import Window
from aniso.settings import Progress
from aniso.verbs.grids import halve
from aniso.verbs.inpaint_solver import nothing_known
from aniso.verbs.source import Axis, ImageSource, check_each, sampled_frames, split_frames

# The meaning of True in a mask.
_UNKNOWN = "a pixel is unknown"
# How often cells are doubled in which pixels are counted, and how many of them are looked at.
_HALVINGS, _CELLS = 4, 3


@dataclass(frozen=True, eq=False)
class HoledSource(ImageSource):
    """Images with masks that are True where a pixel is known (without channels)."""

    masks: tuple[Any, ...] = field(kw_only=True)

    @classmethod
    def check_holes(
        cls, image: Any, mask: Any, channel_axis: Axis, progress: Progress = None, frame_axis: Axis = None
    ) -> HoledSource:
        """Return an array that is an image at its known pixels, or images along `frame_axis`.

        Dask arrays are checked when computed. Frames may share a mask.
        """
        each, axis, along = split_frames(image, channel_axis, frame_axis)
        given = _split_mask(mask, each, along, axis)
        images = check_each(each, axis, progress, arrays.check_layout)
        masks = (
            (_known_lazily if is_dask(one) else _known_pixels)(arrays.channels_first(one, axis), own)
            for one, own in zip(images, given, strict=True)
        )
        return cls(images, axis, along, masks=tuple(masks))

    @property
    def known(self) -> Any:
        """The mask of the image, or of the first of the frames."""
        return self.masks[0]

    def frame(self, number: int) -> Self:
        """Return one of the frames, with its mask."""
        return replace(super().frame(number), masks=(self.masks[number],))

    @classmethod
    def join(cls, sources: Sequence[Self], frame_axis: int) -> Self:
        """Return single images of one shape as frames."""
        return replace(super().join(sources, frame_axis), masks=tuple(one.known for one in sources))

    @property
    def pixels(self) -> Any:
        """The array (channels, …) in the type of results; Dask arrays are 0 where they are unknown."""
        if not self.is_lazy:
            return self.channels.astype(self.dtype, copy=False)
        whole = np.where(self.known, self.channels.rechunk({0: -1}), 0)
        return lazy.check_finite(whole).astype(self.dtype)

    def limits(self, pixels: Any) -> tuple[Any, Any]:
        """Return the least and the greatest known value of each channel of the Dask array `pixels`."""
        axes = tuple(range(1, pixels.ndim))
        low = np.where(self.known, pixels, np.inf).min(axis=axes, keepdims=True)
        high = np.where(self.known, pixels, -np.inf).max(axis=axes, keepdims=True)
        return low.astype(pixels.dtype), high.astype(pixels.dtype)

    def sample_holes(self) -> list[tuple[Array, Mask]]:
        """Return windows of some of the frames and of their known pixels; of Dask arrays, computed now.

        If none of them has both known and unknown pixels, some that have both are added: of each frame, or
        else those of the first frame with both.
        """
        numbers = sampled_frames(len(self.images))
        found = [pair for k in numbers for pair in self.frame(k)._sample_image(len(numbers))]
        if self.frame_axis is not None and not _any_mixed(found):
            mixed = (k for k, known in enumerate(self.masks) if known.any() and not known.all())
            found += [pair for k in itertools.islice(mixed, 1) for pair in self.frame(k)._sample_image(1)]
        return found

    def _sample_image(self, share: int) -> list[tuple[Array, Mask]]:
        """Return windows of a single image; `share` is the number of images that are sampled together."""
        chosen = sample.windows(self.shape, share * len(self.channels))
        found = self._take(chosen)
        if len(found) > 1 and not _any_mixed(found):
            found += self._take(self._mixed_windows(chosen[0]))
        return found

    def sample_known(self) -> list[Mask]:
        """Return masks of the known pixels in the windows that `sample` returns."""
        numbers = sampled_frames(len(self.images))
        chosen = sample.windows(self.shape, len(numbers) * len(self.channels))
        return lazy.compute([self.masks[k][window] for k in numbers for window in chosen])

    def hide(self, result: Any) -> Any:
        """Return an array with the axes of the image that is NaN where pixels are unknown."""
        axis = self.channel_axis
        each: Any = [result] if self.frame_axis is None else np.moveaxis(result, self.frame_axis, 0)
        hidden = (
            np.where(known, arrays.channels_first(one, axis), np.nan).astype(result.dtype)
            for one, known in zip(each, self.masks, strict=True)
        )
        return self.stack([arrays.channels_back(one, axis) for one in hidden])

    def _take(self, chosen: list[Window]) -> list[tuple[Array, Mask]]:
        pixels, count = self.pixels, len(chosen)
        masks = [self.known[window] for window in chosen]
        parts = lazy.compute([*(pixels[(slice(None), *window)] for window in chosen), *masks])
        # In one order in memory, so that sums over them have the same bits.
        return [(np.ascontiguousarray(parts[k]), parts[count + k]) for k in range(count)]

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


def _any_mixed(found: list[tuple[Array, Mask]]) -> bool:
    """Return whether a window has both known and unknown pixels."""
    return any(known.any() and not known.all() for _, known in found)


def _split_mask(mask: Any, images: Sequence[Any], along: int | None, of_frame: int | None) -> list[Any]:
    """Return the mask of each frame; one with the axes of a frame serves all."""
    count = len(images)
    if along is None or mask is None or np.ndim(mask) != images[0].ndim - (of_frame is not None) + 1:
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
                place = f"the first at index {first} of channel {number}"
                if mask is None:
                    raise checks.make_error(
                        ValueError,
                        f"image holds {int(bad.sum())} infinite pixels, {place}: only NaN stands for unknown "
                        "pixels.",
                        python="Replace them by NaN, or give a mask that is True there.",
                        command="Replace them by NaN, or mark them by --mask.",
                    )
                raise checks.make_error(
                    ValueError,
                    f"image holds {int(bad.sum())} known pixels that are NaN or infinite, {place}: they "
                    "would spread into the unknown ones.",
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
