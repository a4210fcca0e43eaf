"""Where settings come from besides a program: variables, the `.env` file, and files of secrets."""

from __future__ import annotations

import logging
from collections.abc import Container
from io import StringIO
from pathlib import Path
from typing import Any

from dotenv.parser import parse_stream
from pydantic_settings import SecretsSettingsSource, SettingsError

PREFIX = "MEMORY_"
"""How every variable begins that is a setting."""

logging.getLogger("dotenv.main").setLevel(logging.ERROR)  # of lines that it leaves out: the settings' faults name them


def file_fault(file: Path) -> str | None:
    """What is wrong with an `.env` file, whose reader raises for it; None where it can be read, or there is none."""
    try:
        if file.is_file():
            file.read_text(encoding="utf-8")
    except OSError as error:
        return f"it cannot be read ({error.strerror}): make it readable, or take it away"
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        return f"it cannot be read, since line {line} is not UTF-8: save it in UTF-8"
    return None


def unread_lines(file: Path) -> list[int]:
    """The lines of an `.env` file that say something and set nothing, by number: its reader leaves them out in silence.

    Those of a file that cannot be read are none, since whoever reads it says so.
    """
    try:
        lines = list(parse_stream(StringIO(file.read_text(encoding="utf-8"))))
    except (OSError, UnicodeDecodeError):
        return []
    unread = [
        line for line in lines if line.error or (line.value is None and (line.key or "").upper().startswith(PREFIX))
    ]
    return [line.original.line + _blank_lines(line.original.string) for line in unread]


def setting_of(variable: str, settings: Container[str]) -> str | None:
    """The setting that a variable, or a file of secrets, is named for, in any case; None where there is none."""
    name = variable.lower().removeprefix(PREFIX.lower())
    return name if name != variable.lower() and name in settings else None


def readable(directory: Path, settings: Container[str]) -> Path:
    """The same directory, whose files of settings can be read: without them others would be used in silence.

    Raises:
        ValueError: it cannot be read, or one of these files cannot.
    """
    try:
        unread = [file.name for file in directory.iterdir() if setting_of(file.name, settings) and _unreadable(file)]
    except OSError as error:
        raise ValueError(f"{directory} cannot be read ({error.strerror}): name the directory of the secrets") from None
    if unread:
        raise ValueError(f"{', '.join(sorted(unread))} cannot be read in it: a secret is a file of UTF-8 text")
    return directory


class Secrets(SecretsSettingsSource):
    """Files named like variables, in the directory that the sources before this one name."""

    def __call__(self) -> dict[str, Any]:
        """What the files hold; of a directory that cannot be read nothing, since its setting is refused."""
        self.secrets_dir = self.current_state.get("secrets_dir")
        try:
            return super().__call__() if self.secrets_dir and Path(self.secrets_dir).expanduser().is_dir() else {}
        except (SettingsError, OSError, RuntimeError):
            return {}


def _blank_lines(text: str) -> int:
    return text[: len(text) - len(text.lstrip())].count("\n")


def _unreadable(file: Path) -> bool:
    try:
        file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return True
    return False
