from __future__ import annotations

import pytest

from memory_pipeline.archive.ingest import ingest
from memory_pipeline.runtime import Runtime
from tests.builders import a_session, clarified, promoted
from tests.doubles import HashEmbedder, WatchedIndex


class World:
    """A runtime over a sessions root, with short words for what tests do to it."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.embedder = HashEmbedder()
        self.index = WatchedIndex(runtime.index)
        runtime.embedder = self.embedder
        runtime.index = self.index

    def sessions(self, workspace: str, count: int, *, start: int = 0) -> None:
        """Sessions without SQL: each promotes one clarification, from one question."""
        for n in range(start, start + count):
            a_session(
                self.runtime.settings.sessions,
                clarified(1, f"subject {n}", f"detail {n}"),
                promoted(2, 1),
                session=f"s{n:04d}",
                workspace=workspace,
                question=f"question {n}?",
                sql=None,
            )

    def ingest(self, workspace: str) -> None:
        ingest(self.runtime.database, workspace, self.runtime.settings, self.runtime.identity)


@pytest.fixture
def world(runtime: Runtime) -> World:
    return World(runtime)
