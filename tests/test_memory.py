"""Arrays that are not needed are freed, and their memory goes back to the system."""

import ctypes
import os
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

import aniso

# Freed pieces lie between others that stay, and none are mapped one by one, so that the C library keeps them.
_KEEPING = {"MALLOC_TRIM_THRESHOLD_": "1000000000", "MALLOC_MMAP_THRESHOLD_": "30000000"}
_SCRIPT = """
from pathlib import Path
import numpy as np
from aniso.memory import return_freed_memory

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

start = resident()
pieces = [np.ones(2**15) for _ in range(400)]
kept = pieces[::50] + pieces[-1:]
del pieces
before = resident()
return_freed_memory()
print((before - start) / 1e6, (resident() - start) / 1e6)
"""


@pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="needs glibc"
)
def test_freed_memory_goes_back_to_the_system():
    call = [sys.executable, "-c", _SCRIPT]
    run = subprocess.run(call, env=os.environ | _KEEPING, capture_output=True, text=True, check=True)
    before, after = map(float, run.stdout.split())
    assert before > 50  # of 105 MB
    assert after < 20


@pytest.mark.parametrize("steps", [4, 5])  # the result is in the one or the other of two arrays
def test_a_diffusion_holds_two_images(steps):
    """Of those that NumPy counts: the evolving image, and another one for the next step or the result."""
    image = np.random.default_rng(0).random((512, 512), dtype=np.float32)
    options = {"time": 0.2 * steps, "scheme": aniso.Explicit(step=0.2)}
    aniso.diffuse(image, aniso.PeronaMalik(0.1), **options)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        aniso.diffuse(image, aniso.PeronaMalik(0.1), **options)
        held = (tracemalloc.get_traced_memory()[1] - before) / image.nbytes
    finally:
        tracemalloc.stop()
    assert held < 2.5
