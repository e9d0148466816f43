"""Launches of kernels: tiles, arguments and grids.

A launch says which tensors it writes; all others it reads. What moves between memory and chip follows.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import triton
from torch import Tensor

from aniso.engines.triton.arithmetic import INTERPRETED
from aniso.engines.triton.devices import on_device


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
        with on_device(self.arguments["out"].device):
            self.kernel[(self.programs,)](**self.arguments, **self.constants, **options)

    @property
    def moved(self) -> int:
        """The bytes of all tensors that are read and written, each once."""
        tensors = {name: each for name, each in self.arguments.items() if isinstance(each, Tensor)}
        read = {each.data_ptr(): each.nbytes for name, each in tensors.items() if name not in self.writes}
        return sum(read.values()) + sum(tensors[name].nbytes for name in self.writes)


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
