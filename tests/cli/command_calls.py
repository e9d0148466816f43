"""Calls of the command, and what the tests of it look at."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from aniso.cli import app

# Streams are buffered where people are.
_USUAL = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
WIDE = {**_USUAL, "COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}
PROGRAM = [sys.executable, "-m", "aniso"]


def aniso_command(folder, *words, **options):
    """The command in a process of its own."""
    return subprocess.run(
        [*PROGRAM, *map(str, words)], cwd=folder, env=WIDE, capture_output=True, text=True, **options
    )


def called(folder, *words):
    """The command in this process, in a folder: sooner, and the same but for signals."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        return CliRunner().invoke(app, [str(word) for word in words], prog_name="aniso", env=WIDE)
    finally:
        os.chdir(before)


def noisy(shape=(40, 44), dtype="uint8", seed=0):
    """A bright square under noise, over the range of the type; a last axis of 3 holds colours."""
    rng = np.random.default_rng(seed)
    image = np.full(shape, 0.3)
    square = (..., slice(10, 30), slice(12, 32))
    image[(*square, slice(None)) if shape[-1] == 3 else square] = 0.7
    image = np.clip(image + rng.normal(0, 0.05, shape), 0, 1)
    if np.dtype(dtype).kind == "f":
        return image.astype(dtype)
    return np.rint(image * np.iinfo(dtype).max).astype(dtype)


def contents(folder):
    """Every file below a folder, hidden ones too."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }
