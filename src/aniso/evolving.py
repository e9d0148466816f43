"""An evolving image: the engine's array together with the shape and type of the caller's image."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Sequence
from typing import Any

from aniso import arrays
from aniso.arrays import ArrayLayout, Image, Layout, TensorLayout, is_tensor
from aniso.settings import Prepared


class EvolvingImage:
    """An evolution together with the shape and type of the caller's image.

    For :func:`diffuse`, and for verbs that read or change the image between cycles.
    """

    def __init__(self, layout: Layout, prepared: Prepared) -> None:
        self.layout, self.prepared = layout, prepared
        start = layout.start if len(layout.shape) > 1 else layout.start[..., None, :]
        layout.start = None  # the evolution frees it, once it is not the image as it is then
        self.evolution = prepared.problem.start(start)

    @classmethod
    def of_channels(cls, channels: Any, prepared: Prepared) -> EvolvingImage:
        """Return the evolution of a checked array (channels, …) or tensor (images, channels, …)."""
        if is_tensor(channels):
            return cls(TensorLayout(channels, None), prepared)
        return cls(ArrayLayout(channels, 0, prepared.problem.on_tensors), prepared)

    def advance(self, start: float, stop: float, report: Callable[[float], object]) -> None:
        """Diffuse from one time to another."""
        done = start
        for cycle in self.prepared.plan(stop - start):
            self.evolution.advance(cycle)
            done += cycle.time
            # The last cycle ends at the stop itself, not at a sum of rounded times.
            report(done if stop - done > 0.5 * cycle.time else stop)

    def pixels(self) -> Any:
        """Return the evolving image itself, not a copy, in the form in which it was given.

        An array (channels, …) may be changed.
        """
        image = self.evolution.image
        if isinstance(self.layout, TensorLayout):
            return image.reshape(*image.shape[:2], *self.layout.shape)
        return (image[0].numpy() if is_tensor(image) else image).reshape(-1, *self.layout.shape)

    def image(self) -> Image:
        """Return the image as it is now: a new array."""
        return arrays.restore_image(self.layout, self.evolution.image)

    def diffuse(self, time: float, report: Callable[[float], object] = lambda done: None) -> Image:
        """Return the image after this time. The memory of the evolution is freed before it is copied."""
        with contextlib.closing(self.evolution):
            self.advance(0.0, time, report)
        return self.image()

    def snapshots(
        self, stops: Sequence[float], report: Callable[[float], object] = lambda done: None
    ) -> Generator[tuple[float, Image], None, None]:
        """Yield the image at these times, and close the evolution."""
        now = 0.0
        with contextlib.closing(self.evolution):
            for stop in stops:
                self.advance(now, stop, report)
                now = stop
                yield stop, self.image()
