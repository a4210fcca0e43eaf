"""What there is to decide of a session, and which lines a decision is."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memory_pipeline.candidates import (
    Retraction,
    Rollback,
    candidates,
    foreseen,
    plan_correction,
    plan_review,
    taken_away,
)
from memory_pipeline.review import Outcome, review
from tests.builders import a_decision, approved, clarified, declined, promoted, reopened, retracted, rewritten


def waiting(*decisions) -> list[tuple[int, ...]]:
    return [candidate.seqs for candidate in candidates(decisions, review(decisions))]


def planned(decisions, promote=(), decline=()):
    """The types and targets of the lines, what is unchanged, what is refused."""
    plan = plan_review(decisions, promote, decline, by="anna")
    lines = [(entry.type.value.removeprefix("memory_"), entry.detail) for entry in plan.entries]
    return lines, plan.unchanged, dict(plan.refused)


class TestCandidates:
    def test_are_all_that_nobody_decided_about_in_seq_order(self):
        decisions = [clarified(n, f"concept {n}") for n in range(1, 41)]
        assert waiting(*decisions, promoted(41, 7), declined(42, 9)) == [(n,) for n in range(1, 41) if n not in {7, 9}]

    def test_are_shown_once_where_they_say_the_same(self):
        decisions = (clarified(1), clarified(2, "other"), clarified(3, "Active  patient", "«flag_attivo = TRUE»."))
        assert waiting(*decisions) == [(1, 3), (2,)]

    def test_are_apart_where_anything_but_their_form_differs(self):
        assert waiting(clarified(1, detail=">= 140"), clarified(2, detail="< 140")) == [(1,), (2,)]

    def test_say_what_was_decided_about_equal_ones(self):
        decisions = [clarified(1), clarified(2), clarified(3), promoted(4, 1), declined(5, 2)]
        [candidate] = candidates(decisions, review(decisions))
        assert (candidate.seqs, candidate.decided) == ((3,), {1: Outcome.PROMOTED, 2: Outcome.DECLINED})

    def test_are_none_where_they_only_name_a_table_or_were_taken_away(self):
        assert waiting(clarified(1, "fact_visite"), clarified(2), retracted(3, 2), approved(4)) == []

    def test_come_back_when_what_decided_about_them_is_taken_away(self):
        assert waiting(clarified(1), promoted(2, 1), reopened(3, 1)) == [(1,)]


class TestAReview:
    def test_is_a_line_for_each_clarification_in_the_last_phase(self):
        plan = plan_review([clarified(1), clarified(2, "other")], [1], [2], by="anna")
        first, second = plan.entries
        assert (first.type, first.subject, first.detail) == ("memory_promoted", "active patient", "seq:1")
        assert (second.type, second.subject, second.detail) == ("memory_promotion_declined", "other", "seq:2")
        assert {entry.phase for entry in plan.entries} == {8}
        assert {entry.rationale for entry in plan.entries} == {"decided by anna"}

    def test_of_one_of_equal_clarifications_is_one_of_all(self):
        decisions = [clarified(1), clarified(2), clarified(3, "other")]
        assert planned(decisions, promote=[2]) == ([("promoted", "seq:1"), ("promoted", "seq:2")], (), {})

    def test_that_was_made_before_adds_nothing(self):
        decisions = [clarified(1), clarified(2, "other"), promoted(3, 1), declined(4, 2)]
        assert planned(decisions, [1], [2]) == ([], ("seq 1", "seq 2"), {})

    @pytest.mark.parametrize(
        ("seq", "why"),
        [
            (9, "no such decision"),
            (1, "no clarification but 'question_rewritten'"),
            (2, "took it away"),
            (3, "only names a table"),
            (4, "declined already: retract decision 7 first"),
        ],
    )
    def test_promotes_candidates_alone(self, seq, why):
        decisions = [
            *(rewritten(1), clarified(2), clarified(3, "dim_paziente"), clarified(4, "x"), clarified(5, "y")),
            *(retracted(6, 2), declined(7, 4)),
        ]
        lines, unchanged, refused = planned(decisions, [seq, 5])
        assert (lines, unchanged, list(refused)) == ([("promoted", "seq:5")], (), [f"seq {seq}"])
        assert why in refused[f"seq {seq}"]

    def test_does_not_decline_what_is_promoted(self):
        assert (
            "promoted already: retract decision 2 first" in planned([clarified(1), promoted(2, 1)], (), [1])[2]["seq 1"]
        )

    def test_cannot_promote_and_decline_the_same_or_its_equal(self):
        lines, _, refused = planned([clarified(1), clarified(2), clarified(3, "other")], [1, 3], [2])
        assert (lines, sorted(refused)) == ([("promoted", "seq:3")], ["seq 1", "seq 2"])


class TestACorrection:
    def test_retracts_what_is_effective_once(self):
        decisions = [clarified(1), promoted(2, 1), clarified(3, "other"), retracted(4, 3)]
        plan = plan_correction(decisions, Retraction((2, 2, 3, 8)), by="anna", reason="too narrow")
        [entry] = plan.entries
        assert (entry.type, entry.detail, entry.phase) == ("decision_retracted", "seq:2", 1)
        assert entry.rationale == "too narrow (decided by anna)"
        assert (plan.unchanged, list(plan.refused)) == (("seq 3",), ["seq 8"])

    def test_reopens_a_phase_only_if_something_later_is_left(self):
        plan = plan_correction([clarified(1), approved(2)], Rollback(3), by="anna")
        assert [(entry.type, entry.detail) for entry in plan.entries] == [("phase_reopened", "phase:3")]
        again = plan_correction([clarified(1), approved(2), reopened(3, 3)], Rollback(3), by="anna")
        assert (again.entries, again.unchanged) == ((), ("phase 3",))

    @pytest.mark.parametrize("phase", [0, 9, -1])
    def test_refuses_a_phase_that_there_is_not(self, phase):
        assert list(plan_correction([approved(1)], Rollback(phase), by="anna").refused) == [f"phase {phase}"]

    def test_is_foreseen_with_what_it_takes_away(self):
        decisions = [clarified(1), promoted(2, 1), approved(3), a_decision(4, "table_promoted", phase=4)]
        plan = plan_correction(decisions, Rollback(4), by="anna")
        further = foreseen(plan.entries, after=4, at=datetime.now(UTC))
        assert [decision.seq for decision in further] == [5]
        assert [decision.seq for decision in taken_away(decisions, further)] == [2, 3]
