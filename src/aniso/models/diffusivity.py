"""Diffusivities as the models take them: by name, or as a function of the user."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from aniso.formulas import diffusivities
from aniso.formulas.diffusivities import DIFFUSIVITIES, Diffusivity
from aniso.parameters import About


@dataclass(frozen=True)
class SecantDecline:
    """ψ of a diffusivity given by the user."""

    diffusivity: Callable[[Any], Any]

    def __call__(self, r: Any) -> Any:
        """Compute ψ(r)."""
        return diffusivities.secant_decline(r, self.diffusivity)


@dataclass(frozen=True)
class SecantSlope:
    """The slope of a diffusivity given by the user."""

    diffusivity: Callable[[Any], Any]

    def __call__(self, s: Any, r: Any) -> Any:
        """Compute the slope between r and s."""
        return diffusivities.secant_slope(s, r, self.diffusivity)


def forms(diffusivity: str | Callable[[Any], Any]) -> Diffusivity:
    """Return the three forms of a diffusivity that is given by name or as a function."""
    if isinstance(diffusivity, str):
        return DIFFUSIVITIES[diffusivity]
    # One that has ψ itself does not need the secant, which loses digits near 0.
    decline = getattr(diffusivity, "decline", None) or SecantDecline(diffusivity)
    return Diffusivity(diffusivity, decline, SecantSlope(diffusivity))


def check_diffusivity(diffusivity: Any) -> None:
    """Raise if this is neither a name nor a function g(r) that keeps diffusion stable."""
    if isinstance(diffusivity, str) and diffusivity in DIFFUSIVITIES:
        return
    if not callable(diffusivity):
        names = ", ".join(f'"{name}"' for name in DIFFUSIVITIES)
        raise ValueError(
            f"diffusivity must be one of {names} or a function g(r), got {diffusivity!r}: it decides how "
            "fast diffusion falls with r = |∇u|²/contrast²."
        )
    r = np.array([0.0, 1e-3, 1.0, 1e3])
    try:
        with np.errstate(all="ignore"):
            g = np.asarray(diffusivity(r), dtype=np.float64)
    except Exception as error:
        raise ValueError(
            f"diffusivity(r) must work on arrays, but failed for r = {r} with {type(error).__name__}: "
            f"{error}. Use numpy.exp and the like in place of math.exp."
        ) from error
    # A diffusivity that falls fast may underflow to 0.
    if g.shape != r.shape or not ((g >= 0) & (g <= 1)).all() or g[0] != 1:
        raise ValueError(
            f"diffusivity(r) must be 1 at r = 0 and lie in (0, 1] elsewhere, got {g} for r = {r}: outside "
            "that range the step size limit does not hold."
        )


DIFFUSIVITY = About(
    symbol="g",
    choices=tuple(DIFFUSIVITIES),
    meaning="how fast diffusion across an edge falls with the contrast",
)
