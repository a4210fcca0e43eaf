"""The web as a process: how it starts, what it says, and how it ends."""

from __future__ import annotations

import logging
import re
import shutil
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import httpx
import psycopg
import pytest
from sqlalchemy import make_url

from memory_pipeline import extras
from memory_pipeline.embedded import EmbeddedPostgres
from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import Settings, embedded_settings
from memory_pipeline.web.discretion import Discreet
from tests.command_line import runner
from tests.curating import CLINIC, a_workspace
from tests.processes import kill_postmaster, postmaster
from tests.web.serving import Issuer, served


@pytest.fixture
def home(scratch: Path):
    """A home with a workspace, whose server runs only while somebody uses it."""
    directory = scratch / "served"
    with Runtime(embedded_settings(directory), create=True) as runtime:
        runtime.migrate()
        a_workspace(runtime)
    yield directory
    with EmbeddedPostgres(directory) as server:  # whatever a killed process left behind
        server.start(create=False)
    shutil.rmtree(directory)


@pytest.fixture
def issuer(tmp_path: Path) -> Issuer:
    return Issuer(tmp_path)


def test_the_token_is_shown_once_and_nothing_that_was_sent_is_in_the_log(home: Path, tmp_path: Path):
    for signal_number, times in ((signal.SIGTERM, 1), (signal.SIGINT, 0), (signal.SIGHUP, 0)):
        with ExitStack() as stack:
            web = stack.enter_context(served(tmp_path / f"log-{signal_number}", {"MEMORY_HOME": str(home)}))
            token = (home / "administrator.token").read_text().strip()
            ask = stack.enter_context(httpx.Client(base_url=web.address, headers={"Authorization": f"Bearer {token}"}))
            card = {"family": "concept", "subject": "geheim", "detail": "geheim"}
            assert ask.post(f"/api/v1/workspaces/{CLINIC}/cards", json=card).status_code == 200
            assert ask.get(f"/api/v1/workspaces/{CLINIC}/cards", params={"text": "geheim"}).json()["total"]
            assert ask.get("/geheim", headers={"Cookie": "memory_session=geheim"}).status_code == 404
            assert ask.get("/api/v1/workspaces", headers={"Authorization": "Bearer geheim"}).status_code == 401

            assert web.end(signal_number) == 0
            assert web.said().count(token) == times
            assert "geheim" not in web.said()
            assert "GET /api/v1/workspaces/{workspace}/cards 200 " in web.said()
            assert f"Open {web.address}; Ctrl-C stops it." in web.said()
        assert postmaster(home) is None  # nobody else used it
    assert (home / "administrator.token").stat().st_mode & 0o777 == 0o600


def test_a_server_that_is_killed_comes_back(home: Path, tmp_path: Path):
    with served(tmp_path / "log", {"MEMORY_HOME": str(home)}) as web:
        kill_postmaster(home)
        while "PostgreSQL was gone; it runs again." not in web.said():
            assert web.process.poll() is None
            time.sleep(0.1)
        while httpx.get(f"{web.address}/ready").status_code != 200:
            assert web.process.poll() is None
        assert web.end(signal.SIGTERM) == 0


@pytest.fixture
def lock(settings: Settings):
    """A connection that holds a table, so that whoever reads it waits."""
    url = make_url(settings.owner_url.get_secret_value()).set(drivername="postgresql")
    with psycopg.connect(url.render_as_string(hide_password=False)) as connection:
        connection.execute("LOCK TABLE card IN ACCESS EXCLUSIVE MODE")
        yield connection


@pytest.mark.parametrize("released", [True, False], ids=["that ends", "that does not end"])
def test_a_request_under_way_is_finished_and_keeps_nothing_from_ending(
    released, settings, runtime, issuer, lock, superuser, tmp_path
):
    a_workspace(runtime)
    headers = {"Authorization": f"Bearer {issuer.token('tester')}"}
    with served(tmp_path / "log", issuer.environment(settings)) as web, ThreadPoolExecutor() as pool:
        url = f"{web.address}/api/v1/workspaces/{CLINIC}/cards"
        asked = pool.submit(httpx.get, url, headers=headers, timeout=60)
        while not superuser.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone()[0]:
            assert not asked.done()
            time.sleep(0.05)
        web.process.send_signal(signal.SIGTERM)
        if released:
            lock.rollback()
            assert asked.result().status_code == 200
        assert web.process.wait(60) == 0
        assert ("was left" in web.said()) is not released


def test_a_server_of_somebodys_own_that_is_away_may_come_later(settings, issuer, tmp_path):
    away = {"MEMORY_DATABASE_URL": "postgresql+psycopg://memory_runtime:geheim@127.0.0.1:9/memory"}
    with served(tmp_path / "log", {**issuer.environment(settings), **away}) as web:
        answer = httpx.get(f"{web.address}/ready")
        assert (answer.status_code, answer.json()["wrong"]) == (503, {"archive": "PostgreSQL cannot be reached"})
        assert "starting all the same" in web.said()
        assert "geheim" not in web.said() + answer.text


def test_what_keeps_it_from_starting_is_one_line_and_an_exit_code(settings, superuser, monkeypatch, capsys):
    def refused(used: Settings, *options: str, **environment: str) -> tuple[int, str]:
        with pytest.MonkeyPatch.context() as patch:
            run = runner(used, patch, capsys)
            for name, value in environment.items():
                patch.setenv(name, value)
            code, out, err = run("serve", *options)
            assert (out, err.count("\n")) == ("", 1)
            return code, err

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert refused(settings, "--port", str(taken.getsockname()[1]))[0] == 4
    assert refused(settings, "--host", "203.0.113.7")[0] == 4
    code, said = refused(settings)
    assert (code, "MEMORY_JWT_ISSUER" in said) == (3, True)
    assert refused(settings, MEMORY_DATABASE_URL="", MEMORY_OWNER_URL="")[0] == 11
    with Runtime(settings) as runtime, runtime.database.registry() as connection:
        name = connection.exec_driver_sql("SELECT current_database()").scalar_one()
    with psycopg.connect(superuser.info.dsn, dbname=name, autocommit=True) as other:
        other.execute("UPDATE alembic_version SET version_num = '0001'")
    assert refused(settings)[0] == 12
    monkeypatch.setitem(extras.NEEDED, "web", ("no_such_package",))
    code, said = refused(settings)
    assert (code, "memory-pipeline[web]" in said) == (3, True)


def test_beyond_the_loopback_address_it_says_what_is_needed(settings, runtime, issuer, tmp_path):
    with served(tmp_path / "log", issuer.environment(settings), "--host", "0.0.0.0") as web:  # noqa: S104  # what it is about
        assert re.search(r"warning: .*TLS.*MEMORY_WEB_HOSTS \(now: none\)", web.said())
        assert httpx.get(f"{web.address}/health", headers={"Host": "elsewhere.example"}).status_code == 400


def test_the_log_says_where_an_error_is_and_not_what_it_says():
    def broken() -> None:
        try:
            int("geheim")
        except ValueError as cause:
            raise RuntimeError("geheim") from cause

    with pytest.raises(RuntimeError) as caught:
        broken()
    given = (RuntimeError, caught.value, caught.tb)
    record = logging.LogRecord("uvicorn.error", logging.ERROR, "", 1, "Exception in ASGI application", (), given)
    said = Discreet("%(name)s: %(message)s").format(record)
    assert said.startswith("uvicorn.error: Exception in ASGI application\nbuiltins.RuntimeError\n")
    assert "\nbuiltins.ValueError\n" in said
    assert "test_serve.py" in said
    assert "geheim" not in said
