"""The program in this process, on a test's own archive."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable

import pytest

from memory_pipeline import cli
from memory_pipeline.settings import Settings

Run = Callable[..., tuple[int, str, str]]


def runner(settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """A function that runs the program with arguments; it returns exit code, standard output and standard error.

    `stdin` is what it reads, `answer` what somebody at a terminal types.
    """
    environment = {
        "MEMORY_HOME": str(settings.home),
        "MEMORY_SESSIONS_ROOT": str(settings.sessions),
        "MEMORY_PRINCIPAL": settings.acting_principal,
    }
    urls = {"MEMORY_DATABASE_URL": settings.database_url, "MEMORY_OWNER_URL": settings.owner_url}
    environment |= {name: url.get_secret_value() for name, url in urls.items() if url}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    def run(*arguments: str, stdin: str = "", answer: str | None = None) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["memory-pipeline", *arguments])
        monkeypatch.setattr(sys, "stdin", Terminal(f"{answer}\n") if answer else a_pipe(stdin))
        with pytest.raises(SystemExit) as stop:
            cli.main()
        captured = capsys.readouterr()
        return int(stop.value.code or 0), captured.out, captured.err

    return run


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def a_pipe(text: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8")
