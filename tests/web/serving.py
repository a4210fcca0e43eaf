"""The web as a process of its own, over the home or the archive of a test."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import jwt
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key

from memory_pipeline.settings import Settings
from tests.processes import CHECKOUT

_SECONDS = 60.0


@dataclass(frozen=True)
class Served:
    """A process that answers at an address; `log` holds what it says."""

    process: subprocess.Popen[bytes]
    address: str
    log: Path

    def said(self) -> str:
        return self.log.read_text(encoding="utf-8")

    def end(self, number: int) -> int:
        """Its exit code after a signal."""
        self.process.send_signal(number)
        return self.process.wait(_SECONDS)


@contextmanager
def served(log: Path, environment: Mapping[str, str], *options: str) -> Iterator[Served]:
    """`memory-pipeline serve`, from when it answers until the block ends."""
    port = free_port()
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_")}
    command = [sys.executable, "-m", "memory_pipeline.cli", "serve", "--port", str(port), *options]
    with log.open("ab") as written:
        process = subprocess.Popen(
            command, env={**inherited, "PYTHONPATH": str(CHECKOUT), **environment}, cwd=log.parent, stderr=written
        )
    try:
        address = f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + _SECONDS
        while not answers(f"{address}/health"):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield Served(process, address, log)
    finally:
        process.kill()
        process.wait()


def answers(address: str) -> bool:
    with suppress(httpx.TransportError):
        return httpx.get(address).status_code == 200
    return False


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Issuer:
    """Issues tokens; `environment` is what a process over a test's archive needs to take them."""

    def __init__(self, directory: Path) -> None:
        self._key = generate_private_key(SECP256R1())
        public = jwt.algorithms.ECAlgorithm.to_jwk(self._key.public_key(), as_dict=True)
        self._file = directory / "keys.json"
        self._file.write_text(json.dumps({"keys": [{**public, "kid": "one", "use": "sig", "alg": "ES256"}]}))

    def environment(self, settings: Settings) -> dict[str, str]:
        return {
            "MEMORY_HOME": str(settings.home),
            "MEMORY_SESSIONS_ROOT": str(settings.sessions),
            "MEMORY_DATABASE_URL": settings.database_url.get_secret_value(),
            "MEMORY_JWT_ISSUER": "https://issuer.example",
            "MEMORY_JWT_AUDIENCE": "memory",
            "MEMORY_JWT_KEYS": str(self._file),
        }

    def token(self, name: str) -> str:
        claims = {"iss": "https://issuer.example", "aud": "memory", "sub": name, "exp": int(time.time()) + 600}
        return jwt.encode(claims, self._key, algorithm="ES256", headers={"kid": "one"})
