"""Evolving volumes on the fast engine.

An explicit step of one channel without integration scale is a single pass over the volume. In all other
cases the tensors are computed and stored first, and each step of the cycle is a pass over them.
"""

from __future__ import annotations

import itertools

import numpy as np

from aniso.engines import Problem
from aniso.engines.cpu.base import Array, Base, cell_kernel, equal_spans, half_kernels, spans
from aniso.formulas import volume_weights
from aniso.formulas.gaussian import centre_fold, edge_fold
from aniso.schemes import Cycle
from aniso.stencil import DeltaStencil

# Two planes of a tile and the voxels that they are smoothed from fit the second-level cache, the rows at work
# the first-level one. A tile ends after some planes, so that there are tiles enough for all threads.
_TILE = 64, 32, 256
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
        self._tensor_row = 0 if self._tensor_loops is None else self._tensor_loops.volume_tensor_row.address
        model, (depth, height, width) = problem.model, image.shape[1:]
        z, y, x = half_kernels(model.presmoothing, problem.spacings, image.dtype)
        # Half kernels and folds along x (one further out: mirrored voxels) and y, a whole kernel along z.
        folds = edge_fold(width, len(x)), edge_fold(height, len(y) - 1), edge_fold(depth, len(z) - 1)
        self._narrow = x, folds[0], y, folds[1], _whole(z), folds[2]
        z, y, x = half_kernels(model.integration, problem.spacings, image.dtype)
        self._wide_x = cell_kernel(width + 1, x)
        self._wide_y, self._wide_z = _bands(height + 1, y), _bands(depth + 1, z)
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
        u, spare, (channels, *shape) = self._u, self._spare, self._shape
        real = u.dtype.type
        step = weight != 1.0, real(weight), real(tau)
        stored = np.zeros(1, u.dtype) if tensors is None else tensors
        self._run(
            self._loops.volume_step,
            (u, spare, tuple(shape)),
            list(itertools.product(range(channels), *map(equal_spans, shape, _TILE))),
            (*step, self._numbers, self._parameters, self._tensor_row, stored, *self._narrow, self._fixed),
        )
        self._u, self._spare = spare, u

    def _freeze_tensors(self) -> None:
        """Store the tensors of the volume as it is now."""
        channels, depth, height, width = self._shape
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
        u, tensors, shape = self._u, self._tensors, (depth, height, width)
        model_row = self._numbers, self._parameters, self._tensor_row
        reach = len(self._wide_x[0]) - 1
        rows = max(32, 4 * reach, _LAYER_CELLS // (width + 1))
        self._run(
            self._loops.structure_layers,
            (u, channels, u.dtype.type(1 / channels), shape),
            list(itertools.product(spans(depth + 1, _LAYERS), spans(height + 1, rows))),
            (*model_row, tensors, *self._narrow, *self._wide_x, *self._wide_y),
        )
        # A narrow Gaussian may have no neighbour: then the structure is the tensor already.
        if reach > 0:
            pieces = list(itertools.product(range(height + 1), spans(width + 1, _PIECE)))
            self._run(self._loops.average_layers, (tensors, shape), pieces, (*model_row, *self._wide_z))


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
