"""A question that was asked before, word for word: what answered it comes first, and then what it took to answer it."""

from __future__ import annotations

import unicodedata

import pytest

from memory_pipeline.recall.fusion import VERBATIM_BEHIND, VERBATIM_SOLVED
from tests.builders import approved, clarified, promoted
from tests.recall.memories import Memory, a_concept, a_solved, ids

ASKED = "Quanti pazienti attivi c'erano nel reparto 3, all'età di 80 anni?"
SPELLINGS = (
    ASKED,
    "  quanti PAZIENTI attivi c'erano nel\nreparto 3,   all'età di 80 anni ",
    "«QUANTI pazienti attivi c'erano nel reparto 3, all'ETÀ di 80 anni»!",
    unicodedata.normalize("NFD", ASKED),
)


def ask_before(memory: Memory) -> None:
    """One session that clarified something to answer the question, in words that it does not share."""
    memory.session(clarified(1, "zzz", "qqq"), approved(2), promoted(3, 1), question=ASKED)
    memory.ingest()


@pytest.fixture
def crowded(indifferent: Memory) -> Memory:
    """500 solved questions and 60 concepts that are as near as can be, in meaning and in words."""
    indifferent.hold(*[a_solved(f"{ASKED} {n} {ASKED}") for n in range(500)])
    indifferent.hold(*[a_concept(ASKED, f"{ASKED} {n}") for n in range(60)])
    indifferent.project()
    return indifferent


def test_it_is_first_among_500_near_neighbours_and_then_comes_what_it_took_however_it_is_written(crowded: Memory):
    ask_before(crowded)
    crowded.project()
    for question in SPELLINGS:
        first, second, third = crowded.search(question, limit=3).hits
        assert (first.question, first.signals["verbatim"]) == (ASKED, VERBATIM_SOLVED)
        assert (second.subject, second.signals["verbatim"]) == ("zzz", VERBATIM_BEHIND)
        assert "verbatim" not in third.signals
        assert first.score > second.score > 1 >= third.score


def test_it_is_first_before_the_index_holds_it(crowded: Memory):
    ask_before(crowded)
    for question in SPELLINGS:
        result = crowded.search(question, limit=3)
        assert [hit.question or hit.subject for hit in result.hits[:2]] == [ASKED, "zzz"]
        assert result.pending == 3  # a concept, a solved question, and the question behind the concept


def test_it_is_first_in_an_index_that_holds_nothing(memory: Memory):
    held = memory.hold(a_solved(ASKED))
    result = memory.search(ASKED)
    assert (ids(result), result.pending) == (held, 1)


def test_it_is_first_as_the_archive_has_it_though_its_point_is_stale(memory: Memory):
    known, _ = memory.hold(a_solved(ASKED, "SELECT 1"), a_solved("Beds?"))
    memory.project()
    memory.change(known, a_solved(ASKED, "SELECT 2", database="dwh"))
    result = memory.search(ASKED)
    assert (result.hits[0].card_id, result.hits[0].sql, result.dropped) == (known, "SELECT 2", {"stale": 1})


def test_all_that_were_asked_so_come_first_in_the_order_of_their_ids(memory: Memory):
    held = memory.hold(*[a_solved("How many?", f"SELECT {n}") for n in range(5)])
    memory.project()
    assert ids(memory.search("how many")) == held


@pytest.mark.parametrize("question", ["How many >= 3?", "How many < 3?", "How many 3?", "How many = 3 beds?"])
def test_what_differs_by_more_than_its_form_is_another_question(memory: Memory, question):
    memory.hold(a_solved("How many = 3?"))
    memory.project()
    assert "verbatim" not in memory.search(question).hits[0].signals
