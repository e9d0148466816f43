"""The array of a verb: checked once, sampled to choose, and filtered as a whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import numpy as np

from aniso import arrays, checks
from aniso.arrays import Array, is_dask
from aniso.blocks import halo, lazy
from aniso.blocks.sample import windows
from aniso.blocks.stages import Pipeline
from aniso.noise.level import check_squares
from aniso.settings import Progress, Settings, check_progress, report_progress

#: The number of an axis, if there is one.
Axis = int | None
#: Called with the part of 1 that is done.
Report = Callable[[float], object]
# Frames whose windows are looked at.
_SAMPLED_FRAMES = 4


@dataclass(frozen=True, eq=False)
class ImageSource:
    """A checked NumPy or Dask array; or several of one shape, the frames, filtered in the same way."""

    images: tuple[Any, ...]
    #: Of each image.
    channel_axis: int | None
    #: Where the results of frames are stacked; None for a single image.
    frame_axis: int | None = None
    #: Called again and again while a verb chooses, so that the caller can interrupt it.
    alive: Callable[[], object] = field(default=lambda: None, kw_only=True)
    #: Changes results, e.g. so that unknown pixels are NaN.
    finish: Callable[[Any], Any] = field(default=lambda result: result, kw_only=True)

    @staticmethod
    def check(
        image: Any, channel_axis: int | None, progress: Progress = None, frame_axis: int | None = None
    ) -> ImageSource:
        """Return an array that is an image, or images along `frame_axis`.

        Values of Dask arrays are checked when they are computed.
        """
        each, axis, along = split_frames(image, channel_axis, frame_axis)
        images = check_each(each, axis, progress, arrays.check_image)
        return ImageSource(images, axis, along, alive=_alive(progress))

    def __str__(self) -> str:
        return f"an array of shape {tuple(self.array.shape)} with channel_axis={self.channel_axis}"

    @property
    def array(self) -> Any:
        """The image, or the first of the frames."""
        return self.images[0]

    @property
    def channels(self) -> Any:
        """A view (channels, …) of the image, or of the first of the frames."""
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

    def plan_fields(self, settings: Settings) -> dict[str, Any]:
        """Return the fields that plans of all verbs have."""
        axis, count = self.channel_axis, len(self.channels)
        spacings, stencil = settings.spacings, settings.stencil
        return {"spacings": spacings, "channel_axis": axis, "channels": count, "stencil": stencil}

    def frame(self, number: int) -> Self:
        """Return one of the frames; a single image is the only one."""
        return replace(self, images=(self.images[number],), frame_axis=None)

    @classmethod
    def join(cls, sources: Sequence[Self], frame_axis: int) -> Self:
        """Return single images of one shape as frames."""
        return replace(sources[0], images=tuple(one.array for one in sources), frame_axis=frame_axis)

    def stack(self, results: Sequence[Any]) -> Any:
        """Return the results of all frames along their axis, or that of the single image."""
        return results[0] if self.frame_axis is None else np.stack(results, axis=self.frame_axis)

    def map(self, function: Callable[[Any, Report], Any], report: Report) -> Any:
        """Return function(image, report) of the image, or of all frames, stacked."""
        count = len(self.images)
        return self.stack(
            [
                function(self.frame(k), lambda done, k=k: report((k + done) / count))  # type: ignore[misc]
                for k in range(count)
            ]
        )

    def sample(self) -> list[Array]:
        """Return windows (channels, …) of some of the frames, in the type of results.

        Those of Dask arrays are computed now.
        """
        numbers = sampled_frames(len(self.images))
        chosen = windows(self.shape, len(numbers) * len(self.channels))
        found = []
        for number in numbers:
            channels = self.frame(number).channels
            parts = lazy.compute([channels[(slice(None), *window)] for window in chosen])
            if self.is_lazy:
                block_of = partial(halo.block_of, channels.chunks[1:])
                for pixels, window in zip(parts, chosen, strict=True):
                    lazy.check_pixels(pixels, [part.start for part in window], block_of)
            # In one order in memory, so that sums over them have the same bits.
            found += [np.ascontiguousarray(pixels, self.dtype) for pixels in parts]
        return found

    def checked_sample(self) -> list[Array]:
        """Return windows, after a check that squares of all grey values are in range."""
        found = self.sample()
        for pixels in found if self.is_lazy else self.images:
            check_squares(pixels)
        return found

    def filter(self, make: Callable[[tuple[int, ...]], Pipeline], progress: Progress = None) -> Any:
        """Return the array after the stages that `make` returns for its shape; a Dask array stays lazy."""
        with report_progress(progress, 1.0) as report:
            return self.finish(self.map(lambda one, report: one.run(make(one.shape), report), report))

    def run(self, pipeline: Pipeline, report: Report) -> Any:
        """Return one image after the stages."""
        if self.is_lazy:
            return lazy.run_pipeline(self.array, self.channel_axis, pipeline)
        result = pipeline.run(self.channels.astype(self.dtype, copy=False), report)
        arrays.check_range(result)
        return arrays.channels_back(result, self.channel_axis)


def split_frames(image: Any, channel_axis: Axis, frame_axis: Axis) -> tuple[list[Any], Axis, Axis]:
    """Return the frames of an array, the axis of channels of each, and that of the frames.

    Without an axis of frames, the array is the only one.
    """
    if frame_axis is None:
        return [image], channel_axis, None
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


def check_each(
    images: Sequence[Any], channel_axis: int | None, progress: Progress, check: Callable[..., Array]
) -> tuple[Any, ...]:
    """Return images as NumPy arrays that are checked by a function, or as Dask arrays."""
    check_progress(progress)
    checked = []
    for image in images:
        if is_dask(image):
            lazy.check_chunks(image, channel_axis)
            lazy.reject_progress(progress)
        checked.append(image if is_dask(image) else check(image, channel_axis))
    return tuple(checked)


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
