"""Launches of kernels: tiles, arguments and grids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import triton

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

    def run(self) -> None:
        """Start the kernel."""
        # Products and sums are fused, as compilers for GPUs do by default.
        options = {"num_warps": self.warps, "enable_fp_fusion": True}
        with on_device(self.arguments["out"].device):
            self.kernel[(self.programs,)](**self.arguments, **self.constants, **options)


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

    def launch(
        self,
        kernel: Any,
        matrices: tuple[int, int, int],
        arguments: dict[str, Any],
        constants: dict[str, Any],
    ) -> None:
        """Start a kernel on matrices: their number, height and width."""
        sizes, programs = self.over(*matrices)
        Launch(kernel, arguments, constants | sizes, programs, self.warps).run()
