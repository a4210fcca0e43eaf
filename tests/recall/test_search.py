from __future__ import annotations

import shutil

import pytest
from sqlalchemy import text

from memory_pipeline import Recall
from memory_pipeline.archive import identities
from memory_pipeline.cards import Collection, Family
from memory_pipeline.errors import ArchiveUnavailable, IndexIncompatible, IndexUnavailable, UnknownWorkspace
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
    assert {"dense", "shape", "same_shape", "lexical", "verbatim"} == hit.signals.keys()


def test_the_json_has_exactly_the_agreed_shape(memory: Memory):
    memory.hold(a_concept())
    memory.project()
    answer = memory.search().as_json()
    assert answer.keys() == {"hits", "dropped", "pending", "degraded"}
    assert answer["hits"][0].keys() == {
        "card_id",
        "family",
        "subject",
        "detail",
        "rationale",
        "question",
        "sql",
        "context",
        "tables",
        "sessions",
        "score",
        "signals",
    }
    assert (answer["dropped"], answer["pending"], answer["degraded"]) == ({}, 0, False)


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


@pytest.mark.parametrize("degraded", [False, True])
@pytest.mark.parametrize("workspace", [None, "", "*", "%", "nowhere"])
def test_a_workspace_that_there_is_not_is_refused_before_anything_is_embedded_or_searched(
    memory: Memory, workspace, degraded
):
    memory.hold(a_concept())
    memory.project()
    embedded = memory.embedder.embedded
    with pytest.raises(UnknownWorkspace):
        memory.search(workspace=workspace, degraded=degraded)
    assert (memory.embedder.embedded, memory.index.searched) == (embedded, [])


@pytest.mark.parametrize("degraded", [False, True])
def test_without_the_archive_there_is_an_error_and_no_answer(tmp_path, degraded):
    settings = load_settings(_env_file=None, home=tmp_path, **NOWHERE)
    with Recall.from_settings(settings) as recall, pytest.raises(ArchiveUnavailable):
        recall.search(WORKSPACE, "active patient", degraded=degraded)


@pytest.mark.parametrize("degraded", [False, True])
def test_an_archive_that_goes_away_while_the_index_answers_is_an_error_and_no_answer(memory: Memory, degraded):
    memory.hold(a_concept())
    memory.project()
    nowhere = load_settings(_env_file=None, home=memory.runtime.settings.home, **NOWHERE)
    with Runtime(nowhere) as away:
        memory.index.before = lambda target: setattr(memory.runtime, "database", away.database)
        with pytest.raises(ArchiveUnavailable):
            memory.search(degraded=degraded)
