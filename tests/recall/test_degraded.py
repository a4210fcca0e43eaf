from __future__ import annotations

import shutil

import pytest
from sqlalchemy import text

from memory_pipeline import RecallResult
from memory_pipeline.archive.queries import load
from memory_pipeline.errors import EmbedderUnavailable, IndexUnavailable
from tests.builders import WORKSPACE, clarified, promoted
from tests.recall.memories import Memory, a_concept, a_solved, depending, ids


@pytest.fixture
def forgetful(memory: Memory) -> Memory:
    """A workspace whose model is away."""
    memory.embedder.away = True
    return memory


def answered(memory: Memory, question: str, **options: object) -> RecallResult:
    result = memory.search(question, degraded=True, **options)
    assert result.degraded
    return result


def test_without_the_model_there_is_an_error_unless_words_alone_will_do(forgetful: Memory):
    held = forgetful.hold(a_concept())
    with pytest.raises(EmbedderUnavailable):
        forgetful.search("active patients")
    result = answered(forgetful, "active patients")
    assert (ids(result), result.pending, result.hits[0].signals.keys()) == (held, 1, {"text"})


def test_without_the_index_there_is_an_error_unless_words_alone_will_do(memory: Memory):
    held = memory.hold(a_concept())
    memory.project()
    shutil.rmtree(memory.runtime.settings.home / "index")
    with pytest.raises(IndexUnavailable):
        memory.search("active patients")
    assert ids(answered(memory, "active patients")) == held


def test_an_answer_from_the_index_is_not_marked(memory: Memory):
    memory.hold(a_concept())
    memory.project()
    assert not memory.search("active patients", degraded=True).degraded


def test_words_are_stemmed_in_the_language_of_the_workspace(forgetful: Memory):
    forgetful.make("psd", language="italian")
    held = forgetful.hold(a_concept("ricovero ordinario", "tipo = 1"), workspace="psd")
    assert ids(answered(forgetful, "quanti ricoveri ordinari?", workspace="psd")) == held


def test_a_language_that_postgresql_does_not_know_is_searched_by_plain_words(forgetful: Memory):
    forgetful.make("tokyo", language="japanese")
    held = forgetful.hold(a_concept("入院 患者", "flag = 1"), workspace="tokyo")
    assert ids(answered(forgetful, "患者", workspace="tokyo")) == held


@pytest.mark.parametrize("question", ["attivo", "flag_attivo", "code", "CDSCode", "cds"])
def test_identifiers_are_found_whole_and_by_their_parts(forgetful: Memory, question):
    held = forgetful.hold(a_concept("state", "flag_attivo = TRUE AND CDSCode > 3"))
    assert ids(answered(forgetful, question)) == held


@pytest.mark.parametrize(
    "question", ["?", "the", "' & | ! <-> \\ :* ()", "C:\\temp\\a'b patient", "http://a.b/c?d='e&f"]
)
def test_no_question_breaks_the_text_search(forgetful: Memory, question):
    forgetful.hold(a_concept())
    answered(forgetful, question)


def test_a_card_as_long_as_a_book_fails_no_answer_and_is_found_by_its_beginning(forgetful: Memory):
    book = " ".join(f"w{n:06d}" for n in range(200_000))
    held = forgetful.hold(a_concept("patients in beds", book), a_concept())
    assert ids(answered(forgetful, "beds")) == held[:1]
    assert ids(answered(forgetful, "w000001")) == held[:1]
    assert ids(answered(forgetful, "active")) == held[1:]


def test_the_words_of_a_card_are_read_once_for_a_question(memory: Memory):
    explained = text(f"EXPLAIN (VERBOSE, COSTS OFF) {load('lookup')['by_text'].text}")
    with memory.runtime.database.transaction(WORKSPACE) as tx:
        plan = [row["QUERY PLAN"] for row in tx.rows(explained, question="active patient", families=["concept"])]
    assert sum("to_tsvector(" in line and "detail" in line for line in plan) == 1


def test_more_shared_words_come_first(forgetful: Memory):
    one, two = forgetful.hold(a_concept("active bed", "x"), a_concept("active patient", "y"))
    first, second = answered(forgetful, "active patient").hits
    assert [first.card_id, second.card_id] == [two, one]
    assert first.signals == {"text": first.score} == {"text": 1.0}
    assert second.signals == {"text": second.score}
    assert 0 < second.score < 1


def test_the_very_question_is_first_without_the_index_too(forgetful: Memory):
    forgetful.hold(*[a_solved(f"How many patients, patients or patients {n}?") for n in range(20)])
    [known] = forgetful.hold(a_solved("How many patients?"))
    assert answered(forgetful, "how many patients").hits[0].card_id == known


def test_filters_hold_without_the_index_too(forgetful: Memory):
    bed, solved = forgetful.hold(
        a_concept("patient", "b", dependencies=depending("dim_bed")), a_solved("Which patient?")
    )
    forgetful.session(clarified(1, "patient of mine"), promoted(2, 1), session="mine", sql=None)
    forgetful.ingest()
    assert ids(answered(forgetful, "patient", families=["solved_question"])) == [solved]
    assert set(ids(answered(forgetful, "patient", session_id="mine"))) == {bed, solved}


def test_only_cards_of_the_workspace_are_found(forgetful: Memory):
    forgetful.make("other")
    forgetful.hold(a_concept(), workspace="other")
    assert ids(answered(forgetful, "active patient")) == []
