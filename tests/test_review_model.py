"""An assistant and a reviewer write one ledger in turn, and after every line the review says what its rules read aloud say."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from memory_pipeline.candidates import Plan, Retraction, Rollback, candidates, plan_correction, plan_review
from memory_pipeline.ledger import LEDGER_FILE, Decision, SessionReading, open_for_appending, read_session
from memory_pipeline.review import Outcome, review
from memory_pipeline.session_view import memories
from tests import naive_review as naive
from tests.builders import (
    MORNING,
    WORKSPACE,
    a_decision,
    a_session,
    aged,
    approved,
    clarified,
    declined,
    promoted,
)

FIELDS = ("seq", "type", "subject", "detail", "phase", "tables")
PICK = st.integers(0, 1_000)
PHASE = st.integers(1, 8)
ENDING = st.sampled_from([b"\n", b"\n", b"\n", b"\r\n", b""])
STEP = st.sampled_from([1, 1, 1, 1, 1, 2, 7, 0, -1, -3])  # from the last seq that counts: gaps, repeated, falling

TABLES = [(), (), ("visite", "reparto"), ("reparto",), ("dm.visite",), ("[dm].[Visite]", "dim_paziente")]
DETAILS = ["flag = TRUE", ">= 140", "< 140", "", "età", "eta\u0300", "Straße", "STRASSE."]
SUBJECTS = ["active patient", "età", "eta\u0300", "fact_ricoveri and its grain", "visite of the ward"]
TABLE_SUBJECTS = ["fact_ricoveri", '"DIM_paziente"', "[dim_x]", "visite", "Visite.", "dm.visite"]
TABLE_SUBJECTS += ["visite.reparto", "reparto", "other.reparto"]
EQUAL = [
    ("active patient", "flag = TRUE"),
    ("«Active  PATIENT». ", "FLAG  = true."),
    ("ACTIVE\npatient", "flag = true"),
]
UNKNOWN = ["column_renamed", "Concept_clarified", "memory_promoted "]
ODD_REFERENCES = [
    "",
    "1",
    "seq:",
    "seq:x",
    "seq:-1",
    "phase:1",
    "phase:0",
    "phase:9",
    "seq:1.0",
    "seq:99999999999999999999",
]

GARBAGE = [
    b"not json",
    b"[1, 2]",
    b'"a text"',
    b"{}",
    b"null",
    b"\xff\xfe",
    b'{"seq": 3',
    b'{"seq": 999}',
    b'{"seq": 999, "ts": "2026-01-05", "type": "concept_clarified", "subject": "  "}',
    b'{"seq": 999, "ts": "2026-01-05", "type": "concept_clarified", "subject": null}',
    b'{"seq": 999, "ts": "2026-01-05", "type": " ", "subject": "x"}',
    b'{"seq": 999, "ts": "some day", "type": "concept_clarified", "subject": "x"}',
    b'{"seq": true, "ts": "2026-01-05", "type": "concept_clarified", "subject": "x"}',
    b'{"seq": "999", "ts": "2026-01-05", "type": "concept_clarified", "subject": "x"}',
    b'{"seq": 999, "ts": "2026-01-05", "type": "concept_clarified", "subject": "x", "phase": 9}',
    b'{"seq": 999, "ts": "2026-01-05", "type": "concept_clarified", "subject": "x", "tables": "visite"}',
    b'{"seq": 999, "ts": "2026-01-05", "type": "concept_clarified", "subject": "nul \\u0000"}',
    b'{"seq": 999, "ts": "2026-01-05", "type": "concept_clarified", "subject": "half \\ud800"}',
    b'{"seq": 999, "ts": "2026-01-05", "type": "concept_clarified", "subject": "nul \x00"}',
    b'{"seq": 999, "seq": 1000, "ts": "2026-01-05", "type": "concept_clarified", "subject": "x"}',
    b'{"seq": 999, "ts": "2026-01-05", "type": "concept_clarified", "subject": "x", "more": NaN}',
]
BLANK = [b"\n", b"  \n", b"\r\n", b"\t", b" "]
_numbers = count(1)


@dataclass(frozen=True)
class Meant:
    """A line that an assistant means to write; which seq it gets, and which it names, depends on where it stands."""

    type: str
    text: tuple[str, str]
    phase: int
    tables: tuple[str, ...] = ()
    names: int | None = None  # picks the line that it is about, in place of its detail

    def as_json(self, last: int, step: int) -> bytes:
        """The line without its end, behind a last seq. Some name themselves, or a line that is still to come."""
        subject, detail = self.text
        named = detail if self.names is None else f"seq:{1 + self.names % (last + 2)}"
        fields = {"seq": last + step, "ts": "2026-01-05T08:00:00+00:00", "type": self.type, "subject": subject}
        return json.dumps(
            fields | {"detail": named, "phase": self.phase, "tables": self.tables}, ensure_ascii=False
        ).encode()


def one_of(*strategies: st.SearchStrategy[Meant]) -> st.SearchStrategy[Meant]:
    """Each as often as the others, however many more it is made of."""
    return st.integers(0, len(strategies) - 1).flatmap(lambda number: strategies[number])


TEXT = st.one_of(
    st.sampled_from(EQUAL),
    st.tuples(st.sampled_from(SUBJECTS), st.sampled_from(DETAILS)),
    st.tuples(st.sampled_from(TABLE_SUBJECTS), st.sampled_from(DETAILS[:2])),
)
CLARIFICATION = st.builds(Meant, st.just("concept_clarified"), TEXT, PHASE, st.sampled_from(TABLES))


def meant(kind: str, *details: str) -> st.SearchStrategy[Meant]:
    texts = st.tuples(st.sampled_from(SUBJECTS + TABLE_SUBJECTS), st.sampled_from(details or DETAILS))
    return st.builds(Meant, st.just(kind), texts, PHASE)


def pointing(kind: str) -> st.SearchStrategy[Meant]:
    """Mostly to some line; some to nothing."""
    to_some_line = st.builds(Meant, st.just(kind), TEXT, PHASE, names=PICK)
    return one_of(*[to_some_line] * 5, meant(kind, *ODD_REFERENCES))


LINE = one_of(
    *[CLARIFICATION] * 6,
    *[pointing("memory_promoted")] * 3,
    *[pointing("memory_promotion_declined")] * 3,
    *[pointing("decision_retracted")] * 2,
    meant("phase_reopened", *[f"phase:{phase}" for phase in range(1, 9)], *ODD_REFERENCES),
    meant("memory_rejected", "mem-0001", "mem-0002", "sq-0001", "the first one", ""),
    meant("question_rewritten", "How many?", "How many, then?", "  "),
    meant("sql_approved", ""),
    one_of(*map(meant, ["table_promoted", "table_excluded", "column_promoted", "datamart_requested"])),
    one_of(*map(pointing, UNKNOWN)),
)


class TwoWriters(RuleBasedStateMachine):
    """One ledger for every sequence, which lies in an open session and in a finalized one."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        name = f"session-{next(_numbers)}"
        self.open = a_session(root, session=name, ledger=b"", status="open")
        self.finalized = a_session(root, session=f"{name}-finalized")
        self.ledger = self.open / LEDGER_FILE
        (self.finalized / LEDGER_FILE).unlink()
        (self.finalized / LEDGER_FILE).hardlink_to(self.ledger)
        self.written = b""
        self.rest = b""  # of a line that the assistant has begun
        self.reviewed: list[Decision] = []  # what the reviewer's lines say

    @initialize(lines=st.lists(CLARIFICATION, max_size=4), mark=st.booleans())
    def begin(self, lines, mark):
        if mark:
            self.add(b"\xef\xbb\xbf")
        for line in lines:
            self.add(line.as_json(self.last_seq(), 1) + b"\n")

    # ── The assistant, who knows nothing of a reviewer ───────────────────────────────────────────────────────────────

    @rule(line=LINE, step=STEP, ending=ENDING)
    def the_assistant_writes(self, line, step, ending):
        self.add(line.as_json(self.last_seq(), step) + ending)

    @rule(line=LINE, keep=st.floats(0.01, 0.99))
    def the_assistant_is_torn_away(self, line, keep):
        whole = line.as_json(self.last_seq(), 1) + b"\n"
        cut = int(len(whole) * keep)
        self.rest = whole[cut:]
        self.add(whole[:cut])

    @precondition(lambda self: self.rest)
    @rule()
    def the_assistant_goes_on_with_its_line(self):
        rest, self.rest = self.rest, b""
        self.add(rest)

    @rule(line=st.sampled_from(GARBAGE), ending=ENDING)
    def the_assistant_writes_what_cannot_be_used(self, line, ending):
        self.add(line + ending)

    @rule(line=st.sampled_from(BLANK))
    def the_assistant_leaves_a_blank(self, line):
        self.add(line)

    # ── The reviewer ─────────────────────────────────────────────────────────────────────────────────────────────────

    @rule(
        promote=st.lists(PICK, max_size=3),
        decline=st.lists(PICK, max_size=2),
        others=st.lists(st.integers(1, 40), max_size=1),
        partial=st.booleans(),
    )
    def the_reviewer_decides(self, promote, decline, others, partial):
        before = self.model()
        waiting = [seq for group in naive.candidates(before) for seq in group]
        promote = {waiting[pick % len(waiting)] for pick in promote if waiting} | {*others}
        decline = {waiting[pick % len(waiting)] for pick in decline if waiting}
        plan = self.decide(lambda decisions: plan_review(decisions, promote, decline, by="anna"), partial=partial)
        if partial or not plan.refused:
            self.each_candidate_came_out_as_asked(before, promote, decline)

    @rule(promote=st.lists(PICK, max_size=3))
    def the_reviewer_decides_about_all(self, promote):
        groups = naive.candidates(self.model())
        wanted = {groups[pick % len(groups)][-1] for pick in promote if groups}
        rest = {group[0] for group in groups if not wanted & {*group}}
        plan = self.decide(lambda decisions: plan_review(decisions, wanted, rest, by="anna"))
        assert plan.refused == {}
        assert naive.candidates(self.model()) == []

    @rule(seqs=st.sets(st.integers(1, 30), min_size=1, max_size=2))
    def the_reviewer_retracts(self, seqs):
        known = {line.seq for line in self.model()}
        plan = self.decide(lambda decisions: plan_correction(decisions, Retraction(seqs), by="anna"))
        assert bool(plan.refused) == bool(seqs - known)
        assert plan.refused or not self.standing() & seqs

    @rule(phase=st.integers(0, 9))
    def the_reviewer_goes_back(self, phase):
        before, later = self.standing(), {line.seq for line in self.model() if line.phase > phase}
        plan = self.decide(lambda decisions: plan_correction(decisions, Rollback(phase), by="anna", reason="wrong"))
        assert bool(plan.refused) == (phase not in naive.PHASES)
        assert self.standing() & before == (before if plan.refused else before - later)

    # ── What holds after every step ──────────────────────────────────────────────────────────────────────────────────

    @invariant()
    def the_rules_hold(self):
        ledger = self.ledger.read_bytes()
        assert ledger.startswith(self.written)  # no byte that was once written ever changes
        for session, finalized in ((self.open, False), (self.finalized, True)):
            reading, expected = self.read(session), naive.lines_of(ledger, finalized=finalized)
            self._the_lines_that_count_are_those_of_the_rules(reading, expected)
            self._seqs_rise(reading)
            the_review_says_what_the_rules_say(reading.decisions, expected.usable)
            self._every_line_of_the_reviewer_counts(reading)

    def _the_lines_that_count_are_those_of_the_rules(self, reading, expected):
        assert [as_line(decision) for decision in reading.decisions] == [*expected.usable]
        assert [fault.line for fault in reading.faults] == [*expected.quarantined]
        assert reading.waiting == expected.waiting

    def _seqs_rise(self, reading):
        seqs = [decision.seq for decision in reading.decisions]
        assert seqs == sorted(set(seqs))

    def _every_line_of_the_reviewer_counts(self, reading):
        found = {decision.seq: decision for decision in reading.decisions}
        assert [found.get(decision.seq) for decision in self.reviewed] == self.reviewed

    # ── In short words ───────────────────────────────────────────────────────────────────────────────────────────────

    def add(self, data: bytes) -> None:
        self.written = self.ledger.read_bytes() + data
        with self.ledger.open("ab") as file:
            file.write(data)

    def last_seq(self) -> int:
        return max((line.seq for line in self.model()), default=0)

    def standing(self) -> set[int]:
        return {line.seq for line in naive.effective(self.model())}

    def model(self, *, finalized: bool = True) -> Sequence[naive.Line]:
        """The lines that count; a reviewer, who ends the last line, sees them as in a finalized session."""
        return naive.lines_of(self.ledger.read_bytes(), finalized=finalized).usable

    def read(self, session: Path) -> SessionReading:
        return read_session(aged(session), WORKSPACE)

    def decide(self, planned: Callable[[Sequence[Decision]], Plan], *, partial: bool = False) -> Plan:
        """Record what a reviewer wants, as it is planned; doing the same again adds nothing."""
        plan = self.record(planned, partial=partial)
        self.written = self.ledger.read_bytes()
        self.record(planned, partial=partial)
        assert self.ledger.read_bytes() == self.written
        return plan

    def record(self, planned: Callable[[Sequence[Decision]], Plan], *, partial: bool) -> Plan:
        with open_for_appending(self.open, WORKSPACE) as writer:
            decisions = writer.read().decisions
            plan = planned(decisions)
            entries = () if plan.refused and not partial else plan.entries
            recorded = writer.append(entries, after=decisions[-1].seq if decisions else 0)
        assert self.ledger.read_bytes().startswith(self.written)
        assert [(each.type, each.detail) for each in recorded] == [(entry.type, entry.detail) for entry in entries]
        self.reviewed += recorded
        return plan

    def each_candidate_came_out_as_asked(self, before, promote: set[int], decline: set[int]) -> None:
        after = naive.outcomes(self.model())
        for group in naive.candidates(before):
            wanted = {"promoted"} if promote & {*group} else set()
            wanted |= {"declined"} if decline & {*group} else set()
            assert {after[seq] for seq in group} == (wanted if len(wanted) == 1 else {"candidate"})


def the_review_says_what_the_rules_say(decisions: Sequence[Decision], lines: Sequence[naive.Line]) -> None:
    found = review(decisions)
    assert found.effective == {line.seq for line in naive.effective(lines)}
    assert found.outcomes == naive.outcomes(lines)
    assert [each.seqs for each in candidates(decisions, found)] == naive.candidates(lines)
    assert found.question == naive.last_question(lines)
    assert found.approved == naive.last_approval(lines)
    assert {*found.rejected_cards} == naive.rejected_cards(lines)
    assert [fault.line for fault in found.faults] == naive.faulty(lines)
    assert [(each.seq, each.outcome, each.decided_by) for each in memories(decisions)] == naive.memories(lines)


def as_line(decision: Decision) -> naive.Line:
    return naive.Line(decision.line, **{name: getattr(decision, name) for name in FIELDS})


def as_decision(line: naive.Line) -> Decision:
    return Decision(ts=MORNING, line=line.number, **{name: getattr(line, name) for name in FIELDS})


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(LINE, min_size=10, max_size=40))
def test_the_review_of_any_decisions_is_what_the_rules_say(lines):
    ledger = b"".join(line.as_json(last, 1) + b"\n" for last, line in enumerate(lines))
    usable = naive.lines_of(ledger, finalized=False).usable
    the_review_says_what_the_rules_say([as_decision(line) for line in usable], usable)


@given(
    st.lists(st.tuples(st.sampled_from(TABLE_SUBJECTS), st.sampled_from([promoted, declined])), max_size=3),
    st.lists(st.sampled_from(TABLES), max_size=1),
    st.lists(meant("column_promoted") | meant("table_excluded"), max_size=1),
)
def test_a_session_remembers_no_table_however_it_names_it(decided, named, naming):
    decisions = [a_decision(1 + n, each.type, subject=each.text[0]) for n, each in enumerate(naming)]
    decisions += [approved(10 + n, tables=tables) for n, tables in enumerate(named)]
    for seq, (subject, verdict) in enumerate(decided, 20):
        decisions += [clarified(2 * seq, subject), verdict(2 * seq + 1, 2 * seq)]
    the_review_says_what_the_rules_say(decisions, [as_line(decision) for decision in decisions])


def test_candidates_are_in_seq_order_when_the_first_of_equal_ones_was_decided():
    decisions = [clarified(1, "a"), clarified(2, "b"), promoted(3, 1), clarified(4, "A")]
    found = candidates(decisions, review(decisions))
    assert [(each.seqs, dict(each.decided)) for each in found] == [((2,), {}), ((4,), {1: Outcome.PROMOTED})]


def test_the_review_is_what_the_rules_say_whoever_writes_the_ledger(tmp_path):
    run_state_machine_as_test(
        lambda: TwoWriters(tmp_path),
        settings=settings(
            max_examples=60,
            stateful_step_count=30,
            deadline=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        ),
    )
