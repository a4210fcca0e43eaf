from __future__ import annotations

from memory_pipeline.archive.ingest import ingest
from memory_pipeline.archive.status import status
from memory_pipeline.ledger import list_root
from memory_pipeline.propagation import audit, project
from memory_pipeline.recall import Recall


def test_every_card_of_the_real_sessions_is_certified_and_found_and_the_audit_finds_nothing(world, bird):
    runtime = world.runtime
    runtime.settings = runtime.settings.model_copy(update={"sessions_root": bird / "sessions"})
    names = list_root(bird / "sessions").workspaces
    for name in names:
        ingest(runtime.database, name, runtime.settings, runtime.identity)
        project(runtime, name)
        assert not audit(runtime, name)
    found = status(runtime.database, runtime.identity.hash)
    assert len(found) == len(names) == 6
    for name, state in found.items():
        assert state.pending == 0
        assert state.certified >= sum(state.cards.values())
        assert Recall(runtime).search(name, "what does it refer to?").hits
