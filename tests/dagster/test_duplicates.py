"""The check of cards that say the same: it names pairs of every workspace, and changes none."""

from __future__ import annotations

import shutil

from memory_pipeline.archive.cards import create
from tests.archives import Archive
from tests.curating import CLINIC, WARD, a_card, a_workspace
from tests.dagster.conftest import Pipeline, checks


def holding(pipeline: Pipeline, workspace: str, *details: str) -> Archive:
    a_workspace(pipeline.runtime, workspace)
    with pipeline.runtime.database.transaction(workspace, writing=True) as tx:
        create(tx, [a_card("attivo", detail) for detail in details], origin="hand", principal="tester")
    return Archive(pipeline.runtime, workspace)


def checked(pipeline: Pipeline):
    result = pipeline.run("apply_edits", CLINIC)
    assert result.success
    return checks(result)["near_duplicates"]


def test_the_pairs_of_all_workspaces_are_named_the_same_but_for_form_first_and_stay(pipeline: Pipeline):
    clinic = holding(pipeline, CLINIC, "flag_attivo = TRUE", "attivo significa flag_attivo = TRUE")
    holding(pipeline, WARD, "stato = 'A'", "stato = 'B'", "«Attivo»: stato = 'A'")
    before = clinic.rows("SELECT * FROM card ORDER BY card_id")
    check = checked(pipeline)
    assert (check.passed, check.severity.value) == (False, "WARN")
    assert check.description == "2 pair(s) of cards are worth merging: 1 the same but for form, 1 near"
    metadata = {name: value.value for name, value in check.metadata.items()}
    assert metadata["by_workspace"] == {CLINIC: 1, WARD: 1}
    assert (metadata["same_but_for_form"], metadata["near"], metadata["cards"]) == (1, 1, 5)
    assert metadata["not_all_compared"] == []
    assert [(row["workspace"], row["keep"], row["other"]) for row in metadata["look_at"]] == [
        (WARD, "mem-0001", "mem-0003"),
        (CLINIC, "mem-0001", "mem-0002"),
    ]
    assert metadata["look_at"][0]["why"] == "the same but for form"
    assert clinic.rows("SELECT * FROM card ORDER BY card_id") == before


def test_a_general_and_a_more_specific_rule_pass_and_are_both_kept(pipeline: Pipeline):
    clinic = holding(pipeline, CLINIC, "flag_attivo = TRUE", "flag_attivo = TRUE and data_fine IS NULL")
    check = checked(pipeline)
    assert check.passed
    assert check.description == "no two cards say the same"
    assert clinic.card_ids() == ["mem-0001", "mem-0002"]


def test_many_pairs_are_counted_and_some_are_listed(pipeline: Pipeline):
    holding(pipeline, CLINIC, *["stato = 'A'" + " " * n for n in range(60)])
    metadata = {name: value.value for name, value in checked(pipeline).metadata.items()}
    assert metadata["same_but_for_form"] == 59
    assert len(metadata["look_at"]) == 50


def test_it_needs_no_index(pipeline: Pipeline):
    holding(pipeline, CLINIC, "stato = 'A'", "stato='A'")
    checked(pipeline)
    shutil.rmtree(pipeline.runtime.settings.home / "index", ignore_errors=True)
    (pipeline.runtime.settings.home / "index").write_text("no directory")
    found = checks(pipeline.run("apply_edits", CLINIC))["near_duplicates"]
    assert found.metadata["same_but_for_form"].value == 1
