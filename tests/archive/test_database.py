"""What PostgreSQL cannot do is said as it is, and in the library's words."""

from __future__ import annotations

import pytest
from psycopg import sql
from sqlalchemy import make_url, text

from memory_pipeline.archive import database as module
from memory_pipeline.archive import workspaces
from memory_pipeline.archive.database import Database
from memory_pipeline.errors import ArchiveUnavailable
from tests.builders import WORKSPACE


@pytest.fixture
def known(database: Database) -> Database:
    workspaces.make(database, WORKSPACE, language="english", principal="tester")
    return database


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
    failing = text(f"DO $$ BEGIN RAISE 'in its own words' USING ERRCODE = '{state}'; END $$")
    with pytest.raises(ArchiveUnavailable, match=rf"{said}.*\(in its own words\)"), known.transaction(WORKSPACE) as tx:
        tx.run(failing)


def test_a_server_that_is_full_is_not_said_to_be_silent(settings, superuser):
    name = sql.Identifier(make_url(settings.database_url.get_secret_value()).database)
    superuser.execute(sql.SQL("ALTER DATABASE {} CONNECTION LIMIT 0").format(name))
    full = Database(settings.database_url)
    with pytest.raises(ArchiveUnavailable, match=r"^no connection to PostgreSQL \(.*too many connections"):
        workspaces.names(full)
    full.close()


def test_more_threads_than_connections_wait_and_are_then_told_so(known, settings, monkeypatch):
    monkeypatch.setattr(module, "_CONNECTIONS", 1)
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
