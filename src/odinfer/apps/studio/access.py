"""Access control of the studio: loopback host, same origin, and a one-time link.

The link carries a token that works once and becomes a cookie that no script can read and no other site can send. Host
and Origin must be this server's own: other sites that resolve to this machine, or post to it, get nothing. What is sent
has a largest size, and what is answered runs no script but the page's own.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlsplit

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MAX_UPLOAD, MAX_REQUEST = 20_000_000, 2_000_000  # bytes of a data file, and of anything else
MAX_PROJECT = 300_000_000  # of a project with its results
UPLOADS = {"/api/data": MAX_UPLOAD, "/api/convert": 2 * MAX_UPLOAD, "/api/project": MAX_PROJECT}
_SAFE = ("GET", "HEAD")
_POLICY = (
    "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class TooLarge(Exception):
    """More was sent than may be; the words say how much that is."""


def is_loopback(host: str) -> bool:
    """Whether an address is this machine's own, which no other machine reaches."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Guard:
    """Stands before an application.

    Args:
        app: which sees only requests that may be.
        host: what the server listens on.
        port: likewise.

    Attributes:
        token: for the link; it works once.
    """

    def __init__(self, app: App, host: str, port: int) -> None:
        self._app, self._port, self._open = app, port, not is_loopback(host)
        self.token = secrets.token_urlsafe(24)
        self._unused, self._secret = True, secrets.token_urlsafe(32)
        self._cookie = f"odinfer-{port}"  # browsers do not keep the cookies of two ports apart
        names = {host, "localhost", "127.0.0.1", "[::1]"}
        if self._open:
            names |= {socket.gethostname(), socket.getfqdn()}
        self._hosts = {f"{f'[{name}]' if ':' in name and name[0] != '[' else name}:{port}".lower() for name in names}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        if scope["type"] != "http":
            return await send({"type": "websocket.close", "code": 1008})
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        hosts = [value for name, value in scope["headers"] if name.lower() == b"host"]
        host = headers.get("host", "").lower()
        if len(hosts) != 1 or not self._is_ours(host):
            return await _refuse(send, 403, "this address is not the studio's")
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
        safe = scope["method"] in _SAFE
        if (origin is None and not safe) or (origin is not None and origin.lower() != f"http://{host}"):
            return await _refuse(send, 403, "requests from other pages are refused")
        if not safe and site not in ("same-origin", "none"):
            return await _refuse(send, 403, "requests from other pages are refused")
        if not self._is_known(headers.get("cookie", "")):
            return await self._admit(scope, send)
        if scope["path"] == "/" and scope["query_string"]:
            return await _redirect(send)  # the link again: the token goes from the address line
        most = UPLOADS.get(scope["path"], MAX_REQUEST)
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > most:
            return await _refuse(send, 413, f"this is more than {most // 1_000_000} MB")
        count = 0

        async def counted() -> MutableMapping[str, Any]:
            nonlocal count
            message = await receive()
            count += len(message.get("body", b""))
            if count > most:
                raise TooLarge(f"this is more than {most // 1_000_000} MB")
            return message

        async def sealed(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                own = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(h for h in _encode(_HEADERS) if h[0] not in own)]
            await send(message)

        await self._app(scope, counted, sealed)

    def _is_ours(self, host: str) -> bool:
        if host in self._hosts:
            return True
        if not self._open:
            return False
        # A name may be made to resolve to this machine; an address cannot.
        try:
            parts = urlsplit(f"//{host}")
            ipaddress.ip_address(parts.hostname or "")
            return parts.port == self._port
        except ValueError:
            return False

    def _is_known(self, cookies: str) -> bool:
        try:
            found = SimpleCookie(cookies).get(self._cookie)
        except CookieError:
            return False
        return found is not None and _same(found.value, self._secret)

    async def _admit(self, scope: Scope, send: Send) -> None:
        """Whoever brings the token gets the cookie; the token is used up then."""
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        right = scope["path"] == "/" and scope["method"] == "GET" and _same(given, self.token)
        if right and self._unused:
            self._unused = False
            cookie = f"{self._cookie}={self._secret}; Path=/; HttpOnly; SameSite=Strict"
            return await _lead_on(send, cookie)
        used = "this link was used already, in another browser perhaps" if right else "open the link from the terminal"
        await _refuse(send, 403, f"{used}; to get a new one, stop odinfer studio and start it again")


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode())


def _encode(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in headers.items()]


async def _lead_on(send: Send, cookie: str) -> None:
    """A page that leads to the studio's own: after a redirect from elsewhere, browsers keep strict cookies back."""
    head = b'<meta http-equiv="refresh" content="0; url=/"><link rel="icon" href="data:,">'
    body = b"<!doctype html>" + head + b"<title>odinfer studio</title>"
    headers = {**_HEADERS, "content-type": "text/html; charset=utf-8", "set-cookie": cookie}
    headers["content-length"] = str(len(body))
    await send({"type": "http.response.start", "status": 200, "headers": _encode(headers)})
    await send({"type": "http.response.body", "body": body})


async def _redirect(send: Send, more: dict[str, str] | None = None) -> None:
    headers = _encode({**_HEADERS, "location": "/", "content-length": "0", **(more or {})})
    await send({"type": "http.response.start", "status": 303, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


async def _refuse(send: Send, status: int, words: str) -> None:
    body = f"odinfer studio: {words}\n".encode()
    headers = {**_HEADERS, "content-type": "text/plain; charset=utf-8", "content-length": str(len(body))}
    headers |= {"connection": "close"} if status == 413 else {}
    await send({"type": "http.response.start", "status": status, "headers": _encode(headers)})
    await send({"type": "http.response.body", "body": body})
