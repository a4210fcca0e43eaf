"""Edits in bulk: all submitted or none, applied one by one, and no interruption applies one twice."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pydantic import SecretStr
from sqlalchemy import text

from memory_pipeline.archive import editing, grants, queue
from memory_pipeline.archive.database import Database
from memory_pipeline.archive.grants import Role
from memory_pipeline.edits import LIST_LIMIT, Change, Create, Delete, Link, Merge
from memory_pipeline.errors import ArchiveUnavailable, InvalidEdit, InvalidInput, NotPermitted, UnknownWorkspace
from tests.archives import Archive
from tests.curating import CLINIC, WARD, a_card, a_creation, a_workspace

CHECKOUT = Path(__file__).resolve().parents[2]
MAKER = "tester"


@pytest.fixture
def clinic(archive: Archive) -> Archive:
    a_workspace(archive.runtime, CLINIC)
    return archive


def submit(archive: Archive, *edits, principal: str = MAKER) -> None:
    with archive.database.transaction(archive.workspace) as tx:
        assert queue.submit(tx, principal, edits) == len(edits)


def apply(archive: Archive) -> queue.QueueReport:
    return queue.apply_waiting(archive.database, archive.workspace, archive.runtime.identity)


def listed(archive: Archive, state: str | None = None, **others) -> list[queue.QueuedEdit]:
    with archive.database.transaction(archive.workspace) as tx:
        return queue.listed(tx, state, **others)


def a_file(*lines: object) -> io.BytesIO:
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    return io.BytesIO(text.encode() + b"\n")


CREATION = {"operation": "create", "family": "concept", "subject": "fever", "detail": "temp > 38"}


# ── Files ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_file_holds_an_edit_a_line_and_blank_lines_are_none():
    read = queue.read(
        a_file("\ufeff" + json.dumps(CREATION), "", {"operation": "delete", "card_id": "sq-0001", "version": 2})
    )
    assert read == [a_creation(subject="fever", detail="temp > 38"), Delete("sq-0001", 2)]


def test_every_faulty_line_is_named_with_its_number():
    stream = a_file(
        CREATION,
        "no json",
        [1],
        {**CREATION, "detail": "", "colour": "red"},
        {"operation": "explode"},
        {"operation": "delete", "card_id": "a\0b", "version": 1},
        '{"operation": "create", "subject": "\\ud800"}',
        '{"operation": "create", "subject": "one", "subject": "two"}',
    )
    with pytest.raises(InvalidEdit) as caught:
        queue.read(stream)
    faults = caught.value.faults
    assert list(faults) == ["line 2", "line 3", "line 4", "line 5", "line 6", "line 7", "line 8"]
    assert "not JSON" in faults["line 2"]
    assert "has to be a JSON object" in faults["line 3"]
    assert "detail" in faults["line 4"]
    assert "colour" in faults["line 4"]
    assert "NUL byte" in faults["line 6"]
    assert faults["line 8"] == "gives 'subject' twice: leave one of them out"


def test_a_file_of_something_else_names_a_thousand_lines_and_counts_the_others():
    with pytest.raises(InvalidEdit) as caught:
        queue.read(io.BytesIO(b"x\n" * 1500))
    assert len(caught.value.faults) == 1001
    assert caught.value.faults["and"] == "500 more"


@pytest.mark.parametrize("content", [b"", b"\n \n"])
def test_a_file_without_an_edit_is_refused(content):
    with pytest.raises(InvalidInput, match="no edit"):
        queue.read(io.BytesIO(content))


def test_a_line_longer_than_any_edit_is_refused(monkeypatch):
    monkeypatch.setattr("memory_pipeline.jsonl.LINE_LIMIT", 100)
    with pytest.raises(InvalidInput, match="line 2: is longer"):
        queue.read(io.BytesIO(b"\n" + b" " * 200))


# ── Submitted ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_is_submitted_waits_and_changes_nothing(clinic: Archive):
    submit(clinic, a_creation(), Delete("mem-0009", 3), Merge("mem-0001", 1, "mem-0002", 1))
    assert clinic.card_ids() == []
    waiting = listed(clinic)
    assert [(e.operation, e.card_id, e.merged_id, e.state, e.principal) for e in waiting] == [
        ("create", None, None, "waiting", MAKER),
        ("delete", "mem-0009", None, "waiting", MAKER),
        ("merge", "mem-0001", "mem-0002", "waiting", MAKER),
    ]
    assert waiting[0].content["subject"] == "active patient"
    assert [edit.edit_id for edit in listed(clinic, limit=2)] == [edit.edit_id for edit in waiting[1:]]


def test_only_an_administrator_submits(clinic: Archive):
    grants.give(clinic.database, CLINIC, "rita", Role.REVIEWER, by=MAKER)
    for principal in ("rita", "nobody"):
        with pytest.raises(NotPermitted):
            submit(clinic, a_creation(), principal=principal)
    assert listed(clinic) == []


def test_all_are_submitted_or_none(clinic: Archive):
    with pytest.raises(InvalidEdit, match="NUL byte"):
        submit(clinic, a_creation(), Delete("a\0b", 1))
    assert listed(clinic) == []


def test_an_edit_of_another_workspace_is_neither_seen_nor_applied(clinic: Archive):
    a_workspace(clinic.runtime, WARD)
    submit(clinic, a_creation())
    ward = Archive(clinic.runtime, WARD)
    assert listed(ward) == []
    assert apply(ward) == queue.QueueReport(0, (), 0)
    assert len(listed(clinic, "waiting")) == 1


def test_an_unknown_workspace_has_no_queue(clinic: Archive):
    with pytest.raises(UnknownWorkspace):
        queue.apply_waiting(clinic.database, "nowhere", clinic.runtime.identity)


# ── Applied ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_they_are_applied_in_order_and_then_hold_no_content(clinic: Archive):
    submit(clinic, a_creation(), a_creation(subject="fever", detail="temp > 38"))
    submit(clinic, Change("mem-0001", 1, {"detail": "flag = 1"}, (Link("mem-0002", "see"),)), Delete("mem-0002", 2))
    assert apply(clinic) == queue.QueueReport(applied=4, refused=(), waiting=0)
    assert clinic.card_ids() == ["mem-0001"]
    assert (clinic.card()["detail"], clinic.card()["version"], clinic.card()["updated_by"]) == ("flag = 1", 2, MAKER)
    done = listed(clinic, "applied")
    assert [(e.operation, e.card_id) for e in done] == [
        ("create", "mem-0001"),
        ("create", "mem-0002"),
        ("change", "mem-0001"),
        ("delete", "mem-0002"),
    ]
    assert all(e.content is None and e.finished_at and e.principal == MAKER for e in done)
    assert "temp > 38" not in str(clinic.rows("SELECT * FROM admin_edit"))
    assert apply(clinic).applied == 0


def test_what_is_applied_is_pending_from_then_on_in_a_workspace_that_nothing_was_projected_of(clinic: Archive):
    submit(clinic, a_creation())
    apply(clinic)
    assert clinic.pending() == {"mem-0001"}


def test_one_that_is_refused_is_kept_with_its_reason_and_stops_no_other(clinic: Archive):
    submit(
        clinic,
        a_creation(),
        Change("mem-0001", 7, {"detail": "stale"}),
        Delete("mem-0404", 1),
        Change("mem-0001", 1, {"sql": "SELECT 1"}),
        Create(a_card(), (Link("mem-0404", "see"),)),
        Change("mem-0001", 1, {"detail": "last"}),
    )
    report = apply(clinic)
    assert (report.applied, report.waiting) == (2, 0)
    reasons = [refusal.reason for refusal in report.refused]
    assert "mem-0001 is at version 1" in reasons[0]
    assert "no card 'mem-0404'" in reasons[1]
    assert "sql" in reasons[2]
    assert "to link with" in reasons[3]
    kept = listed(clinic, "refused")
    assert [edit.reason for edit in kept] == reasons
    assert kept[0].content == {"operation": "change", "card_id": "mem-0001", "version": 7, "detail": "stale"}
    assert clinic.card()["detail"] == "last"
    assert clinic.card_ids() == ["mem-0001"]


def test_a_refused_edit_can_be_mended_and_submitted_again(clinic: Archive):
    submit(clinic, a_creation(), Change("mem-0001", 2, {"detail": "newer"}))
    apply(clinic)
    [refused] = listed(clinic, "refused")
    submit(clinic, *queue.read(a_file({**refused.content, "version": 1})))
    assert apply(clinic).applied == 1
    assert clinic.card()["detail"] == "newer"


def test_the_grant_is_asked_again_when_an_edit_is_applied(clinic: Archive):
    grants.give(clinic.database, CLINIC, "anna", Role.ADMINISTRATOR, by=MAKER)
    submit(clinic, a_creation(), principal="anna")
    submit(clinic, a_creation(subject="fever"))
    grants.take(clinic.database, CLINIC, "anna", by=MAKER)
    report = apply(clinic)
    assert report.applied == 1
    assert "'anna' may not do this" in report.refused[0].reason
    assert [row["subject"] for row in clinic.rows("SELECT subject FROM card")] == ["fever"]


def raising(state: str) -> str:
    return f"DO $$ BEGIN RAISE 'too large' USING ERRCODE = '{state}'; END $$"


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO card_link VALUES (:workspace, 'mem-0404', 'mem-0405', 'nothing')",
        "UPDATE workspace_grant SET role = repeat('x', 1073741824)",
        *map(raising, ("22003", "54000", "XX000")),
    ],
    ids=["no such card", "a gigabyte", "out of range", "program limit", "internal error"],
)
def test_what_postgresql_cannot_keep_is_refused_too_and_does_not_keep_the_others_waiting(
    clinic: Archive, monkeypatch, statement
):
    apply_edit = editing.apply

    def fail_on_deletion(tx, edit, **others):
        if isinstance(edit, Delete):
            tx.run(text(statement))
        return apply_edit(tx, edit, **others)

    monkeypatch.setattr(editing, "apply", fail_on_deletion)
    submit(clinic, Delete("mem-0001", 1), a_creation())
    report = apply(clinic)
    assert (report.applied, report.waiting) == (1, 0)
    assert "the archive cannot keep" in report.refused[0].reason


def test_a_change_to_more_than_can_be_kept_is_refused_with_its_field_and_stops_no_other(clinic: Archive):
    concepts = tuple(f"concept {n}" for n in range(LIST_LIMIT + 1))
    submit(clinic, a_creation(), Change("mem-0001", 1, {"concepts": concepts}), a_creation(subject="fever"))
    report = apply(clinic)
    assert (report.applied, [refusal.reason for refusal in report.refused]) == (
        2,
        ["concepts: has 1,001 entries: at most 1,000 can be kept"],
    )


# ── Discarded ────────────────────────────────────────────────────────────────────────────────────────────────────────


def discard(archive: Archive, *edit_ids: int, principal: str = MAKER) -> int:
    with archive.database.transaction(archive.workspace) as tx:
        return queue.discard(tx, principal, edit_ids)


def test_a_refused_edit_and_one_that_waits_hold_no_content_once_they_are_discarded(clinic: Archive):
    submit(clinic, a_creation(subject="a secret"), Change("mem-0001", 7, {"detail": "another secret"}))
    apply(clinic)
    submit(clinic, a_creation(subject="a third one"))
    refused, waiting = [edit.edit_id for edit in listed(clinic) if edit.state != "applied"]
    assert discard(clinic, refused, waiting, waiting) == 2
    kept = [edit for edit in listed(clinic) if edit.edit_id in (refused, waiting)]
    assert [(e.state, e.content, e.reason) for e in kept] == [("refused", None, f"discarded by {MAKER}")] * 2
    assert all(edit.finished_at for edit in kept)
    assert apply(clinic) == queue.QueueReport()
    assert clinic.card_ids() == ["mem-0001"]


def test_all_are_discarded_or_none(clinic: Archive):
    submit(clinic, a_creation(), a_creation(subject="fever"))
    apply(clinic)
    submit(clinic, a_creation(subject="cough"))
    [applied, _, waiting] = [edit.edit_id for edit in listed(clinic)]
    with pytest.raises(InvalidInput, match=f"of edit {applied}, {waiting + 1}:"):
        discard(clinic, applied, waiting, waiting + 1)
    a_workspace(clinic.runtime, WARD)
    with pytest.raises(InvalidInput, match="'ward' has nothing to discard"):
        discard(Archive(clinic.runtime, WARD), waiting)
    grants.give(clinic.database, CLINIC, "rita", Role.REVIEWER, by=MAKER)
    with pytest.raises(NotPermitted):
        discard(clinic, waiting, principal="rita")
    assert len(listed(clinic, "waiting")) == 1


# ── Interrupted ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_archive_that_goes_away_leaves_everything_waiting(clinic: Archive, monkeypatch):
    submit(clinic, a_creation(), a_creation(subject="fever"))

    def away(tx, edit, **others):
        raise ArchiveUnavailable("PostgreSQL went away")

    with monkeypatch.context() as patch:
        patch.setattr(editing, "apply", away)
        with pytest.raises(ArchiveUnavailable):
            apply(clinic)
    assert len(listed(clinic, "waiting")) == 2
    nowhere = Database(SecretStr("postgresql+psycopg://nobody@127.0.0.1:1/nothing"))
    with pytest.raises(ArchiveUnavailable):
        queue.apply_waiting(nowhere, CLINIC, clinic.runtime.identity)
    assert apply(clinic).applied == 2


def test_a_process_killed_between_an_edit_and_its_commit_applies_it_once_in_all(clinic: Archive):
    submit(clinic, a_creation(), Change("mem-0001", 1, {"detail": "flag = 1"}))
    settings = clinic.runtime.settings
    environment = {
        **os.environ,
        "PYTHONPATH": str(CHECKOUT),
        "MEMORY_HOME": str(settings.home),
        "MEMORY_DATABASE_URL": settings.database_url.get_secret_value(),
        "MEMORY_OWNER_URL": settings.owner_url.get_secret_value(),
    }
    command = [sys.executable, "-m", "tests.archive.killed_queue", CLINIC]
    done = subprocess.run(command, env=environment, cwd=CHECKOUT, check=False, timeout=120)
    assert done.returncode == -signal.SIGKILL
    assert clinic.card_ids() == []
    assert len(listed(clinic, "waiting")) == 2
    assert apply(clinic).applied == 2
    assert (clinic.card_ids(), clinic.card()["version"]) == (["mem-0001"], 2)


def test_two_that_apply_at_once_apply_each_edit_once(clinic: Archive):
    submit(clinic, *(a_creation(subject=f"subject {n}") for n in range(30)))
    with ThreadPoolExecutor(4) as pool:
        reports = list(pool.map(lambda _: apply(clinic), range(4)))
    assert sum(report.applied for report in reports) == 30
    assert not any(report.refused for report in reports)
    subjects = clinic.column("SELECT subject FROM card ORDER BY card_id")
    assert subjects == [f"subject {n}" for n in range(30)]
