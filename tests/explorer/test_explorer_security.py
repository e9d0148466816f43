"""Who is answered by the explorer, what pages may do, and what uploads may not."""

import asyncio
import base64
import contextlib
import gzip
import logging
import os
import re
import signal
import socket
import struct
import threading
import time
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from playwright.sync_api import expect

import aniso
from aniso.explorer import server as explorer_server
from aniso.explorer.guard import HostGuard
from benchmarks.explorer_process import Visitor, explorer, reset
from tests.explorer.pages import WAIT, needs_browser
from tests.processes import PATIENCE, wait_until

NAMES = ("127.0.0.1", "localhost", "::1")
UPGRADE = (
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    f"Sec-WebSocket-Key: {base64.b64encode(bytes(16)).decode()}",
)
SOCKET = "/_nicegui_ws/socket.io/?EIO=4&transport="


class TestTheGuard:
    """The guard alone, around an application that answers everything."""

    def guard(self, names=NAMES, **options):
        async def inside(scope, receive, send):
            headers = [(b"content-type", b"text/html")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": b"<script>1</scr", "more_body": True})
            await send({"type": "http.response.body", "body": b'ipt><script src="a"></script>'})

        return HostGuard(inside, names=names, cookie="the-cookie", token="secret", **options)

    def answer(self, guard, *headers, hosts=(b"127.0.0.1:8150",), query=b"", kind="http", path="/"):
        """What the guard sends."""
        sent = []

        async def send(message):
            sent.append(message)

        headers = [*((b"host", host) for host in hosts), *headers]
        scope = {"type": kind, "headers": headers, "query_string": query, "method": "GET", "path": path}
        asyncio.run(guard(scope, None, send))
        return sent

    def cookie(self, guard, query=b"token=secret"):
        (start, *_) = self.answer(guard, query=query)
        assert start["status"] == 303
        headers = dict(start["headers"])
        assert headers[b"location"] == b"./"
        words = headers[b"set-cookie"].split(b"; ")
        assert {b"HttpOnly", b"SameSite=strict", b"Path=/"} <= set(words)
        return (b"cookie", words[0])

    @pytest.mark.parametrize(
        "host", [b"127.0.0.1:8150", b"localhost:9", b"LOCALHOST", b"[::1]:8150", b"[::1]"]
    )
    def test_own_names(self, host):
        guard = self.guard()
        assert self.answer(guard, self.cookie(guard), hosts=[host])[0]["status"] == 200

    @pytest.mark.parametrize(
        "hosts",
        [
            [b"example.org"],
            [b"example.org:8150"],
            [b"127.0.0.1.example.org"],
            [b"127.0.0.1@example.org"],
            [b"example.org@127.0.0.1"],
            [b"[127.0.0.1"],
            [b""],
            [],
            [b"127.0.0.1:8150", b"127.0.0.1:8150"],
            [b"127.0.0.1:8150", b"example.org"],
        ],
    )
    def test_other_names_and_a_wrong_number_of_them(self, hosts):
        guard = self.guard()
        cookie = self.cookie(guard)
        assert self.answer(guard, cookie, hosts=hosts)[0]["status"] == (403 if len(hosts) == 1 else 400)
        assert self.answer(guard, cookie, hosts=hosts, kind="websocket")[0]["type"] == "websocket.close"

    @pytest.mark.parametrize("names", [NAMES, None])
    def test_the_token(self, names):
        guard = self.guard(names)
        assert self.answer(guard)[0]["status"] == 403
        for wrong in (b"token=wrong", b"token=", b"token=%C3%A9", b"token=\xe9"):
            assert self.answer(guard, query=wrong)[0]["status"] == 403
        cookie = self.cookie(guard)
        assert self.answer(guard, cookie)[0]["status"] == 200
        assert b"secret" not in cookie[1]
        for wrong in (cookie[1] + b"x", b"the-cookie=\xe9", b"the-cookie=secret", b"[]=;;,"):
            assert self.answer(guard, (b"cookie", wrong))[0]["status"] == 403
        odd = (b"cookie", b"a{b=1; \xe9; " + cookie[1])  # other servers on this machine set cookies, too
        assert self.answer(guard, odd)[0]["status"] == 200
        assert self.answer(guard, kind="websocket")[0]["type"] == "websocket.close"
        assert self.answer(guard, query=b"token=secret", kind="websocket")[0]["type"] == "websocket.close"
        assert self.answer(guard, query=b"token=secret", path="/explorer/a/result")[0]["status"] == 403

    def test_a_ticket_is_good_for_once(self):
        guard = self.guard(ticket="once")
        cookie = self.cookie(guard, b"token=once")
        assert self.answer(guard, query=b"token=once")[0]["status"] == 403
        assert self.answer(guard, cookie, query=b"token=once")[0]["status"] == 303  # from the history
        assert self.cookie(guard) == cookie

    def test_origins(self):
        guard = self.guard(None)
        cookie = self.cookie(guard)
        for own in (b"http://127.0.0.1:8150", b"https://127.0.0.1:8150"):
            assert self.answer(guard, cookie, (b"origin", own))[0]["status"] == 200
        for other in (b"http://127.0.0.1:8151", b"http://127.0.0.1", b"http://localhost:8150", b"null", b""):
            for kind, answer in (("http", "http.response.start"), ("websocket", "websocket.close")):
                sent = self.answer(guard, cookie, (b"origin", other), kind=kind)[0]
                assert (sent["type"], sent.get("status", 403)) == (answer, 403)

    def test_scripts_get_a_nonce_that_is_new_each_time(self):
        guard = self.guard()
        cookie = self.cookie(guard)
        nonces = set()
        for _ in range(2):
            start, body = self.answer(guard, cookie)
            headers = dict(start["headers"])
            (nonce,) = re.findall(rb"'nonce-([^']+)'", headers[b"content-security-policy"])
            scripts = b'<script nonce="%b">1</script><script nonce="%b" src="a"></script>' % (nonce, nonce)
            assert body["body"] == scripts
            assert int(headers[b"content-length"]) == len(scripts)
            nonces.add(nonce)
        assert len(nonces) == 2


@pytest.fixture(scope="module")
def running():
    with explorer() as (address, process, said):
        yield address, process, said
        assert not "".join(said[1:])  # whatever the tests of this module do, it is not worth a line


@pytest.fixture(scope="module")
def visitor(running):
    return Visitor(running[0])


class TestWithoutACookie:
    @pytest.fixture(params=[(), ("--host", "0.0.0.0")], ids=["loopback", "--host"])
    def stranger(self, request):
        with explorer(*request.param) as (address, _, said):
            assert any("not encrypted" in line for line in said) == bool(request.param)
            yield Visitor(address)

    def test_nothing_is_answered(self, stranger):
        page = stranger.open_page()
        static = re.findall(r'src="(/_nicegui/[^"]+)"', stranger.request("GET", "/").text)[0]
        known = {
            "GET": ["/", static, f"{page}/after/1", f"{page}/result", f"{SOCKET}polling", "/nothing"],
            "POST": [f"{page}/file?name=a.png", f"{page}/closed", f"{SOCKET}polling"],
        }
        port = stranger.host.rpartition(":")[2]
        assert stranger.cookie.startswith(f"aniso-explorer-{port}=")
        for method, paths in known.items():
            for path in paths:
                for cookie in (None, f"aniso-explorer-{port}=wrong"):
                    answer = stranger.request(method, path, cookie=cookie)
                    assert answer.status == 403, path
                    assert "immutable" not in answer.headers.get("Cache-Control", "")
        for wrong in ("wrong", "", stranger.token[:-1]):
            assert stranger.request("GET", f"/?token={wrong}", cookie=None).status == 403
        assert stranger.request("GET", static).status == 200
        assert stranger.request("GET", f"{page}/after/1").status == 204
        stranger.cookie = "none=1"
        with stranger.raw([f"GET {SOCKET}websocket HTTP/1.1", *UPGRADE]) as connection:
            assert b" 403 " in connection.recv(1000).splitlines()[0]


def test_the_browser_is_opened_with_a_token_that_is_valid_once():
    prelude = "import webbrowser; webbrowser.open = lambda address: print('opened', address, flush=True)"
    with explorer(prelude=prelude, opens=True) as (address, _, said):
        visitor = Visitor(address)
        wait_until(lambda: len(said) > 1)
        home, _, ticket = said[1].split()[1].partition("?token=")
        assert home == visitor.home
        assert ticket != visitor.token
        found = [visitor.request("GET", f"/?token={ticket}", cookie=None).status for _ in range(2)]
        assert found == [303, 403]
        assert visitor.request("GET", f"/?token={visitor.token}", cookie=None).status == 303


class TestRequests:
    def test_headers(self, visitor):
        page = visitor.open_page()
        for path in ("/", "/nothing", f"{page}/after/1", f"{SOCKET}polling", "/favicon.ico"):
            headers = visitor.request("GET", path).headers
            policy = headers["Content-Security-Policy"]
            assert "frame-ancestors 'none'" in policy
            assert "'unsafe-inline'" not in re.findall("script-src ([^;]*)", policy)[0]
            assert headers["X-Content-Type-Options"] == "nosniff"
            assert headers["Referrer-Policy"] == "same-origin"

    @pytest.mark.parametrize("transport", ["polling", "websocket"])
    @pytest.mark.parametrize("origin", ["own", "http://example.org", "http://127.0.0.1:1", "null", None])
    def test_origins(self, visitor, transport, origin):
        lines = [f"GET {SOCKET}{transport} HTTP/1.1", *(UPGRADE if transport == "websocket" else ())]
        if origin is not None:
            lines.append(f"Origin: {origin.replace('own', visitor.home.rstrip('/'))}")
        with visitor.raw(lines) as connection:
            answer = connection.recv(4000).lower()
        welcome = b" 101 " if transport == "websocket" else b" 200 "
        assert (welcome if origin in ("own", None) else b" 403 ") in answer.splitlines()[0]
        assert b"access-control" not in answer

    def test_two_hosts(self, visitor):
        for second in (visitor.host, "example.org"):
            with visitor.raw(["GET / HTTP/1.1", f"Host: {second}"]) as connection:
                assert b" 400 " in connection.recv(1000).splitlines()[0]

    def test_another_host(self, visitor):
        assert visitor.request("GET", "/", Host="example.org").status == 403

    @pytest.mark.parametrize("headers", [{}, {"Sec_Purpose": "prefetch"}])
    def test_a_page_that_never_connects_is_forgotten(self, headers):
        prelude = "from aniso.explorer import server; server._FIRST_CONNECTION = 1.0"
        with explorer(prelude=prelude) as (address, _, said):
            visitor = Visitor(address)
            text = visitor.request("GET", "/", **headers).text
            picture = re.findall(r"(/explorer/[^/]+)/file", text)[0] + "/after/1"
            assert visitor.request("GET", picture).status == 204
            wait_until(lambda: visitor.request("GET", picture).status == 404)
        assert len(said) == 2

    def test_a_page_that_takes_long_to_be_made(self):
        """As on a busy machine: neither an error nor a line."""
        prelude = (
            "import time; from aniso.explorer import server; page = server.ExplorerPage; "
            "server.ExplorerPage = lambda *given: time.sleep(4) or page(*given)"
        )
        with explorer(prelude=prelude) as (address, _, said):
            assert Visitor(address).request("GET", "/").status == 200
        assert said[1:] == ["The explorer was stopped.\n"]

    def test_within_a_minute(self):
        assert explorer_server._FIRST_CONNECTION < 60


def png(width, height, data=b""):
    """A PNG file that claims this size."""
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
        (b"IDAT", data),
        (b"IEND", b""),
    )
    chunks = [
        struct.pack(">I", len(part)) + name + part + struct.pack(">I", zlib.crc32(name + part))
        for name, part in parts
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def mrc(side):
    header = bytearray(1024)
    header[:16] = struct.pack("<iiii", side, side, side, 2)
    header[208:216] = b"MAP DD\0\0"
    return bytes(header)


def nifti(side):
    header = bytearray(352)
    header[:4] = struct.pack("<i", 348)
    header[40:56] = struct.pack("<hhhhhhhh", 3, side, side, side, 1, 1, 1, 1)
    header[70:74] = struct.pack("<hh", 16, 32)
    header[108:112] = struct.pack("<f", 352)
    header[344:348] = b"n+1\0"
    return bytes(header)


def npy(description, data=b""):
    text = description.encode().ljust(118) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


BOMB = zlib.compress(bytes(2**24), 9)
PICKLED = b"cposix\nsystem\n(S'touch executed'\ntR."
MALICIOUS = {
    "bomb.png": png(60_000, 60_000, BOMB),
    "bomb.nii.gz": gzip.compress(nifti(30_000) + bytes(2**20)),
    "huge.nii": nifti(30_000),
    "huge.mrc": mrc(30_000),
    "negative.mrc": mrc(-5),
    "huge.npy": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999, 99999, 9), }"),
    "pickle.npy": npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", PICKLED),
    "code.npy": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (__import__('os').getpid(),), }"),
    "truncated.png": png(64, 64, BOMB[:40]),
    "script.png": b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>',
    "page.png": b"<!doctype html><script>alert(1)</script>",
    "page.svg": b'<svg xmlns="http://www.w3.org/2000/svg"/>',
    "loop.tif": b"II*\0" + struct.pack("<IHI", 8, 0, 8),
    "empty.tif": b"",
}


class TestUploads:
    @pytest.mark.parametrize("name", MALICIOUS)
    def test_malicious_files_are_refused(self, visitor, name):
        page = visitor.open_page()
        answer = visitor.request("POST", f"{page}/file?name={name}", MALICIOUS[name])
        assert (answer.status, answer.text) == (200, "refused")
        assert visitor.request("GET", f"{page}/result").status == 404

    def test_good_files_are_not(self, visitor):
        good = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (9, 9), }", bytes(4 * 81))
        answer = visitor.request("POST", f"{visitor.open_page()}/file?name=good.npy", good)
        assert (answer.status, answer.text) == (200, "opened")

    def test_too_large(self, visitor):
        path = f"{visitor.open_page()}/file?name=large.png"
        size = f"Content-Length: {explorer_server.UPLOAD_LIMIT + 1}"
        with visitor.raw([f"POST {path} HTTP/1.1", size]) as connection:  # and not a byte more
            assert b" 413 " in connection.recv(1000).splitlines()[0]

    def test_too_many(self, visitor):
        path = f"{visitor.open_page()}/file?name=a.png"
        with contextlib.ExitStack() as stack:
            slow = [f"POST {path} HTTP/1.1", "Content-Length: 1000"]
            for _ in range(explorer_server.UPLOADS_AT_ONCE):
                stack.enter_context(visitor.raw(slow))
            wait_until(lambda: visitor.request("POST", path, b"x").status == 429)
        wait_until(lambda: visitor.request("POST", path, b"x").status == 200)

    def test_another_site_cannot_upload(self, visitor):
        path = f"{visitor.open_page()}/file?name=a.png"
        assert visitor.request("POST", path, b"x", Origin="http://example.org").status == 403


@pytest.mark.slow
class TestSilence:
    """Browsers that vanish, and the end of the server, are not worth a line."""

    def handshake(self, visitor):
        text = visitor.request("GET", "/").text
        key = re.findall(r"client_id['\"]?: ?['\"]([^'\"]+)", text)[0]
        query = f"client_id={key}&implicit_handshake=true&tab_id=a&document_id=b&next_message_id=0"
        connection = visitor.raw([f"GET {SOCKET}websocket&{query} HTTP/1.1", *UPGRADE])
        assert b" 101 " in connection.recv(1000).splitlines()[0]
        connection.sendall(b"\x81\x82" + bytes(4) + b"40")  # a masked frame: connect to the only namespace
        while b"40{" not in connection.recv(1000):
            pass
        return connection

    def upload(self, visitor):
        lines = [f"POST {visitor.open_page()}/file?name=a.png HTTP/1.1", "Content-Length: 1000000"]
        connection = visitor.raw(lines)
        connection.sendall(bytes(100_000))
        return connection

    def test_start_open_close_stop(self):
        with explorer() as (address, process, said):
            visitor = Visitor(address)
            for start in (self.handshake, self.upload):
                reset(start(visitor))
                start(visitor).close()
            with socket.create_connection(("127.0.0.1", int(visitor.host.rpartition(":")[2]))) as connection:
                connection.sendall(b"\x16\x03\x01 no HTTP at all\r\n\r\n")
                connection.recv(1000)
            with self.handshake(visitor), self.upload(visitor):
                time.sleep(0.5)
                process.send_signal(signal.SIGINT if os.name == "posix" else signal.SIGTERM)
                assert process.wait(PATIENCE) == 0
        assert said[1:] == ["The explorer was stopped.\n"]  # on both streams

    def test_lost_connections_are_not_reported_and_other_errors_are(self, caplog):
        loop = asyncio.new_event_loop()
        loop.set_exception_handler(explorer_server._ignore_lost_connections)
        with caplog.at_level(logging.ERROR, "asyncio"):
            loop.call_exception_handler({"message": "lost", "exception": ConnectionResetError()})
            loop.call_exception_handler({"message": "wrong", "exception": ValueError()})
        loop.close()
        assert [record.message for record in caplog.records] == ["wrong"]


@pytest.mark.slow
@needs_browser
class TestInABrowser:
    @pytest.fixture
    def tab(self, browser):
        context = browser.new_context()
        context.set_default_timeout(WAIT)
        yield context.new_page()
        context.close()

    def test_markup_in_names_is_text(self, tab, running, tmp_path):
        name = "<img src=x onerror=document.title=1>.png"
        aniso.io.write(tmp_path / "image.png", np.eye(20, dtype=np.uint8) * 200)
        wrong = []
        tab.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        tab.goto(running[0])
        expect(tab.locator(".status")).to_contain_text("lighthouse", timeout=WAIT)
        for content, place in ((b"<svg onload=document.title=1>", ".error"), (None, ".status")):
            image = content or (tmp_path / "image.png").read_bytes()
            tab.set_input_files("#open-file", {"name": name, "mimeType": "image/png", "buffer": image})
            expect(tab.locator(place)).to_contain_text(name, timeout=WAIT)
        expect(tab.locator(".status")).to_contain_text("full resolution", timeout=WAIT)
        tab.get_by_role("button", name="Copy as Python").click()
        expect(tab.get_by_role("textbox", name="The same result as Python")).to_have_value(
            re.compile("onerror")
        )
        assert tab.locator("img[src=x]").count() == 0
        assert tab.title() == "aniso explorer"
        assert wrong == []

    def test_injected_markup_does_nothing(self, tab, running):
        """If names were taken for markup all the same, the policy would stop them."""
        tab.goto(running[0])
        expect(tab.locator(".status")).to_contain_text("lighthouse", timeout=WAIT)
        tab.evaluate(
            """() => {
                const injected = document.createElement('div');
                injected.innerHTML = '<img src="data:," onerror="document.title=1">';
                document.body.append(injected);
                const script = document.createElement('script');
                script.textContent = 'document.title = 2';
                document.body.append(script);
            }"""
        )
        tab.wait_for_timeout(500)
        assert tab.title() == "aniso explorer"
        fetched = "fetch('http://127.0.0.1:1/').then(() => 'sent', (error) => error.message)"
        with tab.expect_console_message(lambda message: "Content Security Policy" in message.text):
            tab.evaluate(fetched)

    def test_other_sites_can_link_to_the_address_and_show_nothing_of_it(self, tab, running):
        address = running[0]

        class Site(BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                home = address.partition("?")[0]
                frame = f'<iframe src="{home}"></iframe>' if self.path == "/frame" else ""
                self.wfile.write(f'<a href="{address}">explorer</a>{frame}'.encode())

            def log_message(self, *_):
                pass

        with ThreadingHTTPServer(("127.0.0.1", 0), Site) as other:
            threading.Thread(target=other.serve_forever, daemon=True).start()
            port = other.server_address[1]
            # Another name is another site for cookies; another port is not.
            tab.goto(f"http://localhost:{port}/")
            tab.get_by_text("explorer").click()
            expect(tab.locator(".status")).to_contain_text("lighthouse", timeout=WAIT)
            assert tab.url == address.partition("?")[0]
            with tab.expect_console_message(lambda message: "frame-ancestors" in message.text):
                tab.goto(f"http://127.0.0.1:{port}/frame")
            assert "explorer" not in [frame.title() for frame in tab.frames]
            other.shutdown()
