"""Inpainting from coarse to fine: grids, starts, and cycles until the image is at rest."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aniso.checks import Auto
from aniso.evolve import (
    EngineName,
    Image,
    Journey,
)
from aniso.models import EdgeContinuing
from aniso.schemes import FSI, Cycle
from aniso.stencil import DeltaStencil
from aniso.verbs.edge_contrast import (
    given_scale,
)

Mask = npt.NDArray[np.bool_]


# Sharper members of the family leave specks around lone known pixels.
STENCIL = DeltaStencil(alpha=0.0, gamma=0.0)


# Steps of a cycle, between two looks at the image; and cycles on each coarse grid.
STEPS, COARSE_CYCLES = 8, 3


# Of what neighbours usually differ by, this is taken as contrast; it is at least so much of their spread.
SHARE, LEAST = 0.5, 0.005


def edge_continuing(contrast: float, sigma: float | Auto, rho: float | Auto, pixel: float) -> EdgeContinuing:
    """The diffusion that fills in, for pixels of this size."""
    scales = given_scale("sigma", sigma, 0.7 * pixel), given_scale("rho", rho, 0.8 * pixel)
    return EdgeContinuing(contrast, *scales, "charbonnier")


@dataclass(frozen=True)
class Course:
    """How a solution was reached."""

    grids: int
    cycles: int
    residual: float


@dataclass(frozen=True)
class Solver:
    """Images come channels first, shape (channels, H, W)."""

    model: EdgeContinuing
    spacings: tuple[float, ...]
    engine: EngineName | None
    threads: int | None
    spread: float
    tolerance: float
    max_cycles: int

    def solution(self, image: Image, known: Mask, report: Callable[[float], object]) -> tuple[Image, Course]:
        """The image at rest, found from coarse to fine."""
        start, grids = self.start(image, known)
        journey = self._journey(start, known)
        del start
        with contextlib.closing(journey.evolution):
            cycles, residual = self._come_to_rest(journey, known, report)
        return journey.image(), Course(grids + 1, cycles, residual)

    def start(self, image: Image, known: Mask, weights: Image | None = None) -> tuple[Image, int]:
        """Known pixels, and between them what coarser grids say; how many there are.

        `weights` say how many pixels of a finer grid each pixel stands for, if this is not the finest one.
        """
        grids = coarser_grids(image, known, weights)
        count = len(grids)
        start, _ = grids.pop()
        while grids:
            start = self.soon_at_rest(_on_finer_grid(start, *grids[-1]), grids[-1][1])
            grids.pop()  # what is not needed any more should not be in memory with the finest grid
        return _on_finer_grid(start, image, known), count

    def soon_at_rest(self, start: Image, covered: Mask) -> Image:
        """A coarse image after a few cycles."""
        journey = self._journey(start, covered)
        cycle = fsi_cycle(journey.limit)
        with contextlib.closing(journey.evolution) as evolution:
            for _ in range(COARSE_CYCLES):
                evolution.advance(cycle)
        return journey.image()

    def _journey(self, start: Image, known: Mask) -> Journey:
        return Journey.of(
            start, self.model, STENCIL, FSI(1), self.spacings, 0, known, self.engine, self.threads
        )

    def _come_to_rest(
        self, journey: Journey, known: Mask, report: Callable[[float], object]
    ) -> tuple[int, float]:
        """Cycles until the image changes no more, and by how much it changed in the last one."""
        cycle, first = fsi_cycle(journey.limit), 0.0
        scale = self.spread * math.sqrt(np.count_nonzero(~known) * len(journey.pixels()))
        cycles, residual = 0, math.inf
        while cycles < self.max_cycles and residual > self.tolerance:
            before = journey.pixels().copy()
            journey.evolution.advance(cycle)
            cycles += 1
            # If all known pixels agree, so does the start.
            residual = _distance(journey.pixels(), before) / scale if scale > 0 else 0.0
            first = first or residual
            report(_descent(first, residual, self.tolerance))
        return cycles, residual


def spread_of(image: Image, known: Mask) -> float:
    """Standard deviation of the known pixels, mean over the channels."""
    return math.sqrt(np.mean([np.var(channel[known], dtype=np.float64) for channel in image]))


def coarser_grids(image: Image, known: Mask, weights: Image | None = None) -> list[tuple[Image, Mask]]:
    """Means of the known pixels over blocks of 2, 4, 8, … pixels per axis, and where there are any.

    The last grid is known everywhere. Pixels may have weights, shape (1, …).
    """
    counts = known.astype(image.dtype)[np.newaxis] if weights is None else weights
    sums = np.where(known, image * counts, 0) if weights is not None else np.where(known, image, 0)
    grids: list[tuple[Image, Mask]] = []
    while not grids or not grids[-1][1].all():
        for axis in range(1, image.ndim):
            sums, counts = pair_sums(sums, axis), pair_sums(counts, axis)
        grids.append((sums / np.maximum(counts, 1), counts[0] > 0))
    return grids


def pair_sums(array: Image, axis: int) -> Image:
    """Sums of two neighbours each; a last one without a neighbour stays alone."""
    along = np.moveaxis(array, axis, 0)
    sums = along[::2].copy()
    sums[: len(along) // 2] += along[1::2]
    return np.moveaxis(sums, 0, axis)


def _on_finer_grid(coarse: Image, image: Image, known: Mask) -> Image:
    """Known pixels of the finer grid, and between them the coarser one, interpolated linearly."""
    for axis in range(1, image.ndim):
        coarse = twice_as_fine(coarse, axis, image.shape[axis])
    np.copyto(coarse, image, where=known)
    return coarse


def twice_as_fine(array: Image, axis: int, length: int) -> Image:
    """Linear between the centres of pixels, constant beyond the last ones."""
    along = np.moveaxis(array, axis, 0)
    fine = np.repeat(0.75 * along, 2, axis=0)
    quarter = 0.25 * along
    fine[2::2] += quarter[:-1]
    fine[1:-1:2] += quarter[1:]
    fine[0] += quarter[0]
    fine[-1] += quarter[-1]
    return np.moveaxis(fine[:length], 0, axis)


def fsi_cycle(limit: float) -> Cycle:
    """An FSI cycle of the longest stable steps."""
    (cycle,) = FSI(1).plan(limit * STEPS * (STEPS + 1) / 3, limit)
    return cycle


def _distance(a: Image, b: Image, block: int = 2**16) -> float:
    """Euclidean norm of the difference, in blocks: without another image in memory."""
    a, b = a.reshape(-1), b.reshape(-1)
    parts = (
        np.subtract(a[i : i + block], b[i : i + block], dtype=np.float64) for i in range(0, a.size, block)
    )
    return math.sqrt(sum(float(np.square(part, out=part).sum()) for part in parts))


def _descent(first: float, residual: float, tolerance: float) -> float:
    """How far the residual has come from its first value to the tolerance, on a logarithmic scale."""
    if residual <= tolerance:
        return 1.0
    return max(0.0, math.log(first / residual) / math.log(first / tolerance))
