"""An S3 server on this machine, and a proxy in front of it that makes faults."""

import contextlib
import http.client
import logging
import random
import threading
import time
import urllib.request
from collections import Counter
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
from moto.server import ThreadedMotoServer

import aniso
from aniso.blocks.stores.urls import place_of
from tests.blocks.stores import zarr

KEY, SECRET = "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI-K7MDENG-bPxRfiCYEXAMPLEKEY"
BUCKET = "bucket"
IMAGE = aniso.samples.shapes(72, noise=20.0).image[:, :61].astype(np.float32)


@contextlib.contextmanager
def s3_server(host="127.0.0.1"):
    """Yield the address of a server with an empty bucket."""
    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    server = ThreadedMotoServer(ip_address=host, port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        address = f"http://{host}:{port}"
        for method, path in (("POST", "moto-api/reset"), ("PUT", BUCKET)):  # servers share their memory
            with urllib.request.urlopen(urllib.request.Request(f"{address}/{path}", method=method)):
                pass
        yield address
    finally:
        server.stop()


def options(address, **more):
    """Storage options for the server."""
    return {
        "endpoint": address,
        "access_key_id": KEY,
        "secret_access_key": SECRET,
        "region": "us-east-1",
        **more,
    }


def environment(address):
    """The same as environment variables."""
    return {
        "AWS_ENDPOINT_URL": address,
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
    }


def put_array(url, given, image, **settings):
    """Write an array to a URL."""
    array = zarr.create_array(place_of(url, given).node, shape=image.shape, dtype=image.dtype, **settings)
    array[:] = image


def get_array(url, given):
    """Read an array, or the full resolution of a group."""
    node = zarr.open(place_of(url, given).node, mode="r")
    return np.asarray((node["0"] if isinstance(node, zarr.Group) else node)[:])


def names(url, given):
    """The objects with a prefix."""
    return sorted(path for path, _ in place_of(url, given).files())


class FaultyProxy:
    """Passes requests on to a server; a share of them fails, is cut off, or comes late.

    `away`: no request is answered.
    """

    def __init__(self, address, share=0.0, delays=0.0, seed=0):
        self.address = address.removeprefix("http://")
        self.share, self.delays, self.away = share, delays, False
        self.random, self.lock = random.Random(seed), threading.Lock()
        self.requests: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.seen = None  # called with each method and path

    def _choose(self):
        with self.lock:
            if self.away:
                return "away"
            if self.random.random() < self.share:
                return self.random.choice(["500", "503", "cut before", "cut after", "cut within"])
            return "late" if self.random.random() < self.delays else ""

    @contextlib.contextmanager
    def started(self):
        """Yield the address of the proxy."""
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                fault = proxy._choose()
                proxy.requests[self.command] += 1
                if proxy.seen is not None:
                    proxy.seen(self.command, self.path)
                if fault:
                    proxy.faults[fault] += 1
                if fault in ("away", "cut before"):
                    self.close_connection = True
                    self.connection.close()
                    return
                if fault in ("500", "503"):
                    self.send_response(int(fault))
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                if fault == "late":
                    time.sleep(2)
                server = http.client.HTTPConnection(proxy.address)
                try:
                    # The host is part of the signature, which the server does not check.
                    server.request(self.command, self.path, body, dict(self.headers))
                    found = server.getresponse()
                    content = found.read()
                    headers = found.getheaders()
                finally:
                    server.close()
                if fault == "cut after":
                    self.close_connection = True
                    self.connection.close()
                    return
                self.send_response(found.status)
                for name, value in headers:
                    if name.lower() not in (
                        "connection",
                        "transfer-encoding",
                        "content-length",
                        "date",
                        "server",
                    ):
                        self.send_header(name, value)
                length = {name.lower(): value for name, value in headers}.get("content-length")
                self.send_header(
                    "Content-Length", length if self.command == "HEAD" and length else str(len(content))
                )
                self.end_headers()
                if fault == "cut within" and content:
                    self.wfile.write(content[: len(content) // 2])
                    self.close_connection = True
                    self.connection.close()
                    return
                if self.command != "HEAD":
                    self.wfile.write(content)

            do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = answer

        with _serve(Handler) as address:
            yield address


@contextlib.contextmanager
def web_server(folder):
    """Yield the address of a web server with the files of a folder."""

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    with _serve(partial(Handler, directory=str(folder))) as address:
        yield address


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass


@contextlib.contextmanager
def _serve(handler):
    with _Server(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def check_credentials(address, wanted):
    """Whether the server checks them from now on; its first requests are never checked."""
    count = b"0" if wanted else b"1000000"
    plain = {"Content-Type": "text/plain"}
    request = urllib.request.Request(f"{address}/moto-api/reset-auth", count, plain, method="POST")
    with urllib.request.urlopen(request):
        pass


def remove(url, given):
    """Delete what is at a URL."""
    place_of(url, given).remove()
