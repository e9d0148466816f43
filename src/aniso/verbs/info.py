"""What a verb chose by itself and how far it got, as data that prints as a readable summary."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from aniso.models import ImageDriven

__all__ = ["BlockInfo", "DenoiseInfo", "EnhanceInfo", "Info", "InpaintInfo", "UpsampleInfo"]


def told(meaning: str, unit: str = "") -> Any:
    """A field of an :class:`Info`, with the words in which it is printed."""
    return field(metadata={"meaning": meaning, "unit": unit})


@dataclass(frozen=True)
class Info:
    """The common part of what the verbs return with ``return_info=True``."""

    def __str__(self) -> str:
        """One line for each figure."""
        rows = [(about.metadata["meaning"], _worded(self, about)) for about in fields(self)]
        width = max(len(meaning) for meaning, _ in rows)
        return "\n".join(f"{meaning:<{width}}  {value}" for meaning, value in rows)


@dataclass(frozen=True)
class DenoiseInfo(Info):
    """What :func:`aniso.denoise` chose, and the error it expects."""

    noise: float = told("noise level", "grey values")
    model: ImageDriven | None = told("best single diffusion")  # noqa: RUF009
    contrast: float = told("its contrast λ", "grey values per unit length")
    time: float = told("its time")
    single_error: float = told("its expected error (root mean square)", "grey values")
    expected_error: float = told("expected error of the result", "grey values")
    candidates: int = told("diffusions that were tried")
    mixed: int = told("images that were mixed")


@dataclass(frozen=True)
class EnhanceInfo(Info):
    """What :func:`aniso.enhance` chose and found."""

    noise: float = told("noise level", "grey values")
    wavelength: float = told("distance of the lines")
    contrast: float = told("contrast λ", "grey values per unit length")
    sigma: float = told("noise scale σ")
    rho: float = told("integration scale ρ")
    time: float = told("time of a diffusion")
    diffusions: int = told("diffusions")
    interrupted: float = told("share taken for gaps in lines")
    put_back: float = told("share of structure put back")


@dataclass(frozen=True)
class InpaintInfo(Info):
    """What :func:`aniso.inpaint` chose and how far it got."""

    unknown: int = told("unknown pixels")
    contrast: float = told("contrast λ", "grey values per unit length")
    sigma: float = told("noise scale σ")
    rho: float = told("integration scale ρ")
    grids: int = told("grids, from coarse to fine")
    cycles: int = told("cycles on the finest grid")
    steps: int = told("steps on the finest grid")
    residual: float = told("change in the last cycle (of the spread)")
    tolerance: float = told("change asked for")

    @property
    def converged(self) -> bool:
        """Whether the residual came down to the tolerance."""
        return self.residual <= self.tolerance


@dataclass(frozen=True)
class UpsampleInfo(Info):
    """What :func:`aniso.upsample` chose and how well the result agrees with the image."""

    factor: int = told("factor")
    contrast: float = told("contrast λ", "grey values per unit length")
    sigma: float = told("noise scale σ")
    rho: float = told("integration scale ρ")
    time: float = told("diffusion time")
    steps: int = told("steps, each with a projection")
    mismatch: float = told("largest error of a block mean", "grey values")


@dataclass(frozen=True)
class BlockInfo(Info):
    """What was chosen for an array in blocks, and from what."""

    noise: float = told("noise level", "grey values")
    model: ImageDriven | None = told("diffusion")  # noqa: RUF009
    time: float = told("its time")
    windows: int = told("windows that were looked at")


def _worded(info: Info, about: Any) -> str:
    value, unit = getattr(info, about.name), about.metadata["unit"]
    number = f"{value:.4g}" if isinstance(value, float) else str(value)
    return f"{number} {unit}".rstrip()
