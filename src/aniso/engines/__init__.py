"""Engines carry out the cycles of a scheme. This is the one place that chooses one."""

from __future__ import annotations

import functools
import importlib
import importlib.util
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from aniso.engines.cpu.threads import uninterrupted
from aniso.models import FixedTensor, ImageDriven
from aniso.schemes import Cycle
from aniso.stencil import Stencil

# Name → module with a class Evolution.
_ENGINES = {
    "cpu": "aniso.engines.cpu.evolution",
    "reference": "aniso.engines.reference",
    "torch": "aniso.engines.torch.evolution",
}


@dataclass(frozen=True)
class Problem:
    """Everything that stays the same while an image evolves, and the name of the engine."""

    model: ImageDriven | FixedTensor
    stencil: Stencil
    spacings: tuple[float, ...]
    fixed: npt.NDArray[np.bool_] | None = None
    threads: int | None = None
    engine: str = "cpu"

    def start(self, image: Any) -> Evolution:
        """Return the evolution of an array or a tensor, in the precision that the model needs."""
        return chosen(self.engine)(self.precise(image), self)

    def precise(self, start: Any) -> Any:
        """Return an array or a tensor in the precision that the model needs."""
        if not isinstance(self.model, ImageDriven) or not self.model.needs_doubles:
            return start
        return start.astype(np.float64) if isinstance(start, np.ndarray) else start.double()


class Evolution(Protocol):
    """An evolving image: an array (channels, H, W), or for PyTorch a tensor (images, channels, H, W).

    A volume has one axis more, (channels, D, H, W).
    """

    def __init__(self, image: Any, problem: Problem) -> None: ...

    def advance(self, cycle: Cycle) -> None:
        """Carry out one cycle, with the tensor of the image as it is now."""
        ...

    @property
    def image(self) -> Any:
        """The image as it is now; the next cycle may overwrite it."""
        ...

    def close(self) -> None:
        """Let go of threads and the like; the image stays."""
        ...


def check_name(engine: Any) -> None:
    """Reject an engine that does not exist or is not installed."""
    if engine is not None and not (isinstance(engine, str) and engine in _ENGINES):
        raise ValueError(
            f"there is no engine {engine!r}. The engines are: {', '.join(_ENGINES)}; None follows the array."
        )
    if engine == "torch" and importlib.util.find_spec("torch") is None:
        raise ImportError('the torch engine needs PyTorch. Install it with: pip install "aniso[torch]".')


@functools.cache
@uninterrupted  # Numba and PyTorch cannot be imported again once their import was interrupted
def chosen(engine: str) -> type[Evolution]:
    """The engine of this name."""
    evolution: type[Evolution] = importlib.import_module(_ENGINES[engine]).Evolution
    return evolution
