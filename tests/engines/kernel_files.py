"""Compiled kernels on disk, for tests: a script that needs two, and a process to run it in."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import aniso
from tests.processes import PATIENCE

ON_UNIX = hasattr(os, "geteuid")
AS_ROOT = ON_UNIX and os.geteuid() == 0
SOMEBODY_ELSE = 12345
unix = pytest.mark.skipif(not ON_UNIX, reason="this system has no owners and modes of files")
root = pytest.mark.skipif(not AS_ROOT, reason="only root can make files that belong to somebody else")
#: Two small kernels, one that Python calls and one that is called by its address: loops take far longer.
RUN = """
    import numpy as np, aniso
    from aniso.engines.cpu import generate
    formula = aniso.PeronaMalik(3.0).tensor_formula(1)
    assert generate.tensor_loops(formula, np.dtype("float32"), False).tensor_row.address
    header = generate._header(np.dtype("float32"), False, 2, cache=True)
    numbers = np.linspace(1, 9, 20, dtype="float32")
    sums = generate._import("sums", header + "\\n@entry\\ndef add(a, b):\\n    a += b")
    sums.add(numbers, numbers[::-1].copy())
    print(repr(float(numbers.sum())))
"""


def run(folder, script=RUN, before="", **environment):
    """Run a script in its own process, with this folder for kernels."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(before) + textwrap.dedent(script)],
        env={
            **os.environ,
            "PYTHONPATH": str(Path(aniso.__file__).parents[1]),
            "ANISO_CACHE_DIR": str(folder),
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )


def files(folder):
    return sorted(folder.iterdir())
