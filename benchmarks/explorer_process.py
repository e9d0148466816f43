"""`aniso explore` in a process of its own, and where a browser is: for tests and benchmarks."""

import contextlib
import http.client
import os
import re
import shutil
import signal
import socket
import struct
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
# Seconds to wait for the explorer, also on a busy machine.
_PATIENCE = 240.0


def browser_path():
    found = [shutil.which(name) for name in NAMES] + [place for place in PLACES if Path(place).exists()]
    return next(filter(None, found), None)


def wait_for_port(port):
    """The address is printed a moment before the server listens there."""
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 5).close()
            return
        except OSError:
            assert time.monotonic() < end
            time.sleep(0.05)


def free_port():
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        return trial.getsockname()[1]


class Visitor:
    """A client without a browser: requests with the cookie that the token in the address gives."""

    def __init__(self, address):
        self.home, _, self.token = address.partition("?token=")
        self.host = self.home.removeprefix("http://").rstrip("/")
        answer = self.request("GET", f"/?token={self.token}", cookie=None)
        self.cookie = answer.headers["Set-Cookie"].partition(";")[0]

    def request(self, method, path, body=None, *, cookie="", **headers):
        """The answer to a request; its `text` has been read. Headers with underscores for hyphens."""
        headers = {"Host": self.host, **{name.replace("_", "-"): value for name, value in headers.items()}}
        if cookie is not None:
            headers["Cookie"] = cookie or self.cookie
        connection = http.client.HTTPConnection(self.host, timeout=_PATIENCE)
        try:
            connection.request(method, path, body, headers)
            answer: Any = connection.getresponse()
            answer.text = answer.read().decode("utf-8", "replace")
        finally:
            connection.close()
        return answer

    def open_page(self):
        """Ask for the page and never connect; returns its own part of all addresses."""
        return re.findall(r"(/explorer/[^/]+)/file", self.request("GET", "/").text)[0]

    def raw(self, request):
        """A connection on which these lines were sent, the host and the cookie among them."""
        name, _, port = self.host.rpartition(":")
        connection = socket.create_connection((name, int(port)), _PATIENCE)
        lines = [*request, f"Host: {self.host}", f"Cookie: {self.cookie}", "", ""]
        connection.sendall("\r\n".join(lines).encode())
        return connection


def reset(connection):
    """Close a connection as if its machine had vanished."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


@contextlib.contextmanager
def explorer(*words, prelude=None, opens=False):
    """A running explorer: its address, its process, and the lines that it prints.

    `prelude` is a line of Python that is executed first.
    """
    start = ["-m", "aniso"] if prelude is None else ["-c", f"{prelude}; from aniso import cli; cli.app()"]
    port = ["--port", str(free_port())]  # not the usual one, which several of them would try for at once
    quietly = [] if opens else ["--no-open"]
    program = [sys.executable, *start, "explore", *quietly, *port, *map(str, words)]
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
        assert ready.wait(_PATIENCE), said
        address = re.search(r"http://\S+", "".join(said))
        assert address, said
        wait_for_port(int(re.findall(r":(\d+)/", address[0])[0]))
        yield address[0], process, said
    finally:
        process.send_signal(signal.SIGINT if os.name == "posix" else signal.SIGTERM)
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        listener.join()
        output.close()
