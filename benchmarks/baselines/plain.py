"""The plain C program, compiled with the system's C compiler and called through ctypes."""

from __future__ import annotations

import ctypes
import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

Image = npt.NDArray[np.float32]

SOURCE = Path(__file__).with_name("plain.c")
FLAGS = ("-O3", "-march=native", "-fPIC")


class NoCompilerError(RuntimeError):
    """The C compiler is missing or fails."""


def compiler() -> str:
    """The system's C compiler: the environment variable CC, or cc, gcc or clang."""
    for name in (os.environ.get("CC"), "cc", "gcc", "clang"):
        if name and shutil.which(name):
            return name
    raise NoCompilerError("no C compiler found: install gcc or clang, or set CC")


def compiler_version() -> str:
    """What the compiler calls itself."""
    answer = subprocess.run([compiler(), "--version"], capture_output=True, text=True, check=True)
    return answer.stdout.splitlines()[0]


def _compile(*arguments: str) -> None:
    made = subprocess.run([compiler(), *arguments], capture_output=True, text=True)
    if made.returncode:
        raise NoCompilerError(f"{compiler()} cannot compile {SOURCE.name}: {made.stderr.strip()}")


@functools.cache
def edge_enhancing(fast_math: bool = False) -> Callable[..., Image]:
    """The compiled program as a function of image, steps, sigma, contrast, step, alpha and gamma.

    The library's file is gone once it has been loaded.
    """
    flags = [*FLAGS, "-ffast-math"] if fast_math else list(FLAGS)
    with tempfile.TemporaryDirectory(prefix="aniso-plain-", ignore_cleanup_errors=True) as folder:
        unit, library = str(Path(folder, "plain.o")), str(Path(folder, "plain.so"))
        # Linked without -ffast-math: with it, loading the library would make denormal numbers 0 for the
        # whole process, and everything else that is measured there.
        _compile(*flags, "-c", str(SOURCE), "-o", unit)
        _compile("-shared", unit, "-o", library, "-lm")
        function = ctypes.CDLL(library).edge_enhancing
    number = ctypes.c_float
    function.argtypes = [ctypes.c_void_p, *[ctypes.c_int] * 3, *[number] * 5]

    def run(
        image: Image, steps: int, *, sigma: float, contrast: float, step: float, alpha: float, gamma: float
    ) -> Image:
        u = np.array(image, dtype=np.float32, order="C")
        height, width = u.shape
        failed = function(u.ctypes.data, height, width, steps, sigma, contrast, step, alpha, gamma)
        if failed:
            raise ValueError(f"the C program rejects an image of shape {u.shape} (code {failed})")
        return u

    return run
