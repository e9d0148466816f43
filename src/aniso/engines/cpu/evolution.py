"""Evolving images on the fast engine, and the choice between images and volumes.

A cycle of up to eight steps is a single pass over the image. In longer ones the first pass stores the
tensors, and the others read them.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from aniso.engines import Problem
from aniso.engines.cpu.base import Array, Base, Span, cell_kernel, equal_spans, half_kernels
from aniso.engines.cpu.volume_evolution import VolumeEvolution
from aniso.formulas import weights
from aniso.formulas.gaussian import edge_fold
from aniso.schemes import Cycle
from aniso.stencil import FreeStencil

# Steps with the same tensors are taken several at a time.
_BLOCK = 8
# A tile with its margin fills whole vectors, and its rows fit the row buffers.
_TILE_WIDTH, _TILE_HEIGHT = 1056, 128


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
        # Further out along x than the kernel reaches: the margin of a tile.
        self._narrow = x, edge_fold(width, len(x) - 1 + _BLOCK), y, edge_fold(height, len(y) - 1)
        y, x = half_kernels(model.integration, problem.spacings, image.dtype)
        self._wide = *cell_kernel(width + 1, x, _BLOCK), *cell_kernel(height + 1, y)
        self._delta = np.zeros(1, image.dtype)
        if isinstance(problem.stencil, FreeStencil):
            per_area = 1 / np.prod(problem.spacings)
            self._delta = (problem.stencil.values * per_area).astype(image.dtype).reshape(-1)
        self._tensors = _stored(problem, image.dtype)
        self._before: tuple[Array, Array] | None = None

    def advance(self, cycle: Cycle) -> None:
        """Carry out one cycle, with the tensor of the image as it is now."""
        for start in range(0, len(cycle.steps), _BLOCK):
            self._steps(cycle.steps, start, min(start + _BLOCK, len(cycle.steps)))

    def _steps(self, steps: tuple[tuple[float, float], ...], start: int, stop: int) -> None:
        """Steps start … stop−1 of a cycle, in one pass. The first one computes the tensors."""
        u, spare, (channels, height, width) = self._u, self._spare, self._shape
        # The image before the first one of a cycle is that one itself: extrapolation is a longer step there.
        (first_weight, first_tau), *others = steps
        rates = [(1.0, first_weight * first_tau), *others]
        extrapolates = any(weight != 1.0 for weight, _ in others)
        continued, to_be_continued = extrapolates and start > 0, extrapolates and stop < len(steps)
        if to_be_continued or continued:
            self._before = self._before or (np.empty_like(u), np.empty_like(u))
        previous, out_previous = self._before or (u, spare)
        taken = continued, to_be_continued, *np.array(rates[start:stop], u.dtype).T.copy()
        computes = start == 0 and self._tensor_loops is not None
        stores = computes and stop < len(steps)
        if stores and len(self._tensors) == 1:
            self._tensors = np.empty(3 * (height + 1) * (width + 1), u.dtype)
        tensor_row = self._tensor_loops.tensor_row.address if computes else 0
        model = self._numbers, self._parameters, tensor_row, computes, stores, self._tensors
        self._run(
            self._loops.image_steps,
            (u, previous, spare, out_previous, channels, (height, width)),
            self._tiles(stop - start),
            (*taken, *model, self._delta, self._fixed, *self._narrow, *self._wide),
        )
        self._u, self._spare = spare, u
        if self._before:
            self._before = self._before[::-1]

    def _tiles(self, steps: int) -> list[tuple[Span, Span]]:
        """Rows and columns of all tiles, the same for any number of threads."""
        _, height, width = self._shape
        rows = max(_TILE_HEIGHT, 4 * (len(self._wide[3]) - 1))
        return list(itertools.product(equal_spans(height, rows), equal_spans(width, _TILE_WIDTH - 2 * steps)))


def _stored(problem: Problem, dtype: np.dtype[Any]) -> Array:
    """Return given tensors as kernels read them, a, b and c one after another; else a single number."""
    if problem.model.entries is None:
        return np.zeros(1, dtype)
    a, b, c = problem.model.entries
    per_y, per_x = (1 / h for h in problem.spacings)
    return np.concatenate([np.ravel(entry).astype(dtype) for entry in weights.scaled(a, b, c, per_x, per_y)])
