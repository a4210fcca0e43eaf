"""The check of what cards depend on: it names cards, and changes none."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from memory_pipeline.archive.cards import create
from memory_pipeline.cards import Dependency
from tests.archives import Archive
from tests.curating import CLINIC, WARD, a_card, a_workspace
from tests.dagster.conftest import Pipeline, checks


@pytest.fixture
def clinic(pipeline: Pipeline) -> Archive:
    """A workspace with a card on a table, one on a column that is not there, and one on no object."""
    a_workspace(pipeline.runtime, CLINIC)
    there, gone = Dependency("", "", "patient"), Dependency("", "", "patient", "sex")
    contents = [a_card(subject="1", dependencies=(there,)), a_card(subject="2", dependencies=(there, gone)), a_card()]
    with pipeline.runtime.database.transaction(CLINIC, writing=True) as tx:
        create(tx, contents, origin="hand", principal="tester")
    return Archive(pipeline.runtime, CLINIC)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "clinic.sqlite"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE Patient (id INTEGER)")
    connection.close()
    return file


def configured(monkeypatch, **urls: str) -> None:
    monkeypatch.setenv("MEMORY_CATALOG_URLS", json.dumps(urls))


def checked(pipeline: Pipeline):
    result = pipeline.run("apply_edits", CLINIC)
    assert result.success
    return checks(result)["dependencies_present"]


def test_the_cards_whose_objects_are_gone_are_named_and_stay(pipeline: Pipeline, clinic: Archive, file, monkeypatch):
    configured(monkeypatch, clinic=f"sqlite:///{file}")
    before = clinic.rows("SELECT * FROM card ORDER BY card_id")
    check = checked(pipeline)
    assert (check.passed, check.severity.value) == (False, "WARN")
    assert check.description == "1 object(s) of 2 are gone"
    assert check.metadata["look_at"].value == [
        {"workspace": CLINIC, "gone": "column patient.sex", "cards": ["mem-0002"]}
    ]
    assert clinic.rows("SELECT * FROM card ORDER BY card_id") == before
    with sqlite3.connect(file) as connection:
        connection.execute("ALTER TABLE Patient ADD sex TEXT")
    connection.close()
    assert checked(pipeline).passed


def test_where_no_database_is_configured_it_says_so_and_passes(pipeline: Pipeline, clinic: Archive):
    check = checked(pipeline)
    assert check.passed
    assert "no database is configured for clinic" in check.description
    assert check.metadata["not_configured"].value == [CLINIC]


def test_a_database_that_cannot_be_reached_fails_the_check_and_hides_no_other(
    pipeline: Pipeline, clinic: Archive, file, monkeypatch
):
    a_workspace(pipeline.runtime, WARD)
    with pipeline.runtime.database.transaction(WARD, writing=True) as tx:
        create(tx, [a_card(dependencies=(Dependency("", "", "gone"),))], origin="hand", principal="tester")
    configured(monkeypatch, clinic="postgresql+psycopg://reader:pa55word@127.0.0.1:1/dwh", ward=f"sqlite:///{file}")
    check = checked(pipeline)
    assert (check.passed, check.severity.value) == (False, "ERROR")
    assert "could not look at clinic" in check.description
    assert check.metadata["look_at"].value == [{"workspace": WARD, "gone": "table gone", "cards": ["mem-0001"]}]
    assert "pa55word" not in str(check)
