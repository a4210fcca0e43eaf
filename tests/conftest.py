"""What all tests share: a place for servers' data, and one PostgreSQL server for the whole run."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_pipeline.embedded import EmbeddedPostgres, EmbeddedUrls

_MEMORY = Path("/dev/shm")  # noqa: S108  # a directory of its own is made in it
_ROOM = 2 * 1024**3


@pytest.fixture(scope="session")
def scratch() -> Iterator[Path]:
    """A directory with a short path for the homes of servers; in memory where there is room, since they sync a lot.

    Not one of pytest's: each run makes those private again, also under a server of another run that root runs as
    another user, and three generations of data stay behind in them.
    """
    roomy = os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _ROOM
    with tempfile.TemporaryDirectory(prefix="memory-", dir=_MEMORY if roomy else None) as directory:
        yield Path(directory).resolve()


@pytest.fixture(scope="session")
def postgres(scratch: Path) -> Iterator[EmbeddedUrls]:
    """One server for the whole run: its databases hold nothing but what tests put there."""
    with EmbeddedPostgres(scratch / "shared") as server:
        yield server.start(create=True)
