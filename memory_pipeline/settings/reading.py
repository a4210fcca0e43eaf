"""Reads the settings of a process: all faults at once, each with what to do, and no value of a secret."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError
from pydantic_settings import DotEnvSettingsSource, EnvSettingsSource

from memory_pipeline.errors import InvalidSettings
from memory_pipeline.settings.model import Settings
from memory_pipeline.settings.sources import PREFIX, file_fault, setting_of, unread_lines

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_OF_TESTS = "MEMORY_TEST_"
# What Pydantic says of a value in words of Python, in words of a variable.
_WORDS = {
    "dict_type": "write a JSON object",
    "too_short": "write at least {min_length} characters",
    "string_too_short": "write at least {min_length} character(s)",
    "int_parsing": "write a whole number",
    "float_parsing": "write a number",
    "greater_than": "write a number greater than {gt}",
    "less_than_equal": "write a number of at most {le}",
    "literal_error": "write {expected}",
}


def load_settings(**overrides: object) -> Settings:
    """The settings of this process.

    Raises:
        InvalidSettings: naming every fault at once, and no value of a secret.
    """
    examined = examine_settings(**overrides)
    if examined.faults:
        raise InvalidSettings("settings: " + "; ".join(examined.faults))
    return examined.settings


def embedded_settings(home: Path) -> Settings:
    """Settings that run everything from a home with the default model, whatever the environment says."""
    defaults = {name: field.get_default() for name, field in Settings.model_fields.items()}
    return load_settings(**{**defaults, "home": home}, _env_file=None)


@dataclass(frozen=True, slots=True)
class Examined:
    """Settings as far as they can be used.

    Attributes:
        settings: with the default in place of each that cannot be.
        faults: what is wrong, each with what to do, and no value of a secret.
        refused: the settings whose default it is.
    """

    settings: Settings
    faults: tuple[str, ...] = ()
    refused: frozenset[str] = frozenset()


def examine_settings(**overrides: object) -> Examined:
    """What can be used of this process's settings, and every fault of the others."""
    file = overrides.get("_env_file", Settings.model_config["env_file"])
    if fault := _unreadable(file):
        overrides, faults = {**overrides, "_env_file": None}, [fault]
    else:
        faults = _of_file(file)
    refused: dict[str, Any] = {}
    while True:
        try:
            settings = Settings(**{**overrides, **refused})
        except ValidationError as error:
            found = [(_fault(each), _named(each["loc"], each["msg"])) for each in error.errors(include_url=False)]
            # A later round hears what settings say of each other; where one was refused, that may be of its making.
            faults += [fault for fault, names in found if not _groups(names) & _groups(refused)]
            concerned = set().union(*(names for _, names in found))
            # Where a default alone mends nothing, what belongs to it is not used either.
            named = concerned - refused.keys() or _kin(concerned) - refused.keys() or Settings.model_fields.keys()
            refused |= {name: Settings.model_fields[name].get_default() for name in named}
        else:
            return Examined(settings, tuple(faults), frozenset(refused))


def _unreadable(file: object) -> str | None:
    fault = file_fault(Path(file)) if isinstance(file, str | Path) else None
    return fault and f"{file}: {fault}"


def _of_file(file: object) -> list[str]:
    lines = unread_lines(Path(file)) if isinstance(file, str | Path) else []
    return [f"{file}, line {line}: it sets nothing: write NAME=value, and # before a remark" for line in lines]


def _groups(names: Iterable[str]) -> set[str]:
    return {name.partition("_")[0] for name in names}


def _kin(names: Iterable[str]) -> set[str]:
    return {name for name in Settings.model_fields if _groups([name]) & _groups(names)}


def _fault(error: ErrorDetails) -> str:
    said = _WORDS.get(error["type"], "").format(**error.get("ctx", {})) or error["msg"].removeprefix("Value error, ")
    return f"{PREFIX}{str(error['loc'][0]).upper()}: {said}" if error["loc"] else said


def _named(location: tuple[int | str, ...], message: str) -> set[str]:
    """The settings that a fault is of: where it was found, and those that its message names."""
    named = [*re.findall(rf"{PREFIX}[A-Z0-9_]+", message), *(f"{PREFIX}{place}" for place in location[:1])]
    return {name for each in named if (name := setting_of(each, Settings.model_fields))}


@dataclass(frozen=True, slots=True)
class Unknown:
    """A variable, or a file of secrets, that is named like a setting and is none; `meant` is a setting of its like."""

    name: str
    meant: str | None


def unknown_variables(settings: Settings) -> list[Unknown]:
    """What the environment, the `.env` file and the directory of secrets name in vain, since nothing reads it."""
    file = None if _unreadable(Settings.model_config["env_file"]) else Settings.model_config["env_file"]
    variables = {*EnvSettingsSource(Settings).env_vars, *DotEnvSettingsSource(Settings, env_file=file).env_vars}
    files = settings.secrets_dir.iterdir() if settings.secrets_dir else ()
    names = {name.upper() for name in variables} | {file.name.upper() for file in files}
    known = [f"{PREFIX}{name.upper()}" for name in Settings.model_fields]
    return [
        Unknown(name, next(iter(get_close_matches(name, known, n=1, cutoff=0.8)), None))
        for name in sorted(names)
        if name.startswith(PREFIX) and name not in known and not name.startswith(_OF_TESTS)
    ]
