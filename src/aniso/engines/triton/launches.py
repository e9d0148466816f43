"""Launches of kernels: tiles, arguments and grids.

A launch says which tensors it writes; all others it reads. What moves between memory and chip follows.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
import triton
from torch import Tensor

from aniso import checks
from aniso.engines import ENGINES
from aniso.engines.triton.arithmetic import INTERPRETED


@dataclass(frozen=True)
class Launch:
    """A kernel with its arguments, by name: tensors and numbers, and constants that it is compiled for."""

    kernel: Any
    arguments: dict[str, Any]
    constants: dict[str, Any]
    programs: int
    warps: int
    writes: tuple[str, ...] = ("out",)

    def run(self) -> None:
        """Start the kernel, or only record it."""
        if _recorders:
            _recorders[-1].append(self)
            return
        # Products and sums are fused, as compilers for GPUs do by default.
        options = {"num_warps": self.warps, "enable_fp_fusion": True}
        with _on_device(self.arguments["out"].device):
            self.kernel[(self.programs,)](**self.arguments, **self.constants, **options)

    @property
    def moved(self) -> int:
        """The bytes of all tensors that are read and written, each once."""
        tensors = {name: each for name, each in self.arguments.items() if isinstance(each, Tensor)}
        read = {each.data_ptr(): each.nbytes for name, each in tensors.items() if name not in self.writes}
        return sum(read.values()) + sum(tensors[name].nbytes for name in self.writes)


def _on_device(device: torch.device) -> contextlib.AbstractContextManager[object]:
    """Make the device of a tensor the current one, on which Triton starts kernels."""
    if device.type == "cpu":
        return contextlib.nullcontext()
    return torch.xpu.device(device) if device.type == "xpu" else torch.cuda.device(device)


_recorders: list[list[Launch]] = []


@contextlib.contextmanager
def record() -> Iterator[list[Launch]]:
    """Record launches instead of starting kernels; results are not computed."""
    _recorders.append([])
    try:
        yield _recorders[-1]
    finally:
        _recorders.pop()


@dataclass(frozen=True)
class Tile:
    """The size of the tiles of a kernel, and the threads that share the work, in groups of 32 or 64."""

    height: int
    width: int
    warps: int = 4

    def over(self, matrices: int, height: int, width: int) -> tuple[dict[str, Any], int]:
        """Return the constants of a kernel for matrices of this size, and the number of its programs."""
        rows, columns = self.height, self.width
        if INTERPRETED:  # one large tile takes hardly longer than a small one
            rows, columns = min(128, triton.next_power_of_2(height)), min(64, triton.next_power_of_2(width))
        programs = matrices * triton.cdiv(height, rows) * triton.cdiv(width, columns)
        return {"HEIGHT": rows, "WIDTH": columns}, programs


def check_device(device: torch.device) -> None:
    """Raise if kernels do not run on a device."""
    if INTERPRETED:
        if device.type != "cpu":
            raise ValueError(
                f"the image is on {device}, but TRITON_INTERPRET is set: Triton's interpreter computes on "
                "the CPU. Unset it before Python starts, or give image.cpu()."
            )
    elif device.type not in ENGINES["triton"].devices:
        raise checks.make_error(
            ValueError,
            f"the triton engine takes PyTorch tensors on a GPU, got an image on {device}.",
            python="Give e.g. image.cuda() to aniso.diffuse or plan.apply, or leave engine out: denoise and "
            "the other verbs choose their parameters on the CPU. For tests, the kernels also run on the CPU, "
            "slowly, if the environment variable TRITON_INTERPRET is 1 before Python starts.",
            command="Use --engine cpu.",
        )
