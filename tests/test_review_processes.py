"""Several processes review, append to and read the same session at once, and some of them are killed (`kill -9`)."""

from __future__ import annotations

import json
import os
import random
import select
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from filelock import FileLock

from memory_pipeline.ledger import LEDGER_FILE, LOCK_FILE, Decision, FaultKind, read_session
from memory_pipeline.propagation import audit, project
from memory_pipeline.reviewing import Reviewing
from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import Settings
from tests import naive_review as naive
from tests.archives import Archive
from tests.builders import WORKSPACE, a_session, clarified
from tests.curating import WARD, a_runtime, a_workspace, points
from tests.processes import started

CANDIDATES, ROUNDS, BATCH = 40, 3, 14
MANY = 120  # candidates
LEDGERS, APPENDS = 40, 8
NEVER = {FaultKind.NOT_JSON, FaultKind.FIELD_MISSING, FaultKind.SEQ_NOT_RISING}
AT_THE_WRITE = ["before the write", "within the write", "after the write", "after the sync"]
CALLS, SECONDS = 160_000, 0.15  # in which a review has got to its write, and has done what follows it


@pytest.fixture
def runtime(settings: Settings) -> Iterator[Runtime]:
    with a_runtime(settings) as opened:
        a_workspace(opened)
        yield opened


@contextmanager
def working(settings: Settings, work: str) -> Iterator[subprocess.Popen[str]]:
    """A process that does what it is asked for."""
    with started(settings, "tests.reviewing_process", work, str(settings.sessions)) as process:
        try:
            yield process
            process.stdin.close()  # it has nothing more to do
            assert process.wait(timeout=60) == 0
        except BaseException:
            process.kill()
            raise


def ask(process: subprocess.Popen[str], **order: object) -> None:
    process.stdin.write(f"{json.dumps(order)}\n")
    process.stdin.flush()


def answer(process: subprocess.Popen[str]):
    return json.loads(process.stdout.readline())


def a_session_to_review(settings: Settings, session: str, candidates: int = CANDIDATES) -> Path:
    """One with so many candidates, of which some are said twice."""
    texts = [*range(candidates), *range(0, candidates, 8)]
    said = [clarified(seq, f"concept {text}", f"x = {text}") for seq, text in enumerate(texts, 1)]
    return a_session(settings.sessions, *said, session=session, status="open")


def batches(chance: random.Random) -> list[dict[str, list[int]]]:
    """Every candidate once, in any order, promoted or declined as it falls."""
    seqs = chance.sample(range(1, CANDIDATES + 1), CANDIDATES)
    parts = [seqs[start : start + BATCH] for start in range(0, CANDIDATES, BATCH)]
    return [{"promote": part[::2], "decline": part[1::2]} for part in parts]


def lines_of(session: Path) -> tuple[naive.Line, ...]:
    """The lines of a ledger that count."""
    return naive.lines_of((session / LEDGER_FILE).read_bytes(), finalized=False).usable


def markers(lines: tuple[naive.Line, ...]) -> list[tuple[str, str]]:
    return [(line.type, line.detail) for line in lines if line.type != naive.CLARIFIED]


def cards(archive: Archive) -> list[dict[str, object]]:
    """What the cards of a workspace say, and what stands behind them; their ids and versions may differ."""
    query = """SELECT c.subject, c.detail, c.rationale, c.concepts, c.database, c.schema, c.flags,
        array_agg((s.session_id, s.seq, s.decided_by)::text ORDER BY s.session_id, s.seq) AS sources
        FROM card c JOIN card_source s USING (workspace, card_id) GROUP BY c.workspace, c.card_id ORDER BY c.detail"""
    return [dict(row) for row in archive.rows(query)]


def test_two_reviewers_at_once_decide_about_every_candidate_once(runtime, settings):
    with working(settings, "review") as one, working(settings, "review") as other:
        for number in range(ROUNDS):
            session = a_session_to_review(settings, f"session-{number}")
            for process, chance in ((one, number), (other, -1 - number)):
                ask(process, session=session.name, batches=batches(random.Random(chance)))  # noqa: S311  # to be repeatable
            recorded = [tuple(each) for process in (one, other) for each in answer(process)]
            assert_each_was_decided_about_once(session, recorded)
    assert project(runtime, WORKSPACE).pending == 0
    assert not audit(runtime, WORKSPACE)
    assert cards(Archive(runtime)) == cards(taken_in_anew(runtime))


def assert_each_was_decided_about_once(session: Path, recorded: list[tuple[str, str]]) -> None:
    lines = lines_of(session)
    assert len(lines) == (session / LEDGER_FILE).read_bytes().count(b"\n")  # none is torn or repeated
    assert [line.seq for line in lines] == [*range(1, len(lines) + 1)]
    assert sorted(markers(lines)) == sorted(recorded)
    clarifications = [line for line in lines if line.type == naive.CLARIFIED]
    assert Counter(detail for _, detail in recorded) == Counter(f"seq:{line.seq}" for line in clarifications)
    found = naive.outcomes(lines)
    for line in clarifications:  # those that say the same came out the same
        assert {found[same.seq] for same in clarifications if naive.is_same(line, same)} == {found[line.seq]}


def taken_in_anew(runtime: Runtime) -> Archive:
    """Another workspace, which reads the same ledgers for the first time."""
    ward = Archive(runtime, WARD)
    for session in (runtime.settings.sessions / WORKSPACE).iterdir():
        ward.session(session=session.name, ledger=(session / LEDGER_FILE).read_bytes(), status="open")
    ward.ingest()
    return ward


def test_whoever_reads_while_others_append_sees_whole_lines_and_never_fewer(settings):
    lengths = set()
    with working(settings, "append") as process:
        for number in range(LEDGERS):  # a long one takes too long to read
            session = a_session(settings.sessions, session=f"session-{number}", ledger=b"", status="open")
            finalized = a_session(settings.sessions, session=f"session-{number}-finalized")
            (finalized / LEDGER_FILE).unlink()
            (finalized / LEDGER_FILE).hardlink_to(session / LEDGER_FILE)
            seen: dict[Path, tuple[Decision, ...]] = {session: (), finalized: ()}
            ask(process, session=session.name, times=APPENDS)
            while not select.select([process.stdout], [], [], 0)[0]:
                seen = {directory: read_whole_lines(directory, before) for directory, before in seen.items()}
                lengths |= {(number, len(decisions)) for decisions in seen.values()}
            count = answer(process)
            assert [len(read_whole_lines(directory, before)) for directory, before in seen.items()] == [count, count]
    assert len(lengths) > LEDGERS  # they were read while they grew


def read_whole_lines(directory: Path, before: tuple[Decision, ...]) -> tuple[Decision, ...]:
    reading = read_session(directory, WORKSPACE)
    assert not NEVER & {fault.kind for fault in reading.faults}
    assert reading.decisions[: len(before)] == before
    assert [decision.seq for decision in reading.decisions] == [*range(1, len(reading.decisions) + 1)]
    return reading.decisions


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
def test_a_reviewer_who_is_killed_leaves_nothing_glued_locked_or_forgotten(runtime, settings):
    session = a_session_to_review(settings, "session-1", candidates=MANY)
    chance = random.Random(0)  # noqa: S311  # to be repeatable
    moments = [
        *AT_THE_WRITE,
        *(chance.randrange(CALLS) for _ in range(5)),
        *(chance.uniform(0, SECONDS) for _ in range(14)),
    ]
    killed = 0
    with working(settings, "review_and_be_killed") as process:
        for moment in moments:
            before = (session / LEDGER_FILE).read_bytes()
            seqs = chance.sample(range(1, MANY + 1), 5)
            ask(process, session=session.name, batches=[{"promote": seqs[:3], "decline": seqs[3:]}], moment=moment)
            killed += answer(process)
            assert_nothing_is_glued_or_locked(session, before)
            assert_what_was_recorded_is_remembered(runtime, session)
    assert killed > len(AT_THE_WRITE)
    waiting = {seq for group in naive.candidates(lines_of(session)) for seq in group}
    Reviewing(runtime).record(WORKSPACE, session.name, promote=waiting)
    assert_what_was_recorded_is_remembered(runtime, session)
    assert max(Counter(markers(lines_of(session))).values()) == 1
    assert not audit(runtime, WORKSPACE)


def assert_nothing_is_glued_or_locked(session: Path, before: bytes) -> None:
    ledger = (session / LEDGER_FILE).read_bytes()
    assert ledger.startswith(before)
    assert all(line.count(b'"seq": ') <= 1 for line in ledger.splitlines())
    with FileLock(session / LOCK_FILE, timeout=0):
        pass


def assert_what_was_recorded_is_remembered(runtime: Runtime, session: Path) -> None:
    """One ingest and one projection are enough, whatever had been done of them."""
    archive = Archive(runtime)
    archive.ingest()
    assert project(runtime, WORKSPACE, retry_now=True).pending == 0
    promoted = {seq for seq, outcome in naive.outcomes(lines_of(session)).items() if outcome == "promoted"}
    assert {*archive.column("SELECT seq FROM card_source WHERE card_id IS NOT NULL")} == promoted
    assert {*archive.card_ids()} == {item for item in points(runtime) if item.startswith("mem-")}
