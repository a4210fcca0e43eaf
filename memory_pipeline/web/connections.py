"""Connections that ask for something in time: others are closed, and there are never more than the process can hold.

What is waited for is the head of a request, and the rest of a body that was answered already, since it was too large,
say. While a request is worked on, whoever works on it waits for its body.
"""

from __future__ import annotations

import asyncio
import resource

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

CONNECTIONS = 4_000
"""At once; behind a proxy it is the proxy's that count."""
_SECONDS = 20.0  # for either; uvicorn itself closes those alone that rest between two requests
_DESCRIPTORS = 65_536


class Punctual(H11Protocol):
    """A connection that is closed where what is waited for does not come in time, or where there are too many."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Begin, and wait for a request."""
        super().connection_made(transport)
        if len(self.connections) > CONNECTIONS:
            transport.abort()
            return
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Take what came; a request that began and has not ended its head is waited for no longer than another."""
        answered_early = self._answered_early
        super().data_received(data)
        if answered_early and not self._answered_early:  # the next head has a time of its own
            self._wait_no_longer()
        self._wait()

    def on_response_complete(self) -> None:
        """Go on to the next request, once the body of this one has come to its end."""
        super().on_response_complete()
        if self._answered_early:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._wait_no_longer()
        super().connection_lost(exc)

    @property
    def _answered_early(self) -> bool:
        """Whether a request has its answer, and not yet sent its body."""
        return self.conn.their_state is h11.SEND_BODY and self.conn.our_state is h11.DONE

    @property
    def _is_waited_for(self) -> bool:
        return self.conn.their_state is h11.IDLE or self._answered_early

    def _wait(self) -> None:
        if not self._is_waited_for:
            self._wait_no_longer()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(_SECONDS, self._close)

    def _wait_no_longer(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _close(self) -> None:
        self._deadline = None
        if self._is_waited_for:
            self.transport.abort()


def make_room() -> None:
    """Let the process hold as many files as it may: by default it is often no more than a thousand."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(_DESCRIPTORS, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
