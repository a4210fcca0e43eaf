"""The runtime role can do its work and nothing else, and a URL that names another role is refused."""

from __future__ import annotations

from contextlib import closing

import pytest
from psycopg import errors
from pydantic import SecretStr
from sqlalchemy import make_url

from memory_pipeline.archive import workspaces
from memory_pipeline.archive.database import Database
from memory_pipeline.errors import ArchiveUnavailable, InvalidSettings, SchemaOutOfDate


@pytest.mark.parametrize("connection", ["owner", "stranger"])
def test_neither_role_is_a_superuser_or_passes_row_security_by(request, connection):
    attributes = "rolsuper, rolbypassrls, rolcreaterole, rolcreatedb, rolreplication"
    found = request.getfixturevalue(connection).execute(
        f"SELECT {attributes} FROM pg_roles WHERE rolname = current_user"
    )
    assert found.fetchone() == (False,) * 5


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE mine (id int)",
        "CREATE TEMPORARY TABLE mine (id int)",
        "CREATE FUNCTION mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE POLICY mine ON card USING (true)",
        "ALTER TABLE card ADD COLUMN mine text",
        "ALTER TABLE card DISABLE ROW LEVEL SECURITY",
        "ALTER TABLE card OWNER TO memory_runtime",
        "ALTER TABLE card DISABLE TRIGGER card_point",
        "ALTER POLICY workspace_only ON card USING (true)",
        "DROP POLICY workspace_only ON card",
        "DROP TABLE card",
        "TRUNCATE card CASCADE",
        "UPDATE alembic_version SET version_num = 'mine'",
        "DELETE FROM alembic_version",
        "SET ROLE memory_owner",
        "SET SESSION AUTHORIZATION memory_owner",
        "SET session_replication_role = replica",
        "ALTER ROLE memory_runtime BYPASSRLS",
    ],
)
def test_the_runtime_role_cannot_touch_the_schema_or_its_own_bounds(stranger, statement):
    with pytest.raises(errors.InsufficientPrivilege):
        stranger.execute(statement)


def test_switching_row_security_off_reads_nothing(archive, stranger):
    archive.given()
    stranger.execute("SET row_security = off")
    with pytest.raises(errors.InsufficientPrivilege, match="row-level security"):
        stranger.execute("SELECT * FROM card")


@pytest.mark.parametrize("role", ["memory_owner", "postgres"])
def test_a_role_that_row_security_does_not_bind_is_refused(settings, role):
    url = make_url(settings.database_url.get_secret_value()).set(username=role)
    with pytest.raises(InvalidSettings, match="not bound by row security"):
        names(url)


def test_a_role_that_the_archive_was_not_migrated_for_is_told_so(settings, superuser):
    superuser.execute("CREATE ROLE passer_by LOGIN")
    superuser.execute(
        f"GRANT CONNECT ON DATABASE {make_url(settings.database_url.get_secret_value()).database} TO passer_by"
    )
    url = make_url(settings.database_url.get_secret_value()).set(username="passer_by")
    with pytest.raises(SchemaOutOfDate, match="not migrated for this role"):
        names(url)


def test_a_server_that_does_not_answer_is_named_without_the_password():
    url = make_url("postgresql+psycopg://somebody:geheim@127.0.0.1:1/memory")
    with pytest.raises(ArchiveUnavailable) as caught:
        names(url)
    assert "geheim" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_connection_lost_in_the_middle_leaves_nothing_half_done(archive, owner, superuser):
    archive.given()
    with pytest.raises(ArchiveUnavailable), archive.database.transaction(archive.workspace) as tx:
        tx.connection.exec_driver_sql("UPDATE card SET subject = 'half done'")
        pid = tx.connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
        superuser.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
        tx.connection.exec_driver_sql("UPDATE card SET detail = 'never'")
    assert archive.card()["subject"] == "active patient"


def test_a_connection_lost_before_the_commit_is_an_error_and_commits_nothing(archive, superuser):
    archive.given()
    with pytest.raises(ArchiveUnavailable), archive.database.transaction(archive.workspace) as tx:
        tx.connection.exec_driver_sql("UPDATE card SET subject = 'half done'")
        pid = tx.connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
        superuser.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
    assert archive.card()["subject"] == "active patient"


def test_a_lock_excludes_other_holders_and_is_free_again_afterwards(database):
    with database.lock("projector", "clinic", wait=0) as first:
        assert first
        with database.lock("projector", "clinic", wait=0.1) as second:
            assert not second
        with database.lock("projector", "other", wait=0) as other:
            assert other
    with database.lock("projector", "clinic", wait=0) as again:
        assert again


def test_a_lock_is_free_again_after_an_error(database):
    with pytest.raises(KeyError), database.lock("projector", wait=0):
        raise KeyError
    with database.lock("projector", wait=0) as again:
        assert again


def test_the_maker_of_a_workspace_is_its_first_administrator(archive):
    archive.given()
    granted = archive.rows("SELECT principal, role, granted_by FROM workspace_grant")
    assert [tuple(row.values()) for row in granted] == [("tester", "administrator", "tester")]
    assert not workspaces.make(archive.database, archive.workspace, language="english", principal="somebody else")
    assert archive.column("SELECT principal FROM workspace_grant") == ["tester"]


def names(url) -> list[str]:
    with closing(Database(SecretStr(url.render_as_string(hide_password=False)))) as database:
        return workspaces.names(database)
