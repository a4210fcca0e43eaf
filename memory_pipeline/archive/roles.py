"""What the roles of the archive may do, have to be able to do, and must not be able to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection

from memory_pipeline.archive.queries import load

_SQL = load("roles")

OLDEST_SERVER = 15
"""The first version of PostgreSQL that the migrations run on."""

UNGUARDED = frozenset({"alembic_version", "workspace", "workspace_grant"})
"""The tables that row security does not guard: they hold no content."""

# Row security does not guard these. A deletion would take a whole workspace with it, hence a function that removes the
# one that is named; of a grant, nothing but what was granted ever changes, and that is given column by column.
WITHHELD: Mapping[str, tuple[str, ...]] = {
    "alembic_version": ("INSERT", "UPDATE", "DELETE"),
    "workspace": ("UPDATE", "DELETE"),
    "workspace_grant": ("UPDATE",),
}
"""Table → what the runtime role must not do with it, of all that it may do with every other."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table as a role stands to it.

    Attributes:
        name: its name.
        owned: whether the role owns it, by itself or as a member of another.
        guarded: whether row security binds the role there.
        lacking: what the role may not do, of SELECT, INSERT, UPDATE and DELETE.
    """

    name: str
    owned: bool
    guarded: bool
    lacking: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Role:
    """A role of the database that it is connected to.

    Attributes:
        name: its name.
        superuser: whether it may do everything.
        passes_row_security: whether row security never binds it (BYPASSRLS).
        creates: whether it may make tables.
        tables: the tables that there are.
    """

    name: str
    superuser: bool
    passes_row_security: bool
    creates: bool
    tables: tuple[Table, ...]


@dataclass(frozen=True, slots=True)
class Server:
    """A server of PostgreSQL, and a database of it.

    Attributes:
        version: what it calls its version.
        number: the same as a number, 10,000 for each major version.
        encoding: in which the database keeps texts.
        database: the database's name.
        place: equal for two connections to one database of one server, whatever URLs they were opened with.
    """

    version: str
    number: int
    encoding: str
    database: str
    place: str


def role(connection: Connection) -> Role:
    """The connected role."""
    tables = connection.execute(_SQL["tables"]).mappings()
    found = connection.execute(_SQL["role"]).mappings().one()
    return Role(**found, tables=tuple(Table(**{**row, "lacking": tuple(row["lacking"])}) for row in tables))


def server(connection: Connection) -> Server:
    """The connected server."""
    return Server(**connection.execute(_SQL["server"]).mappings().one())
