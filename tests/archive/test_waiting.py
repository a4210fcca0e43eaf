from __future__ import annotations

from memory_pipeline.archive import waiting
from memory_pipeline.archive.ingest import ingest
from memory_pipeline.archive.waiting import Candidate, Unread, unread
from memory_pipeline.runtime import Runtime
from tests.archives import Archive
from tests.builders import a_ledger, a_session, aged, clarified, declined, promoted

CLINIC = "clinic"


def read(runtime: Runtime) -> None:
    ingest(runtime.database, CLINIC, runtime.settings, runtime.identity)


def look(runtime: Runtime) -> Unread:
    return unread(runtime.database, runtime.settings.sessions, CLINIC)


def test_what_was_read_and_is_unchanged_is_not_unread(runtime: Runtime):
    aged(a_session(runtime.settings.sessions))
    read(runtime)
    assert look(runtime) == Unread()


def test_new_changed_and_vanished_sessions_are_told_apart(runtime: Runtime):
    for name in ("one", "two"):
        aged(a_session(runtime.settings.sessions, session=name))
    read(runtime)
    aged(a_session(runtime.settings.sessions, clarified(1), session="one"))
    aged(a_session(runtime.settings.sessions, session="three"))
    directory = runtime.settings.sessions / CLINIC / "two"
    directory.rename(runtime.settings.sessions.parent / "two")
    assert look(runtime) == Unread(changed=2, gone=1)


def test_what_cannot_be_read_is_counted_by_itself(runtime: Runtime):
    aged(a_session(runtime.settings.sessions, session="one"))
    directory = aged(a_session(runtime.settings.sessions, session="two"))
    (directory / "review_decisions.jsonl").unlink()
    (directory / "review_decisions.jsonl").mkdir()
    read(runtime)
    assert look(runtime) == Unread(unreadable=1)


def test_candidates_are_counted_all_and_listed_from_the_oldest(runtime: Runtime):
    decisions = [clarified(n, f"subject {n}") for n in range(1, 6)]
    a_session(runtime.settings.sessions, *decisions, promoted(6, 1), declined(7, 2), sql=None)
    read(runtime)
    with runtime.database.transaction(CLINIC) as tx:
        assert waiting.candidates(tx, 2) == (
            3,
            [Candidate("session-1", 3, "subject 3"), Candidate("session-1", 4, "subject 4")],
        )


def test_a_line_still_being_written_is_waited_for(runtime: Runtime):
    ledger = a_ledger(clarified(1), promoted(2, 1))[:-1]
    a_session(runtime.settings.sessions, ledger=ledger, status="open", sql=None)
    read(runtime)
    with runtime.database.transaction(CLINIC) as tx:
        assert waiting.waiting_sessions(tx) == ["session-1"]


def test_edits_that_are_not_applied_yet_wait(archive: Archive):
    archive.given()
    assert waiting.waiting_edits(archive.database, CLINIC) == 0
    for state in ("waiting", "applied", "refused"):
        archive.submitted_edit(state)
    assert waiting.waiting_edits(archive.database, CLINIC) == 1


def test_decisions_are_counted_by_type_and_by_what_became_of_them(runtime: Runtime):
    a_session(runtime.settings.sessions, clarified(1), clarified(2, "fever"), promoted(3, 1), sql=None)
    read(runtime)
    with runtime.database.transaction(CLINIC) as tx:
        table = waiting.decision_counts(tx)
    assert table.loc["concept_clarified"].to_dict() == {
        "decisions": 2,
        "effective": 2,
        "promoted": 1,
        "declined": 0,
        "candidates": 1,
        "refused": 0,
    }
