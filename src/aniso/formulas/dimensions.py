"""The formulas for images and those for volumes under the same names, for engines that serve both.

Entries of tensors come in the order xx, xy, yy and, for volumes, xz, yz, zz; x is the last axis.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from aniso.formulas import cell, volume_cell, volume_weights, weights

#: The two axes of each entry, as negative array axes.
ENTRY_AXES = ((-1, -1), (-1, -2), (-2, -2), (-1, -3), (-2, -3), (-3, -3))


@dataclass(frozen=True)
class Dimension:
    """The formulas for images or volumes; the first modes are the mean gradient, x first."""

    ndim: int
    modes: Callable[..., tuple[Any, ...]]
    fluxes: Callable[..., tuple[Any, ...]]
    coupled_fluxes: Callable[..., tuple[Any, ...]]
    corner_shares: Callable[..., tuple[Any, ...]]
    structure: Callable[..., tuple[Any, ...]]
    scaled: Callable[..., tuple[Any, ...]]

    @property
    def entry_axes(self) -> tuple[tuple[int, int], ...]:
        """The two axes of each entry of a tensor."""
        return ENTRY_AXES[: self.ndim * (self.ndim + 1) // 2]

    def cell_shares(
        self, corners: Iterable[Any], fields: Iterable[Any], *, coupled: bool = False
    ) -> tuple[Any, ...]:
        """Return what cells add to A u at their corners, from values there, tensors and ζ (or ζ_x, …, κ)."""
        fluxes = self.coupled_fluxes if coupled else self.fluxes
        return self.corner_shares(*fluxes(*self.modes(*corners), *fields))


_DIMENSIONS = {
    2: Dimension(2, cell.modes, cell.fluxes, cell.fluxes, cell.corner_shares, cell.structure, weights.scaled),
    3: Dimension(
        3,
        volume_cell.modes,
        volume_cell.fluxes,
        volume_cell.coupled_fluxes,
        volume_cell.corner_shares,
        volume_cell.volume_structure,
        volume_weights.volume_scaled,
    ),
}


def hourglass_weights(entries: tuple[Any, ...], alpha: Any, gamma: Any, beta: Any) -> tuple[Any, ...]:
    """Return ζ for the three entries of an image; ζ_x, ζ_y, ζ_z and κ for the six of a volume."""
    if len(entries) == 3:
        return (weights.hourglass_weight(*entries, alpha, gamma, beta),)
    xx, xy, yy, xz, yz, zz = entries
    return volume_weights.hourglass_weights(xx, xy, yy, xz, yz, zz, alpha, gamma, beta)


def of(ndim: int) -> Dimension:
    """Return the formulas for images (2) or volumes (3)."""
    return _DIMENSIONS[ndim]
