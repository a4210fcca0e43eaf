"""Sessions are read once for each change, and nothing that was read is ever lost."""

from __future__ import annotations

import json
import os
import shutil
import threading
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_pipeline import ledger
from memory_pipeline.archive import sessions, workspaces
from memory_pipeline.archive.sessions import Changes, changes, merged, pending_changes, synchronize
from memory_pipeline.errors import ArchiveUnavailable, SessionsUnavailable
from memory_pipeline.ledger import LEDGER_FILE, MANIFEST_FILE, SQL_FILE, FaultKind, SessionReading
from memory_pipeline.runtime import Runtime
from tests.archives import Archive
from tests.builders import (
    WORKSPACE,
    a_decision,
    a_ledger,
    a_manifest,
    a_session,
    aged,
    approved,
    clarified,
    promoted,
    retracted,
)

SIGNATURES = st.none() | st.sampled_from(["1", "2", "missing"])
SESSIONS = st.dictionaries(st.sampled_from("abcd"), SIGNATURES)


@pytest.fixture
def reads(monkeypatch) -> list[str]:
    """The names of the session directories that were read."""
    names = []
    read = ledger.read_session

    def counted(directory, workspace):
        names.append(directory.name)
        return read(directory, workspace)

    monkeypatch.setattr(ledger, "read_session", counted)
    return names


def a_reading(*decisions, faults=(), ledger_read=True) -> SessionReading:
    return SessionReading("session-1", None, tuple(decisions), None, tuple(faults), False, "s", ledger_read)


def synchronize_all(archive, progress) -> None:
    workspaces.make(archive.database, WORKSPACE, language="italian", principal="tester")
    synchronize(archive.database, archive.root, WORKSPACE, progress)


def seqs(archive) -> list[int]:
    return archive.column("SELECT seq FROM decision ORDER BY session_id, seq")


class TestChanges:
    @given(found=SESSIONS, known=SESSIONS)
    def test_every_session_is_read_gone_or_unchanged(self, found, known):
        result = changes(found, known)
        assert set(result.read) == {n for n, now in found.items() if now is None or n not in known or known[n] != now}
        assert set(result.gone) == {n for n, then in known.items() if n not in found and then != "missing"}
        assert bool(result) == bool(result.read or result.gone)

    def test_nothing_on_disk_and_nothing_known_is_no_change(self):
        assert changes({}, {}) == Changes((), ())


class TestReading:
    def test_a_session_is_read_once(self, archive, reads):
        archive.given()
        reads.clear()
        report = archive.ingest()
        assert reads == []
        assert (report.sessions.read, report.sessions.decisions) == (0, 0)

    def test_a_session_that_was_just_written_is_read_again(self, archive, reads):
        a_session(archive.root)
        archive.ingest()
        reads.clear()
        archive.ingest()
        assert reads == ["session-1"]

    def test_an_appended_line_is_read(self, archive, reads):
        directory = archive.session()
        archive.ingest()
        with (directory / LEDGER_FILE).open("ab") as file:
            file.write(a_ledger(clarified(4, "new")))
        assert archive.ingest().sessions.decisions == 1
        assert seqs(archive) == [1, 2, 3, 4]

    def test_a_change_that_leaves_size_and_time_as_they_were_is_read(self, archive, reads):
        directory = archive.session()
        archive.ingest()
        reads.clear()
        status = (directory / SQL_FILE).stat()
        (directory / SQL_FILE).write_text((directory / SQL_FILE).read_text().replace("count", "total"))
        os.utime(directory / SQL_FILE, ns=(status.st_atime_ns, status.st_mtime_ns))
        archive.ingest()
        assert reads == ["session-1"]

    def test_only_the_changed_session_is_read(self, archive, reads):
        for name in ("one", "two", "three"):
            archive.session(session=name)
        archive.ingest()
        reads.clear()
        archive.given(clarified(1, "other"), session="two")
        assert reads == ["two"]

    def test_what_would_be_read_is_known_without_reading_it(self, archive, reads):
        archive.given()
        archive.session(session="session-2")
        reads.clear()
        assert pending_changes(archive.database, archive.root, WORKSPACE) == Changes(("session-2",), ())
        assert reads == []

    def test_an_invalid_manifest_is_counted_once_and_not_read_at_each_tick(self, archive, reads):
        archive.session()
        broken = archive.session(session="session-2")
        (broken / MANIFEST_FILE).write_bytes(b"[")
        aged(broken)
        assert archive.ingest().sessions.faults == {"manifest_invalid": 1}
        reads.clear()
        assert archive.ingest().sessions.faults == {}
        assert reads == []
        assert archive.faults() == [("session-2", "manifest_invalid")]
        assert archive.column("SELECT session_id FROM session") == ["session-1"]

    def test_a_directory_whose_name_is_no_text_is_counted_once_and_not_read_at_each_tick(self, archive, reads):
        archive.session()
        shutil.copytree(archive.session().parent / "session-1", archive.root / WORKSPACE / os.fsdecode(b"s\xff"))
        aged(archive.root / WORKSPACE / os.fsdecode(b"s\xff"))
        archive.ingest()
        reads.clear()
        report = archive.ingest()
        assert reads == []
        assert report.sessions.faults == {}
        assert archive.faults() == [("s\\xff", "name_invalid")]

    def test_a_mended_manifest_brings_its_decisions(self, archive):
        archive.given(session="session-1", status="closed")
        assert seqs(archive) == []
        archive.given(session="session-1")
        assert seqs(archive) == [1, 2, 3]
        assert archive.faults() == []

    @pytest.mark.parametrize("entry", [{"id": "another"}, {"workspace": "another"}])
    def test_a_manifest_of_something_else_is_a_fault_and_brings_nothing(self, archive, entry):
        archive.session()
        directory = archive.session(session="session-2")
        (directory / MANIFEST_FILE).write_bytes(a_manifest(**{"id": "session-2", **entry}))
        archive.ingest()
        assert archive.faults() == [("session-2", "manifest_foreign")]
        assert archive.column("SELECT session_id FROM session") == ["session-1"]

    def test_a_missing_workspace_directory_is_an_error_and_withdraws_nothing(self, archive):
        archive.given()
        shutil.rmtree(archive.root / WORKSPACE)
        with pytest.raises(SessionsUnavailable):
            archive.ingest()
        assert archive.faults() == []
        assert archive.card_ids() == ["mem-0001"]


class TestLines:
    def test_a_quarantined_line_that_is_mended_counts_from_then_on(self, archive):
        lines = a_ledger(clarified(1), promoted(3, 1))
        archive.given(ledger=lines.replace(b'"seq": 1', b'"seq": "one"'), sql=None)
        assert archive.faults() == [("session-1", "field_invalid"), ("session-1", "dangling_reference")]
        assert archive.card_ids() == []
        archive.given(ledger=lines, sql=None)
        assert archive.faults() == []
        assert archive.card_ids() == ["mem-0001"]

    def test_a_torn_last_line_of_an_open_session_waits_until_it_is_complete(self, archive):
        whole = a_ledger(clarified(1), promoted(2, 1))
        archive.given(ledger=whole[:-20], status="open")
        assert archive.column("SELECT waiting FROM session_reading") == [True]
        assert (seqs(archive), archive.faults()) == ([1], [])
        archive.given(ledger=whole, status="open")
        assert archive.column("SELECT waiting FROM session_reading") == [False]
        assert archive.card_ids() == ["mem-0001"]

    def test_a_torn_last_line_counts_when_the_session_is_finalized(self, archive):
        archive.given(ledger=a_ledger(clarified(1), promoted(2, 1))[:-1], sql=None)
        assert archive.card_ids() == ["mem-0001"]

    def test_a_torn_last_line_of_a_finalized_session_is_a_fault_once_its_files_have_come_to_rest(self, archive):
        directory = a_session(archive.root, ledger=a_ledger(clarified(1), promoted(2, 1))[:-20], sql=None)
        archive.ingest()
        assert archive.column("SELECT waiting FROM session_reading") == [True]
        assert (seqs(archive), archive.faults()) == ([1], [])
        aged(directory)
        archive.ingest()
        assert archive.column("SELECT waiting FROM session_reading") == [False]
        assert (seqs(archive), archive.faults()) == ([1], [("session-1", "not_json")])

    def test_a_fault_is_replaced_and_not_piled_up(self, archive):
        archive.given(ledger=b"{\n", sql=None)
        archive.given(ledger=b"{\n[]\n", sql=None)
        assert [kind for _, kind in archive.faults()] == ["not_json", "not_an_object"]

    def test_times_keep_their_microseconds_and_any_zone(self, archive):
        moment = datetime(2026, 10, 25, 2, 30, 0, 123456, tzinfo=timezone(timedelta(hours=2)))
        archive.given(clarified(1, ts=moment))
        assert archive.column("SELECT ts FROM decision") == [moment]

    def test_an_unchanged_decision_is_no_fault_whatever_zone_the_server_is_set_to(self, archive, owner):
        # In the hour that comes twice, Python holds a moment in Rome for unequal to the same moment in UTC.
        owner.execute(f"ALTER DATABASE {owner.info.dbname} SET timezone TO 'Europe/Rome'")
        moment = datetime(2026, 10, 25, 1, 30, tzinfo=UTC)
        archive.given(clarified(1, ts=moment))
        archive.given(clarified(1, ts=moment), approved(2))
        assert archive.faults() == []

    def test_lists_with_empty_texts_are_kept(self, archive):
        decision = clarified(1, concepts=("", "a", '{"}', "NULL"), tables=("", ","))
        archive.given(decision, promoted(2, 1))
        assert archive.column("SELECT concepts FROM decision WHERE seq = 1") == [["", "a", '{"}', "NULL"]]
        assert archive.column("SELECT \"table\" FROM card_dependency WHERE card_id LIKE 'mem%'") == [","]
        archive.given(decision, promoted(2, 1), approved(3))
        assert archive.faults() == []

    def test_a_text_of_a_million_characters_is_kept(self, archive):
        archive.given(clarified(1, detail="à" * 500_000), promoted(2, 1), sql="SELECT '" + "x" * 4_000_000 + "'")
        assert len(archive.card()["detail"]) == 500_000

    def test_a_fault_keeps_its_line_when_the_ledger_is_read_again(self, archive):
        lines = b"\n\n" + a_ledger(clarified(1), promoted(2, 9))
        archive.given(ledger=lines, sql=None)
        archive.given(ledger=lines + a_ledger(clarified(3)), sql=None)
        assert archive.rows("SELECT line, kind FROM ledger_fault") == [{"line": 4, "kind": "dangling_reference"}]


class TestMerged:
    def test_what_was_stored_gets_the_line_that_it_stands_on_now(self):
        stored = [clarified(1, line=0), clarified(2, line=0), clarified(3, line=0)]
        after, faults = merged(stored, a_reading(clarified(1, line=7), clarified(2, detail="changed", line=8)))
        assert [decision.line for decision in after] == [7, 8, 0]
        assert [(fault.kind, fault.line) for fault in faults] == [
            (FaultKind.LEDGER_SHORTER, 0),
            (FaultKind.DECISION_CHANGED, 8),
        ]

    def test_a_shorter_ledger_takes_nothing_back(self):
        stored = [clarified(1), clarified(2), clarified(3)]
        after, faults = merged(stored, a_reading(clarified(1)))
        assert after == stored
        assert [fault.kind for fault in faults] == [FaultKind.LEDGER_SHORTER]
        assert "2 decision(s)" in faults[0].reason

    def test_of_a_changed_decision_the_first_reading_stands(self):
        after, faults = merged([clarified(1)], a_reading(clarified(1, detail="changed")))
        assert after == [clarified(1)]
        assert [fault.kind for fault in faults] == [FaultKind.DECISION_CHANGED]

    def test_new_decisions_come_in_the_order_of_seq(self):
        after, faults = merged([clarified(1), clarified(3)], a_reading(clarified(1), clarified(2), clarified(3)))
        assert [decision.seq for decision in after] == [1, 2, 3]
        assert faults == []

    def test_a_ledger_that_could_not_be_read_is_no_shorter_one(self):
        unreadable = ledger.Fault(0, FaultKind.UNREADABLE, "permission denied")
        after, faults = merged([clarified(1)], a_reading(faults=[unreadable], ledger_read=False))
        assert (after, faults) == ([clarified(1)], [])

    def test_a_ledger_that_is_gone_without_another_fault_is_one(self):
        _, faults = merged([clarified(1)], a_reading(ledger_read=False))
        assert [fault.kind for fault in faults] == [FaultKind.LEDGER_SHORTER]

    @given(
        st.dictionaries(st.integers(1, 6), st.sampled_from("ab")),
        st.dictionaries(st.integers(1, 6), st.sampled_from("ab")),
    )
    def test_nothing_stored_is_ever_lost_or_changed(self, stored, read):
        after, faults = merged(
            [a_decision(seq, detail=text) for seq, text in stored.items()],
            a_reading(*(a_decision(seq, detail=text) for seq, text in sorted(read.items()))),
        )
        assert {d.seq: d.detail for d in after} == {**read, **stored}
        assert [d.seq for d in after] == sorted(read.keys() | stored.keys())
        assert bool(faults) == any(read.get(seq) != text for seq, text in stored.items())


class TestNothingIsWithdrawn:
    @pytest.fixture
    def directory(self, archive):
        directory = archive.session()
        archive.ingest()
        return directory

    @pytest.fixture(autouse=True)
    def _still_there(self, archive, directory):
        yield
        archive.ingest()
        assert seqs(archive) == [1, 2, 3]
        assert archive.card_ids() == ["mem-0001"]
        assert archive.card_ids("solved_question") == ["sq-0001"]
        assert archive.card("sq-0001")["version"] == 1

    def test_by_a_ledger_that_became_shorter(self, archive, directory):
        archive.given(clarified(1))
        assert ("session-1", "ledger_shorter") in archive.faults()

    def test_by_a_decision_that_was_changed(self, archive, directory):
        archive.given(clarified(1, detail="changed"), approved(2), promoted(3, 1))
        assert archive.faults() == [("session-1", "decision_changed")]
        assert archive.card()["detail"] == "flag_attivo = TRUE"

    def test_by_a_ledger_that_is_gone(self, archive, directory):
        (directory / LEDGER_FILE).unlink()
        archive.ingest()
        assert archive.faults() == [("session-1", "ledger_missing")]

    def test_by_an_sql_file_that_is_gone(self, archive, directory):
        (directory / SQL_FILE).unlink()
        archive.ingest()
        assert archive.faults() == [("session-1", "sql_missing")]

    def test_by_an_sql_file_that_is_blank(self, archive, directory):
        archive.given(sql=" \n")
        assert archive.faults() == [("session-1", "sql_missing")]

    def test_by_a_file_that_cannot_be_read(self, archive, directory):
        (directory / LEDGER_FILE).unlink()
        (directory / LEDGER_FILE).mkdir()
        archive.ingest()
        assert archive.faults() == [("session-1", "unreadable")]

    def test_by_a_manifest_that_became_invalid(self, archive, directory):
        archive.given(status="closed")
        assert archive.faults() == [("session-1", "manifest_invalid")]

    def test_by_a_directory_that_is_gone(self, archive, directory):
        shutil.rmtree(directory)
        assert archive.ingest().sessions.faults == {"session_missing": 1}
        assert archive.ingest().sessions.faults == {}
        assert archive.faults() == [("session-1", "session_missing")]

    def test_by_a_directory_that_is_gone_and_comes_back(self, archive, directory):
        directory.rename(directory.with_name(".away"))
        archive.ingest()
        directory.with_name(".away").rename(directory)
        archive.ingest()
        assert archive.faults() == []


class TestBatches:
    @pytest.fixture(autouse=True)
    def _small(self, monkeypatch):
        monkeypatch.setattr(sessions, "_BATCH", 2)

    def test_progress_counts_sessions(self, archive):
        for number in range(5):
            archive.session(session=f"session-{number}")
        seen = []
        synchronize_all(archive, lambda done, total: seen.append((done, total)))
        assert seen == [(2, 5), (4, 5), (5, 5)]

    def test_an_ingest_killed_between_batches_is_completed_by_the_next(self, archive, reads):
        for number in range(5):
            archive.session(session=f"session-{number}")

        def killed(done, _total):
            if done == 4:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            archive.ingest(progress=killed)
        assert len(archive.column("SELECT 1 FROM session")) == 4
        assert archive.card_ids() == []
        reads.clear()
        archive.ingest()
        assert reads == ["session-4"]
        assert len(archive.sources("mem-0001")) == 5

    def test_an_ingest_killed_within_a_batch_leaves_nothing_of_it(self, archive, monkeypatch):
        archive.session()
        monkeypatch.setattr(sessions, "_replace_faults", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            archive.ingest()
        monkeypatch.undo()
        assert seqs(archive) == []
        archive.ingest()
        assert archive.card_ids() == ["mem-0001"]


def test_a_connection_lost_while_sessions_are_read_is_an_error_that_the_next_ingest_makes_good(
    archive, monkeypatch, superuser
):
    read = ledger.read_session

    def cut_off(directory, workspace):
        superuser.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = 'memory_runtime'"
        )
        return read(directory, workspace)

    archive.session()
    monkeypatch.setattr(ledger, "read_session", cut_off)
    workspaces.make(archive.database, WORKSPACE, language="italian", principal="tester")
    with pytest.raises(ArchiveUnavailable):
        archive.ingest()
    assert archive.column("SELECT 1 FROM session_reading") == []
    monkeypatch.undo()
    archive.ingest()
    assert archive.card_ids() == ["mem-0001"]


def test_two_ingests_at_once_make_what_one_makes(runtime, settings):
    archive = Archive(runtime)
    for number in range(30):
        archive.session(clarified(1, f"subject {number % 7}"), approved(2), promoted(3, 1), session=f"session-{number}")
    failures = []

    def ingest_once():
        try:
            with Runtime(settings) as other:
                Archive(other).ingest()
        except BaseException as error:  # noqa: BLE001  # shown by the assertion
            failures.append(error)

    threads = [threading.Thread(target=ingest_once) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert archive.faults() == []
    assert archive.card_ids() == [f"mem-{number:04d}" for number in range(1, 8)]
    assert len(archive.card_ids("solved_question")) == 30
    assert sum(len(archive.sources(card)) for card in archive.card_ids()) == 30


def test_of_two_readers_the_one_that_writes_last_has_read_last(archive, monkeypatch):
    """A retraction that one process has recorded is not undone by another that looked at the ledger before."""
    read = ledger.read_session
    free = []

    def observed(directory, workspace):
        query = "SELECT pg_try_advisory_xact_lock(hashtextextended('writer of ' || :workspace, 0))"
        free.extend(archive.column(query))
        return read(directory, workspace)

    archive.given()
    archive.session(clarified(1), promoted(2, 1), retracted(3, 2))
    monkeypatch.setattr(ledger, "read_session", observed)
    synchronize(archive.database, archive.root, WORKSPACE)
    assert free == [False]


def test_the_archive_speaks_the_ledger_of_any_writer(archive):
    line = {"seq": 1, "ts": "2026-01-05T09:00:00+01:00", "type": "invented_later", "subject": "s", "extra": {"a": 1}}
    archive.given(ledger=json.dumps(line).encode() + b"\n", sql=None)
    assert archive.rows("SELECT type, effective, outcome FROM decision") == [
        {"type": "invented_later", "effective": True, "outcome": None}
    ]
