"""Promoted, declined, candidates: each rule by itself, all of them against a naive model, and real sessions' totals."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_pipeline.ledger import Decision, FaultKind, list_root, list_sessions, read_session
from memory_pipeline.review import Outcome, review
from tests.builders import (
    a_decision,
    approved,
    clarified,
    declined,
    promoted,
    rejected,
    reopened,
    retracted,
    rewritten,
)


def kinds(*decisions: Decision) -> list[tuple[int, FaultKind]]:
    return [(fault.line, fault.kind) for fault in review(decisions).faults]


class TestEffective:
    def test_of_nothing_is_nothing(self):
        assert review([]).effective == frozenset()

    def test_a_retraction_takes_away_the_earlier_decision(self):
        assert review([clarified(1), clarified(2), retracted(3, 1)]).effective == {2, 3}

    def test_what_is_taken_away_stays_away_when_the_retraction_is_retracted(self):
        assert review([clarified(1), retracted(2, 1), retracted(3, 2)]).effective == {3}

    def test_what_is_taken_away_stays_away_when_its_phase_is_reopened_and_that_is_retracted(self):
        assert review([clarified(1, phase=5), reopened(2, 4), retracted(3, 2)]).effective == {3}

    def test_a_reopened_phase_takes_away_later_phases_and_leaves_itself(self):
        decisions = [clarified(1, phase=1), clarified(2, phase=2), clarified(3, phase=3), approved(4), reopened(5, 2)]
        assert review(decisions).effective == {1, 2, 5}

    def test_a_reopened_phase_leaves_what_comes_after_it(self):
        assert review([approved(1), reopened(2, 1, phase=7), approved(3)]).effective == {2, 3}

    def test_a_reopened_phase_takes_away_earlier_retractions_without_undoing_them(self):
        assert review([clarified(1), retracted(2, 1, phase=8), reopened(3, 1)]).effective == {3}

    def test_a_second_retraction_of_the_same_decision_is_no_fault(self):
        assert kinds(clarified(1), retracted(2, 1), retracted(3, 1)) == []

    def test_follows_seq_whatever_order_the_decisions_come_in(self):
        assert review([retracted(2, 1), clarified(1)]).effective == {2}

    def test_an_unknown_type_is_kept_and_has_no_effect(self):
        found = review([clarified(1), a_decision(2, "column_renamed", detail="seq:1")])
        assert found.effective == {1, 2}
        assert found.faults == ()
        assert found.outcomes == {1: Outcome.CANDIDATE}


class TestOutcomes:
    def test_a_clarification_nobody_decided_about_is_a_candidate(self):
        assert review([clarified(1), approved(2)]).outcomes == {1: Outcome.CANDIDATE}

    def test_a_promoted_one_names_the_promotion_that_decides(self):
        found = review([clarified(1), promoted(2, 1), promoted(3, 1)])
        assert found.outcomes == {1: Outcome.PROMOTED}
        assert found.decided_by == {1: 3}

    def test_a_declined_one_names_the_decline_that_decides(self):
        found = review([clarified(1), declined(2, 1)])
        assert found.outcomes == {1: Outcome.DECLINED}
        assert found.decided_by == {1: 2}

    def test_of_a_promotion_and_a_decline_the_later_counts(self):
        assert review([clarified(1), promoted(2, 1), declined(3, 1)]).outcomes == {1: Outcome.DECLINED}
        assert review([clarified(1), declined(2, 1), promoted(3, 1)]).outcomes == {1: Outcome.PROMOTED}

    def test_a_retracted_decline_lets_the_earlier_promotion_count_again(self):
        found = review([clarified(1), promoted(2, 1), declined(3, 1), retracted(4, 3)])
        assert found.decided_by == {1: 2}

    def test_a_retracted_promotion_makes_a_candidate_again(self):
        assert review([clarified(1), promoted(2, 1), retracted(3, 2)]).outcomes == {1: Outcome.CANDIDATE}

    def test_a_promotion_of_what_was_taken_away_has_no_effect_and_is_no_fault(self):
        found = review(
            [
                clarified(1),
                a_decision(2, "table_promoted"),
                retracted(3, 1),
                retracted(4, 2),
                promoted(5, 1),
                promoted(6, 2),
            ]
        )
        assert found.outcomes == {}
        assert found.decided_by == {}
        assert found.faults == ()

    def test_are_in_seq_order_and_can_be_asked_for_one_by_one(self):
        found = review([clarified(1), clarified(2), clarified(3), promoted(4, 3), promoted(5, 1)])
        assert list(found.outcomes) == [1, 2, 3]
        assert found.seqs(Outcome.PROMOTED) == (1, 3)
        assert found.seqs(Outcome.DECLINED) == ()


class TestTables:
    @pytest.mark.parametrize(
        "kind", ["table_promoted", "table_excluded", "column_promoted", "sql_approved", "unheard_of"]
    )
    def test_a_promotion_of_anything_but_a_clarification_is_refused(self, kind):
        found = review([a_decision(1, kind), promoted(2, 1)])
        assert found.outcomes == {}
        assert [(fault.line, fault.kind) for fault in found.faults] == [(2, FaultKind.REFUSED_PROMOTION)]
        assert kind in found.faults[0].reason

    @pytest.mark.parametrize(
        "subject",
        [
            "fact_ablazioni",
            "dim_paziente",
            "FACT_SALES",
            " `dim_date` ",
            '"fact_x".',
            "[dim_x]",
            "„dim_x“",
            "\u00a0dim_x",
        ],
    )
    def test_a_clarification_that_only_names_a_table_is_refused(self, subject):
        found = review([clarified(1, subject), promoted(2, 1)])
        assert found.outcomes == {1: Outcome.REFUSED}
        assert found.decided_by == {1: 2}
        assert [fault.kind for fault in found.faults] == [FaultKind.REFUSED_PROMOTION]

    def test_one_that_nobody_promoted_is_no_candidate_and_no_fault(self):
        found = review([clarified(1, "fact_ablazioni")])
        assert found.seqs(Outcome.CANDIDATE) == ()
        assert found.faults == ()

    def test_a_later_decline_mends_a_refused_promotion(self):
        found = review([clarified(1, "fact_ablazioni"), promoted(2, 1), declined(3, 1)])
        assert found.outcomes == {1: Outcome.DECLINED}
        assert found.faults == ()

    @pytest.mark.parametrize(
        "subject", ["fact_ablazioni and its grain", "factory", "dimension", "fact_a.amount", "a fact_a"]
    )
    def test_a_subject_that_holds_more_than_a_tables_name_is_knowledge(self, subject):
        assert review([clarified(1, subject), promoted(2, 1)]).outcomes == {1: Outcome.PROMOTED}


class TestReferences:
    @pytest.mark.parametrize("kind", ["memory_promoted", "memory_promotion_declined", "decision_retracted"])
    @pytest.mark.parametrize(
        "detail",
        [
            "",
            "1",
            "seq:",
            "seq:x",
            "seq:1.0",
            "seq:-1",
            "phase:1",
            "seq:9",
            "seq:3",
            "seq:2",
            "seq:٢",
            "seq:" + "9" * 5000,
        ],
    )
    def test_that_are_malformed_or_point_to_no_earlier_decision_dangle(self, kind, detail):
        found = review([clarified(1), a_decision(2, kind, detail=detail), clarified(3)])
        assert found.effective == {1, 2, 3}
        assert found.outcomes == {1: Outcome.CANDIDATE, 3: Outcome.CANDIDATE}
        assert [(fault.line, fault.kind) for fault in found.faults] == [(2, FaultKind.DANGLING_REFERENCE)]

    @pytest.mark.parametrize("detail", ["", "1", "phase:", "phase:0", "phase:9", "seq:1", "phase:-1"])
    def test_to_no_phase_dangle(self, detail):
        assert kinds(approved(1), a_decision(2, "phase_reopened", detail=detail)) == [(2, FaultKind.DANGLING_REFERENCE)]
        assert review([approved(1), a_decision(2, "phase_reopened", detail=detail)]).effective == {1, 2}

    def test_may_have_white_space_around_them(self):
        assert review([clarified(1), a_decision(2, "memory_promoted", detail=" seq:1\n")]).decided_by == {1: 2}

    def test_to_the_last_phase_take_nothing_away(self):
        assert review([promoted(1, 1), reopened(2, 8)]).effective == {1, 2}

    def test_of_a_decision_that_was_taken_away_do_not_dangle_any_more(self):
        assert kinds(clarified(1), retracted(2, 7), retracted(3, 2)) == []

    def test_are_reported_by_line_and_with_a_short_reason(self):
        long = a_decision(5, "memory_promoted", detail="x" * 10_000, line=9)
        fault = review([clarified(1, line=1), long]).faults[0]
        assert fault.line == 9
        assert len(fault.reason) < 200


class TestTheRest:
    def test_the_question_is_the_last_effective_one_that_says_something(self):
        assert review([rewritten(1, "a?"), rewritten(2, "b?"), rewritten(3, "  ")]).question == "b?"
        assert review([rewritten(1, "a?"), rewritten(2, "b?"), retracted(3, 2)]).question == "a?"
        assert review([clarified(1)]).question is None

    def test_the_approval_is_the_last_effective_one(self):
        assert review([approved(1), approved(2)]).approved == 2
        assert review([approved(1), reopened(2, 3)]).approved is None

    def test_the_context_lists_effective_clarifications(self):
        decisions = [clarified(1, "a", "1"), clarified(2, "b", "2"), clarified(3, "c", " "), retracted(4, 1)]
        assert review(decisions).context == "b: 2\nc"

    def test_rejected_cards_are_named_by_detail_else_by_subject_once_each(self):
        offered = [
            rejected(1, "mem-0002"),
            rejected(2, "not for this ward", subject="sq-0001"),
            rejected(3, "mem-0002"),
            rejected(4, "mem-0009"),
            retracted(5, 4),
        ]
        found = review(offered)
        assert found.rejected_cards == ("mem-0002", "sq-0001")
        assert found.faults == ()

    def test_a_rejection_that_names_no_card_dangles(self):
        assert kinds(rejected(1, "the first one")) == [(1, FaultKind.DANGLING_REFERENCE)]

    def test_ten_thousand_decisions_that_reopen_again_and_again_are_reviewed(self):
        lines = [reopened(seq, 1) if seq % 2 else clarified(seq, phase=2) for seq in range(1, 10_001)]
        assert len(review(lines).effective) == 5_001


def naive_effective(decisions: list[Decision]) -> set[int]:
    """The rules read aloud: for each line, strike out what it takes away from all the lines before it."""
    struck = set()
    for decision in decisions:
        before = [d for d in decisions if d.seq < decision.seq]
        if decision.type == "decision_retracted":
            struck |= {d.seq for d in before if f"seq:{d.seq}" == decision.detail}
        if decision.type == "phase_reopened":
            struck |= {d.seq for d in before if d.phase > int(decision.detail.removeprefix("phase:"))}
    return {d.seq for d in decisions} - struck


def naive_outcomes(decisions: list[Decision]) -> dict[int, str]:
    effective = [d for d in decisions if d.seq in naive_effective(decisions)]
    outcomes = {}
    for concept in (d for d in effective if d.type == "concept_clarified"):
        outcomes[concept.seq] = "refused" if concept.subject == "fact_x" else "candidate"
        for later in (d for d in effective if d.seq > concept.seq and d.detail == f"seq:{concept.seq}"):
            if later.type == "memory_promoted":
                outcomes[concept.seq] = "refused" if concept.subject == "fact_x" else "promoted"
            if later.type == "memory_promotion_declined":
                outcomes[concept.seq] = "declined"
    return outcomes


@st.composite
def ledgers(draw) -> list[Decision]:
    seqs = sorted(draw(st.sets(st.integers(1, 30), max_size=20)))
    return [draw(_decisions(seq)) for seq in seqs]


def _decisions(seq: int) -> st.SearchStrategy[Decision]:
    pointing = ["memory_promoted", "memory_promotion_declined", "decision_retracted"]
    phases, targets = st.integers(1, 8), st.integers(1, 30)
    return st.one_of(
        st.builds(
            lambda phase, subject: clarified(seq, subject, phase=phase), phases, st.sampled_from(["a", "fact_x"])
        ),
        st.builds(
            lambda kind, to, phase: a_decision(seq, kind, detail=f"seq:{to}", phase=phase),
            st.sampled_from(pointing),
            targets,
            phases,
        ),
        st.builds(lambda to, phase: reopened(seq, to, phase=phase), phases, phases),
        st.builds(lambda phase: rewritten(seq, phase=phase), phases),
    )


@given(ledgers())
def test_agrees_with_the_rules_read_aloud(decisions):
    found = review(decisions)
    assert found.effective == naive_effective(decisions)
    assert found.outcomes == naive_outcomes(decisions)


@given(ledgers())
def test_what_is_taken_away_never_returns_however_the_ledger_goes_on(decisions):
    gone: set[int] = set()
    for end in range(len(decisions) + 1):
        effective = review(decisions[:end]).effective
        assert not gone & effective
        gone |= {d.seq for d in decisions[:end]} - effective


def test_real_sessions_have_the_totals_that_were_counted_for_them(bird: Path):
    expected = json.loads((bird / "expected.json").read_text())
    sessions = bird / "sessions"
    assert set(list_root(sessions).workspaces) == set(expected)
    for workspace, totals in expected.items():
        found = totals_of(sessions, workspace)
        assert {name: found[name] for name in found} == {name: totals.get(name, 0) for name in found}


def totals_of(sessions: Path, workspace: str) -> Counter[str]:
    totals = Counter(faults=0)
    for directory in list_sessions(sessions, workspace):
        reading = read_session(directory, workspace)
        found = review(reading.decisions)
        totals.update(sessions=1, decisions=len(reading.decisions), effective=len(found.effective))
        totals.update(promoted=len(found.seqs(Outcome.PROMOTED)), declined=len(found.seqs(Outcome.DECLINED)))
        totals.update(candidates=len(found.seqs(Outcome.CANDIDATE)), faults=len(reading.faults) + len(found.faults))
    return totals
