from __future__ import annotations

import pytest

from memory_pipeline import Scope
from memory_pipeline.cards import Collection, Family
from memory_pipeline.errors import InvalidInput, UnknownWorkspace
from memory_pipeline.recall.request import QUESTION_AT_MOST, Request, checked_request
from tests.recall.memories import a_concept, depending

USUAL = {
    "limit": 10,
    "families": None,
    "scope": None,
    "session_id": None,
    "expand_links": False,
    "degraded": False,
}


def asked(workspace: object = "clinic", question: object = "how many?", **options: object) -> Request:
    return checked_request(workspace, question, **(USUAL | options))


@pytest.mark.parametrize("workspace", [None, "", "*", "%", "Clinic", "a/b", 7, "clinic\n"])
def test_a_workspace_is_never_optional_and_never_a_wildcard(workspace):
    with pytest.raises(UnknownWorkspace):
        asked(workspace)


@pytest.mark.parametrize(
    "question", ["", "  \n\t ", None, 7, "nul\x00", "\ud800", "x" * 100_000, "x" * (QUESTION_AT_MOST + 1)]
)
def test_a_question_that_cannot_be_asked_is_refused(question):
    with pytest.raises(InvalidInput, match="question"):
        asked(question=question)


def test_the_longest_question_can_be_asked():
    assert asked(question="x" * QUESTION_AT_MOST).question


@pytest.mark.parametrize("limit", [0, -1, 1001, True, None, 2.0, "3"])
def test_a_limit_out_of_range_is_refused(limit):
    with pytest.raises(InvalidInput, match="limit"):
        asked(limit=limit)


@pytest.mark.parametrize("families", [["concepts"], [], "rule", ["concept", "*"], [None], [["concept"]], 7])
def test_an_unknown_family_is_refused_and_the_known_ones_are_listed(families):
    with pytest.raises(InvalidInput, match="concept, sql_rule, pitfall, solved_question"):
        asked(families=families)


def test_one_family_may_be_named_without_a_list():
    assert asked(families="pitfall").families == (Family.PITFALL,)


@pytest.mark.parametrize("session_id", ["", " ", "s\x00", 7])
def test_a_session_that_is_no_name_is_refused(session_id):
    with pytest.raises(InvalidInput, match="session"):
        asked(session_id=session_id)


@pytest.mark.parametrize("scope", [Scope(table=""), Scope(column="a\x00"), Scope(database=7)])
def test_a_scope_that_is_no_name_is_refused(scope):
    with pytest.raises(InvalidInput, match="scope"):
        asked(scope=scope)


def test_a_scope_is_no_mapping():
    with pytest.raises(InvalidInput, match="scope"):
        asked(scope={"table": "x"})


def test_only_collections_that_can_lead_to_the_families_are_searched():
    assert asked().collections == tuple(Collection)
    assert asked(families=["solved_question"]).collections == (Collection.SOLVED_QUESTIONS,)
    assert asked(families=["concept"]).collections == (Collection.MEMORY_CARDS, Collection.QUESTIONS)


def test_the_index_filters_by_family_only_where_a_collection_holds_others():
    request = asked(families=["concept", "solved_question"])
    assert request.must(Collection.MEMORY_CARDS) == {"family": ("concept",)}
    assert request.must(Collection.SOLVED_QUESTIONS) == {}
    assert request.must(Collection.QUESTIONS) == {}


@pytest.mark.parametrize(
    ("scope", "holds"),
    [
        (Scope(), True),
        (Scope(database="clinic_dwh"), True),
        (Scope(database="CLINIC_DWH"), False),
        (Scope(schema="private"), False),
        (Scope(table="Fact_Visit"), True),
        (Scope(table="fact_visit", column="ID"), True),
        (Scope(table="fact_visit", schema="private"), False),
        (Scope(column="missing"), False),
    ],
)
def test_a_card_is_within_a_scope_when_it_matches_every_field(scope, holds):
    content = a_concept(database="clinic_dwh", schema="public", dependencies=depending("FACT_VISIT", "id"))
    assert scope.holds(content) is holds


def test_a_card_that_names_no_table_is_outside_every_scope_with_a_table():
    assert not Scope(table="fact_visit").holds(a_concept())
