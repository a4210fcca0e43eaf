"""What cards depend on, looked for in real databases: PostgreSQL and SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from memory_pipeline import catalog
from memory_pipeline.archive import cards
from memory_pipeline.archive.workspaces import make
from memory_pipeline.cards import CardContent, Dependency, Family
from memory_pipeline.catalog import Comparison, compare
from memory_pipeline.errors import CatalogUnavailable, UnknownWorkspace
from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import Settings
from tests.archives import connected
from tests.conftest import drop_database, in_database, make_database

W = "clinic"


@pytest.fixture
def postgresql(postgres, superuser) -> Iterator[tuple[str, SecretStr]]:
    """A database as a warehouse has it: its name, and a URL."""
    name = make_database(superuser, owner="memory_owner")
    url = in_database(postgres.owner, name)
    with connected(url) as connection:
        connection.execute("CREATE SCHEMA dwh")
        connection.execute('CREATE TABLE dwh.patient (id integer, "FlagAttivo" boolean)')
        connection.execute('CREATE TABLE dwh."Patient" (id integer, only_here integer)')
        connection.execute("CREATE VIEW dwh.active AS SELECT id FROM dwh.patient")
        connection.execute("CREATE MATERIALIZED VIEW dwh.counted AS SELECT count(*) AS n FROM dwh.patient")
        connection.execute("CREATE TABLE public.visit (id integer, day date) PARTITION BY RANGE (day)")
    yield name, url
    drop_database(superuser, name)


@pytest.fixture
def sqlite(tmp_path: Path) -> SecretStr:
    file = tmp_path / "clinic.sqlite"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE Patient (id INTEGER, flag_attivo INTEGER)")
        connection.execute("CREATE VIEW active AS SELECT id FROM Patient")
    connection.close()
    return SecretStr(f"sqlite:///{file}")


def world(settings: Settings, url: SecretStr | None, *dependencies: Dependency) -> Runtime:
    """A workspace with one card for each dependency, and its database."""
    urls = {} if url is None else {W: url}
    runtime = Runtime(settings.model_copy(update={"catalog_urls": urls}))
    make(runtime.database, W, language="italian", principal="tester")
    contents = [CardContent(Family.CONCEPT, subject=str(d), detail="x", dependencies=(d,)) for d in dependencies]
    with runtime.database.transaction(W, writing=True) as tx:
        cards.create(tx, contents, origin="hand", principal="tester")
    return runtime


def missing(runtime: Runtime) -> dict[str, tuple[str, ...]]:
    comparison = compare(runtime, W)
    assert comparison is not None
    return {str(each): each.card_ids for each in comparison.missing}


def test_postgresql_has_tables_views_and_columns(settings, postgresql):
    name, url = postgresql
    there = [
        Dependency(name),
        Dependency(name, "dwh"),
        Dependency(name, "dwh", "patient"),
        Dependency("", "dwh", "patient", "id"),
        Dependency(name, "dwh", "active", "id"),
        Dependency(name, "dwh", "counted", "n"),
        Dependency(name, "", "visit", "day"),
        Dependency("", "", "active"),
    ]
    with world(settings, url, *there) as runtime:
        assert compare(runtime, W) == Comparison(objects=8, missing=())


def test_what_is_gone_is_named_down_to_the_level_that_is_not_there_with_its_cards(settings, postgresql):
    name, url = postgresql
    gone = [
        Dependency("old_dwh", "dwh", "patient"),
        Dependency(name, "mart", "patient", "id"),
        Dependency(name, "dwh", "fact_visit"),
        Dependency(name, "dwh", "fact_visit", "id"),
        Dependency(name, "dwh", "patient", "sex"),
        Dependency(name, "dwh", "patient"),
    ]
    with world(settings, url, *gone) as runtime:
        assert missing(runtime) == {
            "database old_dwh": ("mem-0001",),
            f"schema {name}.mart": ("mem-0002",),
            f"table {name}.dwh.fact_visit": ("mem-0003", "mem-0004"),
            f"column {name}.dwh.patient.sex": ("mem-0005",),
        }


def test_a_name_is_compared_exactly_first_and_then_without_its_case(settings, postgresql):
    name, url = postgresql
    dependencies = [
        Dependency(name.upper(), "DWH", "ACTIVE", "ID"),
        Dependency(name, "dwh", "patient", "flagattivo"),
        Dependency(name, "dwh", "Patient", "only_here"),
        Dependency(name, "dwh", "patient", "only_here"),
    ]
    with world(settings, url, *dependencies) as runtime:
        assert missing(runtime) == {f"column {name}.dwh.patient.only_here": ("mem-0004",)}


def test_sqlite_has_tables_and_columns_and_nothing_above_them(settings, sqlite):
    dependencies = [
        Dependency("clinic_dwh", "public", "patient", "Flag_Attivo"),
        Dependency("clinic_dwh", "public", "active", "id"),
        Dependency("clinic_dwh", "public", "patient", "sex"),
        Dependency("clinic_dwh", "public", "visit"),
    ]
    with world(settings, sqlite, *dependencies) as runtime:
        assert missing(runtime) == {
            "column clinic_dwh.public.patient.sex": ("mem-0003",),
            "table clinic_dwh.public.visit": ("mem-0004",),
        }


def test_each_schema_is_reflected_once_however_many_cards_depend_on_it(settings, postgresql, monkeypatch):
    name, url = postgresql
    calls = []
    inspector = catalog.inspect

    def watched(connection):
        found = inspector(connection)
        for method in ("get_table_names", "get_multi_columns", "get_schema_names"):
            real = getattr(found, method)
            monkeypatch.setattr(found, method, lambda *a, m=method, r=real, **k: calls.append(m) or r(*a, **k))
        return found

    monkeypatch.setattr(catalog, "inspect", watched)
    dependencies = [Dependency(name, "dwh", "patient", f"c{n}") for n in range(40)]
    with world(settings, url, *dependencies) as runtime:
        assert len(missing(runtime)) == 40
    assert sorted(calls) == ["get_multi_columns", "get_schema_names", "get_table_names"]


def test_without_a_database_nothing_is_compared(settings):
    with world(settings, None, Dependency("", "", "gone")) as runtime:
        assert compare(runtime, W) is None


def test_without_a_dependency_no_database_is_asked(settings):
    with world(settings, SecretStr("postgresql+psycopg://127.0.0.1:1/nothing")) as runtime:
        assert compare(runtime, W) == Comparison(0, ())


def test_an_unknown_workspace_is_said(settings, sqlite):
    with (
        Runtime(settings.model_copy(update={"catalog_urls": {"nowhere": sqlite}})) as runtime,
        pytest.raises(UnknownWorkspace),
    ):
        compare(runtime, "nowhere")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql+psycopg://reader:pa55word@127.0.0.1:1/nothing",
        "postgresql+nosuchdriver://reader:pa55word@127.0.0.1/nothing",
        "nosuchdatabase://reader:pa55word@127.0.0.1/nothing",
        "mysql+pymysql://reader:pa55word@127.0.0.1/nothing",
    ],
)
def test_a_database_that_cannot_be_reached_is_an_error_without_its_secret(settings, url):
    with (
        world(settings, SecretStr(url), Dependency("", "", "patient")) as runtime,
        pytest.raises(CatalogUnavailable) as caught,
    ):
        compare(runtime, W)
    assert "'clinic' cannot be looked at" in str(caught.value)
    assert "pa55word" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_driver_that_repeats_the_password_is_not_quoted(settings, monkeypatch):
    def talkative(url, **_):
        raise RuntimeError(f"no connection to {url.render_as_string(hide_password=False)}")

    monkeypatch.setattr(catalog, "create_engine", talkative)
    url = SecretStr("postgresql+psycopg://reader:pa55word@127.0.0.1/nothing")
    with (
        world(settings, url, Dependency("", "", "patient")) as runtime,
        pytest.raises(CatalogUnavailable, match=r"\*\*\*@127") as caught,
    ):
        compare(runtime, W)
    assert "pa55word" not in str(caught.value)


def test_a_file_that_is_not_there_is_an_error_and_is_not_made(settings, tmp_path):
    file = tmp_path / "none.sqlite"
    with (
        world(settings, SecretStr(f"sqlite:///{file}"), Dependency("", "", "patient")) as runtime,
        pytest.raises(CatalogUnavailable, match=r"there is no file .*none\.sqlite"),
    ):
        compare(runtime, W)
    assert not file.exists()


def test_a_file_that_is_no_database_is_an_error(settings, tmp_path):
    file = tmp_path / "text.sqlite"
    file.write_text("this is no database at all, only a few words of text\n" * 20)
    with (
        world(settings, SecretStr(f"sqlite:///{file}"), Dependency("", "", "patient")) as runtime,
        pytest.raises(CatalogUnavailable, match="not a database"),
    ):
        compare(runtime, W)
