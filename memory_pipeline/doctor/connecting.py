"""Connections of checks: short, bounded, and unable to change anything."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import SecretStr
from sqlalchemy import Connection, NullPool, create_engine, text

from memory_pipeline.archive.database import translated
from memory_pipeline.doctor.base import SOON

_STATEMENT_TIMEOUT = text("SELECT set_config('statement_timeout', :milliseconds, true)")


@contextmanager
def connected(url: SecretStr) -> Iterator[Connection]:
    """A transaction on PostgreSQL that only reads.

    Raises:
        ArchiveUnavailable: the server does not answer, or does not let the role in.
    """
    engine = create_engine(
        url.get_secret_value(),
        poolclass=NullPool,
        hide_parameters=True,
        connect_args={"connect_timeout": round(SOON), "application_name": "memory-pipeline doctor"},
        execution_options={"postgresql_readonly": True},
    )
    with translated(), engine.connect() as connection:
        connection.execute(_STATEMENT_TIMEOUT, {"milliseconds": str(round(SOON * 1_000))})
        yield connection
