"""A claim is data and a function that measures; the verdict follows from the figures alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from benchmarks import report


class Verdict(StrEnum):
    """What the figures say of a claim."""

    HOLDS = "holds"
    RESTRICTED = "holds with a restriction"
    FAILS = "does not hold"
    UNTESTED = "not testable here"


#: Outside its bounds a needed figure refutes the claim, a restricting one restricts it, a shown one neither.
Role = Literal["needed", "restricting", "shown"]


@dataclass(frozen=True)
class Figure:
    """A measured number, and the bounds within which the claim wants it."""

    name: str
    value: float
    low: float = -math.inf
    high: float = math.inf
    role: Role = "needed"

    @property
    def within(self) -> bool:
        """False for NaN as well."""
        return self.low <= self.value <= self.high

    @property
    def measured(self) -> str:
        """Three digits."""
        return report.figure(self.value)

    @property
    def wanted(self) -> str:
        """The bounds in signs."""
        if self.low == self.high:
            return f"= {self.low:g}"
        if math.isinf(self.low) and math.isinf(self.high):
            return ""
        if math.isinf(self.low):
            return f"≤ {self.high:g}"
        if math.isinf(self.high):
            return f"≥ {self.low:g}"
        return f"{0.5 * (self.low + self.high):g} ± {0.5 * (self.high - self.low):.1g}"


def at_most(name: str, value: Any, bound: float, role: Role = "needed") -> Figure:
    """Wanted small."""
    return Figure(name, float(value), high=bound, role=role)


def at_least(name: str, value: Any, bound: float, role: Role = "needed") -> Figure:
    """Wanted large."""
    return Figure(name, float(value), low=bound, role=role)


def close_to(name: str, value: Any, expected: float, slack: float, role: Role = "needed") -> Figure:
    """Wanted near a number."""
    return Figure(name, float(value), expected - slack, expected + slack, role)


def shown(name: str, value: Any) -> Figure:
    """Wanted to be known."""
    return Figure(name, float(value), role="shown")


@dataclass(frozen=True)
class Table:
    """Further figures, as texts."""

    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


@dataclass(frozen=True)
class Picture:
    """A picture of the figures; `draw` returns a matplotlib figure."""

    name: str
    caption: str
    draw: Callable[[], Any] = lambda: None
    photo: bool = False


@dataclass(frozen=True)
class Finding:
    """What one measurement gave."""

    figures: list[Figure]
    notes: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)
    untestable: str = ""

    @property
    def verdict(self) -> Verdict:
        """Decided by the figures, in this order: refuted, not testable, restricted, confirmed."""
        outside = {figure.role for figure in self.figures if not figure.within}
        if "needed" in outside:
            return Verdict.FAILS
        if self.untestable:
            return Verdict.UNTESTED
        # Without a figure that could have been out of bounds nothing was tested.
        if not any(figure.role == "needed" for figure in self.figures):
            return Verdict.UNTESTED
        return Verdict.RESTRICTED if "restricting" in outside else Verdict.HOLDS

    @property
    def headline(self) -> str:
        """The first figure, and the first that is out of bounds."""
        outside = [figure for figure in self.figures if not figure.within and figure.role != "shown"]
        chosen = dict.fromkeys([*self.figures[:1], *outside[:1]])
        return "; ".join(f"{figure.name}: {figure.measured}" for figure in chosen)


@dataclass(frozen=True)
class Claim:
    """What the paper says, and how it is tested. `measure` takes whether it has to be quick."""

    key: str
    title: str
    says: str
    place: str
    how: str
    measure: Callable[[bool], Finding]
    #: The verdict that earlier runs gave; None where it depends on the machine.
    expected: Verdict | None = Verdict.HOLDS
    #: What a verdict means for this claim.
    meaning: Mapping[Verdict, str] = field(default_factory=dict)
    timed: bool = False

    def surprising(self, verdict: Verdict) -> bool:
        """Whether the verdict is another one than expected."""
        return self.expected is not None and verdict != self.expected
