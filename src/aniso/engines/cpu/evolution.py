"""The fast engine: images and volumes on their way."""

from __future__ import annotations

from aniso.engines import Problem
from aniso.engines.cpu.base import Array
from aniso.engines.cpu.image_evolution import ImageEvolution
from aniso.engines.cpu.volume_evolution import VolumeEvolution
from aniso.schemes import Cycle


class Evolution:
    """An image on its way: shape (channels, H, W), or (channels, D, H, W) for a volume."""

    def __init__(self, image: Array, problem: Problem) -> None:
        kind = VolumeEvolution if image.ndim == 4 else ImageEvolution
        self._way = kind(image, problem)
        self._whole, self._closed = True, False

    @property
    def image(self) -> Array:
        """The image as it is now."""
        if not self._whole:
            raise RuntimeError(
                "this evolution was interrupted within a step, so that its image is neither the one before "
                "nor the one after it. Start again from the original image."
            )
        return self._way.image

    def advance(self, cycle: Cycle) -> None:
        """Carry out one cycle, with the tensor of the image as it is now."""
        if self._closed or not self._whole:
            reason = "is closed" if self._whole else "was interrupted within a step"
            raise RuntimeError(
                f"this evolution {reason} and cannot go on. Start again from the original image."
            )
        self._whole = False
        self._way.advance(cycle)
        self._whole = True

    def close(self) -> None:
        """End the threads."""
        self._closed = True
        self._way.close()
