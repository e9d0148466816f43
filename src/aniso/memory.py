"""Memory that was freed, but is kept by the C library."""

from __future__ import annotations

import ctypes
import sys


def return_freed_memory() -> None:
    """Give memory that was freed back to the system.

    The allocator of glibc keeps pieces below 32 MB for later use. Where they lie between others that are in
    use, larger arrays do not fit into them. Other allocators have no such function, and nothing is done.
    """
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
