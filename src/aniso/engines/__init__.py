"""Engines carry out the cycles of a scheme. This is the one place that chooses one."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import shutil
import sys
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from aniso.engines.cpu.threads import uninterrupted
from aniso.models import Model
from aniso.schemes import Cycle
from aniso.stencil import Stencil

#: How many steps with the same tensors the cpu engine takes in one pass, for images and volumes. Longer
#: cycles store tensors.
STEPS_OF_PASS = {2: 8, 3: 4}


@dataclass(frozen=True, kw_only=True)
class Engine:
    """A row of the table of engines.

    `module` holds a class :class:`Evolution`. `arrays` are those that it computes with. If it needs the
    packages `needs`, in these versions or later ones, they come with the extra `extra`. On `devices` of
    PyTorch it is preferred to others, if there is a C compiler where it `needs_compiler`, and on GPUs of
    NVIDIA from this compute `capability` on.
    """

    name: str
    module: str
    summary: str
    arrays: Literal["numpy", "torch"] = "numpy"
    needs: tuple[str, ...] = ()
    extra: str = ""
    devices: tuple[str, ...] = ()
    needs_compiler: bool = False
    capability: tuple[int, int] = (0, 0)

    def supports(self, device: Any) -> bool:
        """Return whether it runs on a device of PyTorch of one of its kinds."""
        if getattr(device, "type", "") != "cuda":
            return True
        import torch

        return torch.version.hip is not None or torch.cuda.get_device_capability(device) >= self.capability


_ROWS = (
    Engine(name="cpu", module="aniso.engines.cpu.evolution", summary="compiled loops on all cores"),
    Engine(
        name="torch",
        module="aniso.engines.torch.evolution",
        summary="PyTorch, on any device and with gradients",
        arrays="torch",
        needs=("torch",),
        extra="torch",
    ),
    Engine(
        name="triton",
        module="aniso.engines.triton.evolution",
        summary="fused kernels on a GPU",
        arrays="torch",
        needs=("torch", "triton>=3.4"),
        extra="triton",
        devices=("cuda", "xpu"),
        needs_compiler=True,
        capability=(7, 0),
    ),
    Engine(name="reference", module="aniso.engines.reference", summary="plain NumPy, slow"),
)

#: The engines by name. The first one for an array is its default.
ENGINES = {row.name: row for row in _ROWS}


@dataclass(frozen=True)
class Problem:
    """Everything that stays the same while an image evolves, and the name of the engine."""

    model: Model
    stencil: Stencil
    spacings: tuple[float, ...]
    fixed: npt.NDArray[np.bool_] | None = None
    threads: int | None = None
    engine: str = "cpu"

    @property
    def on_tensors(self) -> bool:
        """Whether the engine works on PyTorch tensors."""
        return ENGINES[self.engine].arrays == "torch"

    def start(self, image: Any) -> Evolution:
        """Return the evolution of an array or a tensor, in the precision that the model needs."""
        if self.model.needs_doubles:
            image = image.astype(np.float64) if isinstance(image, np.ndarray) else image.double()
        return load(self.engine)(image, self)


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
        """Free threads and other resources; the image stays."""
        ...


def default(arrays: Literal["numpy", "torch"], device: Any = "cpu") -> str:
    """Return the name of the engine for arrays of this kind; for tensors, on a device or this kind of it."""
    rows = [engine for engine in ENGINES.values() if engine.arrays == arrays]
    kind = getattr(device, "type", device)
    for engine in rows:
        # Compilers and packages are looked for in files, on which small images must not wait.
        if (
            kind in engine.devices
            and (not engine.needs_compiler or _has_compiler())
            and not _missing(engine)
            and engine.supports(device)
        ):
            return engine.name
    return rows[0].name


def default_for(image: Any) -> str:
    """Return the name of the engine for an array or a tensor."""
    device = getattr(image, "device", None)
    return default("torch", device) if hasattr(device, "type") else default("numpy")  # NumPy's is "cpu"


def summaries() -> str:
    """Return the names of all engines and what they are, in one line."""
    return "; ".join(f"{engine.name} ({engine.summary})" for engine in ENGINES.values())


def check_name(engine: Any) -> None:
    """Raise if an engine does not exist or is not installed; None stands for the default."""
    if engine is None:
        return
    if not (isinstance(engine, str) and engine in ENGINES):
        raise ValueError(
            f"engine must be None or one of {', '.join(ENGINES)}, got {engine!r}. None follows the array."
        )
    row = ENGINES[engine]
    if missing := _missing(row):
        where = " Triton exists for Linux only." if sys.platform != "linux" and "triton" in missing else ""
        raise ImportError(
            f"the {engine} engine needs the package {missing}. Install it with: "
            f'pip install "aniso[{row.extra}]".{where}'
        )


def _missing(engine: Engine) -> str:
    """Return the first package that an engine needs and that is not installed, or is too old."""
    for requirement in engine.needs:
        package, _, version = requirement.partition(">=")
        if importlib.util.find_spec(package) is None:
            return requirement
        if version and _installed_version(package) < tuple(map(int, version.split("."))):
            return requirement
    return ""


def _has_compiler() -> bool:
    """Return whether Triton finds the C compiler with which it builds what starts kernels."""
    return "CC" in os.environ or any(map(shutil.which, ("gcc", "clang")))


@functools.cache
def _installed_version(package: str) -> tuple[int, ...]:
    """Return the first two numbers of the version, whatever the name of the distribution."""
    import importlib.metadata  # takes long, and is rarely needed

    names = importlib.metadata.packages_distributions().get(package, [package])
    first, second, *_ = importlib.metadata.version(names[0]).split(".")
    return int(first), int(second)


def load(engine: str) -> type[Evolution]:
    """Import the engine of this name."""
    module = ENGINES[engine].module
    # Numba and PyTorch cannot be imported again once their import was interrupted.
    get = importlib.import_module if module in sys.modules else uninterrupted(importlib.import_module)
    evolution: type[Evolution] = get(module).Evolution
    return evolution
