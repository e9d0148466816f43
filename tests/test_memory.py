"""Memory that was freed goes back to the system."""

import ctypes
import os
import subprocess
import sys

import pytest

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
