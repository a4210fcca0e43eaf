"""Counts the SQL statements of this process: those on the archive, and those on Dagster's storage."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from sqlalchemy import Engine, event


@dataclass
class Statements:
    """The statements that were executed, in their order, without their parameters."""

    archive: list[str] = field(default_factory=list)
    dagster: list[str] = field(default_factory=list)


@contextmanager
def counting() -> Iterator[Statements]:
    """Counts while the block runs, whatever engine is asked. The archive's driver is psycopg, Dagster's psycopg2."""
    counted = Statements()

    def count(connection, cursor, statement, *_: object) -> None:
        of_dagster = connection.dialect.driver == "psycopg2"
        (counted.dagster if of_dagster else counted.archive).append(statement)

    event.listen(Engine, "before_cursor_execute", count)
    try:
        yield counted
    finally:
        event.remove(Engine, "before_cursor_execute", count)
