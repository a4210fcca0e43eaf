from __future__ import annotations

from dataclasses import replace

import pytest

from memory_pipeline import Scope
from memory_pipeline.archive.cards import insert
from memory_pipeline.cards import CardContent, Collection, Family
from tests.builders import WORKSPACE, a_decision, clarified, promoted, rejected, reopened, retracted
from tests.recall.memories import Memory, a_concept, a_solved, depending, ids


def test_families_filter_and_only_their_collections_are_searched(memory: Memory):
    concept, rule, solved = memory.hold(a_concept(), CardContent(Family.SQL_RULE, subject="active patient"), a_solved())
    memory.project()
    assert ids(memory.search(families=["sql_rule"])) == [rule]
    assert set(ids(memory.search(families=["concept", "sql_rule"]))) == {concept, rule}
    memory.index.searched.clear()
    assert ids(memory.search(families=["solved_question"])) == [solved]
    assert memory.index.searched == ["solved_questions"]


def test_a_rare_family_is_found_behind_a_crowd_of_others(memory: Memory):
    memory.hold(*[a_concept("active patient", f"reading {n}") for n in range(60)])
    [pitfall] = memory.hold(CardContent(Family.PITFALL, subject="something else"))
    memory.project()
    assert ids(memory.search(families=["pitfall"], limit=1)) == [pitfall]


def test_a_question_does_not_lead_to_cards_of_other_families(memory: Memory):
    memory.session(clarified(1), promoted(2, 1), question="How many?", sql=None)
    memory.ingest()
    memory.project()
    assert ids(memory.search("how many", families=["pitfall"])) == []


@pytest.mark.parametrize(
    ("lie", "asked"),
    [
        ({"family": "pitfall"}, {"families": ["pitfall"]}),
        ({"database": "other"}, {"scope": Scope(database="other")}),
        ({"schema": "other"}, {"scope": Scope(schema="other")}),
        ({"tables": ("other",)}, {"scope": Scope(table="other")}),
        ({"columns": ("other",)}, {"scope": Scope(column="other")}),
    ],
    ids=["family", "database", "schema", "table", "column"],
)
def test_a_payload_that_lies_about_what_is_filtered_by_is_found_out_by_the_archive(memory: Memory, lie, asked):
    [card] = memory.hold(a_concept(database="dwh", schema="public", dependencies=depending("dim_bed", "id")))
    memory.project()
    [stored] = memory.index.scan(memory.target(Collection.MEMORY_CARDS))
    memory.plant(replace(memory.point("active patient", card), payload={**stored.payload, **lie}))
    found = []
    memory.index.change = lambda target, hits: found.extend(hits) or hits
    assert ids(memory.search(**asked)) == []
    assert found  # the index believes the lie
    assert ids(memory.search()) == [card]


def test_scope_keeps_the_cards_that_name_a_table_or_column(memory: Memory):
    visits, beds, _ = memory.hold(
        a_concept("visit", "a", dependencies=depending("FACT_VISIT", "id_visit")),
        a_concept("bed", "b", dependencies=depending("dim_bed")),
        a_concept("anything", "c"),
    )
    memory.project()
    assert ids(memory.search(scope=Scope(table="fact_visit"))) == [visits]
    assert ids(memory.search(scope=Scope(table="DIM_BED"))) == [beds]
    assert ids(memory.search(scope=Scope(column="id_visit"))) == [visits]
    assert ids(memory.search(scope=Scope(table="dim_bed", column="id_visit"))) == []


def test_scope_keeps_the_cards_of_a_database_and_schema(memory: Memory):
    here, _, _ = memory.hold(
        a_concept("a", "1", database="dwh", schema="public"), a_concept("b", "2", database="dwh"), a_concept("c", "3")
    )
    memory.project()
    assert len(memory.search(scope=Scope(database="dwh")).hits) == 2
    assert ids(memory.search(scope=Scope(database="dwh", schema="public"))) == [here]


@pytest.mark.parametrize(
    "scope",
    [Scope(database="dwh"), Scope(schema="rare"), Scope(table="dim_bed"), Scope(column="id_bed")],
    ids=["database", "schema", "table", "column"],
)
def test_a_card_of_a_scope_is_found_behind_a_crowd_of_others_in_one_round(memory: Memory, scope):
    memory.hold(*[a_concept("active patient", f"reading {n}") for n in range(60)])
    place = {"database": "dwh", "schema": "rare", "dependencies": depending("dim_bed", "id_bed")}
    held = memory.hold(a_concept("something else", "far", **place), a_solved("What else?", **place))
    memory.project()
    memory.index.searched.clear()
    assert sorted(ids(memory.search(scope=scope))) == held
    assert len(memory.index.searched) == len(Collection)


def test_scope_holds_for_cards_that_a_question_leads_to(memory: Memory):
    memory.session(clarified(1, tables=("dim_bed",)), promoted(2, 1), question="How many beds?", sql=None)
    memory.ingest()
    memory.project()
    assert len(memory.search("how many beds", scope=Scope(table="dim_bed")).hits) == 1
    assert ids(memory.search("how many beds", scope=Scope(table="fact_visit"))) == []


def test_what_a_session_has_decided_is_left_out_and_not_counted_as_dropped(memory: Memory):
    rejectable, other = memory.hold(a_concept("active visit", "x"), a_concept("active bed", "y"))
    memory.session(
        clarified(1), promoted(2, 1), rejected(3, rejectable), session="mine", question="How many?", sql=None
    )
    memory.ingest()
    memory.project()
    everything = memory.search("active")
    mine = memory.search("active", session_id="mine")
    assert len(everything.hits) == 3
    assert (ids(mine), mine.dropped) == ([other], {})
    assert ids(memory.search("active", session_id="unheard of")) == ids(everything)


def test_what_a_session_has_decided_does_not_come_back_by_a_link_or_as_the_very_question(memory: Memory):
    [card] = memory.hold(a_concept("active bed", "y"))
    memory.session(session="mine", question="How many?")
    memory.ingest()
    memory.project()
    own = [hit.card_id for hit in memory.search("how many").hits if hit.sessions]
    memory.link(card, own[0])
    assert ids(memory.search("how many", session_id="mine", expand_links=True)) == [card]


@pytest.mark.parametrize(
    ("rationale", "cited"),
    [
        ("from mem-0001", True),
        ("as in [mem-0001].", True),
        ("MEM-0001, and Mem-0002's second half", True),
        ("(mem-0001/mem-0002)", True),
        ("perché «mem-0001» lo dice", True),
        ("from mem-0003", False),
        ("from mem-00012", False),
        ("from mem-00001", False),
        ("the item-mem-0001 of the list", False),
        ("xmem-0001", False),
        ("mem-0001a, mem-0001_b and mem-0001-c", False),
        ("sq-0001", False),
        ("mem 0001", False),
    ],
)
def test_a_card_that_a_clarification_of_the_session_cites_is_left_out(memory: Memory, rationale, cited):
    card, _ = memory.hold(a_concept("active visit", "x"), a_concept("active bed", "y"))
    memory.session(clarified(1, rationale=rationale), session="mine", question="How many?", sql=None)
    memory.ingest()
    memory.project()
    assert (card not in ids(memory.search("active", session_id="mine"))) is cited
    assert card in ids(memory.search("active"))


def test_of_cards_whose_ids_begin_alike_only_the_cited_one_is_left_out(memory: Memory):
    with memory.runtime.database.transaction(WORKSPACE) as tx:
        insert(tx, {each: a_concept(each) for each in ("mem-0001", "mem-00012")}, origin="hand", principal="tester")
    memory.session(clarified(1, rationale="see mem-00012"), session="mine", question="How many?", sql=None)
    memory.ingest()
    memory.project()
    assert ids(memory.search("active", session_id="mine")) == ["mem-0001"]


@pytest.mark.parametrize(
    ("decisions", "others"),
    [
        ([clarified(1, rationale="from mem-0001"), retracted(2, 1)], {}),
        ([clarified(1, phase=5, rationale="from mem-0001"), reopened(2, 3)], {}),
        ([a_decision(1, "table_excluded", rationale="from mem-0001")], {}),
        ([clarified(1, detail="as mem-0001")], {}),
        ([clarified(1, rationale="from mem-0001")], {"session": "another"}),
        ([clarified(1, rationale="from mem-0001")], {"workspace": "other"}),
    ],
    ids=["retracted", "rolled back", "no clarification", "no rationale", "another session", "another workspace"],
)
def test_what_cites_a_card_otherwise_leaves_it_in(memory: Memory, decisions, others):
    [card] = memory.hold(a_concept("active visit", "x"))
    memory.session(*decisions, **{"session": "mine", "question": "How many?", "sql": None, **others})
    memory.ingest(others.get("workspace", WORKSPACE))
    memory.project()
    assert card in ids(memory.search("active", session_id="mine"))


def test_a_solved_question_that_a_clarification_cites_does_not_come_back_word_for_word(memory: Memory):
    [card] = memory.hold(a_solved())
    memory.session(clarified(1, rationale=f"the filter of {card}"), session="mine", question="How many?", sql=None)
    memory.ingest()
    memory.project()
    question = "How many active patients are there?"
    assert ids(memory.search(question)) == [card]
    assert ids(memory.search(question, session_id="mine")) == []


def test_places_of_excluded_cards_are_filled(memory: Memory):
    memory.session(*_many_clarifications(70), session="mine", sql=None)
    memory.ingest()
    held = memory.hold(*[a_concept(f"far {n}", f"away {n}") for n in range(3)])
    memory.project()
    assert set(ids(memory.search("near", limit=3, session_id="mine"))) == set(held)


def _many_clarifications(count: int) -> list:
    return [clarified(n, "near", f"near {n}") for n in range(1, count + 1)] + [
        promoted(count + n, n) for n in range(1, count + 1)
    ]
