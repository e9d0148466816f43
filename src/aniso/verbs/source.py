"""The array of a verb: checked once, sampled to choose, and filtered as a whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from aniso import arrays, checks
from aniso.arrays import Array, is_dask
from aniso.blocks import halo, lazy, worker
from aniso.blocks.sample import windows
from aniso.blocks.stages import Pipeline
from aniso.noise.level import check_squares
from aniso.settings import Progress, check_progress, report_progress

#: Called with the part of 1 that is done.
Report = Callable[[float], object]
# Frames whose windows are looked at.
_SAMPLED_FRAMES = 4


@dataclass(frozen=True, eq=False)
class ImageSource:
    """A checked NumPy or Dask array, and its axis of channels."""

    array: Any
    channel_axis: int | None
    #: Called again and again while a verb chooses, so that the caller can interrupt it.
    alive: Callable[[], object] = field(default=lambda: None, kw_only=True)

    @staticmethod
    def check(
        image: Any, channel_axis: int | None, progress: Progress = None, frame_axis: int | None = None
    ) -> ImageSource:
        """Return an array that is an image, or images along `frame_axis`.

        Values of Dask arrays are checked when they are computed.
        """
        check_progress(progress)
        if frame_axis is not None:
            return Frames.of(image, channel_axis, progress, frame_axis)
        if not is_dask(image):
            array = arrays.check_image(image, channel_axis)
            return ImageSource(array, channel_axis, alive=_alive(progress))
        lazy.check_chunks(image, channel_axis)
        lazy.reject_progress(progress)
        return ImageSource(image, channel_axis)

    def __str__(self) -> str:
        return f"an array of shape {tuple(self.array.shape)} with channel_axis={self.channel_axis}"

    @property
    def images(self) -> list[Any]:
        """All arrays that are filtered."""
        return [self.array]

    @property
    def channels(self) -> Any:
        """A view (channels, …)."""
        return arrays.channels_first(self.array, self.channel_axis)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape without channels."""
        return tuple(self.channels.shape[1:])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of results."""
        return arrays.result_type(self.array.dtype)

    @property
    def is_lazy(self) -> bool:
        """Whether this is a Dask array."""
        return is_dask(self.array)

    @staticmethod
    def join(frames: Sequence[ImageSource], frame_axis: int) -> Frames:
        """Return images of one shape as frames."""
        return Frames(frames[0].array, frames[0].channel_axis, tuple(frames), frame_axis)

    def map(self, function: Callable[[Any, Report], Any], report: Report) -> Any:
        """Return function(image, report) of the image, or of each frame."""
        return function(self, report)

    def sample(self, share: int = 1) -> list[Array]:
        """Return windows (channels, …) in the type of results; those of Dask arrays are computed now.

        `share` is the number of images that are sampled together.
        """
        channels = self.channels
        chosen = windows(self.shape, share * len(channels))
        found: Any = [channels[(slice(None), *window)] for window in chosen]
        if self.is_lazy:
            from dask.base import compute

            found = compute(*found)
            block_of = partial(halo.block_of, channels.chunks[1:])
            for pixels, window in zip(found, chosen, strict=True):
                worker.check_pixels(pixels, [part.start for part in window], block_of)
        # In one order in memory, so that sums over them have the same bits.
        return [np.ascontiguousarray(pixels, self.dtype) for pixels in found]

    def checked_sample(self) -> list[Array]:
        """Return windows, after a check that squares of all grey values are in range."""
        found = self.sample()
        for pixels in found if self.is_lazy else self.images:
            check_squares(pixels)
        return found

    def filter(self, make: Callable[[tuple[int, ...]], Pipeline], progress: Progress = None) -> Any:
        """Return the array after the stages that `make` returns for its shape; a Dask array stays lazy."""
        with report_progress(progress, 1.0) as report:
            return self.map(lambda one, report: one.run(make(one.shape), report), report)

    def run(self, pipeline: Pipeline, report: Report) -> Any:
        """Return one image after the stages."""
        if self.is_lazy:
            return lazy.run_pipeline(self.array, self.channel_axis, pipeline)
        result = pipeline.run(self.channels.astype(self.dtype, copy=False), report)
        arrays.check_finite_result(result)
        return arrays.channels_back(result, self.channel_axis)


@dataclass(frozen=True, eq=False)
class Frames(ImageSource):
    """Images of one shape that are filtered alike. `array` is the first one, `channel_axis` its own."""

    frames: tuple[ImageSource, ...]
    frame_axis: int

    @classmethod
    def of(cls, image: Any, channel_axis: int | None, progress: Progress, frame_axis: int) -> Frames:
        """Return the checked frames of an array."""
        each, of_frame, along = split_frames(image, channel_axis, frame_axis)
        frames = tuple(ImageSource.check(one, of_frame, progress) for one in each)
        return cls(frames[0].array, of_frame, frames, along, alive=_alive(progress))

    @property
    def images(self) -> list[Any]:
        """All frames."""
        return [frame.array for frame in self.frames]

    def sample(self, share: int = 1) -> list[Array]:
        """Return windows of some of the frames, from the first to the last."""
        numbers = sampled_frames(len(self.frames))
        return [window for k in numbers for window in self.frames[k].sample(share * len(numbers))]

    def map(self, function: Callable[[Any, Report], Any], report: Report) -> Any:
        """Return the results of all frames, stacked along their axis."""
        count = len(self.frames)
        results = [
            function(frame, lambda done, k=number: report((k + done) / count))  # type: ignore[misc]
            for number, frame in enumerate(self.frames)
        ]
        if self.is_lazy:
            import dask.array as da

            return da.stack(results, axis=self.frame_axis)
        return np.stack(results, axis=self.frame_axis)


def split_frames(image: Any, channel_axis: int | None, frame_axis: int) -> tuple[list[Any], int | None, int]:
    """Return the frames of an array, the axis of channels of each, and that of the frames."""
    array = image if is_dask(image) else arrays.as_array("image", image)
    shape = tuple(array.shape)
    along = check_axis("frame_axis", frame_axis, shape)
    of_frame = None
    if channel_axis is not None:
        of_frame = check_axis("channel_axis", channel_axis, shape)
        if of_frame == along:
            raise ValueError(
                f"frame_axis={frame_axis} and channel_axis={channel_axis} are the same axis of an image of "
                f"shape {shape}. Give two different ones."
            )
        of_frame -= of_frame > along
    if shape[along] == 0:
        raise ValueError(f"image must have at least one frame along axis {along}, got shape {shape}.")
    each: Any = np.moveaxis(array, along, 0)
    return [each[k] for k in range(len(each))], of_frame, along


def _alive(progress: Progress) -> Callable[[], object]:
    """Return a function that reports that nothing is done yet."""
    return (lambda: progress(0.0, 1.0)) if callable(progress) else (lambda: None)


def sampled_frames(count: int) -> list[int]:
    """Return the numbers of the frames that are looked at, from the first to the last."""
    some = min(count, _SAMPLED_FRAMES)
    return [round(k * (count - 1) / max(some - 1, 1)) for k in range(some)]


def check_axis(name: str, axis: int, shape: tuple[int, ...]) -> int:
    """Return the number of an axis, counted from the first one."""
    number = checks.whole(name, axis, f"Give the number of an axis, e.g. {name}=0.")
    if not -len(shape) <= number < len(shape):
        raise ValueError(f"{name}={axis} does not exist in an image of shape {shape}. Give e.g. {name}=0.")
    return number % len(shape)
