"""What happens in a fresh process: imports, first calls, memory. Prints one JSON object.

python -m benchmarks.fresh import | first-call | memory explicit|fed|fsi SIZE | inpaint SIZE
    | volume explicit|ced|fsi SIZE
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[1]


def run(*arguments: str, cache: Path | None = None) -> dict[str, Any]:
    """What this module prints in a process of its own; `cache` replaces the folder of compiled kernels."""
    settings = dict(os.environ) if cache is None else {**os.environ, "ANISO_CACHE_DIR": str(cache)}
    answer = subprocess.run(
        [sys.executable, "-m", "benchmarks.fresh", *arguments],
        capture_output=True, text=True, check=True, cwd=_ROOT, env=settings,
    )  # fmt: skip
    return dict(json.loads(answer.stdout))


def help_seconds() -> float:
    """How long `aniso --help` takes, with the start of Python."""
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", "from aniso.__main__ import main; main()", "--help"],
        capture_output=True, check=True, cwd=_ROOT,
    )  # fmt: skip
    return time.perf_counter() - start


def _import() -> dict[str, Any]:
    start = time.perf_counter()
    import aniso  # noqa: F401

    seconds = time.perf_counter() - start
    return {"seconds": seconds, "numba": "numba" in sys.modules, "scipy": "scipy" in sys.modules}


def _first_call() -> dict[str, Any]:
    import numpy as np

    image = np.random.default_rng(0).random((256, 256), dtype=np.float32)
    start = time.perf_counter()
    import aniso

    aniso.diffuse(image, aniso.EdgeEnhancing(contrast=0.1), 1.0)
    return {"seconds": time.perf_counter() - start}


def _memory(scheme: str, size: int) -> dict[str, Any]:
    import numpy as np

    import aniso

    chosen: aniso.schemes.Scheme = aniso.Explicit(step=0.2)
    if scheme != "explicit":
        chosen = aniso.FED(1) if scheme == "fed" else aniso.FSI(1)
    model, end = aniso.EdgeEnhancing(contrast=0.1), 1.0 if scheme == "explicit" else 8.0
    rng = np.random.default_rng(0)
    # Large enough for several threads, so that nothing is left to be loaded or compiled later.
    aniso.diffuse(rng.random((256, 256), dtype=np.float32), model, end, scheme=chosen)
    image = np.empty((size, size), np.float32)
    rng.random(out=image, dtype=np.float32)
    forget_peak()
    before = resident()
    result = aniso.diffuse(image, model, end, scheme=chosen)
    extra = peak() - before
    assert result.shape == image.shape
    return {"images": extra / image.nbytes}


def _inpaint_memory(size: int) -> dict[str, Any]:
    import numpy as np

    import aniso

    rng = np.random.default_rng(0)
    small = rng.random((256, 256), dtype=np.float32)
    aniso.inpaint(small, small > 0.1)
    y, x = np.ogrid[:size, :size]
    image = (np.sin(x / 9) * np.sin(y / 14)).astype(np.float32)
    unknown = np.zeros((size, size), bool)
    for row in unknown:
        row[:] = rng.random(size, dtype=np.float32) > 0.1
    forget_peak()
    before = resident()
    start = time.perf_counter()
    result, info = aniso.inpaint(image, unknown, return_info=True)
    seconds = time.perf_counter() - start
    extra = peak() - before
    assert result.shape == image.shape
    return {"images": extra / image.nbytes, "seconds": seconds, "cycles": info.cycles}


def _volume_memory(what: str, size: int) -> dict[str, Any]:
    import numpy as np

    import aniso

    scheme: aniso.schemes.Scheme = aniso.FSI(1) if what == "fsi" else aniso.Explicit(step=0.2)
    model: aniso.models.ImageDriven = aniso.EdgeEnhancing(contrast=0.1)
    if what == "ced":
        model = aniso.CoherenceEnhancing(contrast=0.1, sigma=1.0, rho=3.0)
    rng = np.random.default_rng(0)
    # Large enough for several threads, so that nothing is left to be loaded or compiled later.
    aniso.diffuse(rng.random((40, 40, 40), dtype=np.float32), model, 0.4, scheme=scheme)
    volume = rng.random((size, size, size), dtype=np.float32)
    forget_peak()
    before = resident()
    result = aniso.diffuse(volume, model, 0.4, scheme=scheme)
    extra = peak() - before
    assert result.shape == volume.shape
    return {"volumes": extra / volume.nbytes}


# Linux keeps the peak of ru_maxrss across the start of a new program, so that a process begins with that of
# its parent. The values in /proc start again; ru_maxrss is used where /proc does not exist.
def _status(field: str) -> int | None:
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    (line,) = (line for line in status.read_text("utf-8").splitlines() if line.startswith(field))
    return 1024 * int(line.split()[1])


def peak() -> int:
    """The most memory that this process has had, in bytes."""
    known = _status("VmHWM")
    if known is not None:
        return known
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def resident() -> int:
    """The memory that this process has now, in bytes."""
    known = _status("VmRSS")
    return peak() if known is None else known


def forget_peak() -> None:
    """Begin again with the peak."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", "ascii")


if __name__ == "__main__":
    what, *details = sys.argv[1:]
    if what == "import":
        found = _import()
    elif what == "first-call":
        found = _first_call()
    elif what == "inpaint":
        found = _inpaint_memory(int(details[0]))
    elif what == "volume":
        found = _volume_memory(details[0], int(details[1]))
    else:
        found = _memory(details[0], int(details[1]))
    print(json.dumps(found))
