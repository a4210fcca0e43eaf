"""What stands before every request: how much may be sent at once, how often, and what browsers may do with answers."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request

from memory_pipeline.web.failures import RequestTooLarge, TooManyRequests, failed

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_HEADERS = {
    # Everything from here, nothing inline: what slips through as markup neither runs nor is styled, nor leads a form
    # anywhere else.
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_NOT_KEPT = "no-store"
_MINUTE = 60.0  # seconds
_CALLERS = 10_000  # who are told apart within a minute
_OTHERS = b""  # whoever is not


class Headed:
    """Gives every answer the headers that tell browsers what it may do; only assets may be kept."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with the headers."""

        async def headed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                if not scope["path"].startswith("/static/"):
                    headers.setdefault("Cache-Control", _NOT_KEPT)
            await send(message)

        await self._app(scope, receive, headed)


class Sized:
    """Refuses requests that are larger than what is taken, whatever they say of their own length.

    Args:
        app: what answers.
        largest: bytes of a body at most.
    """

    def __init__(self, app: ASGIApp, *, largest: int) -> None:
        self._app, self._largest = app, largest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = bytearray()
        said = _length(scope)
        more = said <= self._largest
        while more and len(body) <= self._largest:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
        if max(len(body), said) > self._largest:
            error = RequestTooLarge(f"the request has more than {self._largest:,} bytes: send less at once")
            await failed(Request(scope), error)(scope, receive, send)
            return
        await self._app(scope, _replayed(bytes(body), receive), send)


def _length(scope: Scope) -> int:
    """How many bytes a request says that it has, 0 where it says nothing that can be used."""
    said = Headers(scope=scope).get("content-length", "")
    return int(said) if said.isascii() and said.isdigit() and len(said) <= 20 else 0  # noqa: PLR2004  # digits


def _replayed(body: bytes, receive: Receive) -> Callable[[], Awaitable[MutableMapping[str, Any]]]:
    """What receives a body that was read already, and then whatever else comes."""
    given = False

    async def replay() -> MutableMapping[str, Any]:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


class Limited:
    """Refuses a caller who asks too often: whoever holds a credential, or without one, whoever calls from an address.

    Whoever makes up credentials, another one each time, is soon counted by the address too.

    Args:
        app: what answers.
        per_minute: requests of one caller.
    """

    def __init__(self, app: ASGIApp, *, per_minute: int) -> None:
        self._app = app
        self._credentials, self._addresses = Rate(per_minute), Rate(per_minute)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse."""
        if scope["type"] == "http":
            try:
                self._count(Request(scope))
            except TooManyRequests as error:
                await failed(Request(scope), error)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _count(self, request: Request) -> None:
        credential = request.headers.get("authorization") or request.cookies.get("memory_session")
        if credential and self._credentials.tells_apart(credential):
            self._credentials.count(credential)
        else:
            self._addresses.count(request.client.host if request.client else "")


class Rate:
    """Counts what callers do, each for themselves, over the last minute; threads may share it.

    Of the minute before, what lies within the last sixty seconds is taken for a share of all that it had: so two
    numbers are kept of a caller, and nothing of one who has been silent for two minutes. It keeps digests of names,
    since a name may be a secret, and of any length.

    Args:
        per_minute: how much one caller may do.
        callers: how many of a minute are told apart; whoever else comes counts as one caller.
    """

    def __init__(self, per_minute: int, *, callers: int = _CALLERS) -> None:
        self._most, self._callers = per_minute, callers
        self._lock = threading.Lock()
        self._begun = time.monotonic()
        self._before: Counter[bytes] = Counter()
        self._now: Counter[bytes] = Counter()

    def tells_apart(self, caller: str) -> bool:
        """Whether a caller is counted for themselves."""
        with self._lock:
            self._turn()
            return self._name(caller) != _OTHERS

    def count(self, caller: str) -> None:
        """Count one more.

        Raises:
            TooManyRequests: it is one too many.
        """
        with self._lock:
            self._turn()
            name, passed = self._name(caller), (time.monotonic() - self._begun) / _MINUTE
            if self._now[name] + int(self._before[name] * (1 - passed)) >= self._most:
                raise TooManyRequests(
                    f"more than {self._most} requests in a minute: ask again later, or less often",
                    retry_after=int(_MINUTE),
                )
            self._now[name] += 1

    def _turn(self) -> None:
        """Begin another minute when this one is over."""
        passed = time.monotonic() - self._begun
        if passed >= _MINUTE:
            self._before, self._now = self._now if passed < 2 * _MINUTE else Counter(), Counter()
            self._begun += passed - passed % _MINUTE

    def _name(self, caller: str) -> bytes:
        name = hashlib.sha256(caller.encode(errors="surrogatepass")).digest()
        known = name in self._now or name in self._before or len(self._now) < self._callers
        return name if known else _OTHERS
