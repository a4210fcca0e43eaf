"""Errors as answers: the one place that gives each of the library's errors its HTTP status and its body."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from fastapi import FastAPI, Request
from fastapi.encoders import jsonable_encoder
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse, Response
from starlette.exceptions import HTTPException
from starlette.routing import Match

from memory_pipeline import errors
from memory_pipeline.edits import NAME_LIMIT
from memory_pipeline.errors import MemoryPipelineError
from memory_pipeline.text import readable
from memory_pipeline.web.identity import InvalidToken
from memory_pipeline.web.rendering import address, rendered

API = "/api/"
_logger = logging.getLogger(__name__)
_RETRY_AFTER = "5"  # seconds
_FAULTS_NAMED = 50  # of a request, which may have as many as it has bytes
_METHODS = ("GET", "POST", "PATCH", "DELETE")


class TooManyRequests(MemoryPipelineError):
    """The caller has asked too often; `retry_after` says in how many seconds to ask again."""

    def __init__(self, message: str, *, retry_after: int) -> None:
        self.retry_after = retry_after
        super().__init__(message)


class RequestTooLarge(MemoryPipelineError):
    """A request has more bytes than are taken."""


class RequestTooSlow(MemoryPipelineError):
    """A request was not sent in time."""


class ForeignRequest(MemoryPipelineError):
    """A form that was sent by another site, or in the name of somebody else than who is signed in."""


class SignInNeeded(MemoryPipelineError):
    """A page was asked for by nobody who is signed in."""


_STATUS: Mapping[type[MemoryPipelineError], HTTPStatus] = {
    errors.InvalidInput: HTTPStatus.BAD_REQUEST,
    errors.InvalidEdit: HTTPStatus.BAD_REQUEST,
    errors.InvalidReview: HTTPStatus.BAD_REQUEST,
    InvalidToken: HTTPStatus.UNAUTHORIZED,
    SignInNeeded: HTTPStatus.UNAUTHORIZED,
    errors.NotPermitted: HTTPStatus.FORBIDDEN,
    ForeignRequest: HTTPStatus.FORBIDDEN,
    errors.UnknownWorkspace: HTTPStatus.NOT_FOUND,
    errors.CardNotFound: HTTPStatus.NOT_FOUND,
    errors.SessionNotFound: HTTPStatus.NOT_FOUND,
    errors.VersionConflict: HTTPStatus.CONFLICT,
    errors.ReviewOvertaken: HTTPStatus.CONFLICT,
    errors.WorkspaceInUse: HTTPStatus.CONFLICT,
    RequestTooLarge: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    RequestTooSlow: HTTPStatus.REQUEST_TIMEOUT,
    TooManyRequests: HTTPStatus.TOO_MANY_REQUESTS,
}
_INVALID = errors.InvalidInput.__name__
_MESSAGES = {
    HTTPStatus.NOT_FOUND: "there is nothing at this address",
    HTTPStatus.METHOD_NOT_ALLOWED: "this address cannot be asked so: the header `Allow` says how",
}
_AWAY = HTTPStatus.SERVICE_UNAVAILABLE  # whatever else the library raises: something that it needs is away or wrong


def status_of(error: MemoryPipelineError) -> HTTPStatus:
    """The HTTP status of an error."""
    return next((_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS), _AWAY)


def handle_failures(app: FastAPI) -> None:
    """Have every error answered as JSON under `/api/`, and as a page elsewhere."""
    app.add_exception_handler(MemoryPipelineError, _library)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(HTTPException, _of_http)


def unexpected(request: Request) -> Response:
    """The answer to an error that nobody foresaw; what it was stands in the log, under the number of the request."""
    number = request.state.request_id
    message = f"something went wrong here: the server's log says where, in request {number}"
    error = {"kind": "Unexpected", "message": message, "request_id": number}
    return _answer(request, HTTPStatus.INTERNAL_SERVER_ERROR, error)


def failed(request: Request, error: MemoryPipelineError) -> Response:
    """The answer to one of the library's errors."""
    if isinstance(error, errors.SessionsUnavailable):
        _logger.warning("%s", error)  # which names a directory of this machine, as its administrator wants it
        error = errors.SessionsUnavailable("the session directories of the workspace cannot be read: the log says why")
    status = status_of(error)
    if isinstance(error, SignInNeeded) and request.method in {"GET", "HEAD"}:
        return RedirectResponse(_sign_in(request), HTTPStatus.SEE_OTHER)
    return _answer(request, status, jsonable_encoder(error.as_json()), _headers(error, status))


def _library(request: Request, error: Exception) -> Response:
    assert isinstance(error, MemoryPipelineError)  # noqa: S101  # as it is registered
    return failed(request, error)


def _malformed(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101  # as it is registered
    # The place and what is wrong there; not the value, which may be anything.
    found = error.errors()
    faults = {_place(each["loc"]): each["msg"] for each in found[:_FAULTS_NAMED]}
    named = [f"{place}: {fault}" for place, fault in faults.items()]
    message = "; ".join([*named, f"and {len(found) - _FAULTS_NAMED} more"] if len(found) > _FAULTS_NAMED else named)
    return _answer(request, HTTPStatus.BAD_REQUEST, {"kind": _INVALID, "message": message, "faults": faults})


def _place(location: Sequence[object]) -> str:
    """The field in which something is wrong, as far as it is not a name of the caller's own and without an end."""
    within = ".".join(map(str, location[1:])) or str(location[0])
    return readable(within)[:NAME_LIMIT]


def _of_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101  # as it is registered
    status, headers = HTTPStatus(error.status_code), dict(error.headers or {})
    if status is HTTPStatus.METHOD_NOT_ALLOWED:  # where one route knows nothing of the others of the same address
        headers["Allow"] = ", ".join(_methods(request))
    return _answer(
        request, status, {"kind": _kind(status), "message": _MESSAGES.get(status, str(error.detail))}, headers
    )


def _kind(status: HTTPStatus) -> str:
    return _INVALID if status is HTTPStatus.BAD_REQUEST else "".join(map(str.capitalize, status.phrase.split()))


def _methods(request: Request) -> list[str]:
    """The methods by which an address can be asked."""
    scopes = {method: {**request.scope, "method": method, "fastapi": {}} for method in _METHODS}
    routes = request.app.routes
    found = [method for method in _METHODS if any(each.matches(scopes[method])[0] is Match.FULL for each in routes)]
    return ["HEAD", *found] if "GET" in found else found  # see `protection.Heads`


def _answer(
    request: Request, status: HTTPStatus, error: Mapping[str, Any], headers: Mapping[str, str] | None = None
) -> Response:
    if request.url.path.startswith(API):
        return JSONResponse({"error": error}, status, headers)
    return rendered(request, "failure.html", {"status": status, "error": error}, status=status, headers=headers)


def _headers(error: MemoryPipelineError, status: HTTPStatus) -> dict[str, str]:
    if isinstance(error, InvalidToken):
        return {"WWW-Authenticate": "Bearer"}
    if isinstance(error, TooManyRequests):
        return {"Retry-After": str(error.retry_after)}
    return {"Retry-After": _RETRY_AFTER} if status is _AWAY else {}


def _sign_in(request: Request) -> str:
    asked = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return f"{address(request, 'sign_in')}?{urlencode({'to': asked})}"
