"""Inpainting from coarse to fine: grids, starts, and cycles until convergence."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from aniso import checks
from aniso.arrays import Array, Mask
from aniso.checks import Auto
from aniso.evolving import EvolvingImage
from aniso.models import EdgeContinuing
from aniso.schemes import FSI, Cycle
from aniso.settings import Prepared, Settings
from aniso.stencil import DeltaStencil
from aniso.verbs.edge_contrast import choose_scale

#: The meaning of True in a mask.
UNKNOWN = "a pixel is unknown"
# Sharper members of the family leave specks around isolated known pixels.
STENCIL = DeltaStencil(alpha=0.0, gamma=0.0)
# Steps of a cycle; and cycles on each coarse grid.
STEPS, COARSE_CYCLES = 8, 3
# The contrast, as a part of the usual difference between neighbours, and at least as a part of the spread.
SHARE, LEAST = 0.5, 0.005


def edge_continuing(contrast: float, sigma: float | Auto, rho: float | Auto, pixel: float) -> EdgeContinuing:
    """Return the model of inpainting, for pixels of this size."""
    scales = choose_scale("sigma", sigma, 0.7 * pixel), choose_scale("rho", rho, 0.8 * pixel)
    return EdgeContinuing(contrast, *scales, "charbonnier")


@dataclass(frozen=True)
class Course:
    """How a solution was reached."""

    grids: int
    cycles: int
    residual: float


def solver_settings(ndim: int, **options: Any) -> Settings:
    """Return the settings of inpainting, from spacing, engine and threads of the caller."""
    return Settings.check(ndim, stencil=STENCIL, scheme=FSI(1), **options)


def check_stopping(tolerance: float, max_cycles: int | None) -> tuple[float, int | None]:
    """Return the tolerance and the maximum number of cycles, checked."""
    tolerance = checks.within("tolerance", tolerance, 0.0, 1.0, "it is a fraction.", open_low=True)
    if max_cycles is not None:
        max_cycles = checks.whole("max_cycles", max_cycles, "A good choice is max_cycles=100.")
        if max_cycles < 1:
            raise ValueError(
                f"max_cycles must be at least 1, got {max_cycles}. A good choice is max_cycles=100."
            )
    return tolerance, max_cycles


def nothing_known() -> ValueError:
    """Return the error for images without known pixels."""
    return checks.refusal(
        ValueError,
        "all pixels are unknown: there is nothing to fill in from.",
        python="The mask is True where a pixel is unknown; perhaps ~mask was meant.",
        command="A mask marks the unknown pixels; perhaps --invert was meant.",
    )


@dataclass(frozen=True)
class Solver:
    """Inpainting from coarse to fine. Images have the shape (channels, H, W)."""

    prepared: Prepared
    spread: float
    tolerance: float
    max_cycles: int

    def solve(self, image: Array, known: Mask, report: Callable[[float], object]) -> tuple[Array, Course]:
        """Return the converged image."""
        start, grids = self.start(image, known)
        evolving = self._begin(start, known)
        del start
        with contextlib.closing(evolving.evolution):
            cycles, residual = self._converge(evolving, known, report)
        return evolving.image(), Course(grids + 1, cycles, residual)

    def start(self, image: Array, known: Mask, weights: Array | None = None) -> tuple[Array, int]:
        """Return known pixels and interpolated coarser grids between them, and the number of grids.

        `weights` are the numbers of pixels of a finer grid that each pixel represents, if this is not the
        finest one.
        """
        grids = coarser_grids(image, known, weights)
        count = len(grids)
        start, _ = grids.pop()
        while grids:
            start = self.smooth(_interpolate(start, *grids[-1]), grids[-1][1])
            grids.pop()  # free its memory before the finest grid
        return _interpolate(start, image, known), count

    def smooth(self, start: Array, covered: Mask) -> Array:
        """Return a coarse image after a few cycles."""
        evolving = self._begin(start, covered)
        cycle = fsi_cycle(self.prepared.limit)
        with contextlib.closing(evolving.evolution) as evolution:
            for _ in range(COARSE_CYCLES):
                evolution.advance(cycle)
        image: Array = evolving.image()
        return image

    def _begin(self, start: Array, known: Mask) -> EvolvingImage:
        return EvolvingImage.of_channels(start, self.prepared.with_fixed(known))

    def _converge(
        self, evolving: EvolvingImage, known: Mask, report: Callable[[float], object]
    ) -> tuple[int, float]:
        """Run cycles until the image hardly changes; return their number and the last change."""
        cycle, first = fsi_cycle(self.prepared.limit), 0.0
        scale = self.spread * math.sqrt(np.count_nonzero(~known) * len(evolving.pixels()))
        cycles, residual = 0, math.inf
        while cycles < self.max_cycles and residual > self.tolerance:
            before = evolving.pixels().copy()
            evolving.evolution.advance(cycle)
            cycles += 1
            # If all known pixels are equal, the start is constant too.
            residual = _distance(evolving.pixels(), before) / scale if scale > 0 else 0.0
            first = first or residual
            report(_descent(first, residual, self.tolerance))
        return cycles, residual


def spread_of(image: Array, known: Mask) -> float:
    """Return the standard deviation of the known pixels: the root mean square over the channels."""
    return math.sqrt(np.mean([np.var(channel[known], dtype=np.float64) for channel in image]))


def coarser_grids(image: Array, known: Mask, weights: Array | None = None) -> list[tuple[Array, Mask]]:
    """Return means of the known pixels over blocks of 2, 4, 8, … pixels per axis, and where there are any.

    The last grid is known everywhere. Pixels may have weights, shape (1, …).
    """
    counts = known.astype(image.dtype)[np.newaxis] if weights is None else weights
    sums = np.where(known, image * counts, 0) if weights is not None else np.where(known, image, 0)
    grids: list[tuple[Array, Mask]] = []
    while not grids or not grids[-1][1].all():
        for axis in range(1, image.ndim):
            sums, counts = pair_sums(sums, axis), pair_sums(counts, axis)
        grids.append((sums / np.maximum(counts, 1), counts[0] > 0))
    return grids


def pair_sums(array: Array, axis: int) -> Array:
    """Return sums of pairs of neighbours; a last pixel without a neighbour is kept."""
    along = np.moveaxis(array, axis, 0)
    sums = along[::2].copy()
    sums[: len(along) // 2] += along[1::2]
    return np.moveaxis(sums, 0, axis)


def _interpolate(coarse: Array, image: Array, known: Mask) -> Array:
    """Return the known pixels of the finer grid, and between them the coarser one, interpolated linearly."""
    for axis in range(1, image.ndim):
        coarse = refine_axis(coarse, axis, image.shape[axis])
    np.copyto(coarse, image, where=known)
    return coarse


def refine_axis(array: Array, axis: int, length: int) -> Array:
    """Interpolate along an axis: linear between the centres of pixels, constant beyond the last ones."""
    along = np.moveaxis(array, axis, 0)
    fine = np.repeat(0.75 * along, 2, axis=0)
    quarter = 0.25 * along
    fine[2::2] += quarter[:-1]
    fine[1:-1:2] += quarter[1:]
    fine[0] += quarter[0]
    fine[-1] += quarter[-1]
    return np.moveaxis(fine[:length], 0, axis)


def fsi_cycle(limit: float) -> Cycle:
    """Return an FSI cycle of the longest stable steps."""
    (cycle,) = FSI(1).plan(limit * STEPS * (STEPS + 1) / 3, limit)
    return cycle


def _distance(a: Array, b: Array, block: int = 2**16) -> float:
    """Return the Euclidean norm of the difference, in blocks, without another image in memory."""
    a, b = a.reshape(-1), b.reshape(-1)
    parts = (
        np.subtract(a[i : i + block], b[i : i + block], dtype=np.float64) for i in range(0, a.size, block)
    )
    return math.sqrt(sum(float(np.square(part, out=part).sum()) for part in parts))


def _descent(first: float, residual: float, tolerance: float) -> float:
    """Return how far the residual has decreased to the tolerance, on a logarithmic scale."""
    if residual <= tolerance:
        return 1.0
    return max(0.0, math.log(first / residual) / math.log(first / tolerance))
