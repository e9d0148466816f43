"""Access to the server, and what its responses allow the browser to do."""

from __future__ import annotations

import re
import secrets
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from typing import Any
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response

#: Which pages may show this one in a frame: none, or notebooks on this machine.
NO_FRAMES, IN_NOTEBOOKS = "'none'", "http://127.0.0.1:* http://localhost:*"
# NiceGUI needs three things that a strict policy would reject:
# - inline scripts in the page: an import map, and modules that hold the elements. They get a nonce.
# - 'unsafe-eval': handlers of events arrive as text, and Vue compiles templates in the browser. Attributes
#   such as onerror="…" and scripts without the nonce, which markup could bring, stay rejected.
# - inline styles: Quasar sets style attributes. A style cannot call anybody, because images and fonts cannot.
# WebSockets to this server are part of 'self'.
_POLICY = (
    "default-src 'self'; script-src 'self' 'nonce-{nonce}' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors {ancestors}"
)
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    # Not "no-referrer": with that, the message that a tab was closed would have no Origin.
    "Referrer-Policy": "same-origin",
}
_SCRIPT = re.compile(rb"<script(?=[\s>])")
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\[\]:@/?#\\\s]+))(?::\d+)?")
_MISSING = (
    "The token is missing or wrong. Open the address that `aniso explore` printed: it contains the token. "
    "This browser then keeps it in a cookie."
)
# A navigation that another site began does not carry a SameSite=Strict cookie, not even after a redirect; one
# that this page begins does.
_CONTINUE = '<!doctype html><title>aniso explorer</title><meta http-equiv="refresh" content="0;url=./">'

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class HostGuard:
    """Pass on requests for this server, from its own pages, with the token; reject all others.

    `names` are the host names under which the server is known; None accepts all. They are checked because
    another site can let its own name point to this machine (DNS rebinding). The name of the `cookie` should
    contain the port, since browsers share cookies between all ports of a host. The `token` lets a browser in
    as often as wanted, the `ticket` once: it is for the address that a browser is started with, which other
    users of the machine can see in the list of processes. `ancestors` are the pages that may show this one in
    a frame, a list of sources as in a Content-Security-Policy.
    """

    def __init__(
        self, application: Callable[..., Awaitable[None]], *, names: Collection[str] | None, cookie: str,
        token: str, ticket: str | None = None, ancestors: str = NO_FRAMES,
    ) -> None:  # fmt: skip
        self._ancestors = ancestors
        self._application, self._names, self._cookie = application, names, cookie
        self._token, self._ticket = token, ticket
        # Not the token itself: browsers send cookies to servers at other ports as well.
        self._pass = secrets.token_urlsafe(32)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Pass a request on, or reject it."""
        if scope["type"] not in ("http", "websocket"):
            await self._application(scope, receive, send)
            return
        headers = Headers(scope=scope)
        answer = self._rejection(headers) or self._admission(scope, headers)
        if scope["type"] == "http":
            nonce = secrets.token_urlsafe(16)
            await (answer or self._application)(scope, receive, _harden(send, nonce, self._ancestors))
        elif answer is None:
            await self._application(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    def _rejection(self, headers: Headers) -> Response | None:
        """The answer to requests that no page of this server makes."""
        hosts = headers.getlist("host")
        if len(hosts) != 1:
            return PlainTextResponse(f"Expected one Host header, got {len(hosts)}.", 400)
        if self._names is not None and _hostname(hosts[0]) not in self._names:
            return PlainTextResponse("This is not the name of this server.", 403)
        # A reverse proxy may add TLS, so both schemes are this server.
        own = (f"http://{hosts[0]}", f"https://{hosts[0]}")
        if any(origin not in own for origin in headers.getlist("origin")):
            return PlainTextResponse("This server answers requests of its own pages only.", 403)
        return None

    def _admission(self, scope: Message, headers: Headers) -> Response | None:
        """None for requests with the cookie; with a token, the cookie; else a rejection."""
        cookies = [cookie_parser(each).get(self._cookie, "") for each in headers.getlist("cookie")]
        known = any(_equal(cookie, self._pass) for cookie in cookies)
        if scope["type"] == "http" and scope["path"] == "/":  # relative below: a proxy may add a prefix
            given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [])
            if any(map(self._redeem, given)):
                return self._welcome(headers)
            if known and given:  # a ticket that was used before, as in an address from the history
                return RedirectResponse("./", 303)
        return None if known else PlainTextResponse(_MISSING, 403)

    def _redeem(self, given: str) -> bool:
        if self._ticket is not None and _equal(given, self._ticket):
            self._ticket = None
            return True
        return _equal(given, self._token)

    def _welcome(self, headers: Headers) -> Response:
        """Give the cookie, and lead to the address without the token."""
        from_elsewhere = headers.get("sec-fetch-site") == "cross-site"
        answer = HTMLResponse(_CONTINUE) if from_elsewhere else RedirectResponse("./", 303)
        answer.set_cookie(self._cookie, self._pass, httponly=True, samesite="strict")
        answer.headers["Cache-Control"] = "no-store"
        return answer


def _harden(send: Send, nonce: str, ancestors: str) -> Send:
    """Return `send` with headers that restrict the page, and with a nonce for the scripts in it."""
    start: Message | None = None
    body = b""

    async def send_hardened(message: Message) -> None:
        nonlocal start, body
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=list(message.get("headers", [])))
            headers.update(_HEADERS)
            headers["Content-Security-Policy"] = _POLICY.format(nonce=nonce, ancestors=ancestors)
            message = {**message, "headers": headers.raw}
            if headers.get("content-type", "").startswith("text/html"):
                start = message  # held back until the length of the page is known
                return
        elif start is not None and message["type"] == "http.response.body":
            body += message.get("body", b"")
            if message.get("more_body", False):
                return
            message = {**message, "body": _SCRIPT.sub(f'<script nonce="{nonce}"'.encode(), body)}
            MutableHeaders(raw=start["headers"])["Content-Length"] = str(len(message["body"]))
            await send(start)
            start = None
        await send(message)

    return send_hardened


def _hostname(host: str) -> str | None:
    """The name in a Host header, without port and brackets; None if it is malformed."""
    found = _HOST.fullmatch(host.lower())
    return (found[1] or found[2]) if found else None


def _equal(given: str, secret: str) -> bool:
    """Compare in a time that does not depend on where they differ."""
    return secrets.compare_digest(given.encode("utf-8"), secret.encode("utf-8"))
