"""The part of an image or volume that overlays and films are computed from, as coarse as time demands."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from aniso import stability
from aniso.arrays import Array
from aniso.blocks.halo import reach, tensor_reach
from aniso.explorer.choosing.calls import Call
from aniso.explorer.choosing.parts import Part, block_means, real
from aniso.explorer.choosing.scene import Scene
from aniso.explorer.showing.pictures import reduction
from aniso.models import ImageDriven
from aniso.stencil import DeltaStencil

# Diffusion spreads over √(2t); almost nothing arrives from more than this many times farther away.
_SPREADS = 3.0


@dataclass(frozen=True, eq=False)
class Slab:
    """Slices of a volume as means of blocks of voxels, their own axis first; `middle` is the shown one.

    For an image, `volume` is the image and `middle` is None.
    """

    volume: Array
    middle: int | None
    spacing: tuple[float, ...]
    factor: int

    @classmethod
    def of(cls, scene: Scene, part: Part, spacing: tuple[float, ...] | None) -> Slab:
        """Return the part with `part.depth` slices on both sides, as far as they exist."""
        volume, f = np.moveaxis(scene.source.pixels, scene.axis, 0), part.factor
        # The shown slice lies in the middle of its block.
        first = scene.index - f // 2
        starts = [first + f * k for k in range(-part.depth, part.depth + 1)]
        starts = [start for start in starts if start + f > 0 and start < len(volume)]
        rows, columns = slice(part.top * f, part.bottom * f), slice(part.left * f, part.right * f)
        layers = [volume[max(0, start) : start + f, rows, columns] for start in starts]
        coarse = [
            layer[0] if f == 1 else block_means(layer.mean(axis=0, dtype=real(volume)), f) for layer in layers
        ]
        own = spacing or (1.0, 1.0, 1.0)
        distances = (own[scene.axis], *scene.in_plane(own))
        return cls(np.stack(coarse), starts.index(first), tuple(f * h for h in distances), f)

    @classmethod
    def affordable(
        cls, scene: Scene, spacing: tuple[float, ...] | None, thick: int, largest: int, voxels: int
    ) -> Slab:
        """Return the whole image or slice, coarse enough for the largest side in pixels.

        Of a volume it has `thick` slices on both sides, and is coarse enough for this number of voxels.
        """
        factor, (height, width) = reduction(scene.shape, largest), scene.shape
        if not scene.whole:
            own = spacing or (1.0, 1.0)
            return cls(scene.reduced(factor), None, tuple(factor * h for h in own), factor)
        while True:
            rows, columns, depth = -(-height // factor), -(-width // factor), math.ceil(thick / factor)
            if rows * columns * (2 * depth + 1) <= voxels or min(rows, columns) <= 16:
                return cls.of(scene, Part(0, rows, 0, columns, factor, depth), spacing)
            factor += 1

    def shown(self, array: Array) -> Array:
        """Return what the page shows of the slab, or of a result for it."""
        return array if self.middle is None else array[self.middle]


def thickness(scene: Scene, model: ImageDriven, spacing: tuple[float, ...] | None) -> int:
    """Return the number of slices on each side that the tensors of the shown one depend on."""
    h = (spacing or (1.0, 1.0, 1.0))[scene.axis]
    return 1 + tensor_reach(model, (h,))[0]


def halo(scene: Scene, call: Call, scheme: Any) -> int:
    """Return the number of slices on each side that influence the shown one in a diffusion."""
    model, time = call.arguments
    spacing = call.options.get("spacing") or (1.0, 1.0, 1.0)
    h = spacing[scene.axis]
    limit = stability.stable_step(model, call.options.get("stencil", DeltaStencil()), spacing, ndim=3)
    exact = sum(reach(cycle, model, (h,))[0] for cycle in scheme.plan(time, limit))
    return min(exact, math.ceil(_SPREADS * math.sqrt(2 * time) / h) + thickness(scene, model, spacing))
