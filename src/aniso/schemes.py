"""Time stepping schemes as data: how a diffusion time is divided into steps.

A scheme returns cycles. Within a cycle the diffusion tensor is constant, and each step (w, τ) computes

    u⁺ = w(u + τAu) + (1 − w)u⁻

where u⁻ is the image before u. Engines run cycles and do not know schemes.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from aniso import checks

__all__ = ["FED", "FSI", "Cycle", "Explicit", "Scheme", "kinds"]

_LONGEST = 10_000  # steps of a cycle
_MOST = 10_000_000  # steps or cycles in all


@dataclass(frozen=True, slots=True)
class Cycle:
    """Steps (w, τ) that share one diffusion tensor, and the time they cover together."""

    time: float
    steps: tuple[tuple[float, float], ...]


class Scheme(Protocol):
    """The interface of schemes."""

    def plan(self, time: float, limit: float) -> Iterator[Cycle]:
        """Return the cycles that reach exactly this time; `limit` is the largest stable explicit step."""

    def pattern(self, length: int) -> tuple[tuple[float, float], ...]:
        """Return the steps (w, τ over the largest stable step) of a cycle of this length."""


@dataclass(frozen=True, slots=True)
class Explicit:
    """Equal explicit steps, with a new tensor for each.

    Parameters
    ----------
    step : float, optional
        Upper limit of the step size τ; the time is divided into equal steps. By default 0.9 of the largest
        stable step. More than 10 million steps are rejected.

    Examples
    --------
    >>> import aniso
    >>> [cycle.steps for cycle in aniso.Explicit(step=0.4).plan(time=1.0, limit=0.5)]
    [((1.0, 0.3333333333333333),), ((1.0, 0.3333333333333333),), ((1.0, 0.3333333333333333),)]
    """

    step: float | None = None

    def __post_init__(self) -> None:
        if self.step is None:
            return
        step = checks.real("step", self.step, "Use step=None for 0.9 of the largest stable step.")
        if not 0 < step < math.inf:
            raise ValueError(
                f"step must be positive and finite, got {self.step}. Use step=None for 0.9 of the largest "
                "stable step."
            )
        object.__setattr__(self, "step", step)

    def plan(self, time: float, limit: float) -> Iterator[Cycle]:
        """Return one cycle per step."""
        if self.step is not None and self.step > limit * (1 + 1e-12):
            raise checks.make_error(
                ValueError,
                f"a step of {self.step!r} exceeds {float(limit)!r}, the largest stable step for this model, "
                "stencil and spacing: beyond it the image may blow up.",
                python=f"Use step={float(limit)!r} or less, or None.",
                command=f"Use --step {float(limit)!r} or less, or leave it out.",
            )
        if time == 0:
            return iter(())
        longest = 0.9 * limit if self.step is None else self.step
        if time / longest > _MOST:
            remedy = "Give a shorter time. {} also take {}, whose steps are longer."
            raise checks.make_error(
                ValueError,
                f"a time of {time:g} needs {time / longest:.3g} explicit steps of at most {longest:.3g}: "
                f"more than {_MOST:,} would take too long.",
                python=remedy.format("diffuse and scale_space", "scheme=aniso.FED()"),
                command=remedy.format("diffuse and scale-space", "--scheme fed"),
            )
        count = max(1, math.ceil(time / longest - 1e-9))
        return itertools.repeat(Cycle(time / count, ((1.0, time / count),)), count)

    def pattern(self, length: int) -> tuple[tuple[float, float], ...]:
        """Return steps at the limit."""
        return ((1.0, 1.0),) * length


@dataclass(frozen=True, slots=True)
class _EqualCycles:
    """Schemes with equal cycles, whose steps are given by `pattern`."""

    cycles: int = 5

    def __post_init__(self) -> None:
        cycles = checks.whole_within("cycles", self.cycles, 1, _MOST, "A good choice is cycles=5.")
        object.__setattr__(self, "cycles", cycles)

    def plan(self, time: float, limit: float) -> Iterator[Cycle]:
        """Return equal cycles, which end exactly at this time."""
        length, step = _cycle_length(time, limit, self.cycles)
        steps = tuple((weight, step * factor) for weight, factor in self.pattern(length))
        return itertools.repeat(Cycle(time / self.cycles, steps), self.cycles if time > 0 else 0)

    def pattern(self, length: int) -> tuple[tuple[float, float], ...]:
        """Return the steps (w, τ over the largest stable step) of a cycle."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class FED(_EqualCycles):
    """Fast explicit diffusion: cycles of explicit steps, some far beyond the limit, but stable together.

    A cycle of n steps covers a time of about n²/3 steps at the limit. The steps are taken in Leja order,
    which keeps rounding errors small; only the ends of cycles are meaningful.

    Parameters
    ----------
    cycles : int
        Number of cycles, with one tensor each; more cycles are more accurate.

    Examples
    --------
    >>> import aniso
    >>> [len(cycle.steps) for cycle in aniso.FED(2).plan(time=20.0, limit=0.5)]
    [8, 8]
    """

    def pattern(self, length: int) -> tuple[tuple[float, float], ...]:
        """Return steps of unequal length, about half of them beyond the limit, in Leja order."""
        return tuple((1.0, factor) for factor in _fed_factors(length))


@dataclass(frozen=True, slots=True)
class FSI(_EqualCycles):
    """Fast semi-iterative diffusion: cycles of equal steps, each extrapolated from the one before.

    At the end of a cycle it reaches the same time as :class:`FED`, and it is meaningful in between, which
    makes it the best scheme for inpainting.

    Parameters
    ----------
    cycles : int
        Number of cycles, with one tensor each; more cycles are more accurate.

    Examples
    --------
    >>> import aniso
    >>> cycle = next(aniso.FSI(2).plan(time=20.0, limit=0.5))
    >>> len(cycle.steps), cycle.time
    (8, 10.0)
    """

    def pattern(self, length: int) -> tuple[tuple[float, float], ...]:
        """Return steps at the limit, with growing extrapolation."""
        return tuple(((4 * k + 2) / (2 * k + 3), 1.0) for k in range(length))


def kinds() -> dict[str, type[Explicit | FED | FSI]]:
    """Return the schemes by the names that they have on the command line.

    Returns
    -------
    dict
        Name → class.

    Examples
    --------
    >>> from aniso import schemes
    >>> list(schemes.kinds())
    ['explicit', 'fed', 'fsi']
    """
    return {kind.__name__.lower(): kind for kind in (Explicit, FED, FSI)}


def _cycle_length(time: float, limit: float, cycles: int) -> tuple[int, float]:
    """Return the steps per cycle, and the step at the limit, reduced so that the cycles end at the time."""
    if math.isinf(limit) or time == 0:
        return 1, 1.5 * time / cycles
    ratio = 3 * time / cycles / limit
    needed = math.sqrt(ratio + 0.25) - 0.5 - 1e-8
    if needed > _LONGEST:
        raise ValueError(
            f"a time of {time:g} needs cycles of {needed:.3g} steps, got {cycles} of them: rounding errors "
            f"allow {_LONGEST}. Take more cycles, or a shorter time."
        )
    length = max(1, math.ceil(needed))
    return length, limit * ratio / (length * (length + 1))


@functools.lru_cache(maxsize=64)
def _fed_factors(length: int) -> tuple[float, ...]:
    """Return the steps of a cycle over the largest stable one, in Leja order."""
    k = np.arange(length)
    factors = 0.5 / np.cos(np.pi * (2 * k + 1) / (4 * length + 2)) ** 2
    return tuple(float(factor) for factor in factors[_leja_order(1 / factors)])


def _leja_order(points: np.ndarray) -> list[int]:
    """Return an order with each point as far as possible (by product of distances) from those before."""
    order = [int(np.argmax(points))]
    log_distance = np.zeros(len(points))
    with np.errstate(divide="ignore"):
        while len(order) < len(points):
            log_distance += np.log(abs(points - points[order[-1]]))
            order.append(int(np.argmax(log_distance)))
    return order
