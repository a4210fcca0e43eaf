"""A server over HTTP that says what it was told to say."""

from __future__ import annotations

import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextlib.contextmanager
def answering(answers):
    """A server that gives canned answers, by method and path: (status, result or error). A list is given one by one."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def answer(self):
            key = f"{self.command} {self.path.split('?')[0]}"
            asked.append((key, self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()))
            status, result = answers[key].pop(0) if isinstance(answers[key], list) else answers[key]
            if status is None:  # a connection that breaks
                return
            body = result if self.path == "/" else {"result": result, "status": "ok", "time": 0.0}
            if status >= 400:
                body = {"status": {"error": result}, "time": 0.0}
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        do_GET = do_PUT = do_POST = answer  # noqa: N815  # the standard library's names

        def log_message(self, format, *args):  # noqa: A002  # the base class names it so
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
