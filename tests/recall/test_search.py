from __future__ import annotations

import shutil
from dataclasses import replace

import pytest
from sqlalchemy import text

from memory_pipeline import Recall
from memory_pipeline.archive import identities
from memory_pipeline.cards import Collection, Family
from memory_pipeline.embedding import open_embedder
from memory_pipeline.errors import ArchiveUnavailable, IndexIncompatible, IndexUnavailable, UnknownWorkspace
from memory_pipeline.index.base import Hit
from memory_pipeline.propagation import project
from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import load_settings
from tests.builders import WORKSPACE, approved, clarified, promoted
from tests.recall.memories import Memory, a_concept, a_solved, ids

FORGET_IDENTITIES = text("DELETE FROM embedding_identity WHERE workspace = :workspace")
NOWHERE = {
    "database_url": "postgresql+psycopg://nobody@127.0.0.1:1/none",
    "owner_url": "postgresql+psycopg://owner@127.0.0.1:1/none",
}


@pytest.fixture
def understanding(memory: Memory) -> Memory:
    """With the model that ships with the project instead of a hash."""
    memory.embedder = memory.runtime.embedder = open_embedder(memory.runtime.settings)
    return memory


def test_a_concept_is_found_by_its_meaning_in_other_words(understanding: Memory):
    heart, *_ = understanding.hold(
        a_concept("infarto", "codice ICD I21"),
        a_concept("reparto", "unità di degenza"),
        a_concept("età", "anni compiuti"),
    )
    understanding.project()
    best = understanding.search("heart attack", limit=1).hits[0]
    assert best.card_id == heart
    assert best.signals.keys() == {"dense"}


def test_a_card_is_found_by_a_word_and_by_a_part_of_an_identifier(memory: Memory):
    _, flag = memory.hold(a_concept("ward", "a unit"), a_concept("current", "flag_attivo = TRUE"))
    memory.project()
    for question in ("flag_attivo", "attivo", "ATTIVO?"):
        assert memory.search(question).hits[0].card_id == flag
        assert memory.search(question).hits[0].signals["lexical"] > 0


def test_a_card_is_found_by_the_question_behind_it(memory: Memory):
    question = "quanti ricoveri nel 2023"
    memory.session(clarified(1, "adm", "fact_x.y"), promoted(2, 1), question=f"{question}, per reparto?", sql=None)
    memory.session(clarified(1, "other", "thing"), promoted(2, 1), session="s2", question="a b c?", sql=None)
    memory.ingest()
    memory.project()
    best = memory.search(question).hits[0]
    assert best.subject == "adm"
    assert best.signals["questions_lexical"] > 0


def test_a_hit_says_what_the_archive_says(memory: Memory):
    for n in (1, 2):
        memory.session(
            clarified(1, rationale="seen", concepts=("patients",), tables=("dim_p",)), promoted(2, 1), session=f"s{n}"
        )
    memory.ingest()
    memory.project()
    hit = memory.search("active patient", families=["concept"]).hits[0]
    assert (hit.family, hit.subject, hit.detail, hit.rationale) == (
        Family.CONCEPT,
        "active patient",
        "flag_attivo = TRUE",
        "seen",
    )
    assert (hit.tables, hit.concepts, hit.sessions, hit.version, hit.link) == (("dim_p",), ("patients",), 2, 1, None)


def test_a_solved_question_comes_with_its_sql_context_and_tables(memory: Memory):
    memory.session(clarified(1), approved(2), promoted(3, 1), question="How many?", sql="SELECT count(*) FROM dim_p")
    memory.ingest()
    memory.project()
    hit = memory.search("how many", families=["solved_question"]).hits[0]
    assert (hit.question, hit.sql, hit.tables, hit.sessions) == (
        "How many?",
        "SELECT count(*) FROM dim_p",
        ("dim_p",),
        1,
    )
    assert "flag_attivo" in hit.context
    assert {"dense", "shape", "lexical", "verbatim"} == hit.signals.keys()


def test_the_shape_of_a_question_counts_and_not_only_its_values(memory: Memory):
    stored, _ = memory.hold(a_solved("patients older than 80 in ward 'A3'"), a_solved("beds per ward"))
    memory.project()
    best = memory.search('patients older than 65 in ward "B1"').hits[0]
    assert best.card_id == stored
    assert best.signals["shape"] == pytest.approx(1.0, abs=1e-5)  # for a hash, equal or nothing


def test_the_json_has_exactly_the_agreed_shape(memory: Memory):
    memory.hold(a_concept())
    memory.project()
    answer = memory.search().as_json()
    assert answer.keys() == {"hits", "dropped", "pending", "degraded"}
    assert answer["hits"][0].keys() == {
        "card_id", "family", "subject", "detail", "rationale", "question", "sql", "context", "tables", "sessions", "score", "signals"
    }  # fmt: skip
    assert (answer["dropped"], answer["pending"], answer["degraded"]) == ({}, 0, False)


def test_the_question_asked_word_for_word_is_first_among_500_near_neighbours(understanding: Memory):
    asked = "Quanti pazienti attivi nel reparto 3?"
    understanding.embedder = understanding.runtime.embedder = _Crowded(understanding.runtime.embedder)
    understanding.hold(*[a_solved(f"Quanti pazienti attivi nel reparto {n} 3?") for n in range(500)])
    [known] = understanding.hold(a_solved(asked))
    understanding.project()
    for question in (asked, "  quanti PAZIENTI attivi nel\nreparto 3 ", "«Quanti pazienti attivi nel reparto 3»!"):
        best = understanding.search(question, limit=3).hits[0]
        assert (best.card_id, best.signals["verbatim"]) == (known, 2.0)


class _Crowded:
    """Embeds every text alike: 500 neighbours at distance zero, and much faster than a model."""

    def __init__(self, embedder) -> None:
        self._embedder = embedder

    def __getattr__(self, name: str) -> object:
        return getattr(self._embedder, name)

    def embed(self, texts, role):
        return self._embedder.embed(["the same"], role).repeat(len(texts), axis=0)


def test_cards_behind_the_very_question_come_after_it_and_before_all_others(memory: Memory):
    memory.session(clarified(1, "zzz", "qqq"), approved(2), promoted(3, 1), question="How many active ones?")
    memory.ingest()
    memory.hold(*[a_concept("how many active", f"ones {n}") for n in range(20)])
    memory.project()
    first, second = memory.search("how many active ones", limit=2).hits
    assert (first.family, second.subject) == (Family.SOLVED_QUESTION, "zzz")
    assert first.score > second.score > 1


def test_the_very_question_is_found_before_the_index_holds_it(memory: Memory):
    held = memory.hold(a_solved("How many?"))
    result = memory.search("how many")
    assert (ids(result), result.pending) == (held, 1)


def test_equal_scores_are_ordered_by_id(memory: Memory):
    held = memory.hold(*[a_solved("How many?", f"SELECT {n}") for n in range(5)])
    memory.project()
    assert ids(memory.search("how many")) == held


def test_the_top_three_are_orphaned_and_three_valid_hits_take_their_places(memory: Memory):
    memory.hold(*[a_concept(f"subject {n}", f"detail {n}") for n in range(10)])
    memory.project()
    memory.plant(*[memory.point("subject", f"mem-9{n}") for n in range(3)])
    result = memory.search("subject", limit=3)
    assert len(result.hits) == 3
    assert result.dropped == {"unknown_card": 3}


def test_a_crowd_of_orphans_is_searched_through_to_the_valid_cards_behind_it(memory: Memory):
    held = memory.hold(*[a_concept(f"a{n}", f"b{n}") for n in range(4)])
    memory.project()
    memory.plant(*[memory.point("subject", f"mem-9{n:03d}") for n in range(170)])
    result = memory.search("subject", limit=3)
    assert len(result.hits) == 3
    assert set(ids(result)) <= set(held)
    assert result.dropped["unknown_card"] >= 150


def test_an_edited_card_is_not_served_from_its_old_point(memory: Memory):
    changed, other = memory.hold(a_concept(), a_concept("ward", "a unit"))
    memory.project()
    memory.change(changed, a_concept(detail="flag_attivo = 1"))
    result = memory.search("active patient")
    assert (ids(result), result.dropped, result.pending) == ([other], {"stale": 1}, 1)
    memory.project()
    result = memory.search("active patient")
    assert (result.hits[0].detail, result.dropped, result.pending) == ("flag_attivo = 1", {}, 0)


def test_a_deleted_card_is_not_served_though_its_point_is_still_there(memory: Memory):
    gone, other = memory.hold(a_concept(), a_concept("ward", "a unit"))
    memory.project()
    memory.remove(gone)
    result = memory.search("active patient")
    assert (ids(result), result.dropped, result.pending) == ([other], {"unknown_card": 1}, 1)


def test_a_card_deleted_while_the_index_answers_is_not_served(memory: Memory):
    gone, other = memory.hold(a_concept(), a_concept("ward", "a unit"))
    memory.project()
    memory.index.before = lambda target: memory.remove(gone)
    assert ids(memory.search("active patient")) == [other]


def test_a_card_deleted_while_the_index_is_asked_once_more_is_not_served(memory: Memory):
    gone, *others = memory.hold(*[a_concept(f"a{n}", f"b{n}") for n in range(3)])
    memory.project()
    memory.plant(*[memory.point("subject", f"mem-9{n:03d}") for n in range(60)])
    rounds = []

    def removing(target) -> None:
        rounds.append(target.collection)
        if rounds.count(Collection.MEMORY_CARDS) == 2 and target.collection == Collection.MEMORY_CARDS:
            memory.remove(gone)

    memory.index.before = removing
    assert set(ids(memory.search("subject", limit=3))) == set(others)


def test_a_question_that_nobody_asks_any_more_leads_nowhere(memory: Memory):
    memory.session(clarified(1, "zzz", "qqq"), promoted(2, 1), question="How many?", sql=None)
    memory.ingest()
    memory.project()
    memory.session(clarified(1, "zzz", "qqq"), promoted(2, 1), question="Something else", sql=None)
    memory.ingest()
    result = memory.search("how many")
    assert result.dropped == {"unknown_question": 1}
    assert result.hits[0].signals.keys() == {"dense"}


def test_a_planted_point_that_lies_about_its_fingerprint_or_id_is_dropped(memory: Memory):
    held = memory.hold(a_concept(), a_concept("ward", "a unit"))
    memory.project()
    memory.plant(
        memory.point("active patient", held[1]),  # the fingerprint of nothing
        replace(memory.point("active patient", held[0]), id="00000000-0000-4000-8000-000000000001"),
    )
    result = memory.search("active patient")
    assert (ids(result), result.dropped) == ([held[0]], {"malformed": 1, "stale": 1})


def test_whatever_the_index_returns_is_dropped_or_collapsed_counted_and_no_exception(memory: Memory):
    held = memory.hold(a_concept(), a_concept("ward", "a unit"))
    memory.project()
    memory.index.change = lambda target, hits: [
        *(hit for hit in hits for _ in range(2)),
        Hit("not-a-uuid", 9.0, {"workspace": WORKSPACE, "item": held[0], "fingerprint": "f"}),
        Hit("00000000-0000-4000-8000-000000000000", 9.0, {}),
    ]
    result = memory.search("active patient")
    assert ids(result) == held
    assert result.dropped["duplicate"] == 2
    assert result.dropped["malformed"] == 2 * len(memory.index.searched)


def test_an_index_that_repeats_one_point_for_ever_ends_the_search(memory: Memory):
    held = memory.hold(a_concept())
    memory.project()
    memory.index.change = lambda target, hits: hits[:1] * 5000
    result = memory.search("active patient", limit=10)
    assert (ids(result), result.dropped) == (held, {"duplicate": 1})


def test_a_point_of_another_workspace_is_dropped(memory: Memory):
    memory.make("other")
    [theirs] = memory.hold(a_concept("theirs", "secret"), workspace="other")
    [ours] = memory.hold(a_concept("ours", "known"))
    memory.project("other")
    memory.project()
    [foreign] = list(memory.index.scan(memory.target(Collection.MEMORY_CARDS, "other")))
    memory.index.change = lambda target, hits: [Hit(foreign.id, 99.0, foreign.payload), *hits] if hits else []
    result = memory.search("theirs")
    assert (result.dropped["foreign"], [hit.subject for hit in result.hits]) == (1, ["ours"])
    assert theirs == ours  # the same human id in both, and still not the other's text


def test_what_is_not_propagated_yet_is_counted(memory: Memory):
    memory.hold(a_concept())
    memory.project()
    memory.hold(a_concept("ward", "a unit"), a_solved("Other?"))
    assert memory.search().pending == 2


def test_before_anything_is_registered_everything_is_pending(memory: Memory):
    memory.session(clarified(1), approved(2), promoted(3, 1))
    memory.ingest()
    with memory.runtime.database.transaction(WORKSPACE) as tx:
        tx.run(FORGET_IDENTITIES)
    assert memory.search("something else").pending == 3  # a concept, a solved question, and the question behind it


def test_a_workspace_without_cards_has_an_empty_and_complete_answer(memory: Memory):
    result = memory.search()
    assert (result.hits, dict(result.dropped), result.pending, result.degraded) == ((), {}, 0, False)


def test_a_wiped_index_is_an_error_and_no_empty_answer(memory: Memory):
    memory.hold(a_concept())
    memory.project()
    shutil.rmtree(memory.runtime.settings.home / "index")
    with pytest.raises(IndexUnavailable, match=r"lost memory_cards.*memory-pipeline project"):
        memory.search()


def test_an_index_that_was_never_filled_is_no_error(memory: Memory):
    memory.hold(a_concept())
    with memory.runtime.database.transaction(WORKSPACE) as tx:
        identities.register(tx, memory.runtime.identity)
    result = memory.search()
    assert (result.hits, result.pending) == ((), 1)


def test_an_index_of_another_version_of_the_library_is_named_with_what_to_do(memory: Memory, monkeypatch):
    memory.hold(a_concept())
    memory.project()
    monkeypatch.setattr("memory_pipeline.points.TEXT_TEMPLATE", "another")
    with Runtime(memory.runtime.settings) as runtime:
        with pytest.raises(IndexIncompatible, match=r"with another text_template: `memory-pipeline project` fills"):
            Recall(runtime).search(WORKSPACE, "active patient", degraded=True)
        runtime.embedder = memory.embedder
        project(runtime, WORKSPACE)
        assert len(Recall(runtime).search(WORKSPACE, "active patient").hits) == 1


def test_an_unknown_workspace_is_refused_before_a_model_is_loaded(memory: Memory):
    with pytest.raises(UnknownWorkspace):
        memory.search(workspace="nowhere")
    assert memory.embedder.embedded == 0


def test_without_the_archive_there_is_an_error_and_no_answer(tmp_path):
    settings = load_settings(_env_file=None, home=tmp_path, **NOWHERE)
    with Recall.from_settings(settings) as recall, pytest.raises(ArchiveUnavailable):
        recall.search(WORKSPACE, "active patient", degraded=True)
