"""Runs the web in one process over the services of the settings, until it is told to stop.

Asked to stop, it takes no more requests, finishes those under way, closes what it opened, and ends; whatever does not
end by itself within seconds is left, as `kill -9` would leave it: what it did not commit is undone.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Any

import uvicorn
from rich.console import Console

from memory_pipeline.errors import ArchiveUnavailable
from memory_pipeline.listening import address, listening
from memory_pipeline.runtime import Runtime
from memory_pipeline.watchdog import POLL, Watchdog
from memory_pipeline.web.app import create_app
from memory_pipeline.web.connections import Punctual, make_room
from memory_pipeline.web.discretion import Discreet
from memory_pipeline.web.identity import LocalToken
from memory_pipeline.web.services import Services

if TYPE_CHECKING:
    from fastapi import FastAPI

    from memory_pipeline.settings import Settings

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Longer than clients and proxies keep a connection (nginx: 60): whoever closes first must not be the one that is asked,
# or a request would meet a connection that is closed at that moment.
_KEEP_ALIVE_SECONDS = 75
_FINISH_SECONDS = 5  # for requests under way
_LEAVE_SECONDS = 1.0  # for their threads, once archive and index are closed
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"

_console = Console(stderr=True, highlight=False, emoji=False, markup=False)
_logger = logging.getLogger(__name__)


def run_serve(
    settings: Settings, *, host: str = "127.0.0.1", port: int = 8000, debug: bool = False, attended: bool = False
) -> int:
    """Answer requests until Ctrl-C, SIGTERM or SIGHUP asks for the end.

    Args:
        settings: which services.
        host: the address to listen on.
        port: the port to listen on.
        debug: whether the log quotes errors, and with them perhaps content.
        attended: whether whoever started this watches the embedded server and tells where to find the web.

    Returns:
        the exit code, 0: it was asked to stop.

    Raises:
        InvalidInput: the port is in use, or the address is not of this machine.
        InvalidSettings: an archive of somebody's own needs an issuer of tokens, or the home's token cannot be used.
        ArchiveUnavailable: the home holds no archive, or its server does not stay up.
        SchemaOutOfDate: the archive's schema is missing or of another revision.
    """
    with ExitStack() as stack:
        stack.callback(_restore, {number: signal.getsignal(number) for number in _SIGNALS})
        held = stack.enter_context(closing(listening(host, port)))
        runtime = stack.enter_context(Runtime(settings, warm=True))
        _refuse_unusable_archive(runtime)
        make_room()
        services = Services.of(runtime)
        _keep_log(debug=debug)
        _tell_token(settings, services)
        services.standing.begin()
        server = _Server(create_app(services), _welcome(settings, host, held, attended=attended))
        with _kept_up(runtime, server.stop, attended=attended):
            server.run(sockets=[held])
    _leave()
    return 0


class _Server(uvicorn.Server):
    """The server, which says when it can be asked, and for which to be stopped is no error."""

    def __init__(self, app: FastAPI, welcome: tuple[str, ...]) -> None:
        # What is tested is what everybody has: uvloop and httptools come and go with other packages.
        config = uvicorn.Config(
            app,
            loop="asyncio",
            http=Punctual,
            ws="none",
            log_config=None,
            access_log=False,  # ours says no more than it may
            server_header=False,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=_FINISH_SECONDS,
        )
        super().__init__(config)
        self._welcome = welcome

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say so."""
        await super().startup(sockets)
        for line in self._welcome:
            _say(line)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Have signals stop the server, a second Ctrl-C without waiting for requests, and none the stopping itself."""
        # One that is ignored already, as under nohup, stays so.
        taken = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
        for number in taken:
            signal.signal(number, self.handle_exit)
        yield
        for number in taken:
            signal.signal(number, signal.SIG_IGN)

    def stop(self) -> None:
        """Ask for the end."""
        self.should_exit = True


def _restore(handlers: Mapping[int, Any]) -> None:
    for number, handler in handlers.items():
        signal.signal(number, handler)


def _refuse_unusable_archive(runtime: Runtime) -> None:
    """A server of somebody's own may come later: until then `/ready` says that it is away."""
    try:
        with runtime.database.registry():
            pass
    except ArchiveUnavailable as error:
        if runtime.settings.embedded_archive:
            raise
        _say(f"warning: {error}; starting all the same")


def _tell_token(settings: Settings, services: Services) -> None:
    """Show a token that was made just now. It is printed and not logged, and never again."""
    authority = services.authority
    if isinstance(authority, LocalToken) and authority.new:
        _say(f"Sign in with this token, which is shown this once and kept in {LocalToken.place(settings)}:")
        _say(authority.token)


def _welcome(settings: Settings, host: str, held: socket.socket, *, attended: bool) -> tuple[str, ...]:
    """What is said once the server listens."""
    bound, port = held.getsockname()[:2]
    lines = [] if attended else [f"Open {address(host, port)}; Ctrl-C stops it."]
    if not settings.jwt_issuer:
        lines.append(f"The token to sign in with is in {LocalToken.place(settings)}")
    if not ipaddress.ip_address(bound.partition("%")[0]).is_loopback:
        known = ", ".join(settings.web_hosts) or "none"
        lines.append(
            "warning: others reach this address, and tokens would pass unencrypted: let a proxy before it do TLS, and "
            f"name in MEMORY_WEB_HOSTS (now: {known}) the hosts that it is asked by"
        )
    return tuple(lines)


def _keep_log(*, debug: bool) -> None:
    handler = logging.StreamHandler()
    handler.setFormatter((logging.Formatter if debug else Discreet)(_FORMAT))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("memory_pipeline").setLevel(logging.DEBUG if debug else logging.INFO)


@contextmanager
def _kept_up(runtime: Runtime, stop: Callable[[], None], *, attended: bool) -> Iterator[None]:
    """Start an embedded PostgreSQL again that is gone.

    Raises:
        ArchiveUnavailable: at the end, when that was of no use.
    """
    server = None if attended else runtime.embedded_server
    if server is None:
        yield
        return
    ended, faults = threading.Event(), []
    watchdog = Watchdog(server, _logger.warning)

    def watch() -> None:
        try:
            while not ended.wait(POLL):
                watchdog.look()
        except ArchiveUnavailable as error:
            faults.append(error)
            stop()

    thread = threading.Thread(target=watch, name="watchdog", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()  # before the server is stopped on purpose
    if faults:
        raise faults[0]


def _leave() -> None:
    """End now if a request does not: the interpreter would wait for its thread."""
    deadline = time.monotonic() + _LEAVE_SECONDS
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join(max(deadline - time.monotonic(), 0.0))
            if thread.is_alive():
                _say("warning: a request did not end in time, and was left; what it did not commit is undone")
                sys.stderr.flush()
                os._exit(0)


def _say(line: str) -> None:
    _console.print(line, soft_wrap=True)
