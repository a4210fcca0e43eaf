from __future__ import annotations

import pytest

from memory_pipeline.archive import cards
from memory_pipeline.archive.status import workspace_status
from memory_pipeline.cards import CardContent, Family
from memory_pipeline.propagation import audit, project
from memory_pipeline.recall import Recall
from tests.processes import project_until_killed

W = "clinic"


def pending(runtime) -> int:
    with runtime.database.transaction(W) as tx:
        return workspace_status(tx, runtime.identity.hash).pending


@pytest.mark.parametrize("moment", ["before_upsert", "after_upsert"])
def test_a_projection_killed_around_its_write_loses_nothing(world, moment):
    world.sessions(W, 5)
    world.ingest(W)
    project_until_killed(world.runtime.settings, W, moment)
    assert pending(world.runtime) == 10
    assert project(world.runtime, W).pending == 0
    assert not audit(world.runtime, W)


@pytest.mark.parametrize("moment", ["before_upsert", "after_upsert"])
def test_between_a_kill_and_the_next_run_recall_returns_no_stale_content(world, moment):
    world.sessions(W, 5)
    world.ingest(W)
    project(world.runtime, W)
    newer = CardContent(Family.CONCEPT, subject="subject 2", detail="the new meaning")
    with world.runtime.database.transaction(W) as tx:
        cards.update(tx, {"mem-0003": newer}, principal="anna")
    project_until_killed(world.runtime.settings, W, moment)
    recall = Recall(world.runtime)
    between = recall.search(W, "question 2?")
    assert between.pending == 1
    assert {hit.detail for hit in between.hits if hit.card_id == "mem-0003"} <= {"the new meaning"}
    project(world.runtime, W)
    assert "the new meaning" in {hit.detail for hit in recall.search(W, "subject 2").hits}
    assert not audit(world.runtime, W)
