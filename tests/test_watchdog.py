"""Whoever stays up over the embedded PostgreSQL starts it again, while that is of use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_pipeline import embedded, watchdog
from memory_pipeline.embedded import EmbeddedPostgres
from memory_pipeline.errors import ArchiveUnavailable
from memory_pipeline.watchdog import STARTS, Watchdog
from tests.processes import kill_postmaster


@pytest.fixture(scope="module")
def embedded_home(scratch: Path) -> Path:
    with EmbeddedPostgres(scratch / "watched") as server:
        server.start(create=True)
    return scratch / "watched"


@pytest.fixture
def server(embedded_home: Path) -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres(embedded_home) as running:
        running.start(create=False)
        yield running


def test_a_server_that_is_killed_now_and_then_is_started_each_time(server, embedded_home: Path, monkeypatch):
    monkeypatch.setattr(watchdog, "_STEADY_SECONDS", 0.0)
    watching = Watchdog(server, print)
    for _ in range(STARTS + 1):
        kill_postmaster(embedded_home)
        watching.look()
        assert server.runs()


def test_a_server_that_does_not_stay_up_is_an_error(server, embedded_home: Path):
    watching = Watchdog(server, print)
    for _ in range(STARTS):
        kill_postmaster(embedded_home)
        watching.look()
    kill_postmaster(embedded_home)
    with pytest.raises(ArchiveUnavailable, match=rf"started 3 times and is gone again; its log is {server.log}"):
        watching.look()


def test_a_server_that_does_not_start_again_is_an_error_after_some_tries(
    server, embedded_home: Path, monkeypatch, capsys
):
    monkeypatch.setattr(embedded, "_LAUNCHES_AFTER_CRASH", 1)
    configuration = embedded_home / "postgres" / "postgresql.conf"
    original = configuration.read_text()
    configuration.write_text("max_connections = none\n")
    kill_postmaster(embedded_home)
    watching = Watchdog(server, print)
    for _ in range(STARTS - 1):
        watching.look()
    with pytest.raises(ArchiveUnavailable, match="did not start"):
        watching.look()
    assert capsys.readouterr().out.count("did not start") == STARTS - 1
    configuration.write_text(original)
