"""Watches every request from the outside: one line in the log, its figures, and an answer to errors nobody foresaw.

No line holds what was sent or asked for: neither values in a path, nor a query, a header, a body, a card's text or the
message of an error, which may quote any of them.
"""

from __future__ import annotations

import logging
import re
import time
import uuid
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request

from memory_pipeline.web.discretion import without_messages
from memory_pipeline.web.failures import unexpected

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from memory_pipeline.web.metrics import Metrics

_logger = logging.getLogger(__name__)
_access = logging.getLogger("memory_pipeline.web.access")

_HEADER = "X-Request-ID"
# What proxies and tracers give: UUIDs and other hexadecimal numbers. Nothing else can be passed off as one and logged.
_REQUEST_ID = re.compile(r"[0-9a-fA-F-]{8,64}")
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_OTHER = "other"
_UNMATCHED = "unmatched"
_UNROUTED = ("/static/", "/api/v1/openapi.json")  # routes of Starlette's own, which do not say which they are
_NO_ANSWER = 499  # as nginx calls it: whoever asked went away


class _Unfinished(Exception):
    """An answer that had begun cannot be ended: the server closes the connection."""


class Observed:
    """Counts, times and logs requests, and gives each an id.

    Args:
        app: what answers.
        metrics: where figures are kept.
    """

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, whatever happens."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        number = _request_id(scope)
        scope.setdefault("state", {})["request_id"] = number
        status, begun = _NO_ANSWER, time.perf_counter()

        async def numbered(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)[_HEADER] = number
            await send(message)

        with self._metrics.in_progress.track_inprogress():
            try:
                await self._app(scope, receive, numbered)
            except Exception as error:  # noqa: BLE001  # whatever it is: the server would log its message
                _report(error, number)
                if status != _NO_ANSWER:
                    raise _Unfinished from None
                await unexpected(Request(scope))(scope, receive, numbered)
            finally:
                self._record(scope, status, time.perf_counter() - begun, number)

    def _record(self, scope: Scope, status: int, seconds: float, number: str) -> None:
        method, route = scope["method"] if scope["method"] in _METHODS else _OTHER, template(scope)
        self._metrics.requests.labels(method, route, status).inc()
        self._metrics.durations.labels(method, route).observe(seconds)
        _access.info("%s %s %d %.1f ms %s", method, route, status, 1_000 * seconds, number)


def template(scope: Scope) -> str:
    """The path that a request matched, with the names of its parameters in place of their values."""
    # FastAPI keeps the route as its own router has it, and the prefixes of the routers around it beside it.
    route = scope.get("fastapi", {}).get("effective_route_context") or scope.get("route")
    path: str | None = getattr(route, "path", None)
    return path or next((known for known in _UNROUTED if scope["path"].startswith(known)), _UNMATCHED)


def _request_id(scope: Scope) -> str:
    given = Headers(scope=scope).get(_HEADER, "")
    return given if _REQUEST_ID.fullmatch(given) else str(uuid.uuid4())


def _report(error: Exception, number: str) -> None:
    _logger.error("unexpected error in request %s\n%s", number, without_messages(error))
    _logger.debug("what it says, in request %s", number, exc_info=error)
