"""What a verb chose and how far it got, as data that prints as a readable summary."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aniso.models import EdgeContinuing, ImageDriven
from aniso.verbs.plan import CONTRAST_UNIT, GREY, describe, summary_rows

__all__ = ["Info", "InpaintInfo", "UpsampleInfo"]


@dataclass(frozen=True)
class Info(ABC):
    """The common part of what the verbs return with ``return_info=True``."""

    def __str__(self) -> str:
        """Return one line for each value."""
        rows = summary_rows([self])
        width = max(len(meaning) for meaning, _ in rows)
        return "\n".join(f"{meaning:<{width}}  {value}" for meaning, value in rows)

    @abstractmethod
    def steering(self, options: Mapping[str, Any]) -> tuple[ImageDriven, float] | None:
        """Return the model that steered the diffusion and the diffusion time; None if nothing was diffused.

        `options` are those with which the verb was called.
        """


@dataclass(frozen=True)
class InpaintInfo(Info):
    """The values that :func:`aniso.inpaint` used, and the residual it reached."""

    unknown: int = describe("unknown pixels")
    contrast: float = describe("contrast λ", CONTRAST_UNIT)
    sigma: float = describe("noise scale σ")
    rho: float = describe("integration scale ρ")
    grids: int = describe("grids, from coarse to fine")
    cycles: int = describe("cycles on the finest grid")
    steps: int = describe("steps on the finest grid")
    residual: float = describe("change in the last cycle (of the spread)")
    tolerance: float = describe("tolerance")

    @property
    def converged(self) -> bool:
        """Whether the residual reached the tolerance."""
        return self.residual <= self.tolerance

    def steering(self, options: Mapping[str, Any]) -> tuple[ImageDriven, float] | None:
        """Return the model; it diffuses until nothing changes."""
        return EdgeContinuing(self.contrast, self.sigma, self.rho), math.inf


@dataclass(frozen=True)
class UpsampleInfo(Info):
    """The values that :func:`aniso.upsample` used, and the mismatch with the image."""

    factor: int = describe("factor")
    contrast: float = describe("contrast λ", CONTRAST_UNIT)
    sigma: float = describe("noise scale σ")
    rho: float = describe("integration scale ρ")
    time: float = describe("diffusion time")
    steps: int = describe("steps, each with a projection")
    mismatch: float = describe("largest error of a block mean", GREY)

    def steering(self, options: Mapping[str, Any]) -> tuple[ImageDriven, float] | None:
        """Return the diffusion on the finer grid."""
        return EdgeContinuing(self.contrast, self.sigma, self.rho), self.time
