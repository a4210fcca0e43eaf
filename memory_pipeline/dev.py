"""Runs the web, and Dagster's UI and daemon, over the services of the settings until it is told to stop.

Processes are started, each the leader of a process group of its own: the code server, in whose group the runs are too;
Dagster's UI; its daemon; and the web. Dagster's share one code server over a private socket, so that the definitions
are loaded once, and a signal to this process, the death of one of them, or Ctrl-C ends them all. When this process is
killed, they end by themselves; until then they hold its lock of the home, so that no second daemon comes beside theirs.

The embedded PostgreSQL is watched too: whoever needs it starts it, but the daemon needs it before it starts anybody.
"""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from rich.console import Console

from memory_pipeline.dagster_home import CHECKOUT, dagster_environment, write_dagster_home
from memory_pipeline.errors import InvalidInput, InvalidSettings, MemoryPipelineError
from memory_pipeline.extras import require
from memory_pipeline.listening import SOCKET_BYTES, address, listening
from memory_pipeline.runtime import Runtime
from memory_pipeline.watchdog import POLL, Watchdog

if TYPE_CHECKING:
    from memory_pipeline.embedded import EmbeddedPostgres
    from memory_pipeline.settings import Settings

LOCATION = "memory_pipeline.definitions"
DEFAULT_WEB_PORT = 8000

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_READY_SECONDS = 120.0
_STOP_SECONDS = 8.0  # a run may be under way; what it committed stays, and the rest is done by the next
_KILL_SECONDS = 5.0
_OURSELVES = "dev"
_SOCKET = "code"

_console = Console(stderr=True, highlight=False, emoji=False)


@dataclass(frozen=True)
class Addresses:
    """Where Dagster's UI listens, and on the same host the web, if it is to run."""

    host: str
    port: int
    web_port: int | None


@dataclass(frozen=True)
class _Child:
    """A process that was started, the leader of its process group."""

    name: str
    process: subprocess.Popen[bytes]


@dataclass(frozen=True)
class _Hold:
    """The lock of a home's only `dev`, held by all of its processes together. The locked file says which they are."""

    descriptor: int

    def add(self, name: str, pid: int) -> None:
        os.write(self.descriptor, f"{pid} {_started(pid)} {name}\n".encode())


class _Stopped(Exception):
    """Somebody asked for the end."""


def run_dev(
    settings: Settings, *, host: str = "127.0.0.1", port: int = 3000, web_port: int | None = DEFAULT_WEB_PORT
) -> int:
    """Start the web, and Dagster's UI and daemon, with sensors on, and wait until they are to stop.

    The home, the sessions root and, by its owner, the archive's tables are made where they are missing. Returns when
    Ctrl-C, SIGTERM or SIGHUP asks for it, or when one of the processes dies, after everything that was started has
    stopped.

    Args:
        settings: which services.
        host: the address that both listen on. Dagster has no login: others than the loopback address expose it.
        port: the port that Dagster's UI listens on.
        web_port: the port that the web listens on; None for none.

    Returns:
        the exit code: 0 when it was asked to stop, 1 when a process died.

    Raises:
        InvalidSettings: an extra is not installed, this is not a checkout, or nobody issues tokens for the web.
        InvalidInput: a port is in use, the address is not of this machine, or the home has such a process already.
        ArchiveUnavailable, SchemaOutOfDate: the archive cannot be used, or its embedded server does not stay up.
    """
    at = Addresses(host, port, web_port)
    _refuse_unusable(settings, at)
    with _signals_raised(), ExitStack() as stack:
        try:
            runtime = stack.enter_context(Runtime(settings, create=True))
            _make_ready(runtime)
            hold = stack.enter_context(_alone(settings))
            settings.sessions.mkdir(parents=True, exist_ok=True)
            children = _start(stack, hold, dagster_environment(runtime), at)
            _tell(settings, at)
            return _watch(children, runtime.embedded_server)
        except _Stopped:
            _console.print("Stopping…")
            return 0


def _make_ready(runtime: Runtime) -> None:
    """Migrate the archive; who is not told its owner finds it migrated, or is told to have it done."""
    if runtime.settings.embedded_archive or runtime.settings.owner_url is not None:
        runtime.migrate()
    else:
        with runtime.database.registry():  # which looks at the schema
            pass


def _refuse_unusable(settings: Settings, at: Addresses) -> None:
    require("pipeline", *(["web"] if at.web_port is not None else []))
    if not (CHECKOUT / "workspace.yaml").is_file() or not (CHECKOUT / "assets").is_dir():
        raise InvalidSettings("the Dagster assets are not part of the installed package: run this from a checkout")
    if at.port == at.web_port:
        raise InvalidInput(f"Dagster and the web cannot share port {at.port}: name another one with --web-port")
    listening(at.host, at.port).close()
    if at.web_port is None:
        return
    listening(at.host, at.web_port, options="--host and --web-port").close()
    if not settings.embedded_archive and not settings.jwt_issuer:
        raise InvalidSettings(
            "set MEMORY_JWT_ISSUER, MEMORY_JWT_AUDIENCE and MEMORY_JWT_KEYS, whose tokens the web takes over an "
            "archive of your own, or leave the web out with --no-web"
        )


@contextmanager
def _alone(settings: Settings) -> Iterator[_Hold]:
    """Two daemons over one storage would each do everything, so that each run came twice."""
    file = write_dagster_home(settings) / "dev.lock"
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise InvalidInput(_what_runs(settings.home, file.read_text())) from None
    try:
        os.ftruncate(descriptor, 0)
        hold = _Hold(descriptor)
        hold.add(_OURSELVES, os.getpid())
        yield hold
    finally:
        os.close(descriptor)  # and not unlocked: a process that does not end keeps it


def _what_runs(home: Path, holders: str) -> str:
    """What still holds the lock of a home, and how to stop it; `holders` is what the locked file says."""
    entries = [line.split(" ", 2) for line in holders.splitlines()]
    running = {name: int(pid) for pid, started, name in entries if started and _started(int(pid)) == started}
    named = ", ".join(f"{name} {pid}" for name, pid in running.items())
    pids = [running[_OURSELVES]] if _OURSELVES in running else list(running.values())
    end = f"end it with: kill {' '.join(map(str, pids))}" if pids else "try again in a moment"
    return f"another `memory-pipeline dev` still runs over the home {home.resolve()} (processes: {named or '?'}); {end}"


def _started(pid: int) -> str:
    """When a process was started, "" when there is none: a number alone may have been given to another since."""
    import psutil  # noqa: PLC0415  # comes with the extra

    try:
        return f"{psutil.Process(pid).create_time():.1f}"
    except psutil.Error:
        return ""


@contextmanager
def _signals_raised() -> Iterator[None]:
    """Have the signals that end a program raise here, once: further ones must not interrupt the stopping."""

    def stop(number: int, frame: FrameType | None) -> None:
        del number, frame
        for each in before:
            signal.signal(each, signal.SIG_IGN)
        raise _Stopped

    # One that is ignored already, as under nohup, stays so.
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    before = {number: handler for number, handler in before.items() if handler is not signal.SIG_IGN}
    for number in before:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _start(stack: ExitStack, hold: _Hold, environment: Mapping[str, str], at: Addresses) -> list[_Child]:
    """Start the processes, each ready before those that need it; leaving the stack stops them, the last one first."""
    lifeline = _lifeline(stack)
    directory = _place_of_socket(stack, Path(environment["DAGSTER_HOME"]))
    code, workspace = directory / _SOCKET, directory / "workspace.yaml"
    workspace.write_text(f"load_from:\n  - grpc_server:\n      socket: {code}\n      location_name: {LOCATION}\n")

    def start(name: str, *arguments: str) -> _Child:
        command = [sys.executable, "-m", "memory_pipeline.attached", str(lifeline), *arguments]
        process = subprocess.Popen(  # noqa: S603  # our own interpreter and arguments
            command,
            env=environment,
            # Dagster's directory, where no .env file of the checkout contradicts what was resolved here.
            cwd=environment["DAGSTER_HOME"],
            stdin=subprocess.DEVNULL,
            process_group=0,
            pass_fds=(lifeline, hold.descriptor),
        )
        child = _Child(name, process)
        stack.callback(_stop, child)
        hold.add(name, process.pid)
        return child

    what = ("--module-name", LOCATION, "--working-directory", str(CHECKOUT))
    quiet = ("--log-level", "warning")
    server = start("Dagster's code server", "dagster", "api", "grpc", "--socket", str(code), *what, *quiet)
    _await(lambda: _answers(socket.AF_UNIX, str(code)), [server])
    daemon = start("Dagster's daemon", "dagster._daemon", "run", "--workspace", str(workspace), *quiet)
    where = ("--host", at.host, "--port", str(at.port))
    ui = start(
        "Dagster's UI", "dagster_webserver", "--workspace", str(workspace), *where, "--dagster-log-level", "warning"
    )
    children = [server, daemon, ui]
    if at.web_port is not None:
        where = ("--host", at.host, "--port", str(at.web_port))
        children.append(start("the web", "memory_pipeline.cli", "serve", *where, "--attended"))
    _await(lambda: all(_listens(at.host, port) for port in (at.port, at.web_port) if port), children)
    return children


def _place_of_socket(stack: ExitStack, dagster_home: Path) -> Path:
    """Where the code server's socket is: at one place, which Dagster knows the code location by, if that is short."""
    if len(os.fsencode(dagster_home / _SOCKET)) <= SOCKET_BYTES:
        return dagster_home
    return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="memory-dev-")))


def _lifeline(stack: ExitStack) -> int:
    """The reading end of a pipe that ends with this process, however that comes about."""
    reading, writing = os.pipe()
    stack.callback(os.close, reading)
    stack.callback(os.close, writing)
    return reading


def _await(ready: Callable[[], bool], children: Sequence[_Child]) -> None:
    deadline = time.monotonic() + _READY_SECONDS
    while not ready():
        if dead := _dead(children):
            raise MemoryPipelineError(f"{dead.name} ended while starting: see what it printed above")
        if time.monotonic() > deadline:
            raise MemoryPipelineError(f"{children[-1].name} did not start in {_READY_SECONDS:.0f} s")
        time.sleep(POLL)


def _listens(host: str, port: int) -> bool:
    family, *_, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    return _answers(family, where)


def _answers(family: int, address: object) -> bool:
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        try:
            probe.connect(address)  # type: ignore[arg-type]  # a path or a pair, as the family has it
        except OSError:
            return False
        return True


def _tell(settings: Settings, at: Addresses) -> None:
    if at.web_port is not None:
        _print(f"Cards and reviews are at {address(at.host, at.web_port)}")
    _print(f"Dagster is at {address(at.host, at.port)}; Ctrl-C stops it and everything that was started.")
    _print(f"Sessions are read from {settings.sessions.resolve()}")
    _print(f"The home is {settings.home.resolve()}")


def _print(line: str) -> None:
    _console.print(line, soft_wrap=True)


def _watch(children: Sequence[_Child], server: EmbeddedPostgres | None) -> int:
    watchdog = Watchdog(server, _print) if server else None
    while (dead := _dead(children)) is None:
        if watchdog:
            watchdog.look()
        time.sleep(POLL)
    _print(f"error: {dead.name} ended (exit code {dead.process.returncode}); stopping the others")
    return 1


def _dead(children: Sequence[_Child]) -> _Child | None:
    return next((child for child in children if child.process.poll() is not None), None)


def _stop(child: _Child) -> None:
    """End a process and its group: politely, then surely."""
    _signal(child, signal.SIGTERM)
    if not _ended(child, _STOP_SECONDS):
        _signal(child, signal.SIGKILL)
        if not _ended(child, _KILL_SECONDS):
            _console.print(f"warning: {child.name} (process group {child.process.pid}) does not end")


def _signal(child: _Child, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):  # gone already; macOS refuses a group of nothing but zombies
        os.killpg(child.process.pid, number)


def _ended(child: _Child, seconds: float) -> bool:
    """Whether the whole group ended in time; runs may outlive the code server that started them."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        child.process.poll()  # a leader that ended stays in its group until it is waited for
        try:
            os.killpg(child.process.pid, 0)
        except (ProcessLookupError, PermissionError):
            return True
        time.sleep(POLL)
    return False
