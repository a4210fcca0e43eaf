"""Opens transactions on the archive, each for one workspace, and takes its advisory locks: the one place that does."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from copy import copy
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import SecretStr
from sqlalchemy import Connection, CursorResult, Engine, NullPool, RowMapping, TextClause, create_engine, event, text
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as NoConnectionFree

from memory_pipeline.archive.queries import SCHEMA_REVISION
from memory_pipeline.cards import workspace_name
from memory_pipeline.errors import (
    ArchiveUnavailable,
    InvalidInput,
    InvalidSettings,
    MemoryPipelineError,
    SchemaOutOfDate,
    UnknownWorkspace,
)

if TYPE_CHECKING:
    from sqlalchemy.engine.interfaces import DBAPIConnection
    from sqlalchemy.pool import ConnectionPoolEntry

# Moments are read back in UTC whatever the server is set to: Python holds the hour in which a zone's clocks are put
# back for unequal to the same moment in any other zone.
_SETTINGS = "set_config('memory.workspace', :workspace, true), set_config('TimeZone', 'UTC', true)"
_BY_KEY = ", ".join(
    f"set_config('{name}', '{value}', true)"
    for name, value in {"enable_seqscan": "off", "jit": "off", "plan_cache_mode": "force_custom_plan"}.items()
)
_LANGUAGE = "(SELECT language FROM workspace WHERE workspace = :workspace) AS language"
_ENTER = text(f"SELECT {_SETTINGS}, {_LANGUAGE}")
_ENTER_BY_KEY = text(f"SELECT {_SETTINGS}, {_BY_KEY}, {_LANGUAGE}")
_PATIENCE = text("SELECT set_config('statement_timeout', :milliseconds, true)")
_WAIT_FOR_WRITERS = text("SELECT pg_advisory_xact_lock(hashtextextended('writer of ' || CAST(:workspace AS text), 0))")
_NESTED_LOOPS = text("SELECT set_config('enable_nestloop', :allowed, true)")
_FORGET_PLANS = text("DISCARD PLANS")
_VERSION_READABLE = text("SELECT has_table_privilege(to_regclass('alembic_version'), 'SELECT')")  # null: no such table
_CONNECT_TIMEOUT = 10  # seconds
CONNECTIONS = 20
"""How many connections a process has at most. A service answers in fewer threads, each of which holds one for
milliseconds. They are made when needed and kept: PostgreSQL starts a process for each, and by default allows 100 for
all of its clients."""

_CONNECTION_WAIT = 30.0  # seconds
_LOCK_POLL = 0.05  # seconds
_FETCHED = 500  # rows
_ARRAY_LENGTH = 4_000_000  # characters of one parameter, of which PostgreSQL takes up to a GB


class Row(Protocol):
    """A row of a query, whose columns are read by their names."""

    def __getitem__(self, column: str, /) -> Any: ...


@dataclass(frozen=True, slots=True)
class Tx:
    """An open transaction that sees one workspace.

    Attributes:
        connection: what it runs on.
        workspace: the workspace's name.
        language: Snowball's name of the language that the workspace's texts are analysed in, for as long as it exists.
    """

    connection: Connection
    workspace: str
    language: str

    def rows(self, query: TextClause, **parameters: object) -> Sequence[RowMapping]:
        """The rows of a query, to which `:workspace` is always given."""
        return self._execute(query, parameters).mappings().all()

    def stream(self, query: TextClause, **parameters: object) -> Iterator[RowMapping]:
        """The rows of a query that has too many to be held at once, fetched some at a time."""
        options = {"yield_per": _FETCHED}
        found = self.connection.execute(query, {"workspace": self.workspace, **parameters}, execution_options=options)
        yield from found.mappings()

    def row(self, query: TextClause, **parameters: object) -> RowMapping:
        """The only row of a query."""
        return self._execute(query, parameters).mappings().one()

    def run(self, query: TextClause, **parameters: object) -> int:
        """Execute a statement; the number of rows that it touched."""
        return int(self._execute(query, parameters).rowcount)

    def run_many(self, query: TextClause, rows: Sequence[Mapping[str, object]]) -> None:
        """Execute a statement once for each mapping, in one round trip for many."""
        if rows:
            self.connection.execute(query, [{"workspace": self.workspace, **row} for row in rows])

    def run_rows(self, query: TextClause, rows: Iterable[Mapping[str, object]]) -> None:
        """Execute a statement once for all mappings, which it finds in `:rows` as a JSON array of objects.

        That is many times faster than once for each, and as COPY is refused under row security, as fast as it gets. Of
        very many or very long rows it is executed for some at a time, so no two executions may depend on each other.
        """
        for array in _arrays(rows):
            self._execute(query, {"rows": array})

    @contextmanager
    def comparing(self) -> Iterator[None]:
        """For statements that compare whole tables of the workspace: these are joined by hashes or in order.

        Every index begins with the workspace, which PostgreSQL takes to be one of many as long as it has not counted a
        table's rows. It would then look for each row through all of a workspace's: minutes, after a large first ingest.
        """
        self.run(_NESTED_LOOPS, allowed="off")
        yield
        self.run(_NESTED_LOOPS, allowed="on")

    def forget_plans(self) -> None:
        """Have the server plan anew, by the tables as they are now; for each of many transactions that fill them.

        It keeps the plans by which it checks foreign keys for as long as a connection lasts. Those that were made for
        empty tables look through all cards of a workspace for each new source.
        """
        self.run(_FORGET_PLANS)

    def wait_for_writers(self) -> None:
        """Wait until no other transaction of the workspace that called this is open; to be called before any change."""
        self.run(_WAIT_FOR_WRITERS)

    def _execute(self, query: TextClause, parameters: Mapping[str, object]) -> CursorResult[Any]:
        return self.connection.execute(query, {"workspace": self.workspace, **parameters})


def _arrays(rows: Iterable[Mapping[str, object]]) -> Iterator[str]:
    """The rows as JSON arrays, each of which PostgreSQL can take."""
    held: list[str] = []
    length = 0
    for row in rows:
        written = json.dumps(row, ensure_ascii=False, default=datetime.isoformat)
        if held and length + len(written) > _ARRAY_LENGTH:
            yield f"[{','.join(held)}]"
            held, length = [], 0
        held.append(written)
        length += len(written)
    if held:
        yield f"[{','.join(held)}]"


class Transactions(Protocol):
    """Gives transactions that see one workspace: the archive, or somebody who holds one open already."""

    def transaction(self, workspace: str, *, writing: bool = False) -> AbstractContextManager[Tx]:
        """See `Database.transaction`."""


class Database:
    """The archive's PostgreSQL under the runtime role. Safe to share between threads, not between forked processes."""

    def __init__(self, url: SecretStr) -> None:
        options = {"connect_timeout": _CONNECT_TIMEOUT, "application_name": "memory-pipeline"}
        self._engine = create_engine(
            url.get_secret_value(),
            pool_size=CONNECTIONS,
            max_overflow=0,
            pool_timeout=_CONNECTION_WAIT,
            pool_pre_ping=True,
            hide_parameters=True,
            connect_args=options,
        )
        # Whoever is at work when this is closed returns a connection that nobody would close any more.
        self._ended = threading.Event()
        event.listen(self._engine, "checkin", self._returned)
        # Session-level advisory locks outlive a pooled connection's close(), so they get connections of their own.
        self._lock_engine = create_engine(
            url.get_secret_value(),
            poolclass=NullPool,
            isolation_level="AUTOCOMMIT",
            hide_parameters=True,
            connect_args=options,
        )
        # The same pool; every statement of a transaction sees the archive as it was at the first one.
        self._snapshots = self._engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        self._checked = False
        self._patience: float | None = None

    def within(self, seconds: float) -> Database:
        """The same archive over the same connections, in which a statement that takes longer is `ArchiveUnavailable`.

        For whoever has to answer in time, whatever others hold locked.
        """
        impatient = copy(self)
        impatient._patience = seconds  # noqa: SLF001  # its own
        return impatient

    @contextmanager
    def transaction(
        self, workspace: str, *, snapshot: bool = False, writing: bool = False, by_key: bool = False
    ) -> Iterator[Tx]:
        """A transaction that sees and changes one workspace; it commits when the block ends without an error.

        Args:
            workspace: which one.
            snapshot: whether it only reads, and all of it from one state of the archive.
            writing: whether it changes sessions, cards or sources. Such transactions of a workspace run one after the
                other, so that each decides on what the one before it left: an intake cannot overwrite an edit that it
                has not seen.
            by_key: whether all of it is found by keys, and has to take milliseconds whatever there is besides. Then
                PostgreSQL reads no table through and compiles nothing, which it otherwise does where it believes that
                it would find much: after a large projection it believes for days that a part of it is pending.

        Raises:
            UnknownWorkspace: the archive has no such workspace, or the name is none.
            ArchiveUnavailable: PostgreSQL went away, lacks something, or is asked by too many at once; nothing was
                committed unless the loss came while committing.
            SchemaOutOfDate: the schema is missing or of another revision.
            InvalidInput: a value is larger than PostgreSQL takes; nothing was committed.
        """
        workspace_name(workspace)
        with self._begun(self._snapshots if snapshot else self._engine) as connection:
            if writing:  # first: one of them may remove the workspace
                connection.execute(_WAIT_FOR_WRITERS, {"workspace": workspace})
            entered = connection.execute(_ENTER_BY_KEY if by_key else _ENTER, {"workspace": workspace}).mappings().one()
            language = entered["language"]
            if language is None:
                raise UnknownWorkspace(
                    f"the archive has no workspace {workspace!r}: its first ingest makes it, or "
                    f"`memory-pipeline workspace make {workspace}`"
                )
            yield Tx(connection, workspace, language)

    @contextmanager
    def registry(self) -> Iterator[Connection]:
        """A transaction that names no workspace and so sees none but the list of workspaces and their grants."""
        with self._begun(self._engine) as connection:
            yield connection

    @contextmanager
    def _begun(self, engine: Engine) -> Iterator[Connection]:
        with translated(), engine.begin() as connection:
            if self._patience is not None:
                connection.execute(_PATIENCE, {"milliseconds": str(round(self._patience * 1_000))})
            if not self._checked:
                check_schema(connection)
                _check_role(connection)
                self._checked = True
            yield connection

    @contextmanager
    def lock(self, *name: str, wait: float) -> Iterator[bool]:
        """Hold an advisory lock of that name, excluding every other holder in any process.

        Args:
            name: what is locked.
            wait: seconds to wait for another holder to let go.

        Yields:
            whether the lock is held; false when another holder kept it longer than that.
        """
        with translated(), self._lock_engine.connect() as connection:
            parameters = {"name": "\x1f".join(name)}
            query = text("SELECT pg_try_advisory_lock(hashtextextended(:name, 0))")
            deadline = time.monotonic() + wait
            while (
                not (held := bool(connection.execute(query, parameters).scalar_one())) and time.monotonic() < deadline
            ):
                time.sleep(_LOCK_POLL)
            try:
                yield held
            finally:
                # Closing the connection lets go too, whatever happened to it, but the server takes its time over that.
                with suppress(DBAPIError):
                    connection.execute(text("SELECT pg_advisory_unlock_all()"))

    def close(self) -> None:
        """Close every connection; one that is in use, when its transaction ends."""
        self._ended.set()
        self._engine.dispose()
        self._lock_engine.dispose()

    def _returned(self, _connection: DBAPIConnection | None, entry: ConnectionPoolEntry) -> None:
        if self._ended.is_set():
            entry.invalidate()


def check_schema(connection: Connection) -> None:
    """Compare the database's schema with the one that this library expects.

    Raises:
        SchemaOutOfDate: it is missing, older or newer.
    """
    readable = connection.execute(_VERSION_READABLE).scalar_one()
    if readable is None:
        raise SchemaOutOfDate("the archive has no tables yet: run `memory-pipeline migrate`")
    if not readable:
        raise SchemaOutOfDate("the archive was not migrated for this role: run `memory-pipeline migrate` with its URL")
    found = connection.execute(text("SELECT version_num FROM alembic_version")).scalars().first()
    if found != SCHEMA_REVISION:
        newer = found is not None and found > SCHEMA_REVISION  # revisions are numbers of four digits
        raise SchemaOutOfDate(
            f"the archive's schema is at revision {found or 'none'}, this library expects {SCHEMA_REVISION}: "
            f"{'install the library that belongs to the schema' if newer else 'run `memory-pipeline migrate`'}"
        )


def _check_role(connection: Connection) -> None:
    if not connection.execute(text("SELECT row_security_active('card')")).scalar_one():
        raise InvalidSettings(
            "the role of MEMORY_DATABASE_URL is not bound by row security (it owns the tables, is a superuser, or has "
            "BYPASSRLS): name the runtime role"
        )


@contextmanager
def translated() -> Iterator[None]:
    """Raises the library's errors in place of the driver's, where there is one that says it better."""
    try:
        yield
    except NoConnectionFree:
        raise ArchiveUnavailable(
            f"all {CONNECTIONS} connections of this process to PostgreSQL stayed in use for {_CONNECTION_WAIT:g} s: "
            "ask from fewer threads at once"
        ) from None
    except DBAPIError as error:
        said = _in_words(error)
        if said is None:
            raise
        raise said from None


def _in_words(error: DBAPIError) -> MemoryPipelineError | None:
    """The library's error in place of the driver's; None where there is none that says it better."""
    state, line = getattr(error.orig, "sqlstate", None) or "", first_line(error)
    if isinstance(error, DataError) or (not error.connection_invalidated and state.startswith(_UNKEEPABLE)):
        return InvalidInput(f"the archive cannot keep this ({line}): nothing was changed")
    if isinstance(error, OperationalError | InterfaceError):
        return ArchiveUnavailable(f"{_trouble(error)} ({line})")
    if state in {"42P01", "42703"}:  # undefined table, undefined column
        return SchemaOutOfDate(f"the archive's schema is not the expected one ({line}): run `memory-pipeline migrate`")
    if isinstance(error, IntegrityError) and _lacks_its_workspace(error):
        return UnknownWorkspace("the workspace was removed meanwhile")
    return ArchiveUnavailable(f"PostgreSQL went away ({line})") if error.connection_invalidated else None


# Beside data errors: a limit of the server's, and more memory than a value may take, which it calls an internal error.
_UNKEEPABLE = ("54", "XX000")


def _lacks_its_workspace(error: IntegrityError) -> bool:
    diagnosis = getattr(error.orig, "diag", None)
    return str(getattr(diagnosis, "constraint_name", None)).endswith("_workspace_fkey")


_TROUBLES = {
    "40": "PostgreSQL gave this transaction up for another one: try again",
    "53": "PostgreSQL has run out of what it needs",
    "57": "PostgreSQL stopped the work",
}
"""Class of SQLSTATE → what happened. The server says none to whom it does not let in."""


def _trouble(error: DBAPIError) -> str:
    state = getattr(error.orig, "sqlstate", None)
    if state is None:
        return "no connection to PostgreSQL"
    return _TROUBLES.get(state[:2], "PostgreSQL could not do it")


def first_line(error: DBAPIError) -> str:
    """What the driver said, without the statement and its parameters."""
    return str(error.orig).partition("\n")[0].strip() or type(error.orig).__name__
