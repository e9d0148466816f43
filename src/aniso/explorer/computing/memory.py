"""Whether a whole volume fits in memory."""

from __future__ import annotations

import math
import os
import re
from pathlib import Path

import numpy as np

from aniso.explorer.choosing.calls import Call
from aniso.explorer.choosing.scene import Scene

# Assumed if the system does not say.
_USUAL = 4e9
# Fraction of the available memory that may be used.
_SHARE = 0.8


def check(call: Call, scene: Scene) -> None:
    """Reject a volume that would need more memory than is available."""
    need, free = needed(call, scene), available()
    if need > _SHARE * free:
        raise MemoryError(
            f"{call.verb.name} needs about {_words(need)} of memory for the whole volume, but only "
            f"{_words(free)} are free. Choose “This slice”, or open a smaller volume. On the command line, "
            "Zarr stores are filtered block by block."
        )


def needed(call: Call, scene: Scene) -> float:
    """Return the peak memory in bytes."""
    voxels = scene.filtered.size * call.factor**3
    return float(call.verb.arrays * voxels * np.result_type(scene.filtered, np.float32).itemsize)


def available() -> float:
    """Return the available memory in bytes, as far as the system reports it."""
    found = [*_linux(), *_container()]
    if found:
        return min(found)
    names = getattr(os, "sysconf_names", {})
    if "SC_PHYS_PAGES" in names and "SC_PAGE_SIZE" in names:
        return 0.5 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return _USUAL


def _linux() -> list[float]:
    """Return the available memory of the machine."""
    source = Path("/proc/meminfo")
    text = source.read_text("utf-8") if source.exists() else ""
    return [1024.0 * int(kilobytes) for kilobytes in re.findall(r"MemAvailable:\s+(\d+)", text)]


def _container() -> list[float]:
    """Return the available memory of the container, if it has a limit."""
    limit, used = (Path("/sys/fs/cgroup", name) for name in ("memory.max", "memory.current"))
    if not (limit.exists() and used.exists()):
        return []
    most = limit.read_text("utf-8").strip()
    return [float(most) - float(used.read_text("utf-8"))] if most.isdigit() else []


def _words(size: float) -> str:
    digits = max(0, 1 - math.floor(math.log10(max(size, 1) / 1e9)))
    return f"{size / 1e9:.{digits}f} GB"
