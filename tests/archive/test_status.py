"""The counts of the archive, workspace by workspace."""

from __future__ import annotations

import json
from datetime import datetime

import pytest

from memory_pipeline.archive import projections
from memory_pipeline.archive.status import StoredFault, fault_counts, faults, status, workspace_status
from memory_pipeline.cards import Collection
from tests.archives import Archive
from tests.builders import WORKSPACE, approved, clarified, declined, promoted, retracted


def counted(archive, identity=None):
    with archive.database.transaction(archive.workspace) as tx:
        return workspace_status(tx, identity or archive.identity).as_json()


def test_an_archive_without_workspaces_has_no_status(database, runtime):
    assert status(database, runtime.identity.hash) == {}


def test_sources_candidates_and_declined_count_decisions(archive):
    decisions = [clarified(1), promoted(2, 1), clarified(3, "b"), clarified(4, "c"), declined(5, 4), clarified(6, "d")]
    archive.given(*decisions, retracted(7, 6), approved(8), session="one")
    archive.given(clarified(1), promoted(2, 1), approved(3), session="two", sql=None)
    found = counted(archive)
    assert found["cards"] == {"concept": 1, "sql_rule": 0, "pitfall": 0, "solved_question": 1}
    names = ("sources", "candidates", "declined", "sessions", "faults", "certified", "pending")
    assert tuple(found[name] for name in names) == (3, 1, 1, 2, 1, 0, 3)
    assert (found["decisions"], found["effective"], found["promoted"]) == (11, 10, 2)
    assert found["cards_with_several_sources"] == 1


def test_edits_that_wait_are_counted(archive):
    archive.given()
    for state in ("waiting", "waiting", "applied", "refused"):
        archive.submitted_edit(state)
    assert counted(archive)["waiting_edits"] == 2


def test_lag_is_the_age_of_the_oldest_pending_work(archive):
    archive.given()
    archive.change("UPDATE projection SET wanted_at = now() - interval '1 hour' WHERE item_id = 'mem-0001'")
    assert counted(archive)["lag_seconds"] == pytest.approx(3600, abs=60)
    archive.certify_all()
    assert (counted(archive)["lag_seconds"], counted(archive)["pending"]) == (0, 0)


def test_under_an_identity_that_nothing_was_projected_with_everything_is_pending(archive):
    archive.given()
    archive.certify_all()
    found = counted(archive, "another")
    assert (found["certified"], found["pending"]) == (0, 3)
    assert found["lag_seconds"] > 0


def test_projections_of_another_identity_do_not_count(archive, owner):
    archive.given()
    owner.execute("INSERT INTO embedding_identity VALUES (%s, 'another', '{}')", [archive.workspace])
    archive.certify_all()
    archive.change("UPDATE projection SET pending = true WHERE identity = 'another' AND item_id LIKE 'sq%'")
    assert (counted(archive)["certified"], counted(archive)["pending"]) == (3, 0)
    assert (counted(archive, "another")["certified"], counted(archive, "another")["pending"]) == (2, 1)


def test_how_long_propagation_took_is_known_once_something_is_certified(archive):
    archive.given()
    found = counted(archive)
    assert (found["propagation_p50_seconds"], found["propagation_p95_seconds"]) == (None, None)
    archive.certify_all()
    archive.change("UPDATE projection SET certified_at = wanted_at + interval '90 seconds'")
    found = counted(archive)
    assert found["propagation_p50_seconds"] == found["propagation_p95_seconds"] == pytest.approx(90)


def test_what_is_put_off_is_counted_by_reason_with_attempts_and_next_try(archive):
    archive.given()
    assert (counted(archive)["deferred"], counted(archive)["reasons"], counted(archive)["put_off"]) == (0, {}, [])
    with archive.database.transaction(WORKSPACE) as tx:
        for _ in range(2):
            projections.defer(tx, archive.identity, Collection.MEMORY_CARDS, ["mem-0001"], "away")
        sq = archive.column("SELECT item_id FROM projection WHERE collection = 'solved_questions'")
        projections.distrust(tx, archive.identity, Collection.SOLVED_QUESTIONS, sq, "missing")
    found = counted(archive)
    assert (found["pending"], found["deferred"], found["reasons"]) == (3, 1, {"away": 1, "missing": 1})
    assert json.loads(json.dumps(found)) == found
    away, missing = found["put_off"]
    assert (away["reason"], away["points"], away["deferred"], away["attempts"]) == ("away", 1, 1, 2)
    [next_try] = archive.column("SELECT next_try FROM projection WHERE item_id = 'mem-0001'")
    assert datetime.fromisoformat(away["next_try"]) == next_try
    assert (missing["deferred"], missing["attempts"], missing["next_try"]) == (0, 0, None)


def test_every_workspace_is_counted_apart(runtime):
    for name in ("b", "a"):
        Archive(runtime, name).given()
    found = status(runtime.database, runtime.identity.hash)
    assert list(found) == ["a", "b"]
    assert [one.cards["concept"] for one in found.values()] == [1, 1]


def test_faults_are_listed_by_session_and_line_up_to_a_limit(archive):
    archive.given(ledger=b"{\n[]\n", sql=None, session="two")
    archive.given(ledger=b"{\n", sql=None, session="one")
    with archive.database.transaction(WORKSPACE) as tx:
        found = faults(tx, limit=10)
        assert faults(tx, limit=1) == found[:1]
        assert fault_counts(tx) == {"not_json": 2, "not_an_object": 1}
    assert [(f.session_id, f.line, f.kind) for f in found] == [
        ("one", 1, "not_json"),
        ("two", 1, "not_json"),
        ("two", 2, "not_an_object"),
    ]
    assert isinstance(found[0], StoredFault)
