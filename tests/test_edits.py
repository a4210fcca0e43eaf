"""What a family allows, what links can be made together, and edits as JSON: all without a database."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_pipeline.cards import CardContent, Dependency, Family
from memory_pipeline.edits import (
    DEPENDENCY_LIMIT,
    LIST_LIMIT,
    NAME_LIMIT,
    TEXT_LIMIT,
    Change,
    Create,
    Delete,
    Link,
    Merge,
    changed,
    checked,
    link_faults,
)
from memory_pipeline.edits_json import edit_as_json, parse_edit
from memory_pipeline.errors import InvalidEdit
from tests.editors import a_content

SOLVED = Family.SOLVED_QUESTION
OTHERS = [Family.CONCEPT, Family.SQL_RULE, Family.PITFALL]
A, B = Dependency("d", "s", "patients"), Dependency("d", "s", "visits", "id")


def faults(call, *arguments) -> dict[str, str]:
    with pytest.raises(InvalidEdit) as refused:
        call(*arguments)
    return refused.value.faults


class TestContent:
    @pytest.mark.parametrize("family", Family)
    def test_each_family_allows_its_own_fields(self, family):
        assert checked(a_content(family)) == a_content(family)

    @pytest.mark.parametrize("family", OTHERS)
    def test_a_concept_rule_or_pitfall_has_no_sql(self, family):
        content = a_content(family, question="q", sql="s", dialect="duckdb", context="c")
        assert faults(checked, content).keys() == {"question", "sql", "dialect", "context"}

    def test_a_solved_question_has_no_subject(self):
        content = a_content(SOLVED, subject="s", detail="d", rationale="r", concepts=("c",))
        assert faults(checked, content).keys() == {"subject", "detail", "rationale", "concepts"}

    @pytest.mark.parametrize("family", OTHERS)
    @pytest.mark.parametrize("blank", ["", " ", "\n\t\u00a0"])
    def test_a_subject_and_a_detail_are_needed(self, family, blank):
        assert faults(checked, a_content(family, subject=blank, detail=blank)).keys() == {"subject", "detail"}

    @pytest.mark.parametrize("blank", ["", " \n"])
    def test_a_question_and_sql_are_needed(self, blank):
        assert faults(checked, a_content(SOLVED, question=blank, sql=blank)).keys() == {"question", "sql"}

    def test_all_faults_come_at_once_and_say_what_to_do(self):
        content = a_content(subject="", detail="\x00", sql="SELECT", concepts=("",), dependencies=(Dependency(),))
        assert faults(checked, content) == {
            "subject": "a concept needs it: write some text",
            "detail": "cannot be kept, since it holds a NUL byte: take it out",
            "sql": "a concept has none: leave it out",
            "concepts": f"each has to be a text of 1 to {NAME_LIMIT} characters",
            "dependencies.0": "names nothing: give a database, schema, table or column",
        }

    @pytest.mark.parametrize("text", ["x", "x" * 10_000, "x" * TEXT_LIMIT, "😀", "مريض نشط", "e\u0300", "è", " x\n"])
    def test_a_text_is_kept_exactly(self, text):
        assert checked(a_content(subject=text)).subject == text

    @pytest.mark.parametrize("text", ["x" * (TEXT_LIMIT + 1), "a\x00b", "\ud800", None, 1, ["x"], b"x"])
    def test_a_text_that_cannot_be_kept_is_refused(self, text):
        assert faults(checked, a_content(subject=text)).keys() == {"subject"}
        assert faults(checked, a_content(SOLVED, sql=text)).keys() == {"sql"}

    def test_a_dialect_is_one_that_sqlglot_knows(self):
        assert checked(a_content(SOLVED, dialect="duckdb")).dialect == "duckdb"
        assert "write one of athena, bigquery" in faults(checked, a_content(SOLVED, dialect="klingon"))["dialect"]

    @pytest.mark.parametrize("name", ["database", "schema"])
    def test_a_name_is_shorter(self, name):
        checked(a_content(SOLVED, **{name: "x" * NAME_LIMIT}))
        assert faults(checked, a_content(SOLVED, **{name: "x" * (NAME_LIMIT + 1)})).keys() == {name}

    @pytest.mark.parametrize("concepts", [["a"], "a", None, (1,), ("a", " "), ("x" * 256,), ("\x00",)])
    def test_concepts_are_a_tuple_of_names(self, concepts):
        assert faults(checked, a_content(concepts=concepts)).keys() == {"concepts"}

    def test_there_are_only_so_many_concepts_and_dependencies(self):
        concepts = tuple(f"concept {n}" for n in range(LIST_LIMIT + 1))
        dependencies = tuple(Dependency("d", "s", f"t{n}") for n in range(DEPENDENCY_LIMIT + 1))
        checked(a_content(concepts=concepts[1:], dependencies=dependencies[1:]))
        assert faults(checked, a_content(concepts=concepts, dependencies=dependencies)) == {
            "concepts": "has 1,001 entries: at most 1,000 can be kept",
            "dependencies": "has 25,001 entries: at most 25,000 can be kept",
        }

    @pytest.mark.parametrize(
        "wrong",
        [Dependency(column="id"), Dependency(table="\x00"), Dependency(table="è" * 128), Dependency(table=None)],
        ids=["column without table", "NUL", "longer than a database allows", "no text"],
    )
    def test_a_faulty_dependency_is_named_by_its_place(self, wrong):
        assert faults(checked, a_content(dependencies=(A, wrong))).keys() == {"dependencies.1"}

    @pytest.mark.parametrize("wrong", [None, [A], ("patients",)])
    def test_dependencies_are_a_tuple_of_them(self, wrong):
        assert faults(checked, a_content(dependencies=wrong)).keys() == {"dependencies"}

    def test_dependencies_are_kept_once_and_in_order(self):
        assert checked(a_content(dependencies=(B, A, B))).dependencies == (A, B)

    def test_a_family_that_there_is_not_is_refused(self):
        assert faults(checked, CardContent(family="rule", subject="s", detail="d")).keys() == {"family"}

    def test_a_family_by_its_name_is_one(self):
        content = checked(CardContent(family="solved_question", question="q", sql="SELECT 1"))
        assert content.family is SOLVED


class TestChange:
    def test_replaces_what_it_names(self):
        before = a_content(rationale="by law")
        assert changed(before, {"subject": "patient", "dependencies": (B, A)}) == a_content(
            subject="patient", rationale="by law", dependencies=(A, B)
        )

    def test_cannot_change_the_family_or_what_is_no_field(self):
        found = faults(changed, a_content(), {"family": SOLVED, "titel": "x", "subject": ""})
        assert found.keys() == {"family", "titel", "subject"}
        assert "make a card of the other family" in found["family"]


class TestLinks:
    def test_both_directions_between_two_cards_are_two(self):
        assert link_faults([Link("mem-2", "explains"), Link("mem-2", "needs", outgoing=False)], card_id="mem-1") == {}

    def test_faults_are_named_by_their_places(self):
        links = [
            Link("mem-1", "to itself"),
            Link("mem-2", "first"),
            Link("mem-2", "second"),
            Link("mem-3", " "),
            Link("mem-4", "x" * 256),
            Link("mem-5", "a\x00b"),
            Link("mem-6", None),
        ]
        assert sorted(link_faults(links, card_id="mem-1")) == [f"links.{n}" for n in (0, 2, 3, 4, 5)]

    def test_a_new_card_has_none_to_remove(self):
        assert link_faults([Link("mem-2", None)]).keys() == {"links.0"}


EDITS = [
    Create(a_content()),
    Create(
        a_content(SOLVED, context="c", database="d", dependencies=(A, B)), (Link("mem-2", "explains", outgoing=False),)
    ),
    Create(a_content(Family.PITFALL, concepts=("a", "b"), rationale="è e\u0300 😀 مريض")),
    Change("mem-0001", 3, {"subject": "s", "concepts": (), "dependencies": (B,)}, (Link("mem-2", None),)),
    Change("mem-0001", 3, {"rationale": ""}),
    Delete("sq-0001", 1),
    Merge("mem-0001", 2, "mem-0002", 1),
]


NAMES = st.sampled_from(["family", "links", "other", "subject", "dependencies", "concepts", "version", "card_id", "x"])
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(NAMES, inner),
    max_leaves=8,
)


class TestJson:
    @pytest.mark.parametrize("edit", EDITS, ids=lambda edit: type(edit).__name__)
    def test_an_edit_comes_back_as_it_was(self, edit):
        assert parse_edit(json.loads(json.dumps(edit_as_json(edit)))) == edit

    def test_a_change_holds_what_was_given_and_no_more(self):
        given = {"operation": "change", "card_id": "mem-0001", "version": 2, "detail": ""}
        assert parse_edit(given) == Change("mem-0001", 2, {"detail": ""})

    @pytest.mark.parametrize("value", [None, [], "delete", 1])
    def test_what_is_no_object_is_refused(self, value):
        assert faults(parse_edit, value).keys() == {"edit"}

    @pytest.mark.parametrize("operation", [None, "drop", 1, ["create"], {}])
    def test_an_operation_that_there_is_not_is_refused(self, operation):
        assert faults(parse_edit, {"operation": operation}).keys() == {"operation"}

    def test_all_faults_of_a_creation_come_at_once(self):
        given = {
            "operation": "create",
            "family": "concept",
            "subject": 1,
            "sql": "SELECT 1",
            "titel": "x",
            "links": ["mem-1", {"other": "mem-2"}, {"meaning": 5, "operation": "create"}],
            "dependencies": [{"column": "id"}, {"table": ["t"]}],
        }
        assert faults(parse_edit, given).keys() == {
            "subject",
            "detail",
            "sql",
            "titel",
            "links.0",
            "links.1",
            "links.2.other",
            "links.2.meaning",
            "links.2.operation",
            "dependencies.0",
            "dependencies.1.table",
        }

    @pytest.mark.parametrize("version", [None, "1", 1.0, True, []])
    def test_a_version_is_a_whole_number(self, version):
        assert faults(parse_edit, {"operation": "delete", "card_id": "mem-1", "version": version}).keys() == {"version"}

    @pytest.mark.parametrize("field", ["subject", "concepts", "dependencies"])
    def test_null_never_empties_a_field(self, field):
        given = {"operation": "change", "card_id": "mem-1", "version": 1, field: None}
        assert faults(parse_edit, given).keys() == {field}

    def test_the_family_of_a_card_is_not_changed(self):
        given = {"operation": "change", "card_id": "mem-1", "version": 1, "family": "pitfall"}
        assert faults(parse_edit, given).keys() == {"family"}

    def test_a_merge_names_both_cards_and_their_versions(self):
        assert faults(parse_edit, {"operation": "merge", "links": []}).keys() == {
            "keep",
            "keep_version",
            "other",
            "other_version",
            "links",
        }

    def test_what_is_said_of_an_unknown_field_can_be_stored(self):
        (name,) = faults(parse_edit, {"operation": "delete", "card_id": "m", "version": 1, "\x00\ud800" * 400: 1})
        assert (len(name), name.strip()) == (NAME_LIMIT, "")

    @given(ANYTHING, st.sampled_from(["create", "change", "delete", "merge"]))
    def test_whatever_comes_is_an_edit_or_refused(self, value, operation):
        given = {**value, "operation": operation} if isinstance(value, dict) else value
        try:
            edit = parse_edit(given)
        except InvalidEdit:
            return
        assert parse_edit(edit_as_json(edit)) == edit
