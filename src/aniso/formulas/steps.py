"""One step in time."""

from __future__ import annotations

from typing import Any


def explicit_step(u: Any, rate: Any, tau: Any) -> Any:
    """U + τAu, where rate is Au."""
    return u + tau * rate


def extrapolated_step(u: Any, previous: Any, rate: Any, weight: Any, tau: Any) -> Any:
    """w(u + τAu) + (1 − w)u⁻, where rate is Au and previous is u⁻."""
    return weight * (u + tau * rate) + (1 - weight) * previous
