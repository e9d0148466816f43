"""Evolving images on the fast engine, and the choice between images and volumes.

A cycle of up to eight steps is a single pass over the image. In longer ones the first pass stores the
tensors, and the others read them.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from aniso.engines import STEPS_OF_PASS, Problem
from aniso.engines.cpu.base import Array, Base, Pass, Span, cell_kernel, equal_spans, half_kernels
from aniso.engines.cpu.volume_evolution import VolumeEvolution
from aniso.formulas import weights
from aniso.formulas.gaussian import edge_fold
from aniso.schemes import Cycle
from aniso.stencil import FreeStencil

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

    _block = STEPS_OF_PASS[2]

    def __init__(self, image: Array, problem: Problem) -> None:
        super().__init__(image, problem)
        model, (height, width) = problem.model, image.shape[1:]
        y, x = half_kernels(model.presmoothing, problem.spacings, image.dtype)
        wide_y, wide_x = half_kernels(model.integration, problem.spacings, image.dtype)
        # Further out along x than the kernel reaches: the margin of a tile, and cells to be averaged.
        fold_x = edge_fold(width, len(x) - 1 + self._block + len(wide_x) - 1)
        narrow = x, fold_x, y, edge_fold(height, len(y) - 1)
        wide = wide_x, *cell_kernel(height + 1, wide_y)
        self._tile_height = max(_TILE_HEIGHT, 4 * (len(wide_y) - 1))
        delta = np.zeros(1, image.dtype)
        if isinstance(problem.stencil, FreeStencil):
            per_area = 1 / np.prod(problem.spacings)
            delta = (problem.stencil.values * per_area).astype(image.dtype).reshape(-1)
        if problem.model.entries is not None:
            self._tensors = _given(problem.model.entries, problem.spacings, image.dtype)
        self._step_kernel = self._loops.image_steps
        self._stencil_and_kernels = delta, self._fixed, *narrow, *wide

    def _carry_out(self, passes: list[Pass]) -> None:
        """Carry out the passes one after another."""
        computes = self._tensor_row != 0
        stores = computes and len(passes) > 1
        if stores:
            _, height, width = self._shape
            self._hold_tensors_of((height + 1) * (width + 1))
        for number, one in enumerate(passes):
            first = number == 0
            self._run_pass(one, self._tiles(one.count), computes=computes and first, stores=stores and first)

    def _tiles(self, steps: int) -> list[tuple[Span, Span]]:
        """Rows and columns of all tiles, the same for any number of threads."""
        _, height, width = self._shape
        columns = equal_spans(width, _TILE_WIDTH - 2 * steps)
        return list(itertools.product(equal_spans(height, self._tile_height), columns))


def _given(entries: Sequence[Array], spacings: tuple[float, ...], dtype: np.dtype[Any]) -> Array:
    """Return the user's tensors as kernels read them, a, b and c one after another."""
    a, b, c = entries
    per_y, per_x = (1 / h for h in spacings)
    return np.concatenate([np.ravel(entry).astype(dtype) for entry in weights.scaled(a, b, c, per_x, per_y)])
