"""What the archive's tests share: one workspace, and connections of both roles."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import Settings
from tests.archives import Archive, connected


@pytest.fixture
def archive(runtime: Runtime) -> Archive:
    return Archive(runtime)


@pytest.fixture
def owner(settings: Settings) -> Iterator[psycopg.Connection]:
    """A connection of the owner, whom row security does not bind."""
    with connected(settings.owner_url) as connection:
        yield connection


@pytest.fixture
def stranger(settings: Settings) -> Iterator[psycopg.Connection]:
    """A connection of the runtime role that names no workspace unless told to."""
    with connected(settings.database_url) as connection:
        yield connection
