"""The server: requests, addresses, uploads, and closed tabs."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import math
import os
import secrets
import socket
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nicegui import app, binding, core, ui
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, PlainTextResponse, Response

from aniso.explorer.choosing.scene import Source
from aniso.explorer.computing.previews import Pace
from aniso.explorer.guard import IN_NOTEBOOKS, NO_FRAMES, HostGuard
from aniso.explorer.page.layout import ExplorerPage
from aniso.io.formats import suffix_of
from aniso.io.picture import FileError

#: Bytes of a file that may be uploaded.
UPLOAD_LIMIT = 512 * 2**20
#: Files that may be uploaded at the same time, from all tabs together.
UPLOADS_AT_ONCE = 4
#: The port that is tried first.
USUAL_PORT = 8150
# Length of the name of an uploaded file without its suffix; most systems allow 255 bytes in all.
_NAME_BYTES = 150
# Seconds within which a requested page must connect; otherwise the client is not a browser.
_FIRST_CONNECTION = 30.0
# Seconds to wait for open responses at the end.
_GRACE = 3
# Seconds that a tab is kept after its connection is lost; closed tabs are removed at once. Also how long a
# page may take to be made: NiceGUI would answer with an error after three seconds, on a busy machine too.
_PATIENCE = 120.0
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_ANYWHERE = ("0.0.0.0", "::")
_SAY_WHEN_CLOSED = "addEventListener('pagehide', (e) => e.persisted || navigator.sendBeacon('{}'));"
# A page that reconnects asks for the messages since then; otherwise it would be reloaded.
_REMEMBER_MESSAGES = "socket.on('disconnect', () => (socket.io.opts.query.next_message_id = nextMessageId));"
_WAS_RELOADED = "return performance.getEntriesByType('navigation')[0]?.type === 'reload'"
_RELOADED = "The page was reloaded. The previous image, parameters and mask were not kept."
_ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" '
    'fill="#0d6e6e"/><g fill="none" stroke="#fff" stroke-width="2.4"><ellipse cx="16" cy="16" rx="10" ry="4" '
    'transform="rotate(-35 16 16)"/><circle cx="16" cy="16" r="1.2" fill="#fff"/></g></svg>'
)


class Explorer:
    """All tabs of one server."""

    def __init__(self, first: Path | None, limit: int = UPLOAD_LIMIT) -> None:
        self.first = first
        self.limit = limit
        self.pages: dict[str, ExplorerPage] = {}
        self._uploads = 0
        self.pace = Pace()

    def install(self) -> None:
        """Register the page and the routes."""
        register = ui.page(
            "/", title="aniso explorer", dark=None, reconnect_timeout=_PATIENCE, response_timeout=_PATIENCE
        )
        register(self._page)
        app.get("/explorer/plan")(self._plan)
        app.get("/explorer/{key}/result")(self._result)
        app.get("/explorer/{key}/{slot}/{number}")(self._picture)
        app.post("/explorer/{key}/file")(self._upload)
        app.post("/explorer/{key}/closed")(self._closed)
        app.add_exception_handler(404, _not_found)
        app.on_shutdown(self.close)

    def close(self) -> None:
        """Close all tabs."""
        while self.pages:
            self.pages.popitem()[1].session.close()

    async def _page(self) -> None:
        page = ExplorerPage(self.pace, self.limit)
        key, client = page.session.key, page.client
        self.pages[key] = page

        def gone() -> None:
            if self.pages.pop(key, None) is not None:
                page.session.close()

        client.on_delete(gone)
        try:
            # Not its own timeout, which does not hold for pages that a browser fetched in advance.
            await asyncio.wait_for(client.connected(), _FIRST_CONNECTION)
        except TimeoutError:
            client.delete()
        if client.is_deleted:
            return
        client.run_javascript(_SAY_WHEN_CLOSED.format(page.url("closed")) + _REMEMBER_MESSAGES)
        first = self.first
        await page.session.open_first(
            lambda: Source.of_sample("lighthouse") if first is None else Source.of_file(first)
        )
        with contextlib.suppress(TimeoutError):
            if await client.run_javascript(_WAS_RELOADED, timeout=60):
                page.tell(error=_RELOADED)

    async def _closed(self, key: str) -> Response:
        page = self.pages.get(key)
        if page is not None:
            page.client.delete()
        return Response(status_code=204)

    async def _picture(self, key: str, slot: str, number: int) -> Response:
        page = self.pages.get(key)
        if page is None:
            return PlainTextResponse("This tab is closed.", 404)
        picture = page.session.pictures.get(slot, number)
        if picture is None:
            return Response(status_code=204)  # no error: newer pictures have taken its place
        return Response(picture.content, media_type=picture.kind, headers={"Cache-Control": "no-store"})

    async def _plan(self) -> Response:
        """Answer with the plan of the newest tab that shows a result; nothing if there is none."""
        results = [page.session.result for page in self.pages.values()]
        plan = next((result.info for result in reversed(results) if result is not None), None)
        return Response(plan.to_json(), media_type="application/json") if plan else Response(status_code=204)

    async def _result(self, key: str) -> Response:
        page = self.pages.get(key)
        path = await page.session.download() if page is not None else None
        if path is None:
            return PlainTextResponse("There is no result.", 404)
        return FileResponse(path, filename=path.name, media_type="application/octet-stream")

    async def _upload(self, request: Request, key: str, name: str) -> Response:
        page = self.pages.get(key)
        if page is None:
            return PlainTextResponse("This tab is closed.", 404)
        name = plain_name(name)
        if self._uploads >= UPLOADS_AT_ONCE:
            words = f"{name} was not read, because {self._uploads} files are being uploaded. Try again later."
            page.tell(error=words)
            return PlainTextResponse(words, 429)
        self._uploads += 1
        try:
            return await self._receive(request, page, name)
        finally:
            self._uploads -= 1

    async def _receive(self, request: Request, page: ExplorerPage, name: str) -> Response:
        # The file is not needed after reading.
        with tempfile.TemporaryDirectory(dir=page.session.folder, ignore_cleanup_errors=True) as folder:
            target = Path(folder, name)
            try:
                await _save(request, target, self.limit)
            except ClientDisconnect:
                return PlainTextResponse("The upload was interrupted.", 400)
            except FileError as error:
                page.tell(error=str(error))
                return PlainTextResponse(str(error), 413)
            except OSError as error:
                page.tell(
                    error=f"{name} could not be stored ({error.strerror}). Give its path instead: aniso "
                    "explore FILE."
                )
                return PlainTextResponse("The file could not be stored.", 507)
            opened = await page.session.open(lambda: Source.of_file(target, name=name))
        # The upload itself succeeded; the page shows what is wrong with the file.
        return PlainTextResponse("opened" if opened else "refused")


async def _not_found(request: Request, error: Exception) -> Response:
    """Answer with one line; NiceGUI would build a page, keep it, and log the address."""
    return PlainTextResponse("There is nothing at this address.", 404)


def plain_name(name: str) -> str:
    """Return the name of a file without folders, short and printable: results are named after it."""
    last = Path(name.replace("\\", "/")).name
    last = "".join(character if character.isprintable() else "_" for character in last)
    if last in ("", ".."):
        return "file"
    suffix = suffix_of(Path(last))
    short = last.removesuffix(suffix).encode("utf-8")[:_NAME_BYTES].decode("utf-8", "ignore")
    return short + suffix


async def _save(request: Request, target: Path, limit: int) -> None:
    """Write an upload to a file; reject it if it is too large, at once if its size is announced."""
    announced = request.headers.get("content-length", "")
    size = int(announced) if announced.isdecimal() else 0
    with target.open("wb") as file:
        if size <= limit:
            size = 0
            async for chunk in request.stream():
                size += len(chunk)
                if size > limit:
                    break
                file.write(chunk)
    if size > limit:
        target.unlink()
        raise FileError(
            f"{target.name} exceeds the upload limit of {limit / 2**20:.0f} MB. Give its path instead: "
            "aniso explore FILE."
        )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach this address."""
    return host in _LOOPBACK


def free_port(host: str, wanted: int | None) -> int:
    """Return the given port if it is free, or by default the first free one from the usual one on.

    Raises OSError if no port can be used.
    """
    for port in [wanted] if wanted is not None else range(USUAL_PORT, USUAL_PORT + 50):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            with socket.socket(family) as trial:
                if os.name == "posix":  # a port that was just closed counts as free
                    trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                trial.bind((host, port))
                return port
        except OSError as error:
            if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
                raise OSError(
                    f"{host} is not an address of this machine. Give --host 0.0.0.0 for all its addresses."
                ) from error
            if error.errno == errno.EACCES:
                raise OSError(
                    f"no permission to use port {port}. Give one above 1023 with --port."
                ) from error
    taken = f"port {wanted} of {host} is in use" if wanted is not None else f"{host} has no free port"
    raise OSError(f"{taken}. Give another one with --port.")


def own_address(family: socket.AddressFamily) -> str | None:
    """Return the address of this machine for others, as far as it is known."""
    elsewhere = "2001:db8::1" if family == socket.AF_INET6 else "192.0.2.1"
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as trial:
        trial.connect((elsewhere, 9))  # sends nothing, but chooses the network that would
        return str(trial.getsockname()[0])
    return None


def addresses(host: str, port: int, token: str) -> list[str]:
    """Return the addresses of the page: for this machine and, if different, for others."""
    names: list[str | None] = [host]
    if host in _ANYWHERE:
        names = ["127.0.0.1", own_address(socket.AF_INET6 if ":" in host else socket.AF_INET)]
    hosts = [f"[{name}]" if ":" in name else name for name in names if name]
    return [f"http://{host}:{port}/?token={token}" for host in hosts]


def run(
    first: Path | None, host: str, port: int, *, open_page: bool, tell: Callable[[list[str]], object],
    limit: int = UPLOAD_LIMIT, in_notebook: bool = False,
) -> None:  # fmt: skip
    """Serve until interrupted; `tell` receives the addresses of the page.

    `in_notebook`: pages of this machine may show it in a frame.
    """
    token, ticket = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
    explorer = Explorer(first, limit)
    explorer.install()
    _guard(
        names=_LOOPBACK if is_loopback(host) else None,
        cookie=f"aniso-explorer-{port}",
        token=token,
        ticket=ticket if open_page else None,
        ancestors=IN_NOTEBOOKS if in_notebook else NO_FRAMES,
    )

    def ready() -> None:
        asyncio.get_running_loop().set_exception_handler(_ignore_lost_connections)
        tell(addresses(host, port, token))
        if open_page:
            address = addresses(host, port, ticket)[0]
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()

    app.on_startup(ready)
    logging.getLogger("uvicorn.error").addFilter(_is_worth_reporting)
    binding.MAX_PROPAGATION_TIME = math.inf  # NiceGUI would print a warning when the machine is busy
    # Workers run Python code as well, and must not block the page.
    sys.setswitchinterval(1e-3)
    threading.Thread(target=_warm_up, daemon=True).start()
    try:
        ui.run(
            host=host,
            port=port,
            title="aniso explorer",
            favicon=_ICON,
            dark=None,
            reload=False,
            show=False,
            show_welcome_message=False,
            tailwind=False,
            gzip_middleware_factory=None,
            reconnect_timeout=3.0,  # how often connections are tried; see _PATIENCE for tabs
            binding_refresh_interval=None,
            cache_control_directives="private, max-age=31536000, immutable",
            uvicorn_logging_level="error",  # malformed requests are answered, not logged
            timeout_graceful_shutdown=_GRACE,
        )
    finally:
        explorer.close()


def _guard(**options: Any) -> None:
    """Pass all requests through a :class:`HostGuard`.

    It is outside of everything else, NiceGUI's own middleware included: that would let browsers cache a
    rejected request for a static file.
    """
    build = app.build_middleware_stack
    app.build_middleware_stack = lambda: HostGuard(build(), **options)  # type: ignore[method-assign]
    # Otherwise any origin is allowed; the guard decides.
    core.sio.eio.cors_allowed_origins = []


def _is_worth_reporting(record: logging.LogRecord) -> bool:
    """Whether a record is about anything but requests that were cancelled by the end of the server."""
    cut_off = record.exc_info is not None and isinstance(record.exc_info[1], asyncio.CancelledError)
    return not cut_off and not str(record.msg).startswith("Cancel ")


def _ignore_lost_connections(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Report errors as asyncio does, except lost connections."""
    if not isinstance(context.get("exception"), ConnectionError):
        loop.default_exception_handler(context)


def _warm_up() -> None:
    """Load or compile the kernels of previews in advance."""
    import aniso

    sample = aniso.samples.lighthouse(32).image.astype("float32")
    for spacing in (1.0, 2.0):
        for image, axis in ((sample[..., 0], None), (sample, -1)):
            for model in (aniso.EdgeEnhancing(), aniso.CoherenceEnhancing()):
                aniso.diffuse(image, model, 1.0, scheme=aniso.FED(1), spacing=spacing, channel_axis=axis)
