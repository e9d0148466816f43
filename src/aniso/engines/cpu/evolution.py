"""Evolving images on the fast engine, and the choice between images and volumes.

An explicit step of one channel without integration scale is a single pass over the image. In all other
cases the tensors are computed and stored first, and each step of the cycle is a pass over them.
"""

from __future__ import annotations

import itertools

import numpy as np

from aniso.engines import Problem
from aniso.engines.cpu.base import Array, Base, Span, cell_kernel, half_kernels, spans
from aniso.engines.cpu.placeholders import STRIDE
from aniso.engines.cpu.volume_evolution import VolumeEvolution
from aniso.formulas import weights
from aniso.formulas.gaussian import edge_fold
from aniso.schemes import Cycle
from aniso.stencil import FreeStencil

# A tile with its two mirrored pixels fills whole vectors, and its rows fit the row buffers.
_TILE_WIDTH = STRIDE - 50
_TILE_HEIGHT = 128
# Steps with stored tensors are taken several at a time, in tiles that fit the second-level cache.
_BLOCK, _BLOCK_HEIGHT, _BLOCK_WIDTH = 8, 64, 512


class Evolution:
    """An evolving image: shape (channels, H, W), or (channels, D, H, W) for a volume."""

    def __init__(self, image: Array, problem: Problem) -> None:
        kind = VolumeEvolution if image.ndim == 4 else ImageEvolution
        self._evolution = kind(image, problem)
        self._whole, self._closed = True, False

    @property
    def image(self) -> Array:
        """The image as it is now."""
        if not self._whole:
            raise RuntimeError(
                "this evolution was interrupted within a step, so that its image is neither the one before "
                "nor the one after it. Start again from the original image."
            )
        return self._evolution.image

    def advance(self, cycle: Cycle) -> None:
        """Carry out one cycle, with the tensor of the image as it is now."""
        if self._closed or not self._whole:
            reason = "is closed" if self._whole else "was interrupted within a step"
            raise RuntimeError(
                f"this evolution {reason} and cannot go on. Start again from the original image."
            )
        self._whole = False
        self._evolution.advance(cycle)
        self._whole = True

    def close(self) -> None:
        """End the threads."""
        self._closed = True
        self._evolution.close()


class ImageEvolution(Base):
    """An evolving image: shape (channels, H, W)."""

    def __init__(self, image: Array, problem: Problem) -> None:
        super().__init__(image, problem)
        model, (height, width) = problem.model, image.shape[1:]
        y, x = half_kernels(model.presmoothing, problem.spacings, image.dtype)
        # One further out along x than the kernel reaches: mirrored pixels.
        self._narrow = x, edge_fold(width, len(x)), y, edge_fold(height, len(y) - 1)
        y, x = half_kernels(model.integration, problem.spacings, image.dtype)
        self._wide = *cell_kernel(width + 1, x), *cell_kernel(height + 1, y)
        self._delta = np.zeros(1, image.dtype)
        if isinstance(problem.stencil, FreeStencil):
            per_area = 1 / np.prod(problem.spacings)
            self._delta = (problem.stencil.values * per_area).astype(image.dtype).reshape(-1)
        self._tensors: tuple[Array, ...] = ()
        self._before: tuple[Array, Array] | None = None

    def advance(self, cycle: Cycle) -> None:
        """Carry out one cycle, with the tensor of the image as it is now."""
        if self._can_fuse and len(cycle.steps) == 1:
            weight, tau = cycle.steps[0]
            self._fused_step(weight * tau)
            return
        self._freeze_tensors()
        for start in range(0, len(cycle.steps), _BLOCK):
            self._frozen_steps(cycle.steps, start, min(start + _BLOCK, len(cycle.steps)))

    def _fused_step(self, tau: float) -> None:
        u, spare, shape = self._u, self._spare, self._shape[1:]
        tensor_row = self._tensor_loops.tensor_row.address
        model = u.dtype.type(tau), self._numbers, self._parameters, tensor_row
        after = *model, *self._narrow, self._fixed
        self._run(self._loops.fused_step, (u, spare, shape), _tiles(*shape), after)
        self._u, self._spare = spare, u

    def _frozen_steps(self, steps: tuple[tuple[float, float], ...], start: int, stop: int) -> None:
        """Steps start … stop−1 of a cycle, in one pass."""
        u, spare, (channels, height, width) = self._u, self._spare, self._shape
        # The image before the first one of a cycle is that one itself: extrapolation is a longer step there.
        (first_weight, first_tau), *others = steps
        rates = [(1.0, first_weight * first_tau), *others]
        extrapolates = any(weight != 1.0 for weight, _ in steps)
        continued, to_be_continued = extrapolates and start > 0, extrapolates and stop < len(steps)
        if to_be_continued or continued:
            self._before = self._before or (np.empty_like(u), np.empty_like(u))
        previous, out_previous = self._before or (u, spare)
        taken = continued, to_be_continued, *np.array(rates[start:stop], u.dtype).T.copy()
        tiles = itertools.product(range(channels), _tiles(height, width, _BLOCK_HEIGHT, _BLOCK_WIDTH))
        self._run(
            self._loops.frozen_steps,
            (u, previous, spare, out_previous, (height, width)),
            [(channel, *tile) for channel, tile in tiles],
            (*taken, *self._numbers[2:], *self._tensors, self._delta, self._fixed),
        )
        self._u, self._spare = spare, u
        if self._before:
            self._before = self._before[::-1]

    def _freeze_tensors(self) -> None:
        """Store the tensors of the image as it is now."""
        channels, height, width = self._shape
        model, u = self._problem.model, self._u
        if model.entries is not None:
            if not self._tensors:
                per_y, per_x = (1 / h for h in self._problem.spacings)
                a, b, c = model.entries
                scaled = weights.scaled(a, b, c, per_x, per_y)
                self._tensors = tuple(entry.astype(u.dtype).reshape(-1) for entry in scaled)
            return
        if not self._tensors:
            self._tensors = tuple(np.empty((height + 1) * (width + 1), u.dtype) for _ in range(3))
        tensors, per_unit = self._tensors, self._numbers[:2]
        # Structure over the cells, into the arrays of the tensors.
        tiles = _tiles(height + 1, width + 1, max(_TILE_HEIGHT, 4 * (len(self._wide[3]) - 1)))
        after = *per_unit, u.dtype.type(1 / channels), *tensors, *self._narrow, *self._wide
        self._run(self._loops.structure_pass, (u, channels, (height, width)), tiles, after)
        pieces = spans(tensors[0].size, _TILE_HEIGHT * _TILE_WIDTH)
        self._run(self._tensor_loops.tensors_in_place, tensors, pieces, (*per_unit, self._parameters))


def _tiles(
    height: int, width: int, tile_height: int = _TILE_HEIGHT, tile_width: int = _TILE_WIDTH
) -> list[tuple[Span, Span]]:
    """Rows and columns of all tiles, the same for any number of threads."""
    return list(itertools.product(spans(height, tile_height), spans(width, tile_width)))
