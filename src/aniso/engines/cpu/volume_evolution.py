"""Evolving volumes on the fast engine.

A cycle of up to four steps is a single pass over the volume. In longer ones the first pass stores the
tensors, and the others read them. With an integration scale, structure tensors are stored before the first
pass; in longer cycles, the tensors themselves. They take six times the memory of a channel, so that all
passes advance slab by slab, each one some planes behind the one before it, and only those are held that are
still needed.
"""

from __future__ import annotations

import itertools

import numpy as np

from aniso.engines import STEPS_OF_PASS, Problem
from aniso.engines.cpu.base import Array, Base, Pass, Span, cell_kernel, equal_spans, half_kernels, spans
from aniso.engines.cpu.placeholders import VOLUME_STRIDE
from aniso.formulas import volume_weights
from aniso.formulas.gaussian import edge_fold
from aniso.stencil import DeltaStencil

# What is at work of a tile fits the second-level cache, rows the first-level one. A tile with its margin
# fills whole vectors. It ends after some planes, so that there are tiles enough for all threads.
_PLANES, _ROWS, _COLUMNS = 64, 32, VOLUME_STRIDE - 16
# Planes of a slab at most, if its tiles are enough for all threads: what is stored of it is held in memory.
# There are more if averages reach farther: they are computed around each slab.
_SLAB, _SLAB_OVER_REACH = 32, 4
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

    def _carry_out(self, passes: list[Pass]) -> None:
        """Carry out all passes slab by slab, with the tensors of the volume before the first one."""
        depth, computes, single = self._shape[1], self._tensor_row != 0, len(passes) == 1
        stores = computes and (self._averages or not single)
        # A pass overwrites what the one before it started from, and follows where that is not read any more.
        # Tensors that are averaged have been computed some planes ahead.
        ahead = 2 * self._block + len(self._wide[2][0]) - 2 if self._averages else 0
        lag = self._block + max(len(self._narrow[4]) // 2 - ahead, 0)
        slabs = self._hold_tensors(passes, lag * (len(passes) - 1)) if stores else [depth]
        planes = [0] * len(passes)
        for slab in slabs:
            if self._averages:
                self._average_structure(slab, single)
            for number, one in enumerate(passes):
                start, stop = planes[number], depth if slab == depth else slab - number * lag
                if stop > start:
                    planes[number], fresh = stop, computes and number == 0 and (single or not self._averages)
                    tiles = self._tiles(one.count, (start, stop), fresh)
                    self._run_pass(one, tiles, computes=fresh, stores=fresh and not single)
        if stores and len(slabs) == 1:
            self._tensors = np.empty(0, self._u.dtype)  # many small volumes may evolve side by side

    def _hold_tensors(self, passes: list[Pass], behind: int) -> list[int]:
        """Return where slabs of planes end, and make room for what is needed of the tensors at a time.

        The last pass is some planes behind the first one. A single pass averages structures along z itself,
        and needs them on both sides of a slab.
        """
        (depth, height, width), reach, single = self._shape[1:], len(self._wide[2][0]) - 1, len(passes) == 1
        tiles = len(self._tiles(passes[0].count, (0, 1), self._averages and single))
        most = max(_SLAB, _SLAB_OVER_REACH * reach)
        slabs = equal_spans(depth, most * -(-self._team.threads // tiles))
        layers = slabs[0][1] + behind + 2 * self._block - 1 + (2 if single else 1) * reach
        if layers > depth:
            slabs, layers = [(0, depth)], depth + 1
        layer = (height + 1) * (width + 1)
        self._hold_tensors_of(layers * layer)
        self._saved = np.empty(6 * reach * layer if len(slabs) > 1 and not single else 1, self._u.dtype)
        self._averaged = 0
        return [stop for _, stop in slabs]

    def _average_structure(self, slab: int, single: bool) -> None:
        """Average structures over the integration scale, as far as the end of a slab needs them.

        Within layers; and then across them, where they become tensors, unless a single pass does so.
        """
        (channels, *shape), (wide_x, wide_y, wide_z) = self._shape, self._wide
        depth, height, width = shape
        reach_y, reach_z = len(wide_y[0]) - 1, len(wide_z[0]) - 1
        start, stop = self._averaged, min(slab + self._block, depth + 1)
        known, need = (min(layer + reach_z, depth + 1) for layer in (start, stop))
        layers = [(a, min(a + _LAYERS, need)) for a in range(known if start > 0 else 0, need, _LAYERS)]
        rows = max(32, 4 * reach_y, _LAYER_CELLS // (width + 1))
        self._run(
            self._loops.structure_layers,
            (self._u, channels, tuple(shape)),
            list(itertools.product(layers, spans(height + 1, rows))),
            (self._numbers, self._tensors, *self._narrow, wide_x, *wide_y),
        )
        self._averaged = stop
        if single:
            return
        self._run(
            self._loops.average_layers,
            (self._tensors, self._saved, tuple(shape), (start, stop)),
            list(itertools.product(range(height + 1), spans(width + 1, _COLUMNS))),
            (self._numbers, self._parameters, self._tensor_row, *wide_z),
        )

    def _tiles(self, steps: int, planes: Span, computes: bool) -> list[tuple[Span, ...]]:
        """Return planes, rows and columns of all tiles between planes, the same for any number of threads."""
        start, stop = planes
        (_, _, height, width), rows = self._shape, _ROWS
        columns = equal_spans(width, _COLUMNS - 2 * steps)
        if computes and self._averages:
            # Axes y and z are interchanged. Tiles are taller, since rows around them are read for averages;
            # of the tensors of a single step, only a few rows are at work.
            rows = max(4 * _ROWS if steps == 1 else _ROWS, 2 * (len(self._wide[2][0]) - 1))
            return list(itertools.product(equal_spans(height, _PLANES), _cut(start, stop, rows), columns))
        return list(itertools.product(_cut(start, stop, _PLANES), equal_spans(height, rows), columns))


def _cut(start: int, stop: int, most: int) -> list[Span]:
    return [(start + front, start + back) for front, back in equal_spans(stop - start, most)]
