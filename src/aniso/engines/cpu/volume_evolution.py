"""Evolving volumes on the fast engine.

An explicit step of one channel without integration scale is a single pass over the volume. In all other
cases the tensors are computed and stored first, and each step of the cycle is a pass over them.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from aniso.engines import Problem
from aniso.engines.cpu.base import Array, Base, Span, half_kernels, spans
from aniso.formulas import volume_weights
from aniso.formulas.gaussian import centre_fold, edge_fold
from aniso.schemes import Cycle
from aniso.stencil import DeltaStencil

# Two planes of a tile and the voxels that they are smoothed from fit the second-level cache, the rows at work
# the first-level one. A tile ends after some planes, so that there are tiles enough for all threads.
_TILE_DEPTH, _TILE_HEIGHT, _TILE_WIDTH = 64, 32, 256
# Layers of cells are taken whole if they are not too large: rows around a tile are computed twice.
_LAYERS, _LAYER_CELLS = 16, 1 << 17
# Averages across layers keep as many rows as the kernel is long, six entries each.
_PIECE = 256


class VolumeEvolution(Base):
    """An evolving volume: shape (channels, D, H, W)."""

    def __init__(self, image: Array, problem: Problem) -> None:
        if not isinstance(problem.stencil, DeltaStencil):
            raise NotImplementedError(
                f"the cpu engine computes volumes with a DeltaStencil, got {problem.stencil!r}. Use "
                "aniso.DeltaStencil(), or engine='reference'."
            )
        super().__init__(image, problem)
        self._smoothing = _Smoothing.of(image, problem)
        self._tensors: Array | None = None

    def advance(self, cycle: Cycle) -> None:
        """Carry out one cycle, with the tensor of the volume as it is now."""
        fused = self._can_fuse and len(cycle.steps) == 1
        if not fused:
            self._freeze_tensors()
        tensors = None if fused else self._tensors
        for number, (weight, tau) in enumerate(cycle.steps):
            # The volume before the first one of a cycle is that one itself: extrapolation is a longer step.
            self._step(tensors, *((weight, tau) if number > 0 else (1.0, weight * tau)))

    def close(self) -> None:
        """End the threads and free what is not the volume itself."""
        super().close()
        self._tensors = None

    def _step(self, tensors: Array | None, weight: float, tau: float) -> None:
        channels, *shape = self._shape
        u, spare, numbers, fixed = self._u, self._spare, self._numbers, self._fixed
        parameters = self._parameters
        kernel, real, narrow = self._loops.volume_step, u.dtype.type, self._smoothing.narrow
        tiles = _tiles(*shape)
        tensor_row = 0 if self._tensor_loops is None else self._tensor_loops.volume_tensor_row.address
        stored = np.zeros(1, u.dtype) if tensors is None else tensors

        def task(number: int) -> None:
            channel, tile = divmod(number, len(tiles))
            kernel(
                u, spare, channel, tuple(shape), *tiles[tile],
                weight != 1.0, real(weight), real(tau), numbers, parameters, tensor_row, stored,
                *narrow, fixed,
            )  # fmt: skip

        self._run(kernel, task, channels * len(tiles))
        self._u, self._spare = spare, u

    def _freeze_tensors(self) -> None:
        """Store the tensors of the volume as it is now."""
        _, depth, height, width = self._shape
        model, dtype = self._problem.model, self._u.dtype
        if model.entries is not None:
            if self._tensors is None:
                scaled = volume_weights.volume_scaled(
                    *model.entries, *(1 / h for h in reversed(self._problem.spacings))
                )
                # The six entries of a row of cells one after another.
                self._tensors = np.stack([entry.astype(dtype) for entry in scaled], axis=2).reshape(-1)
            return
        if self._tensors is None:
            self._tensors = np.empty((depth + 1) * (height + 1) * 6 * (width + 1), dtype)
        self._structure(self._tensors)
        # A narrow Gaussian may have no neighbour: then the structure is the tensor already.
        if len(self._smoothing.wide_x[0]) > 1:
            self._averages(self._tensors)

    def _structure(self, tensors: Array) -> None:
        channels, depth, height, width = self._shape
        u, numbers, smoothing = self._u, self._numbers, self._smoothing
        parameters = self._parameters
        tensor_row = self._tensor_loops.volume_tensor_row.address
        reach = len(smoothing.wide_x[0]) - 1
        kernel, share = self._loops.structure_layers, u.dtype.type(1 / channels)
        rows = max(32, 4 * reach, _LAYER_CELLS // (width + 1))
        tiles = list(itertools.product(spans(depth + 1, _LAYERS), spans(height + 1, rows)))

        def task(number: int) -> None:
            kernel(
                u, channels, share, (depth, height, width), *tiles[number], numbers,
                parameters, tensor_row, tensors,
                *smoothing.narrow, *smoothing.wide_x, *smoothing.wide_y,
            )  # fmt: skip

        self._run(kernel, task, len(tiles))

    def _averages(self, tensors: Array) -> None:
        _, depth, height, width = self._shape
        kernel, numbers, wide_z = self._loops.averaged_layers, self._numbers, self._smoothing.wide_z
        parameters = self._parameters
        tensor_row = self._tensor_loops.volume_tensor_row.address
        pieces = list(itertools.product(range(height + 1), spans(width + 1, _PIECE)))

        def task(number: int) -> None:
            kernel(
                tensors, (depth, height, width), *pieces[number], numbers, parameters, tensor_row,
                *wide_z,
            )  # fmt: skip

        self._run(kernel, task, len(pieces))


@dataclass(frozen=True)
class _Smoothing:
    """Gaussians along each axis, and where mirrored voxels and cells are found.

    `narrow`, over voxels: half kernel and fold along x, the same along y, whole kernel and fold along z.
    `wide_x`, over cells: half kernel, fold and sign along x. `wide_y` and `wide_z`: weights, see `_bands`.
    """

    narrow: tuple[Array, ...]
    wide_x: tuple[Array, Array, Array]
    wide_y: tuple[Array, Array, Array]
    wide_z: tuple[Array, Array, Array]

    @classmethod
    def of(cls, image: Array, problem: Problem) -> _Smoothing:
        model, dtype = problem.model, image.dtype
        depth, height, width = image.shape[1:]
        kernel_z, kernel_y, kernel_x = half_kernels(model.presmoothing, problem.spacings, dtype)
        wide_z, wide_y, wide_x = half_kernels(model.integration, problem.spacings, dtype)
        fold, sign = centre_fold(width + 1, len(wide_x) - 1)
        return cls(
            (
                kernel_x,
                edge_fold(width, len(kernel_x)),  # one further out than the kernel reaches: mirrored voxels
                kernel_y,
                edge_fold(height, len(kernel_y) - 1),
                _whole(kernel_z),
                edge_fold(depth, len(kernel_z) - 1),
            ),
            (wide_x, fold, sign.astype(dtype)),
            _bands(height + 1, wide_y),
            _bands(depth + 1, wide_z),
        )


def _whole(half: Array) -> Array:
    """A kernel that is given from its centre outwards."""
    return np.concatenate([half[:0:-1], half])


def _bands(length: int, half: Array) -> tuple[Array, Array, Array]:
    """Gaussian over cells as a matrix with a band: weights of even and of odd quantities, first columns.

    Each of the `length` rows has as many weights as the kernel is long; they belong to the cells from the
    first column on. What the kernel finds beyond the boundary is folded back.
    """
    kernel = _whole(half)
    cells, (found, sign) = np.arange(length), centre_fold(length, len(half) - 1)
    first = np.clip(cells - (len(half) - 1), 0, max(0, length - len(kernel)))
    even, odd = np.zeros((2, length, len(kernel)))
    for offset, weight in enumerate(kernel):
        place = cells, found[cells + offset] - first
        even[place] += weight
        odd[place] += weight * sign[cells + offset]
    # An odd quantity vanishes on the boundary: exactly, not but for rounding.
    odd[[0, -1]] = 0
    return even.astype(half.dtype).reshape(-1), odd.astype(half.dtype).reshape(-1), first


def _tiles(depth: int, height: int, width: int) -> list[tuple[Span, Span, Span]]:
    """Planes, rows and columns of all tiles."""
    return list(
        itertools.product(
            _equal_spans(depth, _TILE_DEPTH),
            _equal_spans(height, _TILE_HEIGHT),
            _equal_spans(width, _TILE_WIDTH),
        )
    )


def _equal_spans(length: int, most: int) -> list[Span]:
    """A length cut into pieces of nearly the same size, none above `most`."""
    return spans(length, -(-length // -(-length // most)))
