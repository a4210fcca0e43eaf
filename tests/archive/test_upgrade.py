"""The way up from every older revision: what the archive held is kept, what is derived is filled, and recall works.

A new migration is covered as soon as its file is there.
"""

from __future__ import annotations

import signal
import subprocess
import sys

import psycopg
import pytest

from memory_pipeline import Recall
from memory_pipeline.archive import cards, queue, workspaces
from memory_pipeline.archive.migrate import migrate
from memory_pipeline.archive.queries import SCHEMA_REVISION
from memory_pipeline.errors import SchemaOutOfDate
from memory_pipeline.propagation import audit, project, rebuild
from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import Settings
from tests.archive.older import CARDS, LANGUAGE, NAMES_A_LITERAL, QUESTION, REVISIONS, an_older_archive, rows
from tests.archives import Archive, connected
from tests.curating import CLINIC, WARD, a_runtime

# What a migration may give another value: it is made from the rest.
DERIVED = {
    "alembic_version": {"version_num"},
    "card": {"search_text", "concept_keys", "fingerprint", "question_words", "named_literals"},
    "projection": {"wanted", "wanted_at", "pending"},
}
UNGUARDED = {"alembic_version", "workspace", "workspace_grant"}
"""Tables that row security does not guard: whoever asks who may do what has no workspace yet."""

MIGRATION = """
import os, signal, sys
from pydantic import SecretStr
from memory_pipeline.archive import migrate as migrations

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

moments = {"_grant": migrations, "read_unread": migrations.cards}
if len(sys.argv) > 3:
    setattr(moments[sys.argv[3]], sys.argv[3], die)
print(migrations.migrate(SecretStr(sys.argv[1]), SecretStr(sys.argv[2])))
"""


@pytest.fixture(params=REVISIONS)
def older(request: pytest.FixtureRequest, blank_settings: Settings) -> Settings:
    """Settings of an archive of each revision, the newest one among them, with two workspaces in it."""
    return of_revision(request.param, blank_settings)


@pytest.fixture
def oldest(blank_settings: Settings) -> Settings:
    return of_revision(REVISIONS[0], blank_settings)


def of_revision(revision: str, settings: Settings) -> Settings:
    with Runtime(settings) as runtime:
        an_older_archive(settings, revision, runtime.identity, CLINIC, WARD)
    return settings


def all_rows(settings: Settings) -> dict[str, list[dict[str, object]]]:
    with connected(settings.owner_url) as owner:
        return rows(owner)


def migrating(settings: Settings, *moment: str) -> subprocess.Popen[str]:
    """A migration in a process of its own, which is killed (`kill -9`) at the moment that is named."""
    urls = [settings.owner_url.get_secret_value(), settings.database_url.get_secret_value()]
    return subprocess.Popen([sys.executable, "-c", MIGRATION, *urls, *moment], stdout=subprocess.PIPE, text=True)


def test_the_newest_revision_is_the_one_that_the_library_expects():
    assert REVISIONS[-1] == SCHEMA_REVISION


def test_every_row_is_kept(older):
    before = all_rows(older)
    assert migrate(older.owner_url, older.database_url) == SCHEMA_REVISION
    after = all_rows(older)
    for table, kept in before.items():
        columns = {column for row in kept for column in row} - DERIVED.get(table, set())
        for row, was in zip(after[table], kept, strict=bool(kept)):
            assert {name: row[name] for name in columns} == {name: was[name] for name in columns}, table


def test_what_is_derived_of_a_card_is_what_a_new_card_has(older):
    migrate(older.owner_url, older.database_url)
    with Runtime(older) as runtime:
        new = Archive(runtime, "new")
        workspaces.make(runtime.database, "new", language=LANGUAGE, principal="anna")
        with runtime.database.transaction("new") as tx:
            cards.insert(tx, CARDS, origin="hand", principal="anna")
        assert derived(Archive(runtime, CLINIC)) == derived(new)


def derived(archive: Archive) -> list[dict[str, object]]:
    """What the archive says of its cards and their literals, but for how they came to be."""
    told = {"workspace", "version", "origin", "edited", "flags", "text_key", "created_at", "updated_at", "updated_by"}
    solved = "coalesce(question_words, '{}') AS question_words"  # nobody reads those of other families
    found = [
        *archive.rows(f"SELECT *, {solved} FROM card ORDER BY card_id"),
        *archive.rows("SELECT * FROM card_literal ORDER BY literal"),
    ]
    return [{name: value for name, value in row.items() if name not in told} for row in found]


def test_the_points_whose_texts_changed_are_pending_and_no_other(older):
    migrate(older.owner_url, older.database_url)
    with Runtime(older) as runtime:
        for archive in (Archive(runtime, CLINIC), Archive(runtime, WARD)):
            assert archive.pending() == {NAMES_A_LITERAL}
            assert archive.column("SELECT identity FROM embedding_identity WHERE live") == [archive.identity]


def test_the_runtime_role_sees_its_own_workspace_of_every_table_and_changes_nothing_else(older):
    migrate(older.owner_url, older.database_url)
    held = all_rows(older)
    with connected(older.database_url) as stranger:
        assert {table for table in held if seen(stranger, table)} == UNGUARDED
        stranger.execute("SELECT set_config('memory.workspace', 'ward', false)")
        for table in held.keys() - UNGUARDED:
            assert stranger.execute("SELECT row_security_active(%s)", [table]).fetchone() == (True,), table
            assert seen(stranger, table) <= {WARD}, table
            assert bool(seen(stranger, table)) == bool(held[table]), table
            assert stranger.execute(f"UPDATE {table} SET workspace = workspace").rowcount == len(held[table]) / 2
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            stranger.execute("DELETE FROM workspace")


def seen(connection: psycopg.Connection, table: str) -> set[str | None]:
    """The workspaces that a table shows to a connection; None for rows that are of none."""
    return {w for (w,) in connection.execute(f"SELECT to_jsonb(t) ->> 'workspace' FROM {table} AS t")}


def test_what_waits_is_applied_and_what_changed_is_projected_and_recalled(older):
    migrate(older.owner_url, older.database_url)
    with a_runtime(older) as runtime:
        rebuild(runtime, CLINIC)  # the index of these points was never made
        assert queue.apply_waiting(runtime.database, CLINIC, runtime.identity).applied == 1
        assert project(runtime, CLINIC).pending == 0
        assert not audit(runtime, CLINIC)
        found = Recall(runtime).search(CLINIC, QUESTION, limit=9)
        assert {hit.card_id for hit in found.hits} == {*CARDS, "mem-0010"}
        assert (found.hits[0].card_id, found.pending, found.dropped) == ("sq-0001", 0, {})


@pytest.mark.parametrize("moment", ["_grant", "read_unread"])
def test_a_migration_that_is_killed_leaves_the_older_archive_and_the_next_one_completes_it(oldest, moment):
    before = all_rows(oldest)
    with migrating(oldest, moment) as killed:
        assert killed.wait(60) == -signal.SIGKILL
    assert all_rows(oldest) == before
    assert migrate(oldest.owner_url, oldest.database_url) == SCHEMA_REVISION
    with Runtime(oldest) as runtime:
        assert Archive(runtime, WARD).pending() == {NAMES_A_LITERAL}


def test_two_migrations_of_an_older_archive_at_once_are_as_good_as_one(oldest):
    both = [migrating(oldest) for _ in "ab"]
    assert [each.communicate(timeout=60)[0].strip() for each in both] == [SCHEMA_REVISION] * 2
    with Runtime(oldest) as runtime:
        assert Archive(runtime, WARD).pending() == {NAMES_A_LITERAL}


def test_an_older_archive_is_refused_until_it_is_migrated(oldest):
    with Runtime(oldest) as runtime, pytest.raises(SchemaOutOfDate, match="run `memory-pipeline migrate`"):
        workspaces.names(runtime.database)
    migrate(oldest.owner_url, oldest.database_url)
    with Runtime(oldest) as runtime:
        assert workspaces.names(runtime.database) == [CLINIC, WARD]
