"""Asks an embeddings server: again where that may help, and where it does not, says what to do about it."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

import httpx
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    stop_after_attempt,
    stop_before_delay,
    wait_exponential,
    wait_random,
)

from memory_pipeline.bounded import bounded
from memory_pipeline.errors import EmbedderUnavailable

if TYPE_CHECKING:
    from memory_pipeline.embedding.model import Server

_PATH = "/embeddings"
_ATTEMPTS = 4
_LONGEST_PAUSE = 20.0  # seconds, whatever a server asks for: somebody may be waiting for a recall
_CONNECTING = 5.0  # seconds
_LARGEST = 256 << 20  # bytes of an answer: 2,048 vectors of 4,096 numbers take some 180 MB
_SAID = 200  # characters of what a server says
_URL = re.compile(r"\w+://\S+")
_OK = 200
_REDIRECTED = range(300, 400)
_FAULTS_OF_THE_SERVER = 500
_MAY_PASS = frozenset({408, 409, 425, 429})
_KEY_REFUSED = frozenset({401, 403})
_NOT_THERE = frozenset({404, 405})
_back_off = wait_exponential(multiplier=0.2, max=5) + wait_random(0, 0.2)


class _MayPass(Exception):
    """What another attempt may find gone.

    Attributes:
        pause: seconds that the server asks to wait for.
    """

    def __init__(self, message: str, pause: float | None = None) -> None:
        self.pause = pause
        super().__init__(message)


class Endpoint:
    """The embeddings of one server. Safe to use from several threads, and in forked children of a process that used it.

    A request that fails in a way that may pass (no connection, no answer in time, an overloaded or failing server) is
    sent up to four times, for at most twice the time that one may take. Embedding a text twice does no harm. After one
    that failed in vain the next are sent once, until one succeeds: a projector that looks for what is to blame, and
    whoever waits for a recall, learn soon enough that it still does.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._retrying = Retrying(
            stop=stop_after_attempt(_ATTEMPTS) | stop_before_delay(2 * server.timeout),
            wait=_pause,
            retry=retry_if_exception_type(_MayPass),
            reraise=True,
        )
        self._failing = False
        # By process: connections that a parent has open are its own, and one that is shared mixes up the answers.
        self._clients: dict[int, httpx.Client] = {}

    def ask(self, request: Mapping[str, object]) -> bytes:
        """What the server answers to a request.

        Raises:
            EmbedderUnavailable: it is away, or refuses the request.
        """
        body = json.dumps(request).encode()
        try:
            answer = self._sent(body) if self._failing else self._retrying(self._sent, body)
        except _MayPass as error:
            self._failing = True
            raise EmbedderUnavailable(f"the embeddings server {error}") from error.__cause__
        self._failing = False
        return answer

    def close(self) -> None:
        """Close the connections of this process; a later request opens others."""
        if client := self._clients.pop(os.getpid(), None):
            client.close()

    def _client(self) -> httpx.Client:
        # Without a lock, which a parent might have held when it forked: of two that are made at once, one is forgotten.
        if client := self._clients.get(os.getpid()):
            return client
        seconds = self._server.timeout
        made = httpx.Client(headers=self._headers(), timeout=httpx.Timeout(seconds, connect=min(seconds, _CONNECTING)))
        return self._clients.setdefault(os.getpid(), made)

    def _headers(self) -> dict[str, str]:
        key = self._server.api_key
        authorization = {"Authorization": f"Bearer {key.get_secret_value()}"} if key else {}
        return {"Content-Type": "application/json", **authorization}

    def _sent(self, body: bytes) -> bytes:
        seconds = self._server.timeout
        try:
            # The client bounds each read, of which a server can make do with any number before its answer begins. A
            # thread that is left keeps one of the client's connections, of which there are a hundred.
            answer = bounded(
                lambda: self._exchanged(body), seconds + min(seconds, _CONNECTING), name="embeddings request"
            )
        except (httpx.ReadTimeout, TimeoutError) as error:
            raise _MayPass(f"did not answer within {seconds:g} seconds: {self._look_at_url}") from error
        except httpx.DecodingError as error:
            raise EmbedderUnavailable(
                f"the embeddings server answers with what cannot be embeddings ({error}): {self._look_at_url}"
            ) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise _MayPass(f"cannot be reached ({type(error).__name__}): {self._look_at_url}") from error
        if answer.status_code == _OK:
            return answer.content
        raise self._failure(answer)

    def _exchanged(self, body: bytes) -> httpx.Response:
        deadline = time.monotonic() + self._server.timeout
        with self._client().stream("POST", self._server.url + _PATH, content=body) as stream:
            return _received(stream, deadline)

    def _failure(self, answer: httpx.Response) -> _MayPass | EmbedderUnavailable:
        status = answer.status_code
        if status in _MAY_PASS or status >= _FAULTS_OF_THE_SERVER:
            return _MayPass(f"is busy or fails ({self._said(answer)}): try again later", _retry_after(answer))
        return EmbedderUnavailable(f"the embeddings server {self._refusal(answer)}")

    def _refusal(self, answer: httpx.Response) -> str:
        status, named = answer.status_code, self._server.named
        if status in _KEY_REFUSED:  # without what it says, which may repeat a part of the key
            return f"does not let us in ({status}): set {named}_API_KEY to a key that it knows"
        if status in _NOT_THERE:
            return (
                f"has no embeddings at that address, or not of this model ({self._said(answer)}): {self._look_at_url}, "
                "which ends with /v1 for most servers, and at MEMORY_EMBEDDING_MODEL"
            )
        if status in _REDIRECTED:
            return f"is elsewhere ({status}): set {named}_URL to the address that it redirects to"
        return (
            f"refuses this ({self._said(answer)}): where it refuses every text, look at MEMORY_EMBEDDING_MODEL, "
            "…_BATCH_SIZE and …_FIELDS"
        )

    @property
    def _look_at_url(self) -> str:
        return f"look at it, and at {self._server.named}_URL"

    def _said(self, answer: httpx.Response) -> str:
        """Status and reason that a server gives, on one line and without what is nobody's business, or no sign."""
        said = " ".join("".join(sign if sign.isprintable() else " " for sign in _message(answer)).split())
        if key := self._server.api_key:
            said = said.replace(key.get_secret_value(), "***")
        said = _URL.sub("…", said)[:_SAID]
        return f"{answer.status_code}: {said}" if said else str(answer.status_code)


def _received(stream: httpx.Response, deadline: float) -> httpx.Response:
    """The whole answer: the client's own limit is one of each read, however many of them there are.

    Raises:
        httpx.ReadTimeout: it has not come to its end by then.
        httpx.DecodingError: it is larger than any answer, or cannot be decoded.
    """
    body = bytearray()
    for part in stream.iter_bytes():
        body += part
        if time.monotonic() > deadline:
            raise httpx.ReadTimeout("the answer does not come to its end", request=stream.request)
        if len(body) > _LARGEST:
            raise httpx.DecodingError(f"more than {_LARGEST >> 20} MiB", request=stream.request)
    # As they came: what is no ASCII in one of them is nobody's business.
    headers = [(name, value) for name, value in stream.headers.raw if name.lower() != b"content-encoding"]
    return httpx.Response(stream.status_code, headers=headers, content=bytes(body))


def _pause(state: RetryCallState) -> float:
    """Seconds until the next attempt: what the server asks for, within reason, else longer each time."""
    error = state.outcome.exception() if state.outcome else None
    asked = error.pause if isinstance(error, _MayPass) else None
    return _back_off(state) if asked is None else min(max(asked, 0.0), _LONGEST_PAUSE)


def _retry_after(answer: httpx.Response) -> float | None:
    """The header of that name, which is a number of seconds or a date."""
    given = answer.headers.get("Retry-After", "")
    if given.isascii() and given.isdigit():
        return float(given)
    with suppress(ValueError, OverflowError):
        return parsedate_to_datetime(given).timestamp() - time.time()
    return None


def _message(answer: httpx.Response) -> str:
    """What stands in an error as OpenAI writes it, or as other servers do; anything else may repeat the texts."""
    try:
        body = answer.json()
    except ValueError:
        return ""
    error = body.get("error", body.get("message")) if isinstance(body, dict) else None
    said = error.get("message") if isinstance(error, dict) else error
    return said if isinstance(said, str) else ""
