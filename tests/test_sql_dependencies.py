"""The tables and columns that a query reads."""

from __future__ import annotations

import logging

import pytest
import sqlglot

from memory_pipeline.cards import Dependency
from memory_pipeline.sql_dependencies import sql_dependencies


def names(sql: str, dialect: str = "postgres") -> set[str] | None:
    """`table` and `table.column` of what is found."""
    found = sql_dependencies(sql, dialect=dialect, database="d", schema="s")
    return None if found is None else {f"{each.table}.{each.column}".rstrip(".") for each in found}


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT 1", set()),
        ("SELECT id FROM patients", {"patients", "patients.id"}),
        ("SELECT * FROM patients", {"patients"}),
        ("SELECT p.id FROM patients p", {"patients", "patients.id"}),
        ("SELECT P.ID FROM Patients AS p", {"patients", "patients.id"}),
        ('SELECT "P"."Id" FROM "Patients" "P"', {"Patients", "Patients.Id"}),
        (
            "SELECT p.id, n FROM patients p JOIN visits v ON v.pid = p.id",
            {"patients", "patients.id", "visits", "visits.pid"},
        ),
        ("WITH x AS (SELECT id FROM patients) SELECT x.id FROM x", {"patients", "patients.id"}),
        ("WITH X AS (SELECT id FROM patients) SELECT x.id FROM x", {"patients", "patients.id"}),
        (
            "WITH x AS (SELECT id FROM patients) SELECT day FROM visits",
            {"patients", "patients.id", "visits", "visits.day"},
        ),
        (
            "WITH RECURSIVE t AS (SELECT id FROM a UNION ALL SELECT a.up FROM a JOIN t ON a.id = t.id) SELECT * FROM t",
            {"a", "a.id", "a.up"},
        ),
        ("SELECT q.n FROM (SELECT id AS n FROM patients) q", {"patients", "patients.id"}),
        (
            "SELECT p.id FROM patients p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.pid = p.pid)",
            {"patients", "patients.id", "patients.pid", "visits", "visits.pid"},
        ),
        ("SELECT a FROM x UNION SELECT b FROM y EXCEPT SELECT c FROM z", {"x", "x.a", "y", "y.b", "z", "z.c"}),
        ("SELECT g FROM generate_series(1, 3) g", set()),
        ("SELECT a FROM x; SELECT b FROM y", {"x", "x.a", "y", "y.b"}),
        ("SELECT a FROM x;\n-- the end\n", {"x", "x.a"}),
        ("CREATE TABLE z AS SELECT a FROM x", {"x", "x.a"}),
        ("INSERT INTO z SELECT a FROM x", {"x", "x.a"}),
    ],
)
def test_what_a_query_reads(sql, expected):
    assert names(sql) == expected


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT `CDSCode` FROM `Schools`",
        'SELECT "CDSCode" FROM "Schools"',
        "SELECT [CDSCode] FROM [Schools]",
        "SELECT s.CDSCode FROM Schools AS S",
    ],
)
def test_sqlite_keeps_the_spelling_and_takes_every_quote(sql):
    assert names(sql, "sqlite") == {"Schools", "Schools.CDSCode"}


def test_a_table_is_where_the_query_says_and_otherwise_where_the_session_is():
    sql = "SELECT 1 FROM elsewhere.dwh.a JOIN dwh.b ON true JOIN c ON true"
    assert sql_dependencies(sql, dialect="postgres", database="d", schema="s") == (
        Dependency("d", "dwh", "b"),
        Dependency("d", "s", "c"),
        Dependency("elsewhere", "dwh", "a"),
    )


@pytest.mark.parametrize(
    "sql",
    [
        "",
        "-- nothing",
        "SELECT FROM WHERE (",
        "SELECT 'open",
        "how many patients?",
        "patients",
        "EXPLAIN SELECT 1",
        "SELECT " + "(" * 5000 + "1" + ")" * 5000,
        "SELECT 1 " + "-- x" * 60_000,
        "\u0000",
    ],
    ids=lambda sql: sql[:20],
)
def test_what_cannot_be_parsed_is_unknown(sql):
    assert names(sql) is None


def test_a_dialect_that_nobody_knows_leaves_them_unknown():
    assert names("SELECT 1 FROM t", "klingon") is None


def test_a_parser_that_breaks_leaves_them_unknown(monkeypatch):
    monkeypatch.setattr(sqlglot.parser.Parser, "parse", lambda *_, **__: 1 / 0)
    assert names("SELECT 1 FROM t") is None


def test_nothing_is_logged_about_statements_that_nobody_knows(caplog):
    with caplog.at_level(logging.DEBUG):
        names("VACUUM FULL somewhere")
    assert caplog.records == []


def test_a_name_that_no_database_could_hold_is_left_out():
    assert names(f"SELECT id FROM {'t' * 300} JOIN patients ON true") == {"patients"}
