"""A projection with something to do leaves behind what was pending when it began and ended; an idle one nothing."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import text

from memory_pipeline.archive import history
from memory_pipeline.archive.history import Moment
from memory_pipeline.errors import IndexUnavailable
from memory_pipeline.propagation import project
from tests.statements import counting

W = "clinic"


@pytest.fixture
def waiting(world):
    """Two cards and as many questions that wait for their projection."""
    world.sessions(W, 2)
    world.ingest(W)
    return world


def samples(world) -> list[tuple[int, int]]:
    """Minute by minute, how much was pending at most and how much at the end."""
    query = text("SELECT pending, left_pending FROM backlog_sample WHERE workspace = :workspace ORDER BY minute")
    with world.runtime.database.transaction(W) as tx:
        return [(row["pending"], row["left_pending"]) for row in tx.rows(query)]


def seen(world) -> Moment:
    """All that the last hour saw."""
    with world.runtime.database.transaction(W) as tx:
        now = history.now(tx)
        [found] = history.history(tx, world.runtime.identity.hash, since=now - timedelta(hours=1), until=now, buckets=1)
    return found


def test_what_is_pending_when_it_begins_and_when_it_ends_is_kept(waiting):
    project(waiting.runtime, W)
    found = samples(waiting)
    assert max(pending for pending, _ in found) == 4
    assert found[-1][1] == 0
    assert seen(waiting).pending == 4


def test_an_idle_projection_takes_none_and_asks_no_more_than_before(waiting):
    project(waiting.runtime, W)
    before = samples(waiting)
    with counting() as counted:
        project(waiting.runtime, W)
    assert samples(waiting) == before
    assert [statement for statement in counted.archive if "backlog_sample" in statement] == []


def test_one_that_fails_keeps_what_it_leaves(waiting):
    waiting.index.away = True
    with pytest.raises(IndexUnavailable):
        project(waiting.runtime, W)
    assert samples(waiting)[-1] == (4, 4)


def test_one_that_is_killed_leaves_what_it_began_with(waiting):
    def killed():
        raise KeyboardInterrupt

    waiting.index.before_upsert = killed
    with pytest.raises(KeyboardInterrupt):
        project(waiting.runtime, W)
    assert samples(waiting) == [(4, 4)]


def test_of_one_that_is_at_work_the_backlog_that_it_began_with_is_seen(waiting):
    found = []
    waiting.index.before_upsert = lambda: found.append(seen(waiting).pending)
    project(waiting.runtime, W)
    assert found == [4, 4]
