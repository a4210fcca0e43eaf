"""What PostgreSQL cannot do is said as it is, and in the library's words."""

from __future__ import annotations

import pytest
from psycopg import sql
from sqlalchemy import TextClause, make_url, text
from sqlalchemy.exc import InternalError

from memory_pipeline.archive import database as module
from memory_pipeline.archive import workspaces
from memory_pipeline.archive.database import Database
from memory_pipeline.errors import ArchiveUnavailable, InvalidInput
from tests.builders import WORKSPACE


@pytest.fixture
def known(database: Database) -> Database:
    workspaces.make(database, WORKSPACE, language="english", principal="tester")
    return database


def failing(state: str) -> TextClause:
    return text(f"DO $$ BEGIN RAISE 'in its own words' USING ERRCODE = '{state}'; END $$")


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("40P01", "gave this transaction up for another one"),
        ("53100", "run out of what it needs"),
        ("53200", "run out of what it needs"),
        ("57014", "stopped the work"),
        ("55P03", "could not do it"),
    ],
    ids=["deadlock", "disk full", "out of memory", "cancelled", "locked"],
)
def test_trouble_is_named_with_the_words_of_the_server(known, state, said):
    with pytest.raises(ArchiveUnavailable, match=rf"{said}.*\(in its own words\)"), known.transaction(WORKSPACE) as tx:
        tx.run(failing(state))


@pytest.mark.parametrize(
    "state",
    ["22003", "54000", "XX000"],
    ids=["out of range", "a limit of the server's", "more memory than a value may take"],
)
def test_what_the_server_cannot_take_is_the_fault_of_what_it_was_given_and_changes_nothing(known, state):
    with (
        pytest.raises(InvalidInput, match=r"cannot keep this \(in its own words\)"),
        known.transaction(WORKSPACE) as tx,
    ):
        tx.run(text("INSERT INTO card_number VALUES (:workspace, 'mem', 1)"))
        tx.run(failing(state))
    with known.transaction(WORKSPACE) as tx:
        assert tx.rows(text("SELECT * FROM card_number")) == []


def test_a_value_that_the_driver_cannot_even_send_is_one_too(known):
    with pytest.raises(InvalidInput, match="NUL"), known.transaction(WORKSPACE) as tx:
        tx.rows(text("SELECT CAST(:given AS text)"), given="\0")


def test_an_archive_that_is_damaged_is_nobody_else_s_fault(known):
    with pytest.raises(InternalError), known.transaction(WORKSPACE) as tx:
        tx.run(failing("XX001"))


def test_a_server_that_is_full_is_not_said_to_be_silent(settings, superuser):
    name = sql.Identifier(make_url(settings.database_url.get_secret_value()).database)
    superuser.execute(sql.SQL("ALTER DATABASE {} CONNECTION LIMIT 0").format(name))
    full = Database(settings.database_url)
    with pytest.raises(ArchiveUnavailable, match=r"^no connection to PostgreSQL \(.*too many connections"):
        workspaces.names(full)
    full.close()


def test_a_transaction_that_outlasts_the_closing_leaves_no_connection_open(known, settings):
    closed = Database(settings.database_url)
    with closed.transaction(WORKSPACE) as tx, closed.within(5).transaction(WORKSPACE) as beside:
        held = [each.connection.connection.dbapi_connection for each in (tx, beside)]
        closed.close()
        assert tx.rows(text("SELECT 1 AS one"))
    with closed.within(5).transaction(WORKSPACE) as tx:  # by whoever does not know yet
        held.append(tx.connection.connection.dbapi_connection)
    assert [each.closed for each in held] == [True] * 3


def test_more_threads_than_connections_wait_and_are_then_told_so(known, settings, monkeypatch):
    monkeypatch.setattr(module, "CONNECTIONS", 1)
    monkeypatch.setattr(module, "_CONNECTION_WAIT", 0.05)
    narrow = Database(settings.database_url)
    with (
        narrow.transaction(WORKSPACE),
        pytest.raises(ArchiveUnavailable, match="all 1 connections"),
        narrow.transaction(WORKSPACE),
    ):
        pass
    with narrow.transaction(WORKSPACE):
        pass  # the one that was in use is free again
    narrow.close()
