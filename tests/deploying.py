"""What is deployed, as tests see it: the Compose file, its secrets, and a PostgreSQL server as its image would start it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from sqlalchemy import make_url

from memory_pipeline.embedded import _account, _binaries, _make_passable
from memory_pipeline.settings import Settings, load_settings
from tests.processes import CHECKOUT
from tests.web.serving import free_port

DEPLOY = CHECKOUT / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, Any] = COMPOSE["services"]


def made_secrets(directory: Path, port: int) -> Path:
    """A directory of secrets as `make-secrets` makes it, for a server at a port of this machine."""
    subprocess.run([DEPLOY / "make-secrets", directory], check=True, capture_output=True)
    for file in directory.glob("memory_*_url"):
        url = make_url(file.read_text()).set(host="127.0.0.1", port=port)
        file.chmod(0o600)
        file.write_text(url.render_as_string(hide_password=False))
    return directory


def variables(secrets: Path) -> dict[str, str]:
    """The settings that the files stand for."""
    return {file.name.upper(): file.read_text() for file in secrets.glob("memory_*")}


def settings_of(secrets: Path, directory: Path, **others: object) -> Settings:
    """The settings of those files."""
    given = {name.removeprefix("MEMORY_").lower(): value for name, value in variables(secrets).items()}
    places = {"home": directory / "home", "sessions_root": directory / "sessions"}
    return load_settings(_env_file=None, **places, **given, **others)


@contextmanager
def deployed_postgres(directory: Path) -> Iterator[Path]:
    """A server over TCP that asks for passwords, with the roles and databases that `roles.sql` makes; its secrets."""
    port = free_port()
    secrets = made_secrets(directory / "secrets", port)
    (secrets / "memory_qdrant_api_key").unlink()  # the index is embedded here
    data, password = directory / "data", directory / "password"
    data.mkdir(mode=0o700)
    password.write_text((secrets / "postgres_password").read_text())
    if account := _account():
        _make_passable(data)
        for each in (data, password):
            os.chown(each, account.pw_uid, account.pw_gid)
    _run("initdb", "-D", data, "-U", "postgres", f"--pwfile={password}", "--auth=scram-sha-256")
    options = f"-h 127.0.0.1 -p {port} -k '' -c fsync=off"
    _run("pg_ctl", "start", "-s", "-w", "-D", data, "-l", data / "log", "-o", options)
    try:
        make_roles(secrets, directory, port)
        yield secrets
    finally:
        _run("pg_ctl", "stop", "-s", "-m", "immediate", "-D", data)


def make_roles(secrets: Path, directory: Path, port: int) -> None:
    """Run `roles.sql` as the image's entrypoint does, over secrets of another directory."""
    script = directory / "roles.sql"
    script.write_text((DEPLOY / "roles.sql").read_text().replace("/run/secrets", str(secrets)))
    command = [_binaries() / "psql", "-v", "ON_ERROR_STOP=1", "--no-psqlrc", "-f", script]
    where = ["-h", "127.0.0.1", "-p", str(port), "-U", "postgres", "-d", "postgres"]
    environment = {**os.environ, "PGPASSWORD": (secrets / "postgres_password").read_text()}
    ran = subprocess.run([*command, *where], env=environment, check=True, capture_output=True, text=True)
    assert not any(file.read_text() in ran.stdout + ran.stderr for file in secrets.glob("postgres_*"))


def _run(program: str, *arguments: object) -> None:
    account = _account()
    subprocess.run(
        [_binaries() / program, *map(str, arguments)],
        check=True,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        user=account and account.pw_uid,
        group=account and account.pw_gid,
        extra_groups=account and [],
    )
