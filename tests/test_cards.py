"""The shapes of the domain."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_pipeline.cards import CardContent, Collection, Dependency, Family, is_workspace_name, workspace_name
from memory_pipeline.errors import UnknownWorkspace


@pytest.mark.parametrize("name", ["psd", "0", "a-b_c", "a" * 63])
def test_a_workspace_may_be_called_so(name):
    assert is_workspace_name(name)
    assert workspace_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "Psd",
        "-a",
        "_a",
        "a b",
        "a.b",
        "a/b",
        "..",
        "psd\n",
        "à",
        "٣",
        "a" * 64,
        "*",
        "%",
        None,
        1,
        ["psd"],
        b"psd",
    ],
    ids=repr,
)
def test_a_workspace_may_not_be_called_so(name):
    with pytest.raises(UnknownWorkspace, match="is not a workspace"):
        workspace_name(name)


@given(st.text())
def test_a_refused_name_is_shown_in_one_short_line(name):
    if not is_workspace_name(name):
        with pytest.raises(UnknownWorkspace) as caught:
            workspace_name(name)
        assert len(str(caught.value)) < 1200
        assert not re.search(r"[\n\r\x00]", str(caught.value))


def test_each_family_has_its_numbers_and_its_collection():
    assert {family: (family.id_prefix, family.collection) for family in Family} == {
        Family.CONCEPT: ("mem", Collection.MEMORY_CARDS),
        Family.SQL_RULE: ("mem", Collection.MEMORY_CARDS),
        Family.PITFALL: ("mem", Collection.MEMORY_CARDS),
        Family.SOLVED_QUESTION: ("sq", Collection.SOLVED_QUESTIONS),
    }


def test_tables_and_columns_are_named_once_each_and_sorted():
    dependencies = (
        Dependency("d", "s", "visits", "id"),
        Dependency("d", "s", "patients"),
        Dependency("d", "s", "patients", "id"),
        Dependency("d", "s"),
    )
    content = CardContent(Family.SOLVED_QUESTION, dependencies=dependencies)
    assert (content.tables, content.columns) == (("patients", "visits"), ("id",))


@pytest.mark.parametrize(("name", "plausible"), [("", True), ("t" * 255, True), ("t" * 256, False), ("à" * 128, False)])
@pytest.mark.parametrize("level", ["database", "schema", "table", "column"])
def test_a_name_that_no_database_could_hold_is_not_plausible(level, name, plausible):
    assert Dependency(**{level: name}).plausible is plausible
