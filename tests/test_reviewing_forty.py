"""A session of forty candidates: all of them are shown, and all of them are decided about in one call and one write."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_pipeline.archive import waiting
from memory_pipeline.ledger import LEDGER_FILE, read_session
from memory_pipeline.reviewing import Reviewing
from memory_pipeline.runtime import Runtime
from tests.archives import Archive
from tests.builders import WORKSPACE, a_session, clarified
from tests.curating import a_runtime, a_workspace

FORTY = range(1, 41)
PROMOTED, DECLINED = range(1, 31), range(31, 41)


@pytest.fixture
def runtime(settings) -> Iterator[Runtime]:
    with a_runtime(settings) as opened:
        a_workspace(opened)
        yield opened


@pytest.fixture
def session(settings) -> Path:
    said = [clarified(seq, f"concept {seq}", f"x = {seq}") for seq in FORTY]
    return a_session(settings.sessions, *said, status="open")


def candidates_of_the_archive(runtime: Runtime) -> int:
    with runtime.database.transaction(WORKSPACE) as tx:
        return waiting.candidates(tx, limit=10)[0]


@pytest.fixture
def writes(session, monkeypatch) -> list[bytes]:
    """What is written to the ledger, write by write."""
    seen = []
    ledger, write = (session / LEDGER_FILE).stat(), os.write

    def watched(descriptor: int, data: bytes) -> int:
        if os.path.samestat(os.fstat(descriptor), ledger):
            seen.append(data)
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", watched)
    return seen


def test_are_all_shown(runtime, session):
    shown = Reviewing(runtime).preview(WORKSPACE, session.name)
    assert [candidate.seq for candidate in shown.candidates] == [*FORTY]
    assert (shown.promoted, shown.declined, shown.refused) == (0, 0, {})


def test_are_all_decided_about_in_one_write(runtime, session, writes):
    before = (session / LEDGER_FILE).read_bytes()
    outcome = Reviewing(runtime).record(WORKSPACE, session.name, promote=PROMOTED, decline=DECLINED)
    assert before + b"".join(writes) == (session / LEDGER_FILE).read_bytes()
    assert len(writes) == 1
    assert [decision.detail for decision in outcome.recorded] == [f"seq:{seq}" for seq in FORTY]
    assert read_session(session, WORKSPACE).decisions[len(FORTY) :] == outcome.recorded
    assert (outcome.unchanged, outcome.refused, outcome.candidates_left) == ((), {}, 0)
    assert outcome.followed.recallable
    assert {effect.title for effect in outcome.followed.cards} == {f"concept {seq}" for seq in PROMOTED}
    assert Reviewing(runtime).preview(WORKSPACE, session.name).candidates == ()


def test_the_last_one_can_be_decided_about_before_its_newline_is_there(runtime, session):
    ledger = session / LEDGER_FILE
    ledger.write_bytes(ledger.read_bytes().removesuffix(b"\n"))
    shown = Reviewing(runtime).preview(WORKSPACE, session.name)
    assert (len(shown.candidates), shown.unfinished_line) == (39, True)
    outcome = Reviewing(runtime).record(WORKSPACE, session.name, promote=PROMOTED, decline=DECLINED)
    assert (len(outcome.recorded), outcome.candidates_left) == (40, 0)


def test_wait_in_the_archive_until_they_are_decided_about(runtime, session):
    Archive(runtime).ingest()
    assert candidates_of_the_archive(runtime) == 40
    assert [each.candidates for each in Reviewing(runtime).waiting(WORKSPACE).sessions] == [40]
    Reviewing(runtime).record(WORKSPACE, session.name, promote=PROMOTED, decline=DECLINED)
    assert candidates_of_the_archive(runtime) == 0
    assert Reviewing(runtime).waiting(WORKSPACE).sessions == ()
