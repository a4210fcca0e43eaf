"""What a recall found and left out: only when asked for, each card with why, and without any other answer."""

from __future__ import annotations

import json

import pytest

from memory_pipeline import Scope
from memory_pipeline.cards import CardContent, Family
from memory_pipeline.errors import IndexUnavailable
from memory_pipeline.recall import Omission
from memory_pipeline.recall.omissions import LISTED
from memory_pipeline.recall.result import RecallResult
from tests.builders import clarified, promoted, rejected
from tests.recall.memories import Memory, a_concept, a_solved, depending, ids

BEDS = Scope(table="dim_bed")


@pytest.fixture
def decided(memory: Memory) -> Memory:
    """A session that confirmed one card, cites another and rejected a third; it has said nothing of mem-0004."""
    memory.hold(*[a_concept(f"active {what}", what) for what in ("visit", "bed", "ward", "unit")])
    memory.session(
        clarified(1, "active visit", "visit"),
        promoted(2, 1),
        clarified(3, "active place", rationale="from mem-0002"),
        rejected(4, "mem-0003"),
        session="mine",
        question="How many?",
        sql=None,
    )
    memory.ingest()
    memory.project()
    return memory


def explained(memory: Memory, question: str = "active", **options: object) -> RecallResult:
    """An explained answer, which is the ordinary one but for what it explains."""
    ordinary = memory.search(question, **options)
    answer = memory.search(question, explain=True, **options)
    assert (answer.hits, answer.dropped, answer.pending) == (ordinary.hits, ordinary.dropped, ordinary.pending)
    assert not {card.card_id for card in answer.left_out} & set(ids(answer))
    return answer


def reasons(answer: RecallResult) -> dict[str, Omission]:
    return {card.card_id: card.reason for card in answer.left_out}


def test_nothing_is_explained_unless_it_is_asked_for(decided: Memory):
    answer = decided.search("active", session_id="mine", limit=1)
    assert (answer.explained, answer.left_out, answer.left_out_counts) == (False, (), {})
    assert "left_out" not in answer.as_json()


def test_where_nothing_is_left_out_nothing_is_listed(decided: Memory):
    answer = explained(decided)
    assert (answer.explained, answer.left_out, answer.left_out_counts) == (True, (), {})
    assert answer.as_json()["left_out"] == []


def test_what_a_session_has_decided_is_listed_with_what_it_decided(decided: Memory):
    answer = explained(decided, session_id="mine")
    assert ids(answer) == ["mem-0004"]
    assert reasons(answer) == {
        "mem-0001": Omission.CONFIRMED,
        "mem-0002": Omission.CITED,
        "mem-0003": Omission.REJECTED,
    }
    assert answer.left_out_counts == dict.fromkeys(["confirmed", "cited", "rejected"], 1)
    assert {card.title for card in answer.left_out} == {"active visit", "active bed", "active ward"}


def test_all_that_a_session_has_decided_is_listed_however_much_it_is(memory: Memory):
    held = memory.hold(*[a_concept(f"active {n}", f"detail {n}") for n in range(LISTED + 5)])
    memory.session(*[rejected(n, card) for n, card in enumerate(held, start=1)], session="mine", sql=None)
    memory.ingest()
    memory.project()
    assert set(reasons(explained(memory, session_id="mine"))) == set(held)


def test_a_card_outside_the_scope_is_listed_though_the_index_is_not_asked_for_it(memory: Memory):
    bed, _, solved = memory.hold(
        a_concept("active bed", "in use", dependencies=depending("dim_bed")),
        a_concept("active visit", "under way", dependencies=depending("fact_visit")),
        a_solved("How many are active?"),
    )
    memory.project()
    answer = explained(memory, scope=BEDS)
    assert ids(answer) == [bed]
    assert reasons(answer) == {"mem-0002": Omission.OUTSIDE_SCOPE, solved: Omission.OUTSIDE_SCOPE}
    assert {card.title for card in answer.left_out} == {"active visit", "How many are active?"}


def test_of_many_cards_outside_the_scope_the_best_are_listed_and_all_are_counted(memory: Memory):
    memory.hold(*[a_concept(f"something {n}", f"else {n}") for n in range(LISTED + 4)])
    [near] = memory.hold(a_concept("active patient"))
    memory.project()
    answer = explained(memory, "active patient", scope=BEDS)
    assert (ids(answer), answer.left_out[0].card_id) == ([], near)
    assert len(answer.left_out) == LISTED
    assert answer.left_out_counts == {Omission.OUTSIDE_SCOPE: LISTED + 5}
    assert {card.score for card in answer.left_out} == {None}


def test_a_card_of_another_family_is_not_left_out_since_it_was_not_asked_for(memory: Memory):
    memory.hold(a_concept("active bed"), CardContent(Family.PITFALL, subject="active", detail="trap"))
    memory.session(clarified(1), promoted(2, 1), question="What is active?", sql=None)
    memory.ingest()
    memory.project()
    assert reasons(explained(memory, "what is active", families=["pitfall"], scope=BEDS)) == {
        "mem-0002": Omission.OUTSIDE_SCOPE
    }


def test_of_the_cards_beyond_the_limit_the_best_are_listed_with_their_scores(memory: Memory):
    memory.hold(*[a_concept(f"active {n}", f"detail {n}") for n in range(LISTED + 6)])
    memory.project()
    everything = memory.search("active", limit=100).hits
    answer = explained(memory, limit=2)
    assert [(card.card_id, card.score) for card in answer.left_out] == [
        (hit.card_id, hit.score) for hit in everything[2 : 2 + LISTED]
    ]
    assert answer.left_out_counts == {Omission.BEYOND_LIMIT: LISTED + 4}


def test_reasons_come_one_after_the_other_and_a_decision_counts_before_the_scope(decided: Memory):
    decided.hold(*[a_concept(f"active bed {n}", f"{n}", dependencies=depending("dim_bed")) for n in range(3)])
    decided.project()
    answer = explained(decided, session_id="mine", scope=BEDS, limit=2)
    found = [card.reason for card in answer.left_out]
    assert found == ["confirmed", "cited", "rejected", "outside_scope", "beyond_limit"]
    assert answer.left_out_counts == dict.fromkeys(found, 1)


def test_a_card_that_comes_along_by_a_link_is_not_left_out(memory: Memory):
    first, second, third = memory.hold(*[a_concept(f"active {n}", f"detail {n}") for n in range(3)])
    memory.project()
    [best] = ids(memory.search("active", limit=1))
    others = {first, second, third} - {best}
    memory.link(best, min(others))
    answer = explained(memory, limit=1, expand_links=True)
    assert ids(answer) == [best, min(others)]
    assert reasons(answer) == {max(others): Omission.BEYOND_LIMIT}


def test_what_the_index_lies_about_is_dropped_and_not_left_out(memory: Memory):
    [card] = memory.hold(a_concept("active bed", dependencies=depending("dim_bed")))
    memory.project()
    memory.plant(memory.point("active", "mem-0042"), memory.point("active", card))
    answer = explained(memory, scope=Scope(table="fact_visit"))
    assert answer.left_out == ()


def test_a_degraded_answer_explains_the_same(decided: Memory):
    decided.hold(a_concept("active stay", "s", dependencies=depending("dim_bed")))

    def away(target):
        raise IndexUnavailable("the index is away")

    decided.index.before = away
    answer = explained(decided, session_id="mine", scope=BEDS, degraded=True)
    assert (answer.degraded, ids(answer)) == (True, ["mem-0005"])
    assert reasons(answer) == {
        "mem-0001": Omission.CONFIRMED,
        "mem-0002": Omission.CITED,
        "mem-0003": Omission.REJECTED,
        "mem-0004": Omission.OUTSIDE_SCOPE,
    }
    assert reasons(explained(decided, limit=4, degraded=True)) == {"mem-0005": Omission.BEYOND_LIMIT}


def test_programs_get_each_reason_with_its_words(decided: Memory):
    answer = explained(decided, session_id="mine").as_json()
    assert json.loads(json.dumps(answer)) == answer
    assert answer["left_out"][0] == {
        "card_id": "mem-0001",
        "family": "concept",
        "title": "active visit",
        "reason": "confirmed",
        "meaning": "the session has confirmed it",
    }
    assert explained(decided, limit=3).as_json()["left_out"][0].keys() == {*answer["left_out"][0], "score"}
    assert answer["left_out_counts"] == {"confirmed": 1, "cited": 1, "rejected": 1}


def test_every_reason_has_words_of_its_own():
    assert len({reason.meaning for reason in Omission}) == len(Omission)
