from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import product
from typing import Any

import pytest
from sqlalchemy import Engine, event, text

from memory_pipeline import Scope
from memory_pipeline.archive import workspaces
from memory_pipeline.archive.queries import load
from memory_pipeline.cards import CardContent, Collection, Family
from memory_pipeline.errors import UnknownWorkspace
from memory_pipeline.propagation.removal import points_removed
from memory_pipeline.recall import Recall
from tests.builders import WORKSPACE, approved, clarified, promoted
from tests.recall.memories import Memory, a_concept, a_solved, depending, ids
from tests.statements import counting


@pytest.fixture
def filled(memory: Memory) -> Memory:
    for n in range(12):
        decisions = clarified(1, f"subject {n}", f"detail {n}"), approved(2), promoted(3, 1)
        memory.session(*decisions, session=f"s{n}", question=f"subject question {n}?")
    memory.ingest()
    memory.hold(*[a_concept(f"subject by hand {n}", f"detail {n}") for n in range(80)])
    memory.project()
    return memory


@contextmanager
def asked() -> Iterator[list[tuple[str, Mapping[str, object]]]]:
    """The statements of the archive's lookups while the block runs, with their parameters."""
    found: list[tuple[str, Mapping[str, object]]] = []

    def note(connection, clause, multiparams, params, options) -> None:
        if any(clause is known for known in load("lookup").values()):
            found.append((str(clause), params))

    event.listen(Engine, "before_execute", note)
    try:
        yield found
    finally:
        event.remove(Engine, "before_execute", note)


def nodes(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield plan
    for part in plan.get("Plans", ()):
        yield from nodes(part)


def words_found(memory: Memory, question: str) -> bool:
    return any("lexical" in hit.signals for hit in memory.search(question).hits)


def statements(memory: Memory, **options: object) -> int:
    with counting() as counted:
        memory.search("subject", **options)
    return len(counted.archive)


def test_the_number_of_statements_does_not_depend_on_how_much_is_asked_for(filled: Memory):
    filled.search("subject")  # the first one checks the schema
    counts = {limit: statements(filled, limit=limit) for limit in (1, 10, 50)}
    assert set(counts.values()) == {7}
    assert statements(filled, limit=10, expand_links=True) == 9


def test_an_explanation_takes_no_further_statement_and_only_that_of_a_scope_asks_the_index_again(filled: Memory):
    filled.search("subject")
    for options in ({}, {"limit": 1}, {"session_id": "s3"}, {"scope": Scope(table="dim_bed")}):
        filled.index.searched.clear()
        assert statements(filled, explain=True, **options) == 7
        times = 2 if "scope" in options else 1
        assert sorted(filled.index.searched) == sorted([*Collection] * times)


def test_a_search_takes_a_transaction_before_it_asks_the_index_and_one_after(filled: Memory):
    filled.search("subject")
    with counting() as counted:
        filled.search("subject")
    assert ["memory.workspace" in statement for statement in counted.archive] == [True, False, True, *[False] * 4]


def test_what_is_asked_of_the_archive_reads_only_the_rows_that_it_finds(filled: Memory):
    with asked() as statements:
        filled.search("subject")
    with filled.runtime.database.transaction(WORKSPACE, snapshot=True, by_key=True) as tx:
        for statement, parameters in statements:
            (explained,) = tx.rows(text(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}"), **parameters)
            scans = [node for node in nodes(explained["QUERY PLAN"][0]["Plan"]) if "Relation Name" in node]
            assert {node["Node Type"] for node in scans} <= {"Index Scan", "Index Only Scan", "Bitmap Heap Scan"}
            # For what is equal by its words there is an index too, which is not worth it among a hundred cards.
            by_key = [node for node in scans if "text_key" not in node.get("Filter", "")]
            assert [node for node in by_key if node.get("Rows Removed by Filter")] == []


def test_a_workspace_made_again_in_another_language_is_searched_in_that(memory: Memory):
    memory.hold(a_concept("ricoveri"))
    memory.project()
    assert not words_found(memory, "ricovero")  # no English words
    with points_removed(memory.runtime, WORKSPACE), memory.runtime.database.transaction(WORKSPACE, writing=True) as tx:
        workspaces.remove(tx)
    with pytest.raises(UnknownWorkspace):
        memory.search("ricovero")
    memory.make(language="italian")
    memory.hold(a_concept("ricoveri"))
    memory.project()
    assert words_found(memory, "ricovero")


def test_the_number_of_statements_does_not_depend_on_how_many_cards_there_are(memory: Memory):
    counts = []
    memory.search("subject")
    for size in (0, 1, 30, 90):
        memory.hold(*[a_concept(f"subject {n} of {size}", f"detail {n}") for n in range(size)])
        memory.hold(*[a_solved(f"subject question {n} of {size}?") for n in range(size)])
        memory.project()
        counts.append(statements(memory))
    assert set(counts) == {7}


def test_each_collection_is_asked_once_whatever_is_asked(filled: Memory):
    for question, limit in product(["subject", "subject question 3?", "???", "unheard of"], [1, 40]):
        filled.index.searched.clear()
        filled.search(question, limit=limit)
        assert sorted(filled.index.searched) == sorted(Collection), (question, limit)


@pytest.mark.parametrize(
    "narrow", [{"families": ["pitfall"]}, {"scope": Scope(table="dim_bed")}], ids=["family", "scope"]
)
def test_a_filter_that_leaves_few_cards_is_answered_in_one_round_however_many_questions_there_are(
    memory: Memory, narrow
):
    for n in range(60):
        memory.session(clarified(1), promoted(2, 1), session=f"s{n}", question=f"subject {n}?", sql=None)
    memory.ingest()
    held = memory.hold(CardContent(Family.PITFALL, subject="trap", dependencies=depending("dim_bed")))
    memory.project()
    memory.index.searched.clear()
    assert ids(memory.search("subject", **narrow)) == held
    assert len(memory.index.searched) == len(set(memory.index.searched))


def test_no_transaction_is_open_while_the_index_searches(filled: Memory):
    pool, held = filled.runtime.database._engine.pool, []
    filled.index.before = lambda target: held.append(pool.checkedout())
    filled.plant(*[filled.point("unheard", f"mem-9{n:03d}") for n in range(120)])
    filled.search("unheard", limit=40)
    assert len(held) > len(Collection)  # the orphans took more than one round
    assert set(held) == {0}


def test_the_question_is_embedded_once_with_its_shape(filled: Memory):
    before = filled.embedder.embedded
    filled.search("subject 12")
    assert filled.embedder.embedded == before + 2


def test_threads_may_share_one_recall(filled: Memory):
    recall = Recall(filled.runtime)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda n: ids(recall.search("clinic", f"subject {n % 4}")), range(16)))
    assert all(answers[n] == answers[n % 4] for n in range(16))
