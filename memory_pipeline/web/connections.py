"""Connections that ask for something in time: others are closed, and there are never more than the process can hold."""

from __future__ import annotations

import asyncio
import resource

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

CONNECTIONS = 4_000
"""At once; behind a proxy it is the proxy's that count."""
_SECONDS = 20.0  # for the head of a request; uvicorn itself closes those alone that rest between two requests
_DESCRIPTORS = 65_536


class Punctual(H11Protocol):
    """A connection that is closed where the head of a request does not come in time, or where there are too many."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Begin, and wait for a request."""
        super().connection_made(transport)
        if len(self.connections) > CONNECTIONS:
            transport.abort()
            return
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """Take what came; a request that began and has not ended its head is waited for no longer than another."""
        super().data_received(data)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._wait_no_longer()
        super().connection_lost(exc)

    def _await_head(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._wait_no_longer()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(_SECONDS, self._close)

    def _wait_no_longer(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _close(self) -> None:
        self._deadline = None
        if self.conn.their_state is h11.IDLE:
            self.transport.abort()


def make_room() -> None:
    """Let the process hold as many files as it may: by default it is often no more than a thousand."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(_DESCRIPTORS, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
