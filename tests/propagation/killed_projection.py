"""Projects or rebuilds a workspace and is killed at a chosen moment: started as a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from memory_pipeline.propagation import project, rebuild
from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import Settings, load_settings
from tests.doubles import HashEmbedder, WatchedIndex, kill_this_process

CHECKOUT = Path(__file__).resolve().parents[2]
WORK = {"project": project, "rebuild": rebuild}


def until_killed(settings: Settings, work: str, workspace: str, moment: str) -> None:
    """Do the work in a process that is killed (`kill -9`) at that moment, and wait for its end."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(CHECKOUT),
        "MEMORY_HOME": str(settings.home),
        "MEMORY_DATABASE_URL": settings.database_url.get_secret_value(),
        "MEMORY_OWNER_URL": settings.owner_url.get_secret_value(),
    }
    command = [sys.executable, "-m", "tests.propagation.killed_projection", work, workspace, moment]
    done = subprocess.run(command, env=environment, cwd=CHECKOUT, check=False, timeout=120)
    assert done.returncode == -signal.SIGKILL


def main(work: str, workspace: str, moment: str) -> None:
    with Runtime(load_settings()) as runtime:
        runtime.embedder = HashEmbedder()
        watched = WatchedIndex(runtime.index)
        setattr(watched, moment, kill_this_process)
        runtime.index = watched
        WORK[work](runtime, workspace)


if __name__ == "__main__":
    main(*sys.argv[1:])
