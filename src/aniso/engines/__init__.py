"""Engines carry out the cycles of a scheme. This is the one place that chooses one."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from aniso.models import FixedTensor, ImageDriven
from aniso.schemes import Cycle
from aniso.stencil import Stencil

# Name → module with a class Evolution.
_ENGINES = {"cpu": "aniso.engines.cpu.evolution", "reference": "aniso.engines.reference"}


@dataclass(frozen=True)
class Problem:
    """All that stays the same while an image evolves."""

    model: ImageDriven | FixedTensor
    stencil: Stencil
    spacings: tuple[float, ...]
    fixed: npt.NDArray[np.bool_] | None = None
    threads: int | None = None


class Evolution(Protocol):
    """An image on its way: shape (channels, H, W)."""

    def __init__(self, image: npt.NDArray[Any], problem: Problem) -> None: ...

    def advance(self, cycle: Cycle) -> None:
        """Carry out one cycle, with the tensor of the image as it is now."""
        ...

    @property
    def image(self) -> npt.NDArray[Any]:
        """The image as it is now; the next cycle may overwrite it."""
        ...

    def close(self) -> None:
        """Let go of threads and the like; the image stays."""
        ...


def chosen(engine: str | None) -> type[Evolution]:
    """The engine of this name, by default the one that suits NumPy arrays."""
    name = "cpu" if engine is None else engine
    if name not in _ENGINES:
        raise ValueError(
            f"there is no engine {engine!r}. The engines are: {', '.join(_ENGINES)}; None follows the array."
        )
    evolution: type[Evolution] = importlib.import_module(_ENGINES[name]).Evolution
    return evolution
