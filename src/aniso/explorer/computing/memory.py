"""Whether a whole volume can be filtered here: what that takes, and what there is."""

from __future__ import annotations

import math
import os
import re
from pathlib import Path

import numpy as np

from aniso.explorer.choosing.choices import Call
from aniso.explorer.choosing.scene import Scene

# Volumes in single precision at the peak, measured at 96³ to 160³; upsampling counts finer volumes.
_PEAK = {"diffuse": 7, "inpaint": 12, "upsample": 12, "denoise": 60, "enhance": 59}
_ONE_DIFFUSION = 32
# What there is where the system does not say it.
_USUAL = 4e9
# The rest is left to everything else.
_SHARE = 0.8


def check(call: Call, scene: Scene) -> None:
    """Refuse a volume that would take more memory than there is."""
    need, there = needed(call, scene), available()
    if need > _SHARE * there:
        raise MemoryError(
            f"to {call.verb} the whole volume takes about {_words(need)} of memory, and {_words(there)} are "
            "free. Choose “this slice”, or give a smaller volume. On the command line, Zarr stores are "
            "filtered block by block."
        )


def needed(call: Call, scene: Scene) -> float:
    """Bytes at the peak.

    Examples
    --------
    >>> from aniso.explorer import memory
    >>> from aniso.explorer.choosing.choices import Choices
    >>> from aniso.explorer.choosing.scene import Scene
    >>> from aniso.explorer.choosing.source import Source
    >>> scene = Scene(Source.of_sample("fibres"), whole=True)
    >>> memory.needed(Choices("denoise").call(scene), scene) == 60 * 64**3 * 8
    True
    """
    volumes = _PEAK[call.verb]
    if call.verb == "denoise" and {"contrast", "time", "mix"} & set(call.options):
        volumes = _ONE_DIFFUSION
    if call.verb == "upsample":
        volumes *= call.arguments[0] ** 3
    return float(volumes * scene.filtered.size * np.result_type(scene.filtered, np.float32).itemsize)


def available() -> float:
    """Bytes that can be had, as far as the system says."""
    found = [*_linux(), *_group()]
    if found:
        return min(found)
    names = getattr(os, "sysconf_names", {})
    if "SC_PHYS_PAGES" in names and "SC_PAGE_SIZE" in names:
        return 0.5 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return _USUAL


def _linux() -> list[float]:
    """Of the machine."""
    source = Path("/proc/meminfo")
    text = source.read_text("utf-8") if source.exists() else ""
    return [1024.0 * int(kilobytes) for kilobytes in re.findall(r"MemAvailable:\s+(\d+)", text)]


def _group() -> list[float]:
    """Of the container, if there is one with a limit."""
    limit, used = (Path("/sys/fs/cgroup", name) for name in ("memory.max", "memory.current"))
    if not (limit.exists() and used.exists()):
        return []
    most = limit.read_text("utf-8").strip()
    return [float(most) - float(used.read_text("utf-8"))] if most.isdigit() else []


def _words(size: float) -> str:
    digits = max(0, 1 - math.floor(math.log10(max(size, 1) / 1e9)))
    return f"{size / 1e9:.{digits}f} GB"
