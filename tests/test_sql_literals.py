from __future__ import annotations

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st

from memory_pipeline.sql_literals import sql_literals


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("city = 'Roma'", {"roma"}),
        ("'Roma' = city OR (NOT 'Pisa' <> city)", {"roma", "pisa"}),
        ("city <> 'Roma' AND city IS DISTINCT FROM 'Pisa'", {"roma", "pisa"}),
        ("city IN ('Roma', 'Reggio Emilia')", {"roma", "reggio emilia"}),
        ("city NOT IN (lower('Roma'), trim(lower('Pisa')))", {"roma", "pisa"}),
        ("(city, sex) IN (('Roma', 'male'), ('Pisa', 'female'))", {"roma", "male", "pisa", "female"}),
        ("city = ANY(ARRAY['Roma', 'Pisa'])", {"roma", "pisa"}),
        ("city BETWEEN 'Pisa' AND 'Roma'", {"pisa", "roma"}),
        ("name LIKE '%Rossi%' OR name ILIKE 'De%Bianchi%'", {"rossi", "de", "bianchi"}),
        ("name ~ 'rossi' OR name SIMILAR TO 'verdi'", {"rossi", "verdi"}),
        ("city = 'L''Aquila' AND place = ' «Forlì» '", {"l'aquila", "forlì"}),
        ("city = E'Roma' AND place = $$Pisa$$ AND other = N'Bari'", {"roma", "pisa", "bari"}),
        ("city = 'Roma'::text AND place = CAST('Pisa' AS text)", {"roma", "pisa"}),
        ("day > DATE '2023-01-01'", {"2023-01-01"}),
        ("CASE city WHEN 'Roma' THEN 'here' ELSE 'there' END = 1", {"roma"}),
        ("data->>'status' = 'active'", {"active"}),
        ("state = 'OR' OR answer = 'no'", {"or", "no"}),
        ("city = 'Roma' -- and not 'Pisa'\n/* = 'Bari' */", {"roma"}),
        ("sex = 'F' AND code = '' AND name LIKE '%'", set()),
        (f"note = '{'x' * 201}' AND text = '{'a ' * 9}'", set()),
    ],
)
def test_texts_that_columns_are_compared_with_are_literals(condition, found):
    assert sql_literals(f"SELECT * FROM t WHERE {condition}", "postgres") == found


@pytest.mark.parametrize(
    "expression",
    [
        "date_trunc('month', day)",
        "day >= date_trunc('month', now()) - INTERVAL '1 month'",
        "to_char(day, 'Month') = code",
        "day AT TIME ZONE 'Europe/Rome'",
        "CASE WHEN age < 18 THEN 'minor' ELSE 'adult' END",
        "'Total' AS label",
        "'Total'",
        "coalesce(name, 'unknown')",
        "string_agg(name, ' and ')",
        "age IN (SELECT max(round(age, 'up')) FROM t)",
    ],
)
def test_what_is_only_formatted_or_returned_is_no_literal(expression):
    assert not sql_literals(f"SELECT {expression} FROM t", "postgres")


@pytest.mark.parametrize("dialect", ["postgres", "sqlite", "mysql"])
def test_double_quotes_hold_a_value_only_where_one_is_expected(dialect):
    sql = 'SELECT "first name" FROM t WHERE "town" = "Roma" AND "sex" IN ("male", "female") AND t."id" = u."key"'
    assert sql_literals(sql, dialect) == {"roma", "male", "female"}


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_a_column_whose_quoted_name_is_compared_is_no_literal(dialect):
    sql = 'SELECT * FROM t WHERE "town" = \'Roma\' AND lower("first name") = \'Anna\' AND "id" = u."key"'
    assert sql_literals(sql, dialect) == {"roma", "anna"}


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("", set()),
        ("SELECT", set()),
        ("not SQL (at all ) ) = 'Roma'", {"roma"}),
        ("SELECT * FROM t WHERE city = 'Roma' AND place = 'Pis", {"roma"}),
        ("SELECT * FROM t WHERE city = 'Roma' AND place = \"he said 'Pis", {"roma"}),
        ("SELECT * FROM t WHERE city = 'Roma' AND \x00 place = 'Pisa\x00e Lucca'", {"roma", "pisa e lucca"}),
        ("WHERE city = 'Ro\ud800ma'", {"ro ma"}),
    ],
)
def test_sql_that_cannot_be_parsed_has_literals_too(sql, found):
    assert sql_literals(sql, "postgres") == found


def test_an_escape_that_stands_for_nul_is_kept_out_of_the_archive():
    assert sql_literals(r"SELECT * FROM t WHERE city = 'Roma\0Nord'", "mysql") == {"roma nord"}


def test_no_dialect_is_too_strange():
    assert sql_literals("SELECT * FROM t WHERE city = 'Roma'", "klingon") == frozenset()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM t WHERE city IN (" + ",".join(f"'city {n}'" for n in range(100_000)) + ")",
        "SELECT * FROM t WHERE city = 'city 1' AND note = '" + "-" * 10**6 + "'",
        "SELECT * FROM t WHERE city = 'city 1' OR " + "(" * 10**6,
        "SELECT * FROM t WHERE city = 'city 1' OR " + "'\"" * 10**6,
    ],
)
def test_of_very_long_sql_the_beginning_is_read(sql, monkeypatch):
    read, tokenize = [], sqlglot.tokenize
    monkeypatch.setattr(sqlglot, "tokenize", lambda text, **of: read.append(len(text)) or tokenize(text, **of))
    assert "city 1" in sql_literals(sql, "postgres")
    assert max(read) <= 50_000
    assert len(read) <= 4


@given(st.text("'\"`()[],=%ab .\\$\x00", max_size=60), st.sampled_from(["postgres", "mysql", "sqlite", "bigquery"]))
def test_whatever_is_written_is_survived(sql, dialect):
    assert all("\x00" not in literal for literal in sql_literals(sql, dialect))
