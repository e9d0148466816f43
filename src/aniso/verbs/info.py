"""What a verb chose and how far it got, as data that prints as a readable summary."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from aniso.models import EdgeContinuing, ImageDriven

__all__ = ["BlockInfo", "DenoiseInfo", "Info", "InpaintInfo", "UpsampleInfo"]

_GREY, _CONTRAST = "grey values", "grey values per unit length"


def describe(meaning: str, unit: str = "") -> Any:
    """Return a field of an :class:`Info`, with the words in which it is printed."""
    return field(metadata={"meaning": meaning, "unit": unit})


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
class DenoiseInfo(Info):
    """The values that :func:`aniso.denoise` used, and the error it expects."""

    noise: float = describe("noise level", _GREY)
    model: ImageDriven | None = describe("best single diffusion")  # noqa: RUF009
    contrast: float = describe("its contrast λ", _CONTRAST)
    time: float = describe("its time")
    single_error: float = describe("its expected error (root mean square)", _GREY)
    expected_error: float = describe("expected error of the result", _GREY)
    candidates: int = describe("diffusions computed")
    mixed: int = describe("images averaged")

    def steering(self, options: Mapping[str, Any]) -> tuple[ImageDriven, float] | None:
        """Return the best single diffusion."""
        return None if self.model is None else (self.model, self.time)


@dataclass(frozen=True)
class InpaintInfo(Info):
    """The values that :func:`aniso.inpaint` used, and the residual it reached."""

    unknown: int = describe("unknown pixels")
    contrast: float = describe("contrast λ", _CONTRAST)
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
    contrast: float = describe("contrast λ", _CONTRAST)
    sigma: float = describe("noise scale σ")
    rho: float = describe("integration scale ρ")
    time: float = describe("diffusion time")
    steps: int = describe("steps, each with a projection")
    mismatch: float = describe("largest error of a block mean", _GREY)

    def steering(self, options: Mapping[str, Any]) -> tuple[ImageDriven, float] | None:
        """Return the diffusion on the finer grid."""
        return EdgeContinuing(self.contrast, self.sigma, self.rho), self.time


@dataclass(frozen=True)
class BlockInfo(Info):
    """The values that were chosen for an array in blocks."""

    noise: float = describe("noise level", _GREY)
    model: ImageDriven | None = describe("diffusion")  # noqa: RUF009
    time: float = describe("its time")
    windows: int = describe("windows sampled")

    def steering(self, options: Mapping[str, Any]) -> tuple[ImageDriven, float] | None:
        """Return the diffusion of all blocks."""
        return None if self.model is None else (self.model, self.time)


def summary_rows(infos: Sequence[Info]) -> list[tuple[str, str]]:
    """Return the meaning and the value of each field; for several infos, the range of values."""
    rows = []
    for about in fields(infos[0]):
        words = _value_range([getattr(info, about.name) for info in infos])
        unit = "" if words == "none" else about.metadata["unit"]
        rows.append((about.metadata["meaning"], f"{words} {unit}".rstrip()))
    return rows


def format_value(value: Any) -> str:
    """Format a value: numbers with four digits, dataclasses without their module.

    Examples
    --------
    >>> from aniso import EdgeEnhancing
    >>> from aniso.verbs.info import format_value
    >>> format_value(EdgeEnhancing(contrast=2.71828))
    'EdgeEnhancing(contrast=2.718, sigma=1, diffusivity=weickert)'
    """
    if isinstance(value, float):
        return f"{value:.4g}" if math.isfinite(value) else "none"
    if is_dataclass(value) and not isinstance(value, type):
        given = ((each.name, getattr(value, each.name)) for each in fields(value))
        inner = ", ".join(f"{name}={format_value(entry)}" for name, entry in given if entry is not None)
        return f"{type(value).__name__}({inner})"
    return "none" if value is None else str(value)


def _value_range(values: Sequence[Any]) -> str:
    words = [format_value(value) for value in values]
    if len(set(words)) == 1:
        return words[0]
    if all(isinstance(value, int | float) for value in values):
        return f"{format_value(min(values))} to {format_value(max(values))}"
    return "differs from page to page"
