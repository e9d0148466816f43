"""What a verb chose and how far it got, as data that prints as a readable summary."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from aniso.models import CoherenceEnhancing, EdgeContinuing, ImageDriven

__all__ = ["BlockInfo", "DenoiseInfo", "EnhanceInfo", "Info", "InpaintInfo", "UpsampleInfo"]

_GREY, _CONTRAST = "grey values", "grey values per unit length"


def described(meaning: str, unit: str = "") -> Any:
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
    """What :func:`aniso.denoise` chose, and the error it expects."""

    noise: float = described("noise level", _GREY)
    model: ImageDriven | None = described("best single diffusion")  # noqa: RUF009
    contrast: float = described("its contrast λ", _CONTRAST)
    time: float = described("its time")
    single_error: float = described("its expected error (root mean square)", _GREY)
    expected_error: float = described("expected error of the result", _GREY)
    candidates: int = described("diffusions computed")
    mixed: int = described("images averaged")

    def steering(self, options: Mapping[str, Any]) -> tuple[ImageDriven, float] | None:
        """Return the best single diffusion."""
        return None if self.model is None else (self.model, self.time)


@dataclass(frozen=True)
class EnhanceInfo(Info):
    """What :func:`aniso.enhance` chose and found."""

    noise: float = described("noise level", _GREY)
    wavelength: float = described("line spacing")
    contrast: float = described("contrast λ", _CONTRAST)
    sigma: float = described("noise scale σ")
    rho: float = described("integration scale ρ")
    time: float = described("time of each diffusion")
    diffusions: int = described("diffusions")
    interrupted: float = described("fraction treated as gaps in lines")
    put_back: float = described("fraction of structure restored")

    def steering(self, options: Mapping[str, Any]) -> tuple[ImageDriven, float] | None:
        """Return the first diffusion."""
        plates = options.get("plates", True)
        return CoherenceEnhancing(self.contrast, self.sigma, self.rho, plates=plates), self.time


@dataclass(frozen=True)
class InpaintInfo(Info):
    """What :func:`aniso.inpaint` chose and how far it got."""

    unknown: int = described("unknown pixels")
    contrast: float = described("contrast λ", _CONTRAST)
    sigma: float = described("noise scale σ")
    rho: float = described("integration scale ρ")
    grids: int = described("grids, from coarse to fine")
    cycles: int = described("cycles on the finest grid")
    steps: int = described("steps on the finest grid")
    residual: float = described("change in the last cycle (of the spread)")
    tolerance: float = described("tolerance")

    @property
    def converged(self) -> bool:
        """Whether the residual came down to the tolerance."""
        return self.residual <= self.tolerance

    def steering(self, options: Mapping[str, Any]) -> tuple[ImageDriven, float] | None:
        """Return the model; it diffuses until nothing changes."""
        return EdgeContinuing(self.contrast, self.sigma, self.rho), math.inf


@dataclass(frozen=True)
class UpsampleInfo(Info):
    """What :func:`aniso.upsample` chose and how well the result agrees with the image."""

    factor: int = described("factor")
    contrast: float = described("contrast λ", _CONTRAST)
    sigma: float = described("noise scale σ")
    rho: float = described("integration scale ρ")
    time: float = described("diffusion time")
    steps: int = described("steps, each with a projection")
    mismatch: float = described("largest error of a block mean", _GREY)

    def steering(self, options: Mapping[str, Any]) -> tuple[ImageDriven, float] | None:
        """Return the diffusion on the finer grid."""
        return EdgeContinuing(self.contrast, self.sigma, self.rho), self.time


@dataclass(frozen=True)
class BlockInfo(Info):
    """What was chosen for an array in blocks, and from what."""

    noise: float = described("noise level", _GREY)
    model: ImageDriven | None = described("diffusion")  # noqa: RUF009
    time: float = described("its time")
    windows: int = described("windows sampled")

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
