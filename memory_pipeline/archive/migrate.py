"""Brings the archive's schema to the revision that the library expects, under the owner's role."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import SecretStr
from sqlalchemy import Connection, create_engine, make_url, text
from sqlalchemy.exc import ProgrammingError

from memory_pipeline.archive import cards
from memory_pipeline.archive.database import Tx, first_line, translated
from memory_pipeline.archive.queries import SCHEMA_REVISION
from memory_pipeline.archive.roles import WITHHELD
from memory_pipeline.errors import InvalidSettings, SchemaOutOfDate

MIGRATIONS = Path(__file__).resolve().parents[2] / "sql"


def migrate(owner_url: SecretStr, runtime_url: SecretStr) -> str:
    """Apply every migration that is missing, and give the runtime role what it needs.

    Args:
        owner_url: the archive as the owner of its tables.
        runtime_url: the archive as the role that everything else runs under.

    Returns:
        the schema's revision afterwards.

    Raises:
        InvalidSettings: the roles cannot be told apart, do not exist or lack rights, or the migrations are not here.
        SchemaOutOfDate: the schema is newer than this checkout.
        ArchiveUnavailable: PostgreSQL does not answer.
    """
    runtime_role = _runtime_role(owner_url, runtime_url)
    engine = create_engine(owner_url.get_secret_value(), hide_parameters=True)
    try:
        with translated(), _fitting_roles(), engine.begin() as connection:
            connection.execute(text("SELECT pg_advisory_xact_lock(hashtextextended('memory-pipeline migrate', 0))"))
            for tx in _workspaces(connection):
                tx.wait_for_writers()  # before any table is locked that one of them waits for
            _upgrade(connection)
            _grant(connection, runtime_role)
            for tx in _workspaces(connection):
                cards.read_unread(tx)
    finally:
        engine.dispose()
    return SCHEMA_REVISION


def _runtime_role(owner_url: SecretStr, runtime_url: SecretStr) -> str:
    owner, runtime = make_url(owner_url.get_secret_value()), make_url(runtime_url.get_secret_value())
    if not runtime.username or runtime.username == owner.username:
        raise InvalidSettings(
            "MEMORY_DATABASE_URL has to name a role of its own: the owner of the tables is not bound by row security"
        )
    return runtime.username


def _workspaces(connection: Connection) -> list[Tx]:
    """The transaction as that of each workspace, to the owner, whom row security does not bind."""
    if connection.execute(text("SELECT to_regclass('workspace')")).scalar_one() is None:
        return []
    found = connection.execute(text("SELECT workspace, language FROM workspace")).all()
    return [Tx(connection, workspace, language) for workspace, language in found]


def _upgrade(connection: Connection) -> None:
    try:
        from alembic import command
        from alembic.config import Config
        from alembic.util import CommandError
    except ImportError:
        raise InvalidSettings("migrations need Alembic: pip install 'memory-pipeline[pipeline]'") from None
    if not (MIGRATIONS / "env.py").is_file():
        raise InvalidSettings("the migrations are not part of the installed package: run this from a checkout")
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))  # it is read with interpolation
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, SCHEMA_REVISION)
    except CommandError:
        # Alembic knows no step from the revision that it found.
        raise SchemaOutOfDate(
            "the archive's schema is of a revision that this checkout does not know "
            f"(it knows up to {SCHEMA_REVISION}): use the checkout that belongs to the schema"
        ) from None


def _grant(connection: Connection, role: str) -> None:
    name = connection.dialect.identifier_preparer.quote(role)
    for statement in (
        f"GRANT USAGE ON SCHEMA public TO {name}",
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {name}",
        f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {name}",
        *(f"REVOKE {', '.join(withheld)} ON {table} FROM {name}" for table, withheld in WITHHELD.items()),
        "REVOKE ALL ON FUNCTION remove_workspace() FROM PUBLIC",  # a dump that is restored without privileges lost that
        f"GRANT EXECUTE ON FUNCTION remove_workspace() TO {name}",
        f"GRANT UPDATE (role, granted_by, granted_at) ON workspace_grant TO {name}",
    ):
        connection.execute(text(statement))


@contextmanager
def _fitting_roles() -> Iterator[None]:
    try:
        yield
    except ProgrammingError as error:
        if getattr(error.orig, "sqlstate", None) in ("42501", "42704"):  # insufficient privilege, undefined object
            raise InvalidSettings(
                f"the roles of MEMORY_OWNER_URL and MEMORY_DATABASE_URL do not fit the database ({first_line(error)})"
            ) from None
        raise
