from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from memory_pipeline import Scope
from memory_pipeline.cards import CardContent, Collection, Family
from memory_pipeline.recall import Recall
from tests.builders import approved, clarified, promoted
from tests.recall.memories import Memory, a_concept, depending, ids
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


def statements(memory: Memory, **options: object) -> int:
    with counting() as counted:
        memory.search("subject", **options)
    return len(counted.archive)


def test_the_number_of_statements_does_not_depend_on_how_much_is_asked_for(filled: Memory):
    filled.search("subject")  # the first one checks the schema
    counts = {limit: statements(filled, limit=limit) for limit in (1, 10, 50)}
    assert set(counts.values()) == {7}
    assert statements(filled, limit=10, expand_links=True) == 9


def test_each_collection_is_asked_once(filled: Memory):
    filled.index.searched.clear()
    filled.search("subject", limit=40)
    assert sorted(filled.index.searched) == sorted(Collection)


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
