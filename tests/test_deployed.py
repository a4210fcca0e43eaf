"""What the containers run, started as plain processes: the commands of the Compose file over a PostgreSQL of its kind."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Self

import httpx
import pytest
from psycopg import OperationalError
from sqlalchemy import make_url

from memory_pipeline.archive.ingest import ingest
from memory_pipeline.embedded import _binaries
from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import Settings
from tests import guide
from tests.archives import connected
from tests.builders import a_session, aged, clarified, promoted
from tests.conftest import in_database
from tests.deploying import DEPLOY, SERVICES, deployed_postgres, settings_of
from tests.processes import CHECKOUT
from tests.web.issuing import AUDIENCE, ISSUER, Key, key_set
from tests.web.serving import free_port

_SECONDS = 120.0


@pytest.fixture
def secrets(room: Path) -> Iterator[Path]:
    """Those of a server whose roles and databases `roles.sql` has made."""
    with deployed_postgres(room) as found:
        yield found


@pytest.fixture
def deployed(secrets: Path, room: Path) -> Settings:
    """The settings of what is deployed; nothing is migrated yet."""
    (room / "sessions").mkdir()
    return settings_of(secrets, room)


def sessions(deployed: Settings) -> None:
    aged(a_session(deployed.sessions, clarified(1), promoted(2, 1), workspace="clinic"))


def test_the_roles_suffice_to_migrate_and_to_ingest(deployed: Settings):
    sessions(deployed)
    with Runtime(deployed) as runtime:
        runtime.migrate()  # which refuses roles that cannot be told apart
        report = ingest(runtime.database, "clinic", deployed, runtime.identity)
    assert report.concepts.created == 1


@pytest.mark.parametrize("url", ["owner_url", "database_url", "dagster_url"])
def test_no_role_is_a_superuser_or_passes_row_security_by(deployed: Settings, url: str):
    attributes = "rolsuper, rolbypassrls, rolcreaterole, rolcreatedb, rolreplication"
    with connected(getattr(deployed, url)) as connection:
        found = connection.execute(f"SELECT {attributes} FROM pg_roles WHERE rolname = current_user").fetchone()
    assert found == (False,) * 5


@pytest.mark.parametrize(("url", "database"), [("database_url", "dagster"), ("dagster_url", "memory")])
def test_a_role_enters_no_database_but_its_own(deployed: Settings, url: str, database: str):
    with pytest.raises(OperationalError, match="permission denied"):
        connected(in_database(getattr(deployed, url), database))


def test_everything_runs_and_a_session_becomes_recallable(deployed: Settings, secrets: Path, room: Path):
    sessions(deployed)
    with Deployment(secrets, room) as running:
        assert running.run(SERVICES["migrate"]["command"]) == 0
        running.start("code")
        for name in ("daemon", "webserver", "page"):
            running.start(name)
        wait_for("the card", lambda: running.recallable() == 1)
        assert httpx.get(f"http://127.0.0.1:{running.ports['8000']}/ready").json()["ready"]
        assert running.healthy("code")
        assert running.healthy("daemon")
        assert not running.ended()


def test_a_backup_is_restored_with_the_commands_of_the_guide(deployed: Settings, secrets: Path, room: Path):
    back_up, *restore = guide.commands("Backing up and restoring", "deployment")
    sessions(deployed)
    with Deployment(secrets, room) as running:
        assert running.run(SERVICES["migrate"]["command"]) == 0
        assert running.run(["memory-pipeline", "ingest"]) == 0
        running.type(back_up)
        assert (room / "memory.dump").stat().st_mode & 0o077 == 0
        create = "memory-pipeline card create --workspace clinic --family pitfall --subject later --detail later"
        assert running.run([*create.split(), "--no-propagate"]) == 0
        shutil.rmtree(room / "home" / "index", ignore_errors=True)
        for command in restore:
            running.type(command)
        assert running.recallable() == 1
    with connected(deployed.owner_url) as owner:
        assert owner.execute("SELECT tableowner FROM pg_tables WHERE tablename = 'card'").fetchall() == [
            ("memory_owner",)
        ]
    with connected(in_database(deployed.owner_url, "memory_former")) as former:
        assert former.execute("SELECT count(*) FROM card WHERE subject = 'later'").fetchone() == (1,)


class Deployment:
    """The services of the Compose file on this machine: what differs are ports, paths, and that the index is embedded."""

    def __init__(self, secrets: Path, directory: Path) -> None:
        self.ports = {number: str(free_port()) for number in ("3000", "4000", "8000")}
        self._directory = directory
        self._secrets = secrets
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        home = directory / "dagster"
        home.mkdir()
        shutil.copy(CHECKOUT / "memory_pipeline" / "dagster.yaml", home)
        workspace = (DEPLOY / "workspace.yaml").read_text().replace("host: code", "host: 127.0.0.1")
        (directory / "workspace.yaml").write_text(workspace.replace("4000", self.ports["4000"]))
        (directory / "keys.json").write_text(key_set(Key()))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._processes.values()):
            process.terminate()
            process.wait(_SECONDS)

    def start(self, service: str) -> None:
        """Start a service, and wait until it is healthy."""
        with (self._directory / f"{service}.log").open("wb") as log:
            command = self._here(SERVICES[service]["command"])
            self._processes[service] = subprocess.Popen(
                command, env=self._environment(), cwd="/", stdout=log, stderr=log
            )
        wait_for(f"{service}", lambda: service in self.ended() or self.healthy(service))
        assert service not in self.ended(), (self._directory / f"{service}.log").read_text()

    def run(self, command: list[str]) -> int:
        return subprocess.run(self._here(command), env=self._environment(), cwd="/", check=False).returncode

    def type(self, command: str) -> None:
        """Type a command of the guide. What it runs in a container is run here; what starts and stops these is left out."""
        words = r"docker compose -f deploy/compose.yaml (up|stop|run --rm|exec --user postgres --no-TTY) ?(\w*) ?"
        [(verb, service)] = re.findall(words, command)
        if verb in {"up", "stop"}:
            return
        typed = re.sub(words, "", command) or shlex.join(SERVICES[service]["command"])
        environment = {**self._environment(), **(self._as_superuser() if service == "postgres" else {})}
        if service != "postgres":
            typed = f"{DEPLOY}/entrypoint.sh {typed}"
        subprocess.run(["bash", "-euc", typed], env=environment, cwd=self._directory, check=True)

    def _as_superuser(self) -> dict[str, str]:
        url = make_url((self._secrets / "memory_owner_url").read_text())
        return {
            "PATH": f"{_binaries()}:{os.environ['PATH']}",
            "PGHOST": str(url.host),
            "PGPORT": str(url.port),
            "PGUSER": "postgres",
            "PGPASSWORD": (self._secrets / "postgres_password").read_text(),
        }

    def healthy(self, service: str) -> bool:
        """What the health check of a service says."""
        test = self._here([word for word in SERVICES[service]["healthcheck"]["test"][1:] if "entrypoint" not in word])
        return not subprocess.run(test, env=self._environment(), cwd="/", capture_output=True, check=False).returncode

    def ended(self) -> list[str]:
        return [name for name, process in self._processes.items() if process.poll() is not None]

    def recallable(self) -> int:
        """How many concepts the index holds."""
        command = self._here(["memory-pipeline", "status", "--json"])
        said = subprocess.run(command, env=self._environment(), cwd="/", capture_output=True, text=True, check=True)
        found = json.loads(said.stdout)["workspaces"].get("clinic")
        return found["cards"]["concept"] if found and not found["pending"] else 0

    def _here(self, command: list[str]) -> list[str]:
        replaced = {
            **self.ports,
            "0.0.0.0": "127.0.0.1",  # noqa: S104  # what is replaced
            "/app/deploy/workspace.yaml": str(self._directory / "workspace.yaml"),
            "/app": str(CHECKOUT),
        }
        words = [replaced.get(word, word) for word in command]
        words = [
            word.replace(":3000", f":{self.ports['3000']}").replace(":8000", f":{self.ports['8000']}") for word in words
        ]
        return [str(DEPLOY / "entrypoint.sh"), *words]

    def _environment(self) -> Mapping[str, str]:
        foreign = {n: v for n, v in os.environ.items() if not n.startswith(("MEMORY_", "DAGSTER"))}
        return {
            **foreign,
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            "PYTHONPATH": str(CHECKOUT),
            "DAGSTER_HOME": str(self._directory / "dagster"),
            "MEMORY_SECRETS_DIR": str(self._secrets),
            "MEMORY_HOME": str(self._directory / "home"),
            "MEMORY_SESSIONS_ROOT": str(self._directory / "sessions"),
            "MEMORY_JWT_ISSUER": ISSUER,
            "MEMORY_JWT_AUDIENCE": AUDIENCE,
            "MEMORY_JWT_KEYS": str(self._directory / "keys.json"),
        }


def wait_for(what: str, holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _SECONDS
    while not holds():
        assert time.monotonic() < deadline, f"{what} did not come in {_SECONDS:.0f} s"
        time.sleep(0.5)
