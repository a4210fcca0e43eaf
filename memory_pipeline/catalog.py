"""Compares what cards depend on with the real databases of their workspaces. It reads, and changes nothing anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr
from sqlalchemy import URL, Connection, NullPool, create_engine, inspect, make_url, text
from sqlalchemy.engine.reflection import ObjectKind, ObjectScope
from sqlalchemy.exc import DBAPIError

from memory_pipeline.archive.database import first_line
from memory_pipeline.archive.dependencies import depended
from memory_pipeline.cards import Dependency
from memory_pipeline.errors import CatalogUnavailable, MemoryPipelineError

if TYPE_CHECKING:
    from memory_pipeline.runtime import Runtime

CONNECT_SECONDS = 5
"""How long a database may take to let somebody in."""
STATEMENT_SECONDS = 30
"""How long one look at a catalogue may take, where the database can be told so."""

_TIMEOUTS: dict[str, dict[str, Any]] = {
    "psycopg": {"connect_timeout": CONNECT_SECONDS},
    "psycopg2": {"connect_timeout": CONNECT_SECONDS},
    "pymysql": {"connect_timeout": CONNECT_SECONDS, "read_timeout": STATEMENT_SECONDS},
    "mysqldb": {"connect_timeout": CONNECT_SECONDS, "read_timeout": STATEMENT_SECONDS},
    "pyodbc": {"timeout": CONNECT_SECONDS},
    "oracledb": {"tcp_connect_timeout": CONNECT_SECONDS},
    "pysqlite": {"timeout": CONNECT_SECONDS},
}
"""Driver → what it calls them. Another driver has bounds of its own."""


@dataclass(frozen=True, slots=True)
class Missing:
    """An object that cards depend on and that is not there: named down to the level that was not found."""

    named: Dependency
    card_ids: tuple[str, ...]

    def __str__(self) -> str:
        d = self.named
        level = "column" if d.column else "table" if d.table else "schema" if d.schema else "database"
        return f"{level} {'.'.join(filter(None, (d.database, d.schema, d.table, d.column)))}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """How many distinct objects were looked for in a workspace's database, and which of them are not there."""

    objects: int
    missing: tuple[Missing, ...]


def compare(runtime: Runtime, workspace: str) -> Comparison | None:
    """Look for what a workspace's cards depend on in its database; None where no database is configured for it.

    Names are compared exactly first, then without regard to case. A level that a dependency leaves empty is not looked
    at: a table without a schema may be in any. SQLite has neither names of databases nor schemas.

    Raises:
        CatalogUnavailable: the database cannot be reached or looked at.
        UnknownWorkspace, ArchiveUnavailable.
    """
    url = runtime.settings.catalog_urls.get(workspace)
    if url is None:
        return None
    with runtime.database.transaction(workspace) as tx:
        wanted = depended(tx)
    if not wanted:
        return Comparison(0, ())
    with _connected(make_url(url.get_secret_value()), workspace) as connection:
        catalog = _Catalog(connection, {each.table for each in wanted if each.column})
        return Comparison(len(wanted), tuple(_missing(catalog, wanted)))


def reach(url: SecretStr, workspace: str) -> str:
    """Connect with the database of a workspace and look at it once; what kind of database it is.

    Raises:
        CatalogUnavailable: it cannot be reached or looked at.
    """
    with _connected(make_url(url.get_secret_value()), workspace) as connection:
        inspect(connection).get_table_names()
        return connection.dialect.name


def _missing(catalog: _Catalog, wanted: Mapping[Dependency, Sequence[str]]) -> Iterator[Missing]:
    cards: dict[Dependency, set[str]] = {}
    for dependency, card_ids in wanted.items():
        if (named := catalog.first_missing(dependency)) is not None:
            cards.setdefault(named, set()).update(card_ids)
    for named in sorted(cards):
        yield Missing(named, tuple(sorted(cards[named])))


class _Catalog:
    """The names in a database; each schema is looked at once, however many cards depend on it.

    Args:
        connection: to the database.
        with_columns: the tables of which columns are asked, so that no others are reflected.
    """

    def __init__(self, connection: Connection, with_columns: Iterable[str]) -> None:
        self._inspector = inspect(connection)
        self._with_columns = sorted(with_columns)
        self._database, self._has_schemas = _database_name(connection), connection.dialect.name != "sqlite"
        self._schemas = self._inspector.get_schema_names() if self._has_schemas else []
        self._tables: dict[str | None, set[str]] = {}
        self._columns: dict[str | None, dict[str, set[str]]] = {}

    def first_missing(self, wanted: Dependency) -> Dependency | None:
        """The object, named down to the first level at which it is not found; None when it is there."""
        if self._database and wanted.database and _match([self._database], wanted.database) is None:
            return Dependency(wanted.database)
        schemas = self._candidates(wanted.schema)
        if not schemas:
            return Dependency(wanted.database, wanted.schema)
        if not wanted.table:
            return None
        tables = [(schema, table) for schema in schemas if (table := _match(self._tables_in(schema), wanted.table))]
        if not tables:
            return replace(wanted, column="")
        if not wanted.column or any(_match(self._columns_of(*table), wanted.column) for table in tables):
            return None
        return wanted

    def _candidates(self, schema: str) -> list[str | None]:
        """The schemas that may be meant; None is the one that the connection begins in."""
        if not self._has_schemas:
            return [None]
        if not schema:
            return list(self._schemas)
        found = _match(self._schemas, schema)
        return [] if found is None else [found]

    def _tables_in(self, schema: str | None) -> set[str]:
        """Tables and whatever can be read like one."""
        if schema not in self._tables:
            found = {*self._inspector.get_table_names(schema), *self._inspector.get_view_names(schema)}
            for more in ("get_materialized_view_names", "get_foreign_table_names"):
                try:
                    found.update(getattr(self._inspector, more)(schema))
                except (AttributeError, NotImplementedError):  # the database has none
                    continue
            self._tables[schema] = found
        return self._tables[schema]

    def _columns_of(self, schema: str | None, table: str) -> set[str]:
        if schema not in self._columns:
            tables = {name for each in self._with_columns if (name := _match(self._tables_in(schema), each))}
            reflected = self._inspector.get_multi_columns(
                schema=schema, filter_names=sorted(tables), kind=ObjectKind.ANY, scope=ObjectScope.ANY
            )
            self._columns[schema] = {name: {c["name"] for c in columns} for (_, name), columns in reflected.items()}
        return self._columns[schema].get(table, set())


def _match(names: Iterable[str], wanted: str) -> str | None:
    """The name as the database spells it: the same, else the first that differs in case alone."""
    names = names if isinstance(names, set) else set(names)
    if wanted in names:
        return wanted
    return min((name for name in names if name.casefold() == wanted.casefold()), default=None)


def _database_name(connection: Connection) -> str:
    if connection.dialect.name == "postgresql":
        return str(connection.execute(text("SELECT current_database()")).scalar_one())
    return "" if connection.dialect.name == "sqlite" else connection.engine.url.database or ""


@contextmanager
def _connected(url: URL, workspace: str) -> Iterator[Connection]:
    try:
        if url.get_backend_name() == "sqlite":
            _require_file(url)
        arguments = _TIMEOUTS.get(url.get_driver_name(), {})
        engine = create_engine(url, poolclass=NullPool, hide_parameters=True, connect_args=arguments)
        with engine.connect() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(text("SET TRANSACTION READ ONLY"))
                connection.execute(text(f"SET LOCAL statement_timeout = {STATEMENT_SECONDS * 1000}"))
            yield connection
    except MemoryPipelineError:
        raise
    except Exception as error:  # noqa: BLE001  # whatever a driver raises, or that there is no such driver
        said = _said(error, url)
        raise CatalogUnavailable(
            f"the database of workspace {workspace!r} cannot be looked at ({said}): see MEMORY_CATALOG_URLS"
        ) from None


def _require_file(url: URL) -> None:
    # SQLite would make one.
    if url.database and not url.database.startswith("file:") and not Path(url.database).is_file():
        raise FileNotFoundError(f"there is no file {url.database}")


def _said(error: Exception, url: URL) -> str:
    """What a driver said, in one line and without the password."""
    said = first_line(error) if isinstance(error, DBAPIError) else str(error).partition("\n")[0]
    password = str(url.password or "")
    return said.replace(password, "***") if password else said or type(error).__name__
