"""What a verb chose by itself and how far it got, as data that prints as a readable summary."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

__all__ = ["Info"]


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


def _worded(info: Info, about: Any) -> str:
    value, unit = getattr(info, about.name), about.metadata["unit"]
    number = f"{value:.4g}" if isinstance(value, float) else str(value)
    return f"{number} {unit}".rstrip()
