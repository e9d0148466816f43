"""A slab of a volume around the slice that is shown: as thick as counts for it, as coarse as time demands."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from aniso import stability
from aniso.arrays import Array
from aniso.blocks.halo import reach, tensor_reach
from aniso.explorer.choosing.choices import Call
from aniso.explorer.choosing.parts import Part, block_means, real
from aniso.explorer.choosing.scene import Scene
from aniso.models import ImageDriven
from aniso.stencil import DeltaStencil

# A drop of ink is spread over √(2t); farther away than so many times that, next to nothing arrives.
_SPREADS = 3.0


@dataclass(frozen=True, eq=False)
class Slab:
    """Slices in means of blocks of voxels, their own axis first; `middle` is the one that is shown."""

    volume: Array
    middle: int
    spacing: tuple[float, ...]

    @classmethod
    def of(cls, scene: Scene, part: Part, spacing: tuple[float, ...] | None) -> Slab:
        """The part, with `part.depth` slices on both sides as far as there are so many."""
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
        return cls(np.stack(coarse), starts.index(first), tuple(f * h for h in distances))


def thickness(scene: Scene, model: ImageDriven, spacing: tuple[float, ...] | None) -> int:
    """Slices on each side that the tensors of the shown one depend on."""
    h = (spacing or (1.0, 1.0, 1.0))[scene.axis]
    return 1 + tensor_reach(model, (h,))[0]


def halo(scene: Scene, call: Call, scheme: Any) -> int:
    """Slices on each side that count for the shown one in a diffusion."""
    model, time = call.arguments
    spacing = call.options.get("spacing") or (1.0, 1.0, 1.0)
    h = spacing[scene.axis]
    limit = stability.stable_step(model, call.options.get("stencil", DeltaStencil()), spacing, ndim=3)
    exact = sum(reach(cycle, model, (h,))[0] for cycle in scheme.plan(time, limit))
    return min(exact, math.ceil(_SPREADS * math.sqrt(2 * time) / h) + thickness(scene, model, spacing))


def affordable_part(scene: Scene, thick: int, voxels: int, least_factor: int = 1) -> Part:
    """All of the slice with so many slices on each side, as coarse as it takes for so many voxels."""
    height, width = scene.shape
    factor = least_factor
    while True:
        rows, columns, depth = -(-height // factor), -(-width // factor), math.ceil(thick / factor)
        if rows * columns * (2 * depth + 1) <= voxels or min(rows, columns) <= 16:
            return Part(0, rows, 0, columns, factor, depth)
        factor += 1
