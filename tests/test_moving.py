"""From the embedded home to servers, with the commands of the guide: recall answers the same before and after."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from dagster import DagsterInstance
from qdrant_client import QdrantClient

from memory_pipeline import Recall, embedded
from memory_pipeline.archive.grants import Role
from memory_pipeline.archive.ingest import ingest
from memory_pipeline.curation import Curation
from memory_pipeline.dagster_home import dagster_environment
from memory_pipeline.edits import Change, Delete, Link
from memory_pipeline.index.server import QdrantServerIndex
from memory_pipeline.propagation import audit, project, repair
from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import Settings, embedded_settings, load_settings
from tests import guide
from tests.builders import a_session, aged, approved, clarified, promoted
from tests.command_line import runner
from tests.curating import CLINIC, a_creation
from tests.doubles import HashEmbedder, WatchedIndex

pytestmark = pytest.mark.filterwarnings("ignore:Payload indexes have no effect in the local Qdrant")

ASKED = ("subject 1: detail 1", "How many active patients are there?", "by hand")
PASSWORD = "o@wn"  # noqa: S105  # with a sign that a URL has to escape


@dataclass(frozen=True)
class Server:
    """A PostgreSQL that asks for a password, on a port of this machine."""

    port: int

    def execute(self, *statements: str) -> None:
        with self.connected("admin", "postgres") as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def empty(self) -> None:
        """Make the databases anew, whoever is connected."""
        for database, owner in (("memory", "memory_owner"), ("dagster", "memory_dagster")):
            self.execute(
                f"DROP DATABASE {database} WITH (FORCE)",
                f"CREATE DATABASE {database} OWNER {owner} ENCODING 'UTF8' TEMPLATE template0",
            )

    def connected(self, user: str, database: str) -> psycopg.Connection:
        at = {"host": "127.0.0.1", "port": self.port, "user": user, "password": PASSWORD}
        return psycopg.connect(**at, dbname=database, autocommit=True)


@pytest.fixture(scope="module")
def server(scratch: Path) -> Iterator[Server]:
    """A server that has nothing but the roles and databases of the guide."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    directory = Path(tempfile.mkdtemp(dir=scratch))
    account = embedded._account()
    if account:
        embedded._make_passable(directory)
        os.chown(directory, account.pw_uid, account.pw_gid)
    (directory / "password").write_text(PASSWORD)
    (directory / "password").chmod(0o644)

    def run(program: str, *arguments: str) -> None:
        who = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []} if account else {}
        command = [embedded._binaries() / program, "--pgdata", directory / "data", *arguments]
        subprocess.run(command, check=True, cwd="/", stdout=subprocess.DEVNULL, **who)

    run("initdb", "--username=admin", f"--pwfile={directory / 'password'}", "--auth=scram-sha-256", "--no-sync")
    run("pg_ctl", "start", "-w", "-l", str(directory / "log"), "-o", f"-h 127.0.0.1 -p {port} -k {directory}")
    try:
        made = Server(port)
        roles = re.findall(r"^ {4}(CREATE .*?;)", guide.section("Servers of your own"), re.MULTILINE)
        made.execute(*(statement.replace("…", PASSWORD) for statement in roles))
        yield made
    finally:
        run("pg_ctl", "stop", "-m", "immediate")


@pytest.fixture
def home(scratch: Path) -> Iterator[Settings]:
    """The settings of an embedded home that nothing was done in yet."""
    with tempfile.TemporaryDirectory(dir=scratch) as directory:
        yield embedded_settings(Path(directory) / ".memory").model_copy(update={"principal": "anna"})


@pytest.fixture
def servers(home: Settings, server: Server) -> Iterator[Settings]:
    """The settings of the guide for the server, in whose archive there is nothing yet."""
    text = guide.section("Servers of your own")
    urls = dict(re.findall(r"^ {4}(MEMORY_\w+_URL)=(postgresql\S+)", text, re.MULTILINE))
    at = {name: url.replace("…", "o%40wn").replace("@db/", f"@127.0.0.1:{server.port}/") for name, url in urls.items()}
    overrides = {name.removeprefix("MEMORY_").lower(): url for name, url in at.items()}
    place = {"home": home.home.parent / "elsewhere", "sessions_root": home.sessions, "qdrant_url": "http://in-memory"}
    yield load_settings(_env_file=None, principal="anna", **overrides, **place)
    server.empty()


def opened(settings: Settings) -> Runtime:
    """The services of the settings, with a stand-in for the model and, over servers, Qdrant in memory."""
    runtime = Runtime(settings, create=True)
    runtime.embedder = HashEmbedder()
    index = QdrantServerIndex(QdrantClient(":memory:")) if settings.qdrant_url else runtime.index
    runtime.index = WatchedIndex(index)
    return runtime


def work(runtime: Runtime) -> None:
    """Cards from sessions and by hand, with edits, a link, a deletion and a grant, all projected."""
    runtime.migrate()
    for number in range(4):
        said = clarified(1, f"subject {number}", f"detail {number}"), approved(2), promoted(3, 1)
        aged(a_session(runtime.settings.sessions, *said, session=f"s{number}", question=f"question {number}?"))
    ingest(runtime.database, CLINIC, runtime.settings, runtime.identity)
    project(runtime, CLINIC)
    anna = Curation(runtime)
    anna.save(CLINIC, a_creation(Link("mem-0001", "see also"), subject="by hand"))
    anna.save(CLINIC, Change("mem-0002", 1, {"detail": "edited"}))
    anna.save(CLINIC, Delete("mem-0003", 1))
    anna.give(CLINIC, "ben", Role.REVIEWER)
    ingest(runtime.database, CLINIC, runtime.settings, runtime.identity)  # which compares what was edited with ledgers


def answers(runtime: Runtime) -> list[tuple[str, list[tuple[str, str, float]], int]]:
    """What recall answers: per question the hits in their order with what each says and scores, and what is pending."""
    found = [(asked, Recall(runtime).search(CLINIC, asked, limit=20)) for asked in ASKED]
    return [
        (asked, [(h.card_id, h.detail or h.sql, round(h.score, 4)) for h in r.hits], r.pending) for asked, r in found
    ]


def exported(settings: Settings, monkeypatch, capsys) -> list[str]:
    code, out, err = runner(settings, monkeypatch, capsys)("export", "--workspace", CLINIC)
    assert (code, err) == (0, "")
    return out.splitlines()


def shell(command: str, home: Settings, server: Server) -> None:
    """Type a command of the guide where the home is, with the program's environment in `.venv`."""
    typed = command.replace("host=db", f"host=127.0.0.1 port={server.port}")
    (home.home.parent / ".venv").unlink(missing_ok=True)
    (home.home.parent / ".venv").symlink_to(sys.prefix)
    environment = {"PATH": f"{embedded._binaries()}:{os.environ['PATH']}", "PGPASSWORD": PASSWORD}
    subprocess.run(["bash", "-euc", typed], cwd=home.home.parent, env=environment, check=True)


def test_a_dump_of_the_home_is_restored_on_a_server_and_recall_answers_the_same(
    home: Settings, servers: Settings, server: Server, monkeypatch, capsys
):
    moving = guide.commands("Moving from the embedded home to servers")
    with opened(home) as runtime:
        work(runtime)
        before = answers(runtime)
        kept = exported(home, monkeypatch, capsys)
        shell("\n".join(each for each in moving if "BIN" in each), home, server)
    with opened(servers) as runtime:
        runtime.migrate()
        assert project(runtime, CLINIC).pending == 0
        assert runtime.embedder.embedded == 0  # the vectors moved with the archive
        assert answers(runtime) == before
        assert not audit(runtime, CLINIC)
        assert ingest(runtime.database, CLINIC, servers, runtime.identity).sessions.read == 0
        assert {grant.principal: grant.role for grant in Curation(runtime).grants(CLINIC)} == {
            "anna": Role.ADMINISTRATOR,
            "ben": Role.REVIEWER,
        }
    assert exported(servers, monkeypatch, capsys) == kept
    with server.connected("memory_owner", "memory") as owner:
        [(rights,)] = owner.execute("SELECT proacl::text FROM pg_proc WHERE proname = 'remove_workspace'")
    assert sorted(each.split("=")[0] for each in rights.strip("{}").split(",")) == ["memory_owner", "memory_runtime"]


def test_an_export_of_the_home_is_imported_on_a_server_and_recall_answers_the_same(
    home: Settings, servers: Settings, monkeypatch, capsys
):
    with opened(home) as runtime:
        work(runtime)
        before = answers(runtime)
        kept = exported(home, monkeypatch, capsys)
    with opened(servers) as runtime:
        runtime.migrate()
        arrived = "\n".join(kept) + "\n"
        code, _, err = runner(servers, monkeypatch, capsys)("import", "-", "--workspace", CLINIC, stdin=arrived)
        assert (code, err) == (0, "")
        ingest(runtime.database, CLINIC, servers, runtime.identity)
        project(runtime, CLINIC)
        assert answers(runtime) == before
        assert not audit(runtime, CLINIC)
        assert [grant.principal for grant in Curation(runtime).grants(CLINIC)] == ["anna"]
    assert exported(servers, monkeypatch, capsys) == kept


def test_an_archive_on_a_server_is_restored_from_its_dump_beside_a_newer_index(
    home: Settings, servers: Settings, server: Server
):
    dump, restore, *_ = guide.commands("An archive on a server")
    with opened(servers) as runtime:
        work(runtime)
        before = answers(runtime)
        shell(dump, home, server)
        assert (home.home.parent / "memory.dump").stat().st_mode & 0o077 == 0
        Curation(runtime).save(CLINIC, Change("mem-0002", 2, {"detail": "after the backup"}))
        Curation(runtime).save(CLINIC, Delete("mem-0001", 2))
        newer = runtime.index
        server.empty()
        shell(restore, home, server)
        runtime.database.close()
        with opened(servers) as again:
            again.index = newer
            again.migrate()
            assert repair(again, CLINIC).counts
            assert ingest(again.database, CLINIC, servers, again.identity).sessions.read == 0
            project(again, CLINIC)
            assert not audit(again, CLINIC)
            assert answers(again) == before


def test_the_runtime_role_cannot_make_a_dump_that_lacks_rows(home: Settings, servers: Settings, server: Server):
    with opened(servers) as runtime:
        runtime.migrate()
    dump, *_ = guide.commands("An archive on a server")
    with pytest.raises(subprocess.CalledProcessError):
        shell(dump.replace("memory_owner", "memory_runtime"), home, server)


def test_dagster_makes_its_tables_in_the_new_database(home: Settings, servers: Settings, monkeypatch):
    with Runtime(servers) as runtime:
        for name, value in dagster_environment(runtime).items():
            monkeypatch.setenv(name, value)
    with DagsterInstance.get() as instance:
        assert instance.get_runs_count() == 0
