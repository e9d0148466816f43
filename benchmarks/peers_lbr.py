"""ITK's AnisotropicDiffusionLBR, the only package with EED and CED, in a process of Python 3.9.

Its last wheels are for that version. `python3.9` is used, or the interpreter that the variable `LBR_PYTHON`
names; without one that has the package, these filters are skipped.
"""

from __future__ import annotations

import atexit
import io
import json
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.other_packages import Filter, Image, Package, Spacing

WORKER = Path(__file__).with_name("peers_lbr_worker.py")
INSTALL = (
    'with Python 3.9: pip install itk-anisotropicdiffusionlbr "itk==5.2.1.post1" "numpy<1.24", and name that '
    "Python in LBR_PYTHON"
)
#: The diffusion time that counts as an iteration.
STEP = 0.2


@cache
def worker(python: str) -> subprocess.Popen[bytes]:
    """The process of this interpreter; ImportError if it cannot run the filter."""
    process = subprocess.Popen(
        [python, str(WORKER)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
    )
    assert process.stdout is not None
    if process.stdout.readline() != b"ready\n":
        stop(process)
        raise ImportError(f"{python} cannot import itk-anisotropicdiffusionlbr")
    atexit.register(stop, process)
    return process


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a worker and close its pipes."""
    process.kill()
    process.communicate()


def call(image: Image, **options: Any) -> Image:
    """Return the result of the worker; RuntimeError with the message of ITK."""
    python = os.environ.get("LBR_PYTHON") or shutil.which("python3.9")
    if python is None:
        raise ImportError("there is no Python 3.9")
    process, content = worker(python), io.BytesIO()
    assert process.stdin is not None
    assert process.stdout is not None
    np.save(content, image)
    head = json.dumps({**options, "bytes": content.tell()})
    process.stdin.write(head.encode() + b"\n" + content.getvalue())
    process.stdin.flush()
    answer = json.loads(process.stdout.readline())
    if "error" in answer:
        raise RuntimeError(answer["error"])
    return np.asarray(np.load(io.BytesIO(process.stdout.read(answer["bytes"]))))


def _filter(enhancement: str, feature: float) -> Any:
    def prepare(module: Any, image: Image, threads: int, strength: float, spacing: Spacing) -> Filter:
        options = {"enhancement": enhancement, "contrast": strength, "feature": feature, "threads": threads}
        call(np.zeros((8,) * image.ndim, np.float32), time=STEP, spacing=None, **options)  # or ImportError
        return lambda iterations: call(image, time=STEP * iterations, spacing=spacing, **options)

    return prepare


def _package(enhancement: str, feature: float) -> Package:
    return Package(
        f"ITK LBR {enhancement}",
        "benchmarks.peers_lbr",
        INSTALL,
        _filter(enhancement, feature),
        lambda module, result: result,
        f"σ 1, ρ {feature:g}, in a process of Python 3.9",
        strength=0.05,
        in_grey_values=False,  # in units of the largest gradient of the image
        steps=((2, STEP), (3, STEP)),
        takes_spacing=True,
    )


EDGE, COHERENT = _package("EED", 1.0), _package("CED", 3.0)
