"""`aniso explore` in a process of its own, and where a browser is: for tests and benchmarks."""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "C:/Program Files/Google/Chrome/Application/chrome.exe",
    "C:/Program Files (x86)/Microsoft/Edge/Application/msedge.exe",
)


def browser_path():
    found = [shutil.which(name) for name in NAMES] + [place for place in PLACES if Path(place).exists()]
    return next(filter(None, found), None)


def wait_for_port(port):
    """The address is told a moment before somebody listens there."""
    end = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 5).close()
            return
        except OSError:
            assert time.monotonic() < end
            time.sleep(0.05)


@contextlib.contextmanager
def explorer(*words):
    """A running explorer: its address, its process, and the lines that it says."""
    program = [sys.executable, "-m", "aniso", "explore", "--no-open", *map(str, words)]
    # NiceGUI behaves differently where this variable tells it that it is being tested.
    surroundings = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    process = subprocess.Popen(
        program,
        env={**surroundings, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    output: Any = process.stdout
    said, ready = [], threading.Event()

    def listen():
        for line in output:
            said.append(line)
            if "http://" in line:
                ready.set()
        ready.set()

    listener = threading.Thread(target=listen)
    listener.start()
    try:
        assert ready.wait(60), said
        address = re.search(r"http://\S+", "".join(said))
        assert address, said
        wait_for_port(int(re.findall(r":(\d+)/", address[0])[0]))
        yield address[0], process, said
    finally:
        process.send_signal(signal.SIGINT if os.name == "posix" else signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        listener.join()
        output.close()
