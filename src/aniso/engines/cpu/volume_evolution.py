"""Evolving volumes on the fast engine.

A cycle of up to four steps is a single pass over the volume. In longer ones the first pass stores the
tensors, and the others read them. With an integration scale, structure tensors are stored before the first
pass; in longer cycles, the tensors themselves.
"""

from __future__ import annotations

import itertools

import numpy as np

from aniso.engines import STEPS_OF_PASS, Problem
from aniso.engines.cpu.base import Array, Base, Span, cell_kernel, equal_spans, half_kernels, spans
from aniso.engines.cpu.placeholders import VOLUME_STRIDE
from aniso.formulas import volume_weights
from aniso.formulas.gaussian import edge_fold
from aniso.stencil import DeltaStencil

# What is at work of a tile fits the second-level cache, rows the first-level one. A tile with its margin
# fills whole vectors. It ends after some planes, so that there are tiles enough for all threads.
_PLANES, _ROWS, _COLUMNS = 64, 32, VOLUME_STRIDE - 16
# Layers of cells are taken whole if they are not too large: rows around a tile are computed twice.
_LAYERS, _LAYER_CELLS = 16, 1 << 17


class VolumeEvolution(Base):
    """An evolving volume: shape (channels, D, H, W)."""

    _block = STEPS_OF_PASS[3]

    def __init__(self, image: Array, problem: Problem) -> None:
        if not isinstance(problem.stencil, DeltaStencil):
            raise NotImplementedError(
                f"the cpu engine computes volumes with a DeltaStencil, got {problem.stencil!r}. Use "
                "aniso.DeltaStencil(), or engine='reference'."
            )
        super().__init__(image, problem)
        model, (depth, height, width) = problem.model, image.shape[1:]
        z, y, x = half_kernels(model.presmoothing, problem.spacings, image.dtype)
        wide_z, wide_y, wide_x = half_kernels(model.integration, problem.spacings, image.dtype)
        # Half kernels and folds along x and y, a whole kernel along z. Folds go further out along x: a tile
        # has a margin, and cells are averaged.
        fold_x, fold_y = edge_fold(width, len(x) + self._block + len(wide_x)), edge_fold(height, len(y) - 1)
        whole_z = np.concatenate([z[:0:-1], z])
        self._narrow = x, fold_x, y, fold_y, whole_z, edge_fold(depth, len(z) - 1)
        self._wide = wide_x, cell_kernel(height + 1, wide_y), cell_kernel(depth + 1, wide_z)
        if model.entries is not None:
            per_axis = (1 / h for h in reversed(problem.spacings))
            scaled = volume_weights.volume_scaled(*model.entries, *per_axis)
            # The six entries of a row of cells one after another.
            self._tensors = np.stack([entry.astype(image.dtype) for entry in scaled], axis=2).reshape(-1)
        self._step_kernel = self._loops.volume_steps
        self._stencil_and_kernels = self._fixed, *self._narrow, *self._wide[2]
        self._averages = self._tensor_row != 0 and len(wide_y) > 1

    def _tiles(self, steps: int, computes: bool) -> list[tuple[Span, ...]]:
        """Planes, rows and columns of all tiles, the same for any number of threads."""
        (_, depth, height, width), rows = self._shape, _ROWS
        if computes and self._averages:
            # Axes y and z are interchanged. Tiles are taller, since rows around them are read for averages;
            # of the tensors of a single step, only a few rows are at work.
            depth, height = height, depth
            rows = max(4 * _ROWS if steps == 1 else _ROWS, 2 * (len(self._wide[2][0]) - 1))
        largest = _PLANES, rows, _COLUMNS - 2 * steps
        return list(itertools.product(*map(equal_spans, (depth, height, width), largest)))

    def _computes_tensors(self, steps: int) -> bool:
        """Average structures over the integration scale, if there is such a scale.

        Averages along z belong to the pass, unless there are several: these read the tensors that are stored.
        """
        if not self._averages:
            return super()._computes_tensors(steps)
        wide_x, wide_y, wide_z = self._wide
        reach = len(wide_y[0]) - 1
        channels, depth, height, width = self._shape
        shape = depth, height, width
        self._tensors = tensors = self._room_for_tensors()
        rows = max(32, 4 * reach, _LAYER_CELLS // (width + 1))
        self._run(
            self._loops.structure_layers,
            (self._u, channels, shape),
            list(itertools.product(spans(depth + 1, _LAYERS), spans(height + 1, rows))),
            (self._numbers, tensors, *self._narrow, wide_x, *wide_y),
        )
        if steps <= self._block:
            return True
        self._run(
            self._loops.average_layers,
            (tensors, shape),
            list(itertools.product(range(height + 1), spans(width + 1, _COLUMNS))),
            (self._numbers, self._parameters, self._tensor_row, *wide_z),
        )
        return False
