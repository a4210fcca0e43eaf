from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from memory_pipeline.archive import identities, workspaces
from memory_pipeline.errors import EmbedderUnavailable, IndexUnavailable, UnknownWorkspace
from memory_pipeline.propagation import project
from memory_pipeline.propagation.backlog import Backlog, backlog, completeness
from memory_pipeline.propagation.losses import Presence

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)


def look(world, workspace: str) -> Backlog:
    return backlog(world.runtime.database, world.runtime.identity.hash, workspace, Presence(world.runtime.index))


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


def test_what_went_with_a_lost_index_is_due_until_it_is_there_again(world):
    world.sessions("clinic", 2)
    world.ingest("clinic")
    project(world.runtime, "clinic")
    shutil.rmtree(world.runtime.settings.home / "index")

    found = look(world, "clinic")
    assert (found.pending, found.due, found.oldest) == (4, True, None)
    assert found.reasons == {"the index has lost memory_cards": 2, "the index has lost questions": 2}
    assert found.lost == ("memory_cards", "questions")
    assert look(world, "clinic") == found

    assert project(world.runtime, "clinic").written == 4
    assert look(world, "clinic") == Backlog()


def test_an_index_that_is_away_has_lost_nothing_and_is_asked_once(world):
    for workspace in ("clinic", "ward"):
        world.sessions(workspace, 1)
        world.ingest(workspace)
        project(world.runtime, workspace)
    asked = []

    class Away:
        def identities(self, *_: object) -> None:
            asked.append(1)
            raise IndexUnavailable("the index is away")

    presence = Presence(Away())
    for workspace in ("clinic", "ward"):
        assert backlog(world.runtime.database, world.runtime.identity.hash, workspace, presence) == Backlog()
    assert (len(asked), str(presence.fault)) == (1, "the index is away")


def test_nothing_pending_is_complete():
    found = completeness({"a": Backlog()}, target=600, now=NOW)
    assert found.passed
    assert (dict(found.pending), dict(found.reasons), found.lag_seconds) == ({}, {}, 0)


def test_a_lost_collection_is_no_matter_of_time():
    robbed = Backlog(2, due=True, reasons={"the index has lost questions": 2}, lost=("questions",))
    found = completeness({"a": robbed, "b": Backlog()}, target=600, now=NOW)
    assert not found.passed
    assert (found.lost, found.overdue, dict(found.pending)) == (("a",), (), {"a": 2})


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
