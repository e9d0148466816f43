"""The explorer in a notebook: the same page in a frame, served by a process that ends with the notebook."""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import numpy as np

from aniso import arrays
from aniso.verbs.plan import Plan

__all__ = ["Exploration", "explore"]

_HEIGHT = 760
# Seconds that the server may take to start.
_PATIENCE = 60.0
# The page is reached under the name of this machine that the notebook has: browsers keep their cookies apart.
_FRAME = """<div id="{key}"></div><script>(() => {{
const here = ["localhost", "127.0.0.1"].includes(location.hostname) ? location.hostname : "127.0.0.1";
const frame = document.createElement("iframe");
frame.src = `http://${{here}}:{port}/?token={token}`;
frame.title = "aniso explorer";
frame.style = "width: 100%; height: {height}px; border: 0";
document.getElementById("{key}").replaceChildren(frame);
}})()</script><p><a href="{address}" target="_blank" rel="noopener">Open in a tab of its own</a></p>"""


class Exploration:
    """The explorer of one image: shows itself in a notebook, and knows what was chosen there."""

    def __init__(self, folder: tempfile.TemporaryDirectory[str], path: Path) -> None:
        self._folder = folder
        command = [sys.executable, "-m", "aniso.explorer.inline", str(path)]
        pipe, surroundings = subprocess.PIPE, dict(os.environ)
        surroundings.pop("PYTEST_CURRENT_TEST", None)  # with it, NiceGUI serves no page
        # The process ends when its standard input does, also if the notebook is killed.
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=surroundings)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the explorer could not be started. Try the command: aniso explore.")
        #: The address of the page, with the token that gives access.
        self.address: str = json.loads(line)
        self._wait()
        atexit.register(self.close)

    def _wait(self) -> None:
        """Wait until the server listens, which is soon after it has told its address."""
        port = urlsplit(self.address).port
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port or 0), timeout=1):
                return
            time.sleep(0.02)
        raise RuntimeError("the explorer does not answer. Try the command: aniso explore.")

    @property
    def plan(self) -> Plan | None:
        """The plan of what the page shows; None as long as nothing is computed, and for `diffuse`."""
        import httpx  # comes with NiceGUI

        with httpx.Client(timeout=_PATIENCE, trust_env=False) as client:
            client.get(self.address)  # the token gives a cookie; the page itself is not fetched
            text = client.get(urljoin(self.address, "/explorer/plan")).text
        return Plan.from_json(text) if text else None

    def close(self) -> None:
        """End the explorer."""
        atexit.unregister(self.close)
        self._process.communicate(timeout=30)  # closes its standard input
        self._folder.cleanup()

    def _repr_html_(self) -> str:
        parts = urlsplit(self.address)
        token = parts.query.removeprefix("token=")
        key = f"aniso-{parts.port}"
        return _FRAME.format(key=key, port=parts.port, token=token, height=_HEIGHT, address=self.address)


def explore(image: Any) -> Exploration:
    """Show the explorer in a notebook.

    The page of ``aniso explore`` appears in a frame below the cell, if the result is its last expression. It
    is served on this machine only, and ends with the notebook.

    Parameters
    ----------
    image : array
        (H, W), (H, W, 3) for colours, or a volume (D, H, W).

    Returns
    -------
    Exploration
        Its `plan` is what the page shows at that moment, to filter other images in the same way.

    Examples
    --------
    >>> import aniso
    >>> exploration = aniso.explore(image)  # doctest: +SKIP
    >>> clean = exploration.plan.apply(image)  # doctest: +SKIP
    """
    if importlib.util.find_spec("nicegui") is None:
        raise ImportError('the explorer needs NiceGUI. Install it with: pip install "aniso[explorer]".')
    array = arrays.as_array("image", image)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"image must have a real numeric dtype, got {array.dtype}. Give e.g. image.real.")
    folder = tempfile.TemporaryDirectory(prefix="aniso-notebook-", ignore_cleanup_errors=True)
    path = Path(folder.name) / "image.npy"
    np.save(path, array)
    return Exploration(folder, path)


def _serve(path: Path) -> None:
    """Serve the page until the standard input ends."""
    from aniso.explorer import server

    def wait() -> None:
        sys.stdin.read()
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()
    port = server.free_port("127.0.0.1", None)
    server.run(
        path, "127.0.0.1", port, open_page=False, in_notebook=True,
        tell=lambda addresses: print(json.dumps(addresses[0]), flush=True),
    )  # fmt: skip


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
