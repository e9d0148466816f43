"""Kernels as sums of folds: sums and differences of pixels that are mirror images of each other.

The four orientations of an even or odd kernel (as it is, mirrored along x, transposed, both) differ in the
signs with which few short sums of folds are added; see :mod:`aniso.engines.cpu.net_kernels`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Table = npt.NDArray[np.int64]
Field = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Folds:
    """The folds of a square with `radius` pixels to each side of its centre.

    They are ordered by what kernels take together: even along both axes, odd along both, odd along x, odd
    along y. Pairs of transposed folds are replaced by their sums and differences.
    """

    radius: int
    kernels: int

    @property
    def _both_even(self) -> list[tuple[int, int]]:
        upper = [(a, b) for a in range(self.radius + 1) for b in range(a + 1, self.radius + 1)]
        return [*((a, a) for a in range(self.radius + 1)), *upper, *((b, a) for a, b in upper)]

    @property
    def _both_odd(self) -> list[tuple[int, int]]:
        return [(a, b) for a, b in self._both_even if a > 0 and b > 0]

    @property
    def _odd_along_x(self) -> list[tuple[int, int]]:
        return [(a, b) for a in range(self.radius + 1) for b in range(1, self.radius + 1)]

    @cached_property
    def table(self) -> Table:
        """For each fold the row of sums or differences, whether it is odd along x, and the offset along x.

        Sums of the rows at the offsets 0, 1, … are rows radius, radius + 1, …, differences the others.
        """
        r = self.radius
        rows = [(r + y, 0, x) for y, x in self._both_even] + [(r - y, 1, x) for y, x in self._both_odd]
        rows += [(r + y, 1, x) for y, x in self._odd_along_x] + [(r - x, 0, y) for y, x in self._odd_along_x]
        return np.array(rows, np.int64)

    @cached_property
    def pairs(self) -> Table:
        """The numbers of transposed folds."""
        found = []
        first = 0
        for offsets in (self._both_even, self._both_odd):
            where = {offset: first + number for number, offset in enumerate(offsets)}
            found += [(where[a, b], where[b, a]) for a, b in offsets if a < b]
            first += len(offsets)
        return np.array(found, np.int64).reshape(-1, 2)

    @property
    def _groups(self) -> list[int]:
        """How many folds each part takes: four of even kernels, two of odd ones."""
        r = self.radius
        inner, outer = r * (r - 1) // 2, r * (r + 1) // 2
        return [r + 1 + outer, outer, r + inner, inner, 2 * outer, 2 * outer]

    @cached_property
    def forward_spans(self) -> Table:
        """The first fold and the number of folds, for each part of each kernel; odd kernels come first."""
        counts = self._groups
        first = np.cumsum([0, *counts[:-1]])
        spans = np.stack([first, counts], axis=1)
        half = self.kernels // 2
        return np.concatenate([np.tile(spans[[5, 4, 5, 4]], (half, 1)), np.tile(spans[:4], (half, 1))])

    @cached_property
    def backward_spans(self) -> Table:
        """The first flux and the number of fluxes, for each fold."""
        half = self.kernels // 2
        spans = [(4 * half, half), (5 * half, half), (6 * half, half), (7 * half, half)]
        spans += [(2 * half, 2 * half), (0, 2 * half)]
        return np.repeat(np.array(spans, np.int64), self._groups, axis=0)

    def numbers(self, kernels: Field) -> tuple[Field, Field]:
        """Return the weights of folds in kernels (count, side, side), and those of fluxes in folds.

        The first half of the kernels are odd, the others even.
        """
        r = self.radius
        quadrant, mirrored = kernels[:, r:, r:], kernels[:, r:, r::-1]
        even, odd = 0.5 * (quadrant + mirrored), 0.5 * (quadrant - mirrored)
        half = self.kernels // 2
        parts: list[list[Field]] = []
        for k in range(self.kernels):
            if k < half:
                along_y = np.array([even[k, x, y] for y, x in self._odd_along_x])  # transposed
                along_x = np.array([odd[k, y, x] for y, x in self._odd_along_x])
                parts.append([along_y, along_x, along_x, along_y])
            else:
                parts.append([*_symmetric(even[k], 0, r), *_symmetric(odd[k], 1, r)])
        forward = np.concatenate([part for each in parts for part in each])
        # Transposed: fold by fold, the weights of the kernels that take it.
        groups = [[parts[k][part] for k in range(half, self.kernels)] for part in range(4)]
        for first, second in ((1, 3), (0, 2)):  # along x, along y
            groups.append([parts[k][part] for part in (first, second) for k in range(half)])
        backward = np.concatenate([np.stack(group, axis=1).ravel() for group in groups])
        return forward, backward


def _symmetric(quadrant: Field, least: int, radius: int) -> tuple[Field, Field]:
    """Return the weights of sums and of differences of transposed folds."""
    diagonal = [quadrant[a, a] for a in range(least, radius + 1)]
    upper = [(a, b) for a in range(least, radius + 1) for b in range(a + 1, radius + 1)]
    sums = [0.5 * (quadrant[a, b] + quadrant[b, a]) for a, b in upper]
    differences = [0.5 * (quadrant[a, b] - quadrant[b, a]) for a, b in upper]
    return np.array(diagonal + sums), np.array(differences)
