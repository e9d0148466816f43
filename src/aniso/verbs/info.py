"""The values that a verb used and reached, as data that prints as a readable summary."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from aniso.models import ImageDriven

__all__ = ["BlockInfo", "DenoiseInfo", "EnhanceInfo", "Info", "InpaintInfo", "UpsampleInfo"]


def describe(meaning: str, unit: str = "") -> Any:
    """Return a field of an :class:`Info` with its printed name."""
    return field(metadata={"meaning": meaning, "unit": unit})


@dataclass(frozen=True)
class Info:
    """The base class of what the verbs return with ``return_info=True``."""

    def __str__(self) -> str:
        """Return one line for each value."""
        rows = [(about.metadata["meaning"], _format(self, about)) for about in fields(self)]
        width = max(len(meaning) for meaning, _ in rows)
        return "\n".join(f"{meaning:<{width}}  {value}" for meaning, value in rows)


@dataclass(frozen=True)
class DenoiseInfo(Info):
    """The values that :func:`aniso.denoise` used, and the error it expects."""

    noise: float = describe("noise level", "grey values")
    model: ImageDriven | None = describe("best single diffusion")  # noqa: RUF009
    contrast: float = describe("its contrast λ", "grey values per unit length")
    time: float = describe("its time")
    single_error: float = describe("its expected error (root mean square)", "grey values")
    expected_error: float = describe("expected error of the result", "grey values")
    candidates: int = describe("candidate diffusions")
    mixed: int = describe("mixed images")


@dataclass(frozen=True)
class EnhanceInfo(Info):
    """The values that :func:`aniso.enhance` used."""

    noise: float = describe("noise level", "grey values")
    wavelength: float = describe("distance between lines")
    contrast: float = describe("contrast λ", "grey values per unit length")
    sigma: float = describe("noise scale σ")
    rho: float = describe("integration scale ρ")
    time: float = describe("time of a diffusion")
    diffusions: int = describe("diffusions")
    interrupted: float = describe("share of gaps in lines")
    put_back: float = describe("share of structure put back")


@dataclass(frozen=True)
class InpaintInfo(Info):
    """The values that :func:`aniso.inpaint` used, and the residual it reached."""

    unknown: int = describe("unknown pixels")
    contrast: float = describe("contrast λ", "grey values per unit length")
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


@dataclass(frozen=True)
class UpsampleInfo(Info):
    """The values that :func:`aniso.upsample` used, and the mismatch with the image."""

    factor: int = describe("factor")
    contrast: float = describe("contrast λ", "grey values per unit length")
    sigma: float = describe("noise scale σ")
    rho: float = describe("integration scale ρ")
    time: float = describe("diffusion time")
    steps: int = describe("steps, each with a projection")
    mismatch: float = describe("largest error of a block mean", "grey values")


@dataclass(frozen=True)
class BlockInfo(Info):
    """The values that were chosen for an array in blocks."""

    noise: float = describe("noise level", "grey values")
    model: ImageDriven | None = describe("diffusion")  # noqa: RUF009
    time: float = describe("its time")
    windows: int = describe("sampled windows")


def _format(info: Info, about: Any) -> str:
    value, unit = getattr(info, about.name), about.metadata["unit"]
    number = f"{value:.4g}" if isinstance(value, float) else str(value)
    return f"{number} {unit}".rstrip()
