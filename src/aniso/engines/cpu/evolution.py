"""Evolving images on the fast engine, and the choice between images and volumes.

An explicit step of one channel without integration scale is a single pass over the image. In all other
cases the tensors are computed and stored first, and each step of the cycle is a pass over them.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from aniso.engines import Problem
from aniso.engines.cpu.base import Array, Base, Span, half_kernels, spans
from aniso.engines.cpu.placeholders import STRIDE
from aniso.engines.cpu.volume_evolution import VolumeEvolution
from aniso.formulas import weights
from aniso.formulas.gaussian import centre_fold, edge_fold
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
        self._smoothing = _Smoothing.of(image, problem)
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
        height, width = self._shape[1:]
        smoothing, tiles = self._smoothing, _tiles(height, width)
        u, spare, numbers, fixed = self._u, self._spare, self._numbers, self._fixed
        kernel, real, parameters = self._loops.fused_step, u.dtype.type(tau), self._parameters
        tensor_row = self._tensor_loops.tensor_row.address

        def task(number: int) -> None:
            rows, columns = tiles[number]
            kernel(
                u, spare, (height, width), rows, columns, real, numbers, parameters, tensor_row,
                smoothing.kernel_x, smoothing.fold_x, smoothing.kernel_y, smoothing.fold_y, fixed,
            )  # fmt: skip

        self._run(kernel, task, len(tiles))
        self._u, self._spare = spare, u

    def _frozen_steps(self, steps: tuple[tuple[float, float], ...], start: int, stop: int) -> None:
        """Steps start … stop−1 of a cycle, in one pass."""
        channels, height, width = self._shape
        u, spare, delta, fixed = self._u, self._spare, self._delta, self._fixed
        dtype = u.dtype
        # The image before the first one of a cycle is that one itself: extrapolation is a longer step there.
        rates = [
            (1.0, weight * tau) if number == 0 else (weight, tau)
            for number, (weight, tau) in enumerate(steps)
        ]
        extrapolates = any(weight != 1.0 for weight, _ in steps)
        continued, to_be_continued = extrapolates and start > 0, extrapolates and stop < len(steps)
        if to_be_continued or continued:
            self._before = self._before or (np.empty_like(u), np.empty_like(u))
        previous, out_previous = self._before or (u, spare)
        weight_row, tau_row = np.array(rates[start:stop], dtype).T.copy()
        kernel, tiles = self._loops.frozen_steps, _tiles(height, width, _BLOCK_HEIGHT, _BLOCK_WIDTH)
        a, b, c = self._tensors
        alpha_gamma_beta = self._numbers[2:]

        def task(number: int) -> None:
            channel, tile = divmod(number, len(tiles))
            rows, columns = tiles[tile]
            kernel(
                u, previous, spare, out_previous, channel, (height, width), rows, columns,
                continued, to_be_continued, weight_row, tau_row,
                *alpha_gamma_beta, a, b, c, delta, fixed,
            )  # fmt: skip

        self._run(kernel, task, channels * len(tiles))
        self._u, self._spare = spare, u
        if self._before:
            self._before = self._before[::-1]

    def _freeze_tensors(self) -> None:
        """Store the tensors of the image as it is now."""
        _, height, width = self._shape
        model, dtype = self._problem.model, self._u.dtype
        if model.entries is not None:
            if not self._tensors:
                per_y, per_x = (1 / h for h in self._problem.spacings)
                a, b, c = model.entries
                scaled = weights.scaled(a, b, c, per_x, per_y)
                self._tensors = tuple(entry.astype(dtype).reshape(-1) for entry in scaled)
            return
        if not self._tensors:
            self._tensors = tuple(np.empty((height + 1) * (width + 1), dtype) for _ in range(3))
        self._structure_pass()
        a, b, c = self._tensors
        kernel, parameters = self._tensor_loops.tensors_in_place, self._parameters
        per_x, per_y = self._numbers[:2]
        pieces = spans(a.size, _TILE_HEIGHT * _TILE_WIDTH)

        def task(number: int) -> None:
            kernel(a, b, c, *pieces[number], per_x, per_y, parameters)

        self._run(kernel, task, len(pieces))

    def _structure_pass(self) -> None:
        """Structure over the cells, into the arrays of the tensors."""
        channels, height, width = self._shape
        u, tensors, (per_x, per_y) = self._u, self._tensors, self._numbers[:2]
        smoothing = self._smoothing
        reach = len(smoothing.wide_y) - 1
        tiles = _tiles(height + 1, width + 1, max(_TILE_HEIGHT, 4 * reach))
        kernel, share = self._loops.structure_pass, u.dtype.type(1 / channels)

        def task(number: int) -> None:
            rows, columns = tiles[number]
            kernel(
                u, channels, (height, width), rows, columns, per_x, per_y, share, *tensors,
                smoothing.kernel_x, smoothing.fold_x, smoothing.kernel_y, smoothing.fold_y,
                smoothing.wide_x, smoothing.wide_fold_x, smoothing.sign_x,
                smoothing.wide_y, smoothing.wide_fold_y, smoothing.sign_y,
            )  # fmt: skip

        self._run(kernel, task, len(tiles))


@dataclass(frozen=True)
class _Smoothing:
    """Kernels from their centre outwards, and where mirrored pixels and cells are found."""

    kernel_x: Array
    fold_x: Array
    kernel_y: Array
    fold_y: Array
    wide_x: Array
    wide_fold_x: Array
    sign_x: Array
    wide_y: Array
    wide_fold_y: Array
    sign_y: Array

    @classmethod
    def of(cls, image: Array, problem: Problem) -> _Smoothing:
        height, width = image.shape[1:]
        model = problem.model
        kernel_y, kernel_x = half_kernels(model.presmoothing, problem.spacings, image.dtype)
        wide_y, wide_x = half_kernels(model.integration, problem.spacings, image.dtype)
        wide_fold_x, sign_x = centre_fold(width + 1, len(wide_x) - 1)
        wide_fold_y, sign_y = centre_fold(height + 1, len(wide_y) - 1)
        return cls(
            kernel_x,
            edge_fold(width, len(kernel_x)),
            kernel_y,
            edge_fold(height, len(kernel_y) - 1),
            wide_x,
            wide_fold_x,
            sign_x.astype(image.dtype),
            wide_y,
            wide_fold_y,
            sign_y.astype(image.dtype),
        )


def _tiles(
    height: int, width: int, tile_height: int = _TILE_HEIGHT, tile_width: int = _TILE_WIDTH
) -> list[tuple[Span, Span]]:
    """Rows and columns of all tiles, the same for any number of threads."""
    return list(itertools.product(spans(height, tile_height), spans(width, tile_width)))
