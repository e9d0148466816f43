"""The array of a verb: checked once, sampled to choose, and filtered as a whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from aniso import arrays
from aniso.arrays import Array, is_dask
from aniso.blocks import halo, lazy, worker
from aniso.blocks.sample import windows
from aniso.blocks.stages import Pipeline
from aniso.settings import Progress, check_progress, report_progress


@dataclass(frozen=True, eq=False)
class Source:
    """A checked NumPy or Dask array, and its axis of channels."""

    array: Any
    channel_axis: int | None

    @classmethod
    def check(cls, image: Any, channel_axis: int | None, progress: Progress = None) -> Source:
        """Return an array that is an image. Values of Dask arrays are checked when they are computed."""
        check_progress(progress)
        if not is_dask(image):
            return cls(arrays.check_image(image, channel_axis), channel_axis)
        lazy.check_chunks(image, channel_axis)
        lazy.reject_progress(progress)
        return cls(image, channel_axis)

    def __str__(self) -> str:
        return f"an array of shape {tuple(self.array.shape)} with channel_axis={self.channel_axis}"

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

    def sample(self) -> list[Array]:
        """Return windows (channels, …) in the type of results; those of Dask arrays are computed now."""
        channels = self.channels
        chosen = windows(self.shape, len(channels))
        found: Any = [channels[(slice(None), *window)] for window in chosen]
        if self.is_lazy:
            from dask.base import compute

            found = compute(*found)
            block_of = partial(halo.block_of, channels.chunks[1:])
            for pixels, window in zip(found, chosen, strict=True):
                worker.check_pixels(pixels, [part.start for part in window], block_of)
        # In one order in memory, so that sums over them have the same bits.
        return [np.ascontiguousarray(pixels, self.dtype) for pixels in found]

    def filter(self, make: Callable[[tuple[int, ...]], Pipeline], progress: Progress = None) -> Any:
        """Return the array after the stages that `make` returns for its shape; a Dask array stays lazy."""
        pipeline = make(self.shape)
        if self.is_lazy:
            return lazy.run_pipeline(self.array, self.channel_axis, pipeline)
        channels = self.channels.astype(self.dtype, copy=False)
        with report_progress(progress, 1.0) as report:
            return arrays.channels_back(pipeline.run(channels, report), self.channel_axis)
