"""Each fault of the archive's server, schema and roles is found, and said with what to do."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pydantic import SecretStr

from memory_pipeline.archive.migrate import migrate
from memory_pipeline.archive.queries import SCHEMA_REVISION
from memory_pipeline.archive.roles import Server
from memory_pipeline.doctor import State
from memory_pipeline.doctor.archive import judged_server
from memory_pipeline.settings import Examined
from tests.archives import connected
from tests.doctor.conftest import CANARY, as_role, only, report_of, silent_server

FAULT, OK, WARNING, NOT_APPLICABLE = State.FAULT, State.OK, State.WARNING, State.NOT_APPLICABLE
SERVER = Server("18.1", 180001, "UTF8", "memory", "here")


def test_an_archive_that_is_as_it_should_be_is_ok(examined):
    report = examined()
    names = ("archive", "schema", "runtime role", "owner", "languages")
    assert [only(report, name)[0] for name in names] == [OK] * 5
    assert "PostgreSQL 18" in only(report, "archive")[1]
    assert SCHEMA_REVISION in only(report, "schema")[1]


def test_a_server_has_to_be_new_enough_and_to_keep_texts_in_utf8():
    [old] = judged_server(replace(SERVER, version="14.2", number=140002))
    [foreign] = judged_server(replace(SERVER, encoding="LATIN1"))
    assert (old.state, foreign.state) == (FAULT, FAULT)
    assert "15 or newer" in old.do
    assert "ENCODING 'UTF8'" in foreign.do
    assert [found.state for found in judged_server(replace(SERVER, number=150000))] == [OK]


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql+psycopg://memory_runtime:{CANARY}@127.0.0.1:1/memory",
        f"postgresql+psycopg://memory_runtime:{CANARY}@nowhere.invalid/memory",
    ],
)
def test_a_server_that_is_away_is_a_fault_and_what_needs_it_is_not_looked_at(examined, url):
    report = examined(database_url=SecretStr(url))
    state, found, do = only(report, "archive")
    assert (state, CANARY in found) == (FAULT, False)
    assert "no connection to PostgreSQL" in found
    assert "MEMORY_DATABASE_URL" in do
    for name in ("schema", "runtime role", "languages", "collections"):
        assert only(report, name)[0] is NOT_APPLICABLE
    assert only(report, "model")[0] is OK


def test_a_server_that_never_answers_is_a_fault_after_a_while(settings):
    with silent_server() as port:
        hanging = SecretStr(f"postgresql+psycopg://memory_runtime:{CANARY}@127.0.0.1:{port}/memory")
        report = report_of(Examined(settings.model_copy(update={"database_url": hanging})), patience=0.5)
    assert only(report, "archive")[:2] == (FAULT, "no answer within 0.5 s")


@pytest.mark.parametrize("changed", [{"username": "nobody_at_all"}, {"database": "no_such_database"}])
def test_a_role_or_a_database_that_is_not_there_is_named(examined, settings, changed):
    report = examined(database_url=as_role(settings.database_url, password=CANARY, **changed))
    state, found, _ = only(report, "archive")
    assert state is FAULT
    assert next(iter(changed.values())) in found
    assert CANARY not in found


@pytest.mark.parametrize(
    ("revision", "do"), [("0001", "run `memory-pipeline migrate`"), ("9999", "install the library that belongs")]
)
def test_a_schema_that_is_older_or_newer_is_told_apart(examined, owner, revision, do):
    owner.execute("UPDATE alembic_version SET version_num = %s", [revision])
    state, found, _ = only(report := examined(), "schema")
    assert state is FAULT
    assert f"at revision {revision}, this library expects {SCHEMA_REVISION}: {do}" in found
    assert only(report, "collections")[0] is NOT_APPLICABLE


def test_an_archive_without_tables_is_told(blank_settings):
    report = report_of(Examined(blank_settings))
    state, found, do = only(report, "schema")
    assert state is FAULT
    assert "no tables yet" in found
    assert "memory-pipeline migrate" in do
    assert only(report, "owner")[:1] == (OK,)


@pytest.mark.parametrize(
    ("role", "why"), [("postgres", "is a superuser"), ("memory_owner", "and could change the schema")]
)
def test_a_runtime_role_that_nothing_binds_is_a_fault(examined, settings, role, why):
    state, found, do = only(examined(database_url=as_role(settings.database_url, username=role)), "runtime role")
    assert state is FAULT
    assert role in found
    assert why in found
    assert "MEMORY_DATABASE_URL" in do


def test_a_role_that_passes_row_security_by_is_a_fault(examined, settings, superuser):
    superuser.execute("CREATE ROLE passing LOGIN BYPASSRLS")
    url = as_role(settings.database_url, username="passing")
    superuser.execute(
        "GRANT CONNECT ON DATABASE {} TO passing".format(
            settings.database_url.get_secret_value().split("/")[3].split("?")[0]
        ).encode()
    )
    migrate(settings.owner_url, url)
    state, found, _ = only(examined(database_url=url), "runtime role")
    assert (state, found) == (FAULT, "passing passes row security by (BYPASSRLS)")


@pytest.mark.parametrize(
    ("statement", "state", "why"),
    [
        ("REVOKE DELETE, UPDATE ON card FROM memory_runtime", FAULT, "lacks UPDATE, DELETE on card"),
        ("REVOKE SELECT ON workspace FROM memory_runtime", FAULT, "lacks SELECT on workspace"),
        ("ALTER TABLE card DISABLE ROW LEVEL SECURITY", FAULT, "is not bound by row security on card"),
        ("GRANT UPDATE ON workspace TO memory_runtime", WARNING, "may do more than it needs with workspace"),
        ("GRANT memory_owner TO memory_runtime", FAULT, "could change the schema"),
    ],
)
def test_a_right_too_few_or_too_many_is_found(examined, settings, owner, superuser, statement, state, why):
    (superuser if "memory_owner" in statement else owner).execute(statement)
    try:
        found = examined()["runtime role"]
    finally:
        superuser.execute("REVOKE memory_owner FROM memory_runtime")
    assert [each.state for each in found] == [state]
    assert why in found[0].found


class TestTheOwner:
    def test_need_not_be_named(self, examined):
        assert only(examined(owner_url=None), "owner")[0] is NOT_APPLICABLE

    def test_is_no_superuser(self, examined, settings):
        state, found, _ = only(examined(owner_url=as_role(settings.owner_url, username="postgres")), "owner")
        assert (state, found) == (FAULT, "postgres is a superuser")

    def test_may_make_tables(self, examined, settings):
        state, found, do = only(examined(owner_url=settings.database_url), "owner")
        assert (state, found) == (FAULT, "memory_runtime may not make tables in the schema public")
        assert "MEMORY_OWNER_URL" in do

    def test_owns_the_tables(self, examined, settings, superuser):
        with connected(as_role(settings.owner_url, username="postgres")) as connection:
            connection.execute("ALTER TABLE last_audit OWNER TO postgres")
        state, found, _ = only(examined(), "owner")
        assert (state, found) == (FAULT, "memory_owner does not own last_audit")

    def test_is_of_the_same_database(self, examined, settings, migrated_template):
        found = examined(owner_url=as_role(settings.owner_url, database=migrated_template))["owner"]
        assert [each.state for each in found] == [OK, FAULT]
        assert "different databases" in found[1].found


def test_a_workspace_of_a_language_that_is_not_known_is_named(examined, owner):
    owner.execute("INSERT INTO workspace (workspace, language, created_by) VALUES ('clinic', 'klingon', 'me')")
    state, found, _ = only(examined(), "languages")
    assert (state, found) == (FAULT, "clinic is in klingon, which is not supported")


class TestDagstersStorage:
    def test_is_another_database(self, settings, dagster_settings, examined):
        report = report_of(Examined(dagster_settings))
        assert only(report, "Dagster's storage")[0] is OK

    def test_is_not_the_archives(self, settings, examined):
        same = as_role(settings.database_url, drivername="postgresql+psycopg2")
        state, found, do = only(examined(dagster_url=same), "Dagster's storage")
        assert state is FAULT
        assert "is the archive's" in found
        assert "MEMORY_DAGSTER_URL" in do

    def test_is_told_when_it_is_away(self, examined):
        away = SecretStr(f"postgresql+psycopg2://memory_dagster:{CANARY}@127.0.0.1:1/dagster")
        state, found, _ = only(examined(dagster_url=away), "Dagster's storage")
        assert (state, CANARY in found) == (FAULT, False)

    def test_need_not_be_named(self, examined):
        assert only(examined(), "Dagster's storage")[0] is NOT_APPLICABLE
