"""Connections that ask nothing do not stay, and bodies that do not come are not waited for."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator

import pytest
import uvicorn
from starlette.responses import PlainTextResponse

from memory_pipeline.web import connections
from memory_pipeline.web.connections import Punctual
from memory_pipeline.web.protection import Sized


async def hello(scope, receive, send):
    await PlainTextResponse("hello")(scope, receive, send)


@pytest.fixture
def port(monkeypatch) -> Iterator[int]:
    """Where a server listens that waits for a request for no longer than a moment."""
    monkeypatch.setattr(connections, "_SECONDS", 0.3)
    config = uvicorn.Config(hello, port=0, http=Punctual, lifespan="off", log_level="warning")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    thread.join()


def connected(port: int, sent: bytes = b"") -> socket.socket:
    opened = socket.create_connection(("127.0.0.1", port), timeout=20)
    opened.sendall(sent)
    return opened


def is_closed(connection: socket.socket) -> bool:
    """Whether the other end closes it, without having said anything."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: a\r\nX-Half: "])
def test_a_connection_that_asks_nothing_is_closed(port, sent):
    with connected(port, sent) as idle:
        assert is_closed(idle)


def test_a_request_is_answered_as_ever(port):
    with connected(port, b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n") as asking:
        answer = b"".join(iter(lambda: asking.recv(4_096), b""))

    assert answer.endswith(b"hello")


def test_a_body_that_was_answered_already_is_not_waited_for_however_it_drips(port):
    with connected(port, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n") as dripping:
        answer = b""
        while not answer.endswith(b"hello"):
            answer += dripping.recv(4_096)
        with pytest.raises(OSError):  # noqa: PT011  # whichever of them a connection has that is gone
            for _ in range(1_000):
                dripping.send(b"x")
                time.sleep(0.02)


def test_after_a_body_that_came_late_the_connection_takes_the_next_request(port):
    with connected(port, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n") as asking:
        while not (answer := asking.recv(4_096)).endswith(b"hello"):
            assert answer
        asking.sendall(b"xx")
        asking.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        assert b"".join(iter(lambda: asking.recv(4_096), b"")).endswith(b"hello")


def test_there_are_never_more_than_the_process_can_hold(port, monkeypatch):
    monkeypatch.setattr(connections, "CONNECTIONS", 2)
    monkeypatch.setattr(connections, "_SECONDS", 20)
    held = [connected(port) for _ in range(2)]
    time.sleep(0.1)  # until the server has taken them

    with connected(port) as further:
        assert is_closed(further)
    for each in held:
        each.close()


def test_a_body_that_does_not_come_is_not_waited_for():
    answers = []

    async def receive():
        await asyncio.sleep(60)

    async def send(message):
        answers.append(message)

    scope = {"type": "http", "method": "POST", "path": "/api/v1/x", "headers": [], "query_string": b""}
    asyncio.run(Sized(hello, largest=10, seconds=0.05)(scope, receive, send))

    assert answers[0]["status"] == 408
    assert b"RequestTooSlow" in answers[1]["body"]
