"""Inpainting from coarse to fine: starts and cycles, for NumPy and Dask arrays. Images are (channels, …)."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from aniso import checks
from aniso.arrays import Array, Mask
from aniso.blocks import lazy
from aniso.blocks.halo import Window, tensor_reach
from aniso.blocks.stages import Pipeline
from aniso.evolving import EvolvingImage
from aniso.schemes import FSI, Cycle
from aniso.settings import Prepared
from aniso.verbs.grids import double, double_lazily, halve

# Steps of a cycle; and cycles on each coarse grid.
_STEPS, _COARSE_CYCLES = 8, 3
# Grids of Dask arrays with at most this many pixels are computed in one piece.
_SMALL = 2**20


def nothing_known() -> ValueError:
    """Return the error for images without known pixels."""
    return checks.make_error(
        ValueError,
        "all pixels are unknown: there is nothing to fill in from.",
        python="The mask is True where a pixel is unknown; perhaps ~mask was meant.",
        command="A mask marks the unknown pixels; perhaps --invert was meant.",
    )


@dataclass
class Convergence:
    """Decides when the unknown pixels hardly change any more, and keeps the number of cycles until then."""

    spread: float
    tolerance: float
    report: Callable[[float], object] = lambda done: None
    cycles: int = 0
    residual: float = math.inf
    _first: float = field(default=0.0, init=False)

    def reached(self, before: Array, after: Array, unknown: int) -> bool:
        """Return whether a cycle has changed the image by less than the tolerance."""
        scale = self.spread * math.sqrt(unknown * len(after))
        # If all known pixels are equal, the start is constant too.
        self.residual = _distance(after, before) / scale if scale > 0 else 0.0
        self.cycles += 1
        self._first = self._first or self.residual
        self.report(self._descent())
        return self.residual <= self.tolerance

    def _descent(self) -> float:
        """Return how far the residual has decreased to the tolerance, on a logarithmic scale."""
        if self.residual <= self.tolerance:
            return 1.0
        return max(0.0, math.log(self._first / self.residual) / math.log(self._first / self.tolerance))


@dataclass(frozen=True)
class Solver:
    """Inpainting from coarse to fine, with this diffusion on all grids."""

    prepared: Prepared

    @property
    def cycle(self) -> Cycle:
        """An FSI cycle of the longest stable steps."""
        limit = self.prepared.limit
        (cycle,) = FSI(1).plan(limit * _STEPS * (_STEPS + 1) / 3, limit)
        return cycle

    def start(self, image: Array, known: Mask) -> Array:
        """Return known pixels, and interpolated coarser grids between them: a new array."""
        if known.all():
            return image.copy()
        sums, counts = np.where(known, image, 0), known.astype(image.dtype)[np.newaxis]
        sums, counts = halve(sums), halve(counts)
        return _between(self._coarse(sums, counts), image, known)

    def start_lazily(self, image: Any, known: Any) -> Any:
        """Return the same for a Dask array, which is 0 where it is unknown."""
        return np.where(known, image, double_lazily(self.coarse_lazily(image, known), image))

    def coarse_lazily(self, image: Any, known: Any) -> Any:
        """Return the next coarser grid of a Dask array, which is 0 where it is unknown."""
        return self._coarse_lazily(halve(image), halve(known[np.newaxis].astype(image.dtype)))

    def _coarse(self, sums: Array, counts: Array) -> Array:
        """Return the diffused image on a grid, given the sums of known pixels and their numbers."""
        covered = counts[0] > 0
        means = sums / np.maximum(counts, 1)
        if covered.all():
            return means
        if not covered.any():
            raise nothing_known()
        start = _between(self._coarse(halve(sums), halve(counts)), means, covered)
        return self.diffuse(start, covered, _COARSE_CYCLES)

    def _coarse_lazily(self, sums: Any, counts: Any) -> Any:
        if math.prod(sums.shape[1:]) <= _SMALL:
            chunks = tuple((n,) for n in sums.shape)
            whole = sums.rechunk(-1).map_blocks(
                self._coarse, counts.rechunk(-1), dtype=sums.dtype, chunks=chunks
            )
            return whole.rechunk(sums.chunks)
        covered = counts[0] > 0
        means = sums / np.maximum(counts, 1)
        coarse = self._coarse_lazily(halve(sums), halve(counts))
        start: Any = np.where(covered, means, double_lazily(coarse, means))
        return lazy.run_pipeline(start, 0, self.pipeline(start.shape[1:], _COARSE_CYCLES), covered)

    def diffuse(
        self,
        image: Array,
        known: Mask,
        cycles: int,
        until: Convergence | None = None,
        report: Callable[[float], object] = lambda done: None,
    ) -> Array:
        """Run cycles on an image, which is modified and returned.

        Known pixels stay, so that a box around the unknown ones is enough. With `until`, there are as many
        cycles as that needs, and `cycles` at most.
        """
        box = self._box(known)
        if box is None:
            return image
        inside, cycle = known[box], self.cycle
        unknown = int(inside.size - np.count_nonzero(inside))
        evolving = EvolvingImage.of_channels(image[(slice(None), *box)], self.prepared.with_fixed(inside))
        with contextlib.closing(evolving.evolution) as evolution:
            for number in range(cycles):
                before: Any = None if until is None else evolving.pixels().copy()
                evolution.advance(cycle)
                report((number + 1) / cycles)
                if until is not None and until.reached(before, evolving.pixels(), unknown):
                    break
        image[(slice(None), *box)] = evolving.image()
        return image

    def pipeline(self, shape: tuple[int, ...], cycles: int) -> Pipeline:
        """Return the cycles of :meth:`diffuse` as stages; the state has the known pixels as "fixed"."""
        return Pipeline.diffuse(shape, self.prepared, (self.cycle,) * cycles)

    def _box(self, known: Mask) -> Window | None:
        """Return a box with all unknown pixels and all that they depend on; None if there are none."""
        problem = self.prepared.problem
        reaches = tensor_reach(problem.model, problem.spacings[-known.ndim :])
        box = []
        for axis, reach in enumerate(reaches):
            others = tuple(other for other in range(known.ndim) if other != axis)
            (places,) = np.nonzero(~known.all(axis=others))
            if not len(places):
                return None
            # Two pixels more, for the cells around an unknown pixel and their corners.
            box.append(slice(max(0, int(places[0]) - reach - 2), int(places[-1]) + 3 + reach))
        return tuple(box)


def _between(coarse: Array, image: Array, known: Mask) -> Array:
    """Return the known pixels of the finer grid, and between them the coarser one, interpolated."""
    fine = double(coarse, image.shape[1:])
    np.copyto(fine, image, where=known)
    return fine


def _distance(a: Array, b: Array, block: int = 2**16) -> float:
    """Return the Euclidean norm of the difference, in blocks, without another image in memory."""
    a, b = a.reshape(-1), b.reshape(-1)
    parts = (
        np.subtract(a[i : i + block], b[i : i + block], dtype=np.float64) for i in range(0, a.size, block)
    )
    return math.sqrt(sum(float(np.square(part, out=part).sum()) for part in parts))
