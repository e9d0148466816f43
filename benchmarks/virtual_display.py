"""A display without a screen, for napari: Xvfb, which ends with this process."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
from functools import partial


def start_display(size: str = "1280x1024") -> str | None:
    """Start Xvfb and return the name of its display; None if it is not installed.

    It ends with this process and not before: without its display, Qt would end the process.
    """
    program = shutil.which("Xvfb")
    if program is None:
        return None
    ours, theirs = os.pipe()
    words = [program, "-displayfd", str(theirs), "-screen", "0", f"{size}x24", "-nolisten", "tcp"]
    end_with_parent = partial(ctypes.CDLL(None).prctl, 1, signal.SIGTERM)
    subprocess.Popen(words, pass_fds=[theirs], stderr=subprocess.DEVNULL, preexec_fn=end_with_parent)
    os.close(theirs)
    with os.fdopen(ours) as file:
        return f":{file.readline().strip()}"
