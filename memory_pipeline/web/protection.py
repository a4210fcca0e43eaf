"""What stands before every request: how much may be sent at once, how often, and what browsers may do with answers."""

from __future__ import annotations

import asyncio
import hashlib
import math
import time
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from typing import TYPE_CHECKING, Any

from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import FixedWindowRateLimiter
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request

from memory_pipeline.web.failures import RequestTooLarge, RequestTooSlow, TooManyRequests, failed
from memory_pipeline.web.identity.sessions import COOKIE

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
_BODY_SECONDS = 60.0  # or whoever sends slowly enough would have the process keep what came so far for ever
_DIGITS = 20  # of a length that is one
_CALLERS = 10_000  # in a minute; whoever makes up credentials can make up more
_OTHERS = ""


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


class Heads:
    """Answers HEAD as it would GET, without the body: probes and proxies ask so, and no route has to know of it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, with the body where one was asked for."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return

        async def bodiless(message: Message) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        scope["method"] = "GET"  # in place: whoever stands before looks there for the route that was found
        try:
            await self._app(scope, receive, bodiless)
        finally:
            scope["method"] = "HEAD"


class Sized:
    """Refuses requests that are larger than what is taken, whatever they say of their own length.

    Args:
        app: what answers.
        largest: bytes of a body at most.
        seconds: for how long it is waited for.
    """

    def __init__(self, app: ASGIApp, *, largest: int, seconds: float = _BODY_SECONDS) -> None:
        self._app, self._largest, self._seconds = app, largest, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            async with asyncio.timeout(self._seconds):
                body = await self._read(scope, receive)
        except TimeoutError:
            error = RequestTooSlow(f"the request was not sent within {self._seconds:g} seconds: send it again")
            await failed(Request(scope), error)(scope, receive, send)
        except RequestTooLarge as error:
            await failed(Request(scope), error)(scope, receive, send)
        else:
            if body is not None:
                await self._app(scope, _replayed(body, receive), send)

    async def _read(self, scope: Scope, receive: Receive) -> bytes | None:
        """The whole body, None where whoever sent it has gone.

        Raises:
            RequestTooLarge: it is larger than what is taken, or says so.
        """
        body = bytearray()
        said = _length(Headers(scope=scope).get("content-length", ""))
        more = said <= self._largest
        while more and len(body) <= self._largest:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            body += message.get("body", b"")
            more = message.get("more_body", False)
        if max(said, len(body)) > self._largest:
            raise RequestTooLarge(f"the request has more than {self._largest:,} bytes: send less at once")
        return bytes(body)


def _length(said: str) -> float:
    """How long a body is said to be, in bytes; 0 where that says nothing."""
    if not said.isascii() or not said.isdigit():
        return 0
    return int(said) if len(said) < _DIGITS else math.inf


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

    Args:
        app: what answers.
        per_minute: requests of one caller.
    """

    def __init__(self, app: ASGIApp, *, per_minute: int) -> None:
        self._app = app
        self._rate = Rate(per_minute)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse."""
        if scope["type"] == "http":
            try:
                self._rate.count(*_names(Request(scope)))
            except TooManyRequests as error:
                await failed(Request(scope), error)(scope, receive, send)
                return
        await self._app(scope, receive, send)


class Rate:
    """Counts what callers do in a minute, each for themselves as long as they are not too many to be told apart."""

    def __init__(self, per_minute: int, *, callers: int = _CALLERS) -> None:
        self._limit, self._callers = RateLimitItemPerMinute(per_minute), callers
        self._counts = MemoryStorage()
        # A moving window would keep the name of whoever was ever seen.
        self._limiter = FixedWindowRateLimiter(self._counts)

    def count(self, *names: str) -> None:
        """Count one more of a caller.

        Args:
            names: who it is, at least one; the first that is known counts, or for which there is room.

        Raises:
            TooManyRequests: it is one too many.
        """
        rooms = (*(self._callers for _ in names[1:]), 2 * self._callers)  # the last one's is not for all to fill
        told_apart = (name for name, room in zip(names, rooms, strict=True) if self._told_apart(name, room))
        caller = next(told_apart, _OTHERS)
        if not self._limiter.hit(self._limit, caller):
            reset = self._limiter.get_window_stats(self._limit, caller).reset_time
            raise TooManyRequests(
                f"more than {self._limit.amount} requests in a minute: ask again later, or less often",
                retry_after=max(1, math.ceil(reset - time.time())),
            )

    def __len__(self) -> int:
        """How many callers are told apart now."""
        return len(self._counts.storage)

    def _told_apart(self, caller: str, room: int) -> bool:
        return len(self) < room or self._limit.key_for(caller) in self._counts.storage


def _names(request: Request) -> Iterator[str]:
    """Who calls: whoever holds a credential, which need not be one; else, or where these are too many, an address."""
    credential = request.headers.get("authorization") or request.cookies.get(COOKIE)
    if credential:
        yield hashlib.sha256(credential.encode(errors="surrogatepass")).hexdigest()
    yield request.client.host if request.client else ""
