"""Prepares what Dagster's processes are started with: `<home>/dagster/dagster.yaml` and their environment."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import SecretStr

if TYPE_CHECKING:
    from memory_pipeline.runtime import Runtime
    from memory_pipeline.settings import Settings

CHECKOUT = Path(__file__).resolve().parents[1]
"""Where the assets, sensors and migrations are, which the installed package lacks."""

DAGSTER_YAML = Path(__file__).with_name("dagster.yaml").read_text(encoding="utf-8")
"""How Dagster is configured, in whichever set-up."""

_HEAD = "# Written by memory-pipeline at each start; changes made here are lost.\n"


def dagster_home(settings: Settings) -> Path:
    """Dagster's own directory in the home."""
    return settings.home.expanduser().resolve() / "dagster"


def write_dagster_home(settings: Settings) -> Path:
    """Make Dagster's directory with its configuration, and return it."""
    directory = dagster_home(settings)
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / "dagster.yaml"
    wanted = _HEAD + DAGSTER_YAML
    if not file.exists() or file.read_text(encoding="utf-8") != wanted:
        aside = file.with_suffix(f".{os.getpid()}")  # a process that starts meanwhile reads the old or the new one
        aside.write_text(wanted, encoding="utf-8")
        aside.replace(file)
    return directory


def dagster_environment(runtime: Runtime) -> dict[str, str]:
    """The environment of Dagster's processes, in which they find the same services from any directory.

    Makes Dagster's directory where there is none.

    Raises:
        InvalidSettings: the archive is a server and no database is named for Dagster.
        ArchiveUnavailable: the embedded server does not start.
    """
    settings = runtime.settings
    # Every setting is written out, and none inherited: another working directory has another .env file.
    foreign = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_")}
    return {
        **foreign,
        **_as_environment(settings),
        # Dagster's processes import the code location from the checkout, installed or not.
        "PYTHONPATH": os.pathsep.join(filter(None, [str(CHECKOUT), os.environ.get("PYTHONPATH")])),
        "DAGSTER_HOME": str(write_dagster_home(settings)),
        "MEMORY_DAGSTER_URL": runtime.dagster_url.get_secret_value(),
        "MEMORY_HOME": str(settings.home.expanduser().resolve()),
        "MEMORY_SESSIONS_ROOT": str(settings.sessions.expanduser().resolve()),
    }


def _as_environment(settings: Settings) -> dict[str, str]:
    return {f"MEMORY_{name.upper()}": _as_text(value) for name, value in settings if value is not None}


def _as_text(value: object) -> str:
    if isinstance(value, dict):
        return json.dumps({name: _as_text(item) for name, item in value.items()})
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return value.get_secret_value() if isinstance(value, SecretStr) else str(value)
