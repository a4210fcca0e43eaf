"""Finalizing a session: three values of its manifest change, and nothing else of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memory_pipeline.errors import LedgerUnavailable, SessionNotFound
from memory_pipeline.ledger import LEDGER_FILE, MANIFEST_FILE, SQL_FILE, Status, finalize, read_session
from memory_pipeline.ledger.files import read_bytes
from tests.builders import WORKSPACE, a_session

PLAIN = """\
# written by the assistant
id: session-1
workspace: clinic
question: "How many?"   # asked by the ward
database: clinic_dwh
schema: ''
status: open  # until the SQL is approved
created_at: 2026-01-05T08:00:00+00:00
updated_at: 2026-01-05T08:00:00+00:00
updated_by: m.rossi
extra: {kept: [as, it, is]}
"""
COMMON = "id: session-1, workspace: clinic, question: q, database: d, schema: s, created_at: 2026-01-05, "
UNUSUAL = {
    "flow": f"{{{COMMON}updated_at: 2026-01-05, updated_by: x, status: open}}",
    "quoted": PLAIN.replace("status: open ", 'status: "open" ').replace("m.rossi", "'m.rossi'"),
    "block": PLAIN.replace("updated_by: m.rossi", "updated_by: |-\n  m.rossi"),
    "folded with its line end": PLAIN.replace("updated_by: m.rossi", "updated_by: >\n  m.rossi"),
    "carriage returns": PLAIN.replace("\n", "\r\n"),
    "byte order mark": f"\ufeff{PLAIN}",
    "no last newline": PLAIN.removesuffix("\n"),
    "beyond ASCII": PLAIN.replace("# written", "# età 𝒳 — written"),
    "explicit document": f"---\n{PLAIN}...\n",
}


@pytest.fixture
def session(tmp_path: Path) -> Path:
    directory = a_session(tmp_path)
    (directory / MANIFEST_FILE).write_text(PLAIN, encoding="utf-8")
    return directory


def written(session: Path, text: str) -> Path:
    (session / MANIFEST_FILE).write_bytes(text.encode())
    return session


def test_changes_status_and_who_changed_it_when_and_no_other_byte(session):
    assert finalize(session, WORKSPACE, by="anna")
    found = read_session(session, WORKSPACE).manifest
    assert (found.status, found.updated_by) == (Status.FINALIZED, "anna")
    assert found.updated_at > found.created_at
    text = (session / MANIFEST_FILE).read_text(encoding="utf-8")
    changed = [(a, b) for a, b in zip(PLAIN.splitlines(), text.splitlines(), strict=True) if a != b]
    assert [a.partition(":")[0] for a, _ in changed] == ["status", "updated_at", "updated_by"]
    assert changed[0][1] == "status: finalized  # until the SQL is approved"


@pytest.mark.parametrize("text", UNUSUAL.values(), ids=UNUSUAL)
def test_whatever_way_the_manifest_is_written_in(session, text):
    assert finalize(written(session, text), WORKSPACE, by='a "b" \\ è')
    found = read_session(session, WORKSPACE).manifest
    assert (found.status, found.updated_by) == (Status.FINALIZED, 'a "b" \\ è')


def test_of_a_session_that_is_finalized_changes_nothing(session):
    finalize(session, WORKSPACE, by="anna")
    before = (session / MANIFEST_FILE).stat()
    assert not finalize(session, WORKSPACE, by="bob")
    assert (session / MANIFEST_FILE).stat() == before


def test_values_that_stand_in_for_others_are_left_to_a_hand(session):
    shared = PLAIN.replace("workspace: clinic", "workspace: &w clinic").replace("m.rossi", "*w")
    before = written(session, shared) / MANIFEST_FILE
    content = before.read_bytes()
    with pytest.raises(LedgerUnavailable, match="by hand"):
        finalize(session, WORKSPACE, by="anna")
    assert before.read_bytes() == content


def test_a_manifest_that_is_no_utf_8_is_left_to_a_hand(session):
    (session / MANIFEST_FILE).write_bytes(PLAIN.encode("utf-16"))
    with pytest.raises(LedgerUnavailable, match="by hand"):
        finalize(session, WORKSPACE, by="anna")
    assert (session / MANIFEST_FILE).read_bytes() == PLAIN.encode("utf-16")


@pytest.mark.parametrize("by", ["a\x7fb", "a\x85b", "x" * 255, "a: #b", "a\u2028b", "\ufeffa", "𝒳"])
def test_whoever_it_was_is_written_so_that_it_is_read(session, by):
    finalize(session, WORKSPACE, by=by)
    assert read_session(session, WORKSPACE).manifest.updated_by == by


def test_a_manifest_that_cannot_be_used_says_why(session):
    with pytest.raises(SessionNotFound, match="question is missing"):
        finalize(written(session, PLAIN.replace("question", "asked")), WORKSPACE, by="anna")
    (session / MANIFEST_FILE).unlink()
    with pytest.raises(SessionNotFound, match="no manifest"):
        finalize(session, WORKSPACE, by="anna")


def test_a_disk_that_gives_out_leaves_the_manifest_as_it_was(session, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("memory_pipeline.files.os.fsync", full)
    with pytest.raises(LedgerUnavailable, match=r"no space left on device.*not finalized"):
        finalize(session, WORKSPACE, by="anna")
    assert (session / MANIFEST_FILE).read_text(encoding="utf-8") == PLAIN
    assert sorted(path.name for path in session.iterdir()) == sorted([LEDGER_FILE, MANIFEST_FILE, SQL_FILE])


def test_a_manifest_that_somebody_replaces_meanwhile_is_not_overwritten(session, monkeypatch):
    sync = os.fsync
    newer = PLAIN.replace("How many?", "How many now?")

    def replaced(descriptor):
        sync(descriptor)
        written(session, newer)

    monkeypatch.setattr("memory_pipeline.files.os.fsync", replaced)
    with pytest.raises(LedgerUnavailable, match="changed meanwhile"):
        finalize(session, WORKSPACE, by="anna")
    assert (session / MANIFEST_FILE).read_text(encoding="utf-8") == newer
    assert sorted(path.name for path in session.iterdir()) == sorted([LEDGER_FILE, MANIFEST_FILE, SQL_FILE])


def test_a_directory_that_cannot_be_synced_denies_nothing(session, monkeypatch):
    def only_files(_):
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr("memory_pipeline.files.sync_directory", only_files)
    assert finalize(session, WORKSPACE, by="anna")
    assert read_session(session, WORKSPACE).manifest.status is Status.FINALIZED


def test_decides_on_one_reading_of_a_manifest(session, monkeypatch):
    read = []
    monkeypatch.setattr(
        "memory_pipeline.ledger.finalizing.read_bytes", lambda *asked: read.append(asked) or read_bytes(*asked)
    )
    finalize(session, WORKSPACE, by="anna")
    assert len(read) == 2  # and one more look just before it is replaced


def test_keeps_the_mode_and_follows_a_link(session, tmp_path):
    place = tmp_path / "elsewhere.yaml"
    (session / MANIFEST_FILE).rename(place)
    (session / MANIFEST_FILE).symlink_to(place)
    place.chmod(0o640)
    finalize(session, WORKSPACE, by="anna")
    assert (session / MANIFEST_FILE).is_symlink()
    assert place.stat().st_mode & 0o777 == 0o640
    assert "finalized" in place.read_text(encoding="utf-8")
