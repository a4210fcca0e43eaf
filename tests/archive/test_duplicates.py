"""Proposals for merging out of a real archive: which cards are compared, what is kept, and in how many statements."""

from __future__ import annotations

import pytest

from memory_pipeline.archive.cards import create
from memory_pipeline.archive.duplicates import Proposals, proposed
from memory_pipeline.cards import Family
from memory_pipeline.edits import Link
from memory_pipeline.runtime import Runtime
from tests.archives import Archive
from tests.builders import clarified, promoted
from tests.curating import a_card
from tests.editors import Editor
from tests.statements import counting

GENERAL = ("paziente attivo", "flag_attivo = TRUE")
REWORDED = ("paziente attivo", "paziente attivo significa flag_attivo = TRUE")


@pytest.fixture
def editor(runtime: Runtime) -> Editor:
    return Editor(runtime)


def found(archive: Archive, limit: int = 50) -> Proposals:
    with archive.database.transaction(archive.workspace, snapshot=True) as tx:
        return proposed(tx, limit)


def ids(proposals: Proposals) -> list[tuple[str, str]]:
    return [(pair.keep.card_id, pair.other.card_id) for pair in proposals.pairs]


def a_concept(editor: Editor, subject: str, detail: str, family: Family = Family.CONCEPT) -> str:
    return editor.create(family=family, subject=subject, detail=detail)


def test_a_proposal_shows_both_cards_as_a_merge_needs_them(editor: Editor):
    a_concept(editor, *GENERAL)
    other = a_concept(editor, *REWORDED)
    editor.alter(other, rationale="so it is")
    [pair] = found(editor).pairs
    assert (pair.keep.card_id, pair.keep.version, pair.other.card_id, pair.other.version) == ("mem-0001", 1, other, 2)
    assert (pair.family, pair.kind, pair.likeness) == (Family.CONCEPT, "near", 1.0)
    assert (pair.other.subject, pair.other.detail) == REWORDED
    assert "near" in pair.why
    editor.merge(pair.keep.card_id, pair.other.card_id)
    assert found(editor).total == 0


def test_a_general_and_a_more_specific_rule_are_both_kept(editor: Editor):
    a_concept(editor, *GENERAL)
    a_concept(editor, GENERAL[0], f"{GENERAL[1]} and data_fine IS NULL")
    assert found(editor).total == 0


def test_cards_of_two_families_and_solved_questions_are_no_pair(editor: Editor):
    a_concept(editor, *GENERAL)
    a_concept(editor, *GENERAL, family=Family.PITFALL)
    for _ in range(2):
        editor.create(family=Family.SOLVED_QUESTION, subject="", detail="")
    proposals = found(editor)
    assert (proposals.total, proposals.cards) == (0, 2)


def test_cards_of_two_workspaces_are_no_pair(editor: Editor, runtime: Runtime):
    a_concept(editor, *GENERAL)
    other = Editor(runtime, "ward")
    a_concept(other, *REWORDED)
    assert found(editor).total == found(other).total == 0


def test_linked_cards_are_left_out_whichever_way_the_link_points(editor: Editor):
    first, second = a_concept(editor, *GENERAL), a_concept(editor, *REWORDED)
    assert ids(found(editor)) == [(first, second)]
    editor.alter(second, Link(first, "is another flag than"))
    assert found(editor).total == 0


def test_the_one_that_more_stands_behind_is_kept(editor: Editor):
    for n in range(3):
        detail = "flag = 'A'" if n else "attivo significa flag = 'A'"
        editor.session(clarified(1, "attivo", detail), promoted(2, 1), session=f"s{n}", sql=None)
    editor.ingest()
    [pair] = found(editor).pairs
    assert (pair.keep.detail, pair.other.detail) == ("flag = 'A'", "attivo significa flag = 'A'")
    editor.alter(pair.other.card_id, rationale="edited")
    assert ids(found(editor)) == [(pair.other.card_id, pair.keep.card_id)]


def test_many_cards_take_a_statement_for_each_thousand_and_little_else(editor: Editor):
    contents = [a_card(f"concetto {n}", f"codice = '{n // 2}'") for n in range(2_500)]
    with editor.database.transaction(editor.workspace, writing=True) as tx:
        create(tx, contents, origin="hand", principal="tester")
        create(tx, [a_card("Concetto 2499", "concetto (2499): codice=1249")], origin="hand", principal="tester")
    found(editor)
    with counting() as counted:
        proposals = found(editor)
    assert len([s for s in counted.archive if "FROM card c" in s]) == 4  # three pages, and one that is empty
    assert len(counted.archive) <= 9
    assert (ids(proposals), proposals.cards) == ([("mem-2500", "mem-2501")], 2_501)


def test_a_limit_shows_the_best_of_all_families_and_counts_the_rest(editor: Editor):
    a_concept(editor, *GENERAL)
    a_concept(editor, *REWORDED)
    a_concept(editor, *GENERAL, family=Family.SQL_RULE)
    a_concept(editor, GENERAL[0], "(FLAG_ATTIVO) = true", family=Family.SQL_RULE)
    proposals = found(editor, limit=1)
    assert [(pair.family, pair.kind) for pair in proposals.pairs] == [(Family.SQL_RULE, "form")]
    assert (proposals.form, proposals.near, proposals.complete) == (1, 1, True)


def test_nothing_is_changed(editor: Editor):
    a_concept(editor, *GENERAL)
    a_concept(editor, *REWORDED)
    before = editor.picture()
    assert found(editor).total == 1
    assert editor.picture() == before


def test_an_empty_workspace_has_none(editor: Editor):
    assert found(editor) == Proposals((), 0, 0, 0, complete=True)
