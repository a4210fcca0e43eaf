"""Programs of the tests, started over the archive and the home of a test, and the PostgreSQL server of a home."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil

from memory_pipeline.settings import Settings

CHECKOUT = Path(__file__).resolve().parents[1]
PROJECTION = "tests.propagation.projection_process"


def started(settings: Settings, module: str, *arguments: str) -> subprocess.Popen[str]:
    """A process that has said that it is ready, and waits for a line before it goes on."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(CHECKOUT),
        "MEMORY_HOME": str(settings.home),
        "MEMORY_DATABASE_URL": settings.database_url.get_secret_value(),
        "MEMORY_OWNER_URL": settings.owner_url.get_secret_value(),
    }
    command = [sys.executable, "-m", module, *arguments]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, env=environment, cwd=CHECKOUT, stdin=pipe, stdout=pipe, text=True)
    assert process.stdout.readline() == "ready\n"
    return process


def finished(processes: list[subprocess.Popen[str]]) -> list[str]:
    """Let processes go on, all at once, and wait for them; what each one said."""
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    return [process.communicate(timeout=120)[0] for process in processes]


def project_until_killed(settings: Settings, workspace: str, moment: str, *, work: str = "project") -> None:
    """A projection (or `rebuild`) in a process of its own, killed (`kill -9`) at one of the moments that it knows."""
    process = started(settings, PROJECTION, work, workspace, moment)
    finished([process])
    assert process.returncode == -signal.SIGKILL


def postmaster(home: Path) -> int | None:
    """The number of the process that the server of a home names as its own."""
    try:
        return int((home / "postgres" / "postmaster.pid").read_text().split()[0])
    except FileNotFoundError:
        return None


def alive(pid: int) -> bool:
    """Whether a process runs; one that ended and is not waited for does not."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def wait_until_gone(pid: int) -> None:
    """Wait until a process has ended."""
    while alive(pid):
        time.sleep(0.01)


def kill_postmaster(home: Path) -> int:
    """`kill -9` of the server of a home; the number of the process that it was."""
    pid = postmaster(home)
    assert pid
    os.kill(pid, signal.SIGKILL)
    wait_until_gone(pid)
    return pid
