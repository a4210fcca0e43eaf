"""What all tests share: a place for servers' data, one PostgreSQL server, and in it a fresh archive for each test."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from functools import cache
from itertools import count
from pathlib import Path
from typing import LiteralString

import psycopg
import pytest
from pydantic import SecretStr
from sqlalchemy import make_url

from memory_pipeline.archive.database import Database
from memory_pipeline.archive.migrate import migrate
from memory_pipeline.embedded import EmbeddedPostgres, EmbeddedUrls
from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import Settings, load_settings
from tests.embedding_servers import Front, ModelServer, in_front_of

_DATA = Path(__file__).parents[2] / "shared" / "data"  # beside the checkout
_MEMORY = Path("/dev/shm")  # noqa: S108  # a directory of its own is made in it
_ROOM = 2 * 1024**3
_numbers = count(1)
NOBODY = 65534  # a user


@pytest.fixture(scope="session", autouse=True)
def _no_settings_of_the_developer() -> Iterator[None]:
    """No test reads the settings of whoever runs it, but for those that are meant for tests."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [n for n in os.environ if n.startswith("MEMORY_") and not n.startswith("MEMORY_TEST_")]:
            patch.delenv(name)
        yield


@pytest.fixture(scope="session")
def bird() -> Path:
    """The real sessions with the numbers that were counted for them; a test that wants them is skipped without."""
    directory = Path(os.environ.get("MEMORY_TEST_DATA") or _DATA) / "bird"
    if not directory.is_dir():
        pytest.skip(f"no real sessions in {directory}: set MEMORY_TEST_DATA to the directory that holds bird/")
    return directory


@pytest.fixture(scope="session", autouse=True)
def _interruptible() -> None:
    """What a run in the background or under nohup ignores, the programs that tests start would ignore too."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session")
def scratch() -> Iterator[Path]:
    """A directory with a short path for the homes of servers; in memory where there is room, since they sync a lot.

    Not one of pytest's: each run makes those private again, also under a server of another run that root runs as
    another user, and three generations of data stay behind in them.
    """
    roomy = os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _ROOM
    with tempfile.TemporaryDirectory(prefix="memory-", dir=_MEMORY if roomy else None) as directory:
        yield Path(directory).resolve()


@pytest.fixture(scope="session", autouse=True)
def _temporary_files_beside_it(scratch: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Whoever scans an index copies it to a temporary file; pytest's own directories stay where they are."""
    tmp_path_factory.getbasetemp()
    with pytest.MonkeyPatch.context() as patch:
        if scratch.is_relative_to(_MEMORY):  # elsewhere nothing is won, and a longer path may not fit a socket
            patch.setenv("TMPDIR", str(scratch))
            patch.setattr(tempfile, "tempdir", None)
        yield


@pytest.fixture(scope="session")
def postgres(scratch: Path) -> Iterator[EmbeddedUrls]:
    """One server for the whole run: its databases hold nothing but what tests put there."""
    with EmbeddedPostgres(scratch / "shared") as server:
        yield server.start(create=True)


@pytest.fixture(scope="session")
def superuser(postgres: EmbeddedUrls) -> Iterator[psycopg.Connection]:
    """The server's superuser, who alone makes databases; the library itself never connects so."""
    url = make_url(postgres.owner.get_secret_value()).set(
        drivername="postgresql", username="postgres", database="postgres"
    )
    with psycopg.connect(url.render_as_string(hide_password=False), autocommit=True) as connection:
        for setting in ("fsync", "full_page_writes"):  # nothing here has to survive the machine
            connection.execute(f"ALTER SYSTEM SET {setting} = off".encode())
        connection.execute("SELECT pg_reload_conf()")
        yield connection


@pytest.fixture(scope="session")
def migrated_template(postgres: EmbeddedUrls, superuser: psycopg.Connection) -> str:
    """A migrated database that nobody is connected to; copying it takes some hundredths of a second."""
    name = make_database(superuser, owner="memory_owner")
    migrate(in_database(postgres.owner, name), in_database(postgres.archive, name))
    return name


@pytest.fixture
def room(scratch: Path) -> Iterator[Path]:
    """A directory of one test beside the servers' data, for indexes and ledgers, which sync a lot too.

    Not for tests of an index's holes: in memory, what the engine maps has none.
    """
    with tempfile.TemporaryDirectory(dir=scratch) as directory:
        yield Path(directory)


@pytest.fixture
def blank_settings(postgres: EmbeddedUrls, superuser: psycopg.Connection, room: Path) -> Iterator[Settings]:
    """Settings whose archive nobody has migrated yet."""
    name = make_database(superuser, owner="memory_owner")
    yield settings_of(postgres, name, room)
    drop_database(superuser, name)


@pytest.fixture
def settings(
    postgres: EmbeddedUrls, superuser: psycopg.Connection, migrated_template: str, room: Path
) -> Iterator[Settings]:
    """Settings of one test: a migrated archive without workspaces, an empty sessions root, a home for the index."""
    name = make_database(superuser, owner="memory_owner", template=migrated_template)
    yield settings_of(postgres, name, room)
    drop_database(superuser, name)


@pytest.fixture
def dagster_settings(settings: Settings, postgres: EmbeddedUrls, superuser: psycopg.Connection) -> Iterator[Settings]:
    """The same settings, with an empty database for Dagster's storage."""
    name = make_database(superuser, owner="memory_dagster")
    yield settings.model_copy(update={"dagster_url": in_database(postgres.dagster, name)})
    drop_database(superuser, name)


@pytest.fixture
def runtime(settings: Settings) -> Iterator[Runtime]:
    """The services behind the settings, closed at the end of the test."""
    with Runtime(settings) as opened:
        yield opened


@pytest.fixture(scope="session")
def model_server() -> Iterator[str]:
    """The address of a real embeddings server, which no test stops."""
    server = ModelServer()
    server.start()
    yield server.url
    server.kill()


@pytest.fixture
def front(model_server: str) -> Iterator[Front]:
    """A server of one test in front of it."""
    with in_front_of(model_server) as opened:
        yield opened


@pytest.fixture
def database(runtime: Runtime) -> Database:
    """The archive under the runtime role."""
    return runtime.database


@pytest.fixture
def permissions(tmp_path):
    """A user whom permissions hold back: root, whom they do not, becomes another for as long as the test lasts."""
    if os.geteuid() != 0:
        yield
        return
    os.chown(tmp_path, NOBODY, NOBODY)
    for directory in tmp_path.parents:
        if (mode := directory.stat().st_mode) & 0o011 != 0o011:
            directory.chmod(mode | 0o011)  # its group stays the same, and others may have been let in already
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def make_database(superuser: psycopg.Connection, *, owner: LiteralString, template: str = "template0") -> str:
    """Make a database with the rights that the embedded server gives its own; its name."""
    name = f"test_{next(_numbers)}"
    statements = [
        # Copying files takes a quarter of what writing each page into the log does.
        f"CREATE DATABASE {name} OWNER {owner} TEMPLATE {template} STRATEGY FILE_COPY",
        f"REVOKE ALL ON DATABASE {name} FROM PUBLIC",
        f"GRANT CONNECT ON DATABASE {name} TO memory_runtime",
    ]
    for statement in statements:
        superuser.execute(statement.encode())
    return name


def drop_database(superuser: psycopg.Connection, name: str) -> None:
    """Drop a database, whoever is connected still."""
    superuser.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def in_database(url: SecretStr, name: str) -> SecretStr:
    """The same server and role, another database."""
    return SecretStr(make_url(url.get_secret_value()).set(database=name).render_as_string(hide_password=False))


def settings_of(postgres: EmbeddedUrls, name: str, directory: Path) -> Settings:
    """Settings of one database of the server, with everything else in the directory."""
    sessions = directory / "sessions"
    sessions.mkdir()
    own = {
        "home": directory / "home",
        "sessions_root": sessions,
        "database_url": in_database(postgres.archive, name),
        "owner_url": in_database(postgres.owner, name),
    }
    return _usual_settings(postgres).model_copy(update=own)


@cache
def _usual_settings(postgres: EmbeddedUrls) -> Settings:
    """What all tests begin with, read once: to look at every variable takes longer than to make a database."""
    return load_settings(_env_file=None, database_url=postgres.archive, owner_url=postgres.owner, principal="tester")
