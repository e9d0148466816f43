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

    @property
    def image(self) -> Array:
        """The image as it is now."""
        return self._way.image

    def advance(self, cycle: Cycle) -> None:
        """Carry out one cycle, with the tensor of the image as it is now."""
        self._way.advance(cycle)

    def close(self) -> None:
        """End the threads."""
        self._way.close()
