"""Migrations: from nothing, again, two at once, and what is said about a schema that does not fit."""

from __future__ import annotations

import subprocess
import sys
import threading
from shutil import copytree

import pytest
from pydantic import SecretStr
from sqlalchemy import NullPool, create_engine, make_url
from sqlalchemy.dialects.postgresql import asyncpg

from memory_pipeline.archive import listing, workspaces
from memory_pipeline.archive import migrate as migrations
from memory_pipeline.archive.listing import ListRequest
from memory_pipeline.archive.migrate import migrate
from memory_pipeline.archive.queries import SCHEMA_REVISION, files, load
from memory_pipeline.errors import InvalidSettings, SchemaOutOfDate
from memory_pipeline.runtime import Runtime
from tests.archives import connected
from tests.conftest import drop_database, in_database, make_database

STATEMENTS = [
    (file.name.removesuffix(".sql"), name)
    for file in files("memory_pipeline.archive.queries").iterdir()
    if file.name.endswith(".sql")
    for name in load(file.name.removesuffix(".sql"))
]


def names(settings) -> list[str]:
    with Runtime(settings) as runtime:
        return workspaces.names(runtime.database)


def as_role(url: SecretStr, role: str) -> SecretStr:
    return SecretStr(make_url(url.get_secret_value()).set(username=role).render_as_string(hide_password=False))


def tables(settings) -> dict[str, int]:
    with connected(settings.owner_url) as owner:
        found = owner.execute(
            "SELECT relname, oid FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
        ).fetchall()
    return dict(found)


def test_the_first_migration_makes_every_table(blank_settings):
    assert migrate(blank_settings.owner_url, blank_settings.database_url) == SCHEMA_REVISION
    assert set(tables(blank_settings)) == {
        "workspace",
        "workspace_grant",
        "session_reading",
        "ledger_fault",
        "session",
        "decision",
        "card_number",
        "card",
        "question",
        "card_source",
        "card_link",
        "card_dependency",
        "card_literal",
        "embedding_identity",
        "projection",
        "embedding",
        "admin_edit",
        "last_audit",
        "backlog_sample",
        "alembic_version",
    }
    assert names(blank_settings) == []


def test_a_further_migration_changes_nothing(settings):
    before = tables(settings)
    assert migrate(settings.owner_url, settings.database_url) == SCHEMA_REVISION
    assert tables(settings) == before


def test_a_migration_of_an_archive_in_use_keeps_its_cards_and_searches_them_as_a_new_one(blank_settings, monkeypatch):
    with monkeypatch.context() as first:
        first.setattr(migrations, "SCHEMA_REVISION", "0001")
        migrate(blank_settings.owner_url, blank_settings.database_url)
    with connected(blank_settings.owner_url) as owner:
        owner.execute("INSERT INTO workspace (workspace, language, created_by) VALUES ('clinic', 'german', 'anna')")
        owner.execute(
            "INSERT INTO card (workspace, card_id, family, origin, subject, text_key, fingerprint, updated_by) "
            "VALUES ('clinic', 'mem-0001', 'concept', 'hand', 'Straße l’età', 'k', 'f', 'anna')"
        )
    migrate(blank_settings.owner_url, blank_settings.database_url)
    with Runtime(blank_settings) as runtime, runtime.database.transaction("clinic") as tx:
        page = listing.list_cards(tx, runtime.identity.hash, ListRequest(text="strasse l'eta"))
    assert [(card.card_id, card.title, card.version) for card in page.cards] == [("mem-0001", "Straße l’età", 1)]


def test_two_migrations_at_once_are_as_good_as_one(blank_settings):
    program = (
        "import sys; from pydantic import SecretStr; from memory_pipeline.archive.migrate import migrate; "
        "print(migrate(SecretStr(sys.argv[1]), SecretStr(sys.argv[2])))"
    )
    urls = [blank_settings.owner_url.get_secret_value(), blank_settings.database_url.get_secret_value()]
    command = [sys.executable, "-c", program, *urls]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for _ in "ab"]
    assert [process.communicate()[0].strip() for process in running] == [SCHEMA_REVISION] * 2
    assert names(blank_settings) == []


def test_an_interrupted_migration_leaves_nothing_behind(blank_settings, monkeypatch):
    monkeypatch.setattr(migrations, "_grant", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        migrate(blank_settings.owner_url, blank_settings.database_url)
    assert tables(blank_settings) == {}


def test_an_archive_that_nobody_migrated_says_what_to_run(blank_settings):
    with pytest.raises(SchemaOutOfDate, match="no tables yet: run `memory-pipeline migrate`"):
        names(blank_settings)


@pytest.mark.parametrize("revision", ["0000", "9999"])
def test_an_archive_of_another_revision_is_refused(settings, owner, revision):
    owner.execute("UPDATE alembic_version SET version_num = %s", [revision])
    with pytest.raises(SchemaOutOfDate, match=f"at revision {revision}, this library expects {SCHEMA_REVISION}"):
        names(settings)


def test_an_archive_without_a_revision_is_refused(settings, owner):
    owner.execute("DELETE FROM alembic_version")
    with pytest.raises(SchemaOutOfDate, match="at revision none"):
        names(settings)


def test_a_table_that_is_dropped_under_a_running_process_is_an_outdated_schema(database, owner):
    assert workspaces.names(database) == []
    owner.execute("ALTER TABLE workspace RENAME TO place_of_work")
    with pytest.raises(SchemaOutOfDate, match="run `memory-pipeline migrate`"):
        workspaces.names(database)


def test_a_schema_of_the_future_is_not_migrated(settings, owner):
    owner.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(SchemaOutOfDate, match="does not know"):
        migrate(settings.owner_url, settings.database_url)


def test_one_role_for_both_is_refused(settings):
    with pytest.raises(InvalidSettings, match="a role of its own"):
        migrate(settings.owner_url, settings.owner_url)


def test_a_runtime_role_that_does_not_exist_is_named(settings):
    with pytest.raises(InvalidSettings, match='"nobody_at_all" does not exist'):
        migrate(settings.owner_url, as_role(settings.database_url, "nobody_at_all"))


def test_an_owner_who_may_make_no_tables_is_told_so(blank_settings):
    with pytest.raises(InvalidSettings, match="permission denied"):
        migrate(blank_settings.database_url, blank_settings.owner_url)


def test_a_checkout_may_stand_in_a_directory_with_any_name(blank_settings, monkeypatch, tmp_path):
    monkeypatch.setattr(migrations, "MIGRATIONS", copytree(migrations.MIGRATIONS, tmp_path / "100% our own" / "sql"))
    assert migrate(blank_settings.owner_url, blank_settings.database_url) == SCHEMA_REVISION


def test_without_a_checkout_there_is_nothing_to_migrate_from(blank_settings, monkeypatch, tmp_path):
    monkeypatch.setattr(migrations, "MIGRATIONS", tmp_path)
    with pytest.raises(InvalidSettings, match="run this from a checkout"):
        migrate(blank_settings.owner_url, blank_settings.database_url)


def test_a_migration_waits_for_another_one(blank_settings, owner_of_blank):
    with owner_of_blank.transaction():
        owner_of_blank.execute("SELECT pg_advisory_xact_lock(hashtextextended('memory-pipeline migrate', 0))")
        waiting = threading.Thread(target=migrate, args=(blank_settings.owner_url, blank_settings.database_url))
        waiting.start()
        waiting.join(0.3)
        assert waiting.is_alive()
        assert tables(blank_settings) == {}
    waiting.join()
    assert tables(blank_settings)


@pytest.fixture
def owner_of_blank(blank_settings):
    with connected(blank_settings.owner_url) as connection:
        yield connection


@pytest.mark.parametrize(("file", "name"), STATEMENTS)
def test_every_statement_fits_the_schema(migrated_connection, file, name):
    statement = load(file)[name].compile(dialect=asyncpg.dialect())  # which numbers parameters as PREPARE does
    migrated_connection.exec_driver_sql(f"PREPARE statement AS {statement}")
    migrated_connection.exec_driver_sql("DEALLOCATE statement")


def test_no_two_statements_of_a_file_share_a_name():
    for file in {file for file, _ in STATEMENTS}:
        lines = files("memory_pipeline.archive.queries").joinpath(f"{file}.sql").read_text().splitlines()
        assert len(load(file)) == sum(line.startswith("-- name:") for line in lines)


def test_every_statement_of_a_workspace_names_it():
    """Row security would hide what a statement forgot, but an index is only used for what it asks for."""
    of_workspaces = [key for key in STATEMENTS if key[0] != "roles"]  # which reads PostgreSQL's own catalogue
    unbound = {key for key in of_workspaces if ":workspace" not in load(key[0])[key[1]].text}
    assert unbound == {("grants", "held_by"), ("workspaces", "names"), ("workspaces", "remove")}


@pytest.fixture(scope="module")
def migrated_connection(postgres, superuser):
    name = make_database(superuser, owner="memory_owner")
    owner = in_database(postgres.owner, name)
    migrate(owner, in_database(postgres.archive, name))
    engine = create_engine(owner.get_secret_value(), poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        yield connection
    drop_database(superuser, name)


def test_text_with_per_cent_signs_and_colons_is_only_text(archive):
    archive.given()
    assert archive.change("UPDATE card SET detail = :text", text="100 % of :seq, '%s' and ::text \\ $1") == 2
    assert archive.card()["detail"] == "100 % of :seq, '%s' and ::text \\ $1"
    assert archive.column("SELECT '50 %'") == ["50 %"]
