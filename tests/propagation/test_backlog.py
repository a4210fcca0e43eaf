from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from memory_pipeline.archive import identities, workspaces
from memory_pipeline.errors import EmbedderUnavailable, UnknownWorkspace
from memory_pipeline.propagation import project
from memory_pipeline.propagation.backlog import Backlog, backlog, completeness

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)


def look(world, workspace: str) -> Backlog:
    return backlog(world.runtime.database, world.runtime.identity.hash, workspace)


def behind(pending: int, *, minutes: float, **reasons: int) -> Backlog:
    return Backlog(pending, due=True, oldest=NOW - timedelta(minutes=minutes), reasons=reasons)


def test_what_the_archive_wants_and_the_index_has_not_is_due(world):
    world.sessions("clinic", 2)
    world.ingest("clinic")
    found = look(world, "clinic")
    assert (found.pending, found.due, found.reasons) == (4, True, {})
    assert found.oldest is not None

    project(world.runtime, "clinic")
    assert look(world, "clinic") == Backlog()


def test_what_waits_for_its_next_try_is_pending_but_not_due(world):
    world.sessions("clinic", 1)
    world.ingest("clinic")
    project(world.runtime, "clinic", retry_now=True)
    world.sessions("clinic", 1, start=1)
    world.ingest("clinic")
    world.embedder.away = True
    with pytest.raises(EmbedderUnavailable):
        project(world.runtime, "clinic")
    found = look(world, "clinic")
    assert (found.pending, found.due) == (2, False)
    assert found.reasons == {"the model is away": 2}


def test_after_a_change_of_the_model_everything_is_due_and_looking_registers_nothing(world):
    world.sessions("clinic", 2)
    world.ingest("clinic")
    project(world.runtime, "clinic")
    world.runtime.identity = replace(world.runtime.identity, revision="another")
    for _ in range(2):
        found = look(world, "clinic")
        assert (found.pending, found.due, found.reasons) == (4, True, {})
    with world.runtime.database.transaction("clinic") as tx:
        assert world.runtime.identity.hash not in [each.identity for each in identities.registered(tx)]
    assert project(world.runtime, "clinic").written == 4


def test_a_workspace_without_cards_has_no_backlog(world):
    workspaces.make(world.runtime.database, "empty", language="italian", principal="tester")
    assert look(world, "empty") == Backlog()


def test_an_unknown_workspace_is_an_error(world):
    with pytest.raises(UnknownWorkspace):
        look(world, "nowhere")


def test_nothing_pending_is_complete():
    found = completeness({"a": Backlog()}, target=600, now=NOW)
    assert found.passed
    assert (dict(found.pending), dict(found.reasons), found.lag_seconds) == ({}, {}, 0)


def test_work_younger_than_the_target_is_shown_and_passes():
    found = completeness({"a": behind(3, minutes=9), "b": Backlog()}, target=600, now=NOW)
    assert found.passed
    assert (found.pending, found.reasons, found.lag_seconds) == ({"a": 3}, {"not tried yet": 3}, 540)


def test_work_older_than_the_target_fails_and_names_the_workspace_and_the_reasons():
    backlogs = {"a": behind(3, minutes=1), "b": behind(5, minutes=11, timeout=2)}
    found = completeness(backlogs, target=600, now=NOW)
    assert not found.passed
    assert found.overdue == ("b",)
    assert found.reasons == {"timeout": 2, "not tried yet": 6}
    assert found.lag_seconds == 660
