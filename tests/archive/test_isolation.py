"""No workspace sees or changes anything of another, and a connection that names none sees nothing: shown in SQL."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import errors

from memory_pipeline.archive import workspaces
from memory_pipeline.errors import UnknownWorkspace
from tests.archives import Archive

GUARDED = [
    "admin_edit",
    "backlog_sample",
    "card",
    "card_dependency",
    "card_link",
    "card_literal",
    "card_number",
    "card_source",
    "decision",
    "embedding",
    "embedding_identity",
    "last_audit",
    "ledger_fault",
    "projection",
    "question",
    "session",
    "session_reading",
]
OPEN = ["workspace", "workspace_grant"]
NOT_A_WORKSPACE = [
    "",
    "%",
    "*",
    "A",
    "clinic'; DROP TABLE card; --",
    "../clinic",
    "a b",
    "é",
    "a" * 64,
    "clinic\n",
    None,
]


@pytest.fixture
def two(runtime, owner: psycopg.Connection) -> tuple[Archive, Archive]:
    """Two workspaces of one content, with rows in every table."""
    both = Archive(runtime, "ours"), Archive(runtime, "theirs")
    for archive in both:
        archive.session(session="session-1", sql="SELECT count(*) FROM patients WHERE city = 'Roma'")
        archive.session(session="session-2", ledger=b"not json\n", sql=None)
        archive.ingest()
        parameters = [archive.workspace] * 2
        owner.execute("INSERT INTO card_link VALUES (%s, 'mem-0001', 'sq-0001', 'explains')", parameters[:1])
        owner.execute("INSERT INTO embedding VALUES (%s, 'identity', 'query', 'hash', '', false)", parameters[:1])
        owner.execute("INSERT INTO last_audit VALUES (%s, now(), 2, '{}', false)", parameters[:1])
        owner.execute("INSERT INTO backlog_sample VALUES (%s, now(), 1, 1, now(), 0)", parameters[:1])
        owner.execute("INSERT INTO admin_edit (workspace, principal, operation) VALUES (%s, %s, 'delete')", parameters)
    return both


def enter(connection: psycopg.Connection, workspace: str) -> None:
    connection.execute("SELECT set_config('memory.workspace', %s, false)", [workspace])


def count(connection: psycopg.Connection, table: str) -> int:
    (number,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    return number


def test_every_table_is_guarded_but_the_list_of_workspaces_and_their_grants(owner):
    found = owner.execute(
        "SELECT relname, relrowsecurity FROM pg_class WHERE relkind = 'r' "
        "AND relnamespace = 'public'::regnamespace AND relname <> 'alembic_version'"
    ).fetchall()
    assert sorted(name for name, guarded in found if guarded) == GUARDED
    assert sorted(name for name, guarded in found if not guarded) == OPEN


@pytest.mark.parametrize("table", GUARDED)
def test_row_security_binds_the_runtime_role(stranger, table):
    assert stranger.execute("SELECT row_security_active(%s)", [table]).fetchone() == (True,)


def test_a_connection_that_names_no_workspace_sees_no_rows(two, owner, stranger):
    assert [table for table in GUARDED if count(owner, table) < 2] == []
    assert [table for table in GUARDED if count(stranger, table)] == []


def test_a_connection_that_named_a_workspace_for_one_transaction_sees_no_rows_afterwards(two, stranger):
    with stranger.transaction():
        stranger.execute("SELECT set_config('memory.workspace', 'ours', true)")
        assert count(stranger, "card")
    assert [table for table in GUARDED if count(stranger, table)] == []


def test_a_connection_that_names_no_workspace_changes_and_inserts_nothing(two, owner, stranger):
    before = {table: count(owner, table) for table in GUARDED}
    for table in GUARDED:
        assert stranger.execute(f"UPDATE {table} SET workspace = workspace").rowcount == 0
        assert stranger.execute(f"DELETE FROM {table}").rowcount == 0
        copy_a_row(stranger, owner, table)
    assert {table: count(owner, table) for table in GUARDED} == before


def copy_a_row(connection, owner, table):
    """Try to insert a row that differs from one of theirs in nothing: row security speaks before any key does."""
    columns = [
        name
        for (name,) in owner.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND attidentity = '' "
            "AND attgenerated = ''",
            [table],
        )
    ]
    names = ", ".join(f'"{name}"' for name in columns)
    row = owner.execute(f"SELECT {names} FROM {table} WHERE workspace = 'theirs' LIMIT 1").fetchone()
    values = [psycopg.types.json.Jsonb(value) if isinstance(value, dict) else value for value in row]
    with pytest.raises(errors.InsufficientPrivilege, match="row-level security"):
        connection.execute(f"INSERT INTO {table} ({names}) VALUES ({', '.join(['%s'] * len(columns))})", values)


def test_a_workspace_sees_its_own_rows_alone(two, owner, stranger):
    enter(stranger, "ours")
    for table in GUARDED:
        assert 0 < count(stranger, table) < count(owner, table)
        assert count(stranger, f"{table} WHERE workspace <> 'ours'") == 0


def test_a_workspace_changes_nothing_of_another_even_with_its_ids(two, owner, stranger):
    enter(stranger, "ours")
    for table in GUARDED:
        before = count(owner, f"{table} WHERE workspace = 'theirs'")
        assert stranger.execute(f"UPDATE {table} SET workspace = 'ours' WHERE workspace = 'theirs'").rowcount == 0
        assert stranger.execute(f"DELETE FROM {table} WHERE workspace = 'theirs'").rowcount == 0
        copy_a_row(stranger, owner, table)
        assert count(owner, f"{table} WHERE workspace = 'theirs'") == before


@pytest.mark.parametrize("table", GUARDED)
def test_a_workspace_gives_no_row_away(two, stranger, table):
    enter(stranger, "ours")
    with pytest.raises(errors.InsufficientPrivilege, match="row-level security"):
        stranger.execute(f"UPDATE {table} SET workspace = 'theirs'")


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM workspace WHERE workspace = 'theirs'",
        "UPDATE workspace SET language = 'english' WHERE workspace = 'theirs'",
    ],
)
def test_no_workspace_can_be_deleted_or_changed_by_the_runtime_role(two, owner, stranger, statement):
    # The list of workspaces is open, and a deletion would take everything with it past row security.
    enter(stranger, "ours")
    with pytest.raises(errors.InsufficientPrivilege):
        stranger.execute(statement)
    assert count(owner, "card WHERE workspace = 'theirs'") == 2


def test_every_key_and_every_reference_begins_with_the_workspace(owner):
    keys = owner.execute("""
        SELECT conrelid::regclass::text, contype, (
            SELECT attname FROM pg_attribute WHERE attrelid = conrelid AND attnum = conkey[1])
        FROM pg_constraint
        WHERE contype IN ('p', 'f', 'u') AND connamespace = 'public'::regnamespace
            AND conrelid <> 'alembic_version'::regclass""").fetchall()
    assert {column for _, _, column in keys} == {"workspace"}
    assert {table for table, kind, _ in keys if kind == "p"} == {*GUARDED, *OPEN}
    assert {table for table, kind, _ in keys if kind == "f"} == {*GUARDED, "workspace_grant"}


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO card_link VALUES ('ours', 'mem-0001', 'mem-0002', 'explains')",
        "INSERT INTO card_dependency VALUES ('ours', 'mem-0002', 'd', 's', 't', 'c')",
        "INSERT INTO card_literal VALUES ('ours', 'roma', 'mem-0002')",
        "INSERT INTO card_source VALUES ('ours', 'session-9', 1, 'concept_clarified', 2, 'key', 'mem-0002', NULL)",
        "INSERT INTO card_source VALUES ('ours', 'session-9', 1, 'concept_clarified', 2, 'key', NULL, 'q-theirs')",
        "INSERT INTO decision VALUES ('ours', 'session-9', 1, now(), 't', 1, '', '', '', '{}', '{}', '', true)",
        "INSERT INTO ledger_fault VALUES ('ours', 'session-9', 0, 'kind', 'reason', 0)",
        "INSERT INTO projection (workspace, identity, collection, item_id) VALUES ('ours', 'theirs', 'questions', 'q')",
    ],
)
def test_the_database_refuses_what_would_point_into_another_workspace(two, owner, statement):
    # Even the owner, whom row security does not bind: what is named here exists in the other workspace alone.
    owner.execute(
        "INSERT INTO card (workspace, card_id, family, origin, text_key, fingerprint, updated_by) "
        "VALUES ('theirs', 'mem-0002', 'concept', 'hand', '', '', '')"
    )
    owner.execute("INSERT INTO question VALUES ('theirs', 'q-theirs', 'text', 'key', 'fingerprint')")
    owner.execute("INSERT INTO embedding_identity VALUES ('theirs', 'theirs', '{}')")
    owner.execute("UPDATE session_reading SET session_id = 'session-8' WHERE false")
    with pytest.raises(errors.ForeignKeyViolation):
        owner.execute(statement)


@pytest.mark.parametrize("name", NOT_A_WORKSPACE)
def test_what_cannot_be_a_workspace_is_never_one(database, name):
    with pytest.raises(UnknownWorkspace), database.transaction(name):
        pytest.fail("no transaction may begin")
    with pytest.raises(UnknownWorkspace):
        workspaces.make(database, name, language="italian", principal="tester")


def test_a_workspace_that_nobody_made_is_unknown(database):
    with pytest.raises(UnknownWorkspace, match="no workspace 'nobody'"), database.transaction("nobody"):
        pytest.fail("no transaction may begin")


def test_the_archive_itself_refuses_a_malformed_workspace(owner):
    with pytest.raises(errors.CheckViolation):
        owner.execute("INSERT INTO workspace (workspace, language, created_by) VALUES ('A b', 'italian', 'tester')")


def test_one_workspace_is_listed_counted_and_numbered_apart_from_another(two):
    ours, theirs = two
    assert ours.card_ids() == theirs.card_ids() == ["mem-0001"]
    ours.given(session="session-3")
    assert len(ours.sources("mem-0001")) == 2
    assert len(theirs.sources("mem-0001")) == 1
