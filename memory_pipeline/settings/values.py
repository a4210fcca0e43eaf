"""Which places, texts, names and objects a setting takes."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, SecretStr
from pydantic_settings import NoDecode

from memory_pipeline.errors import InvalidSettings
from memory_pipeline.lexical import supported_language
from memory_pipeline.text import storable_fault

PLAIN = re.compile(r"[!-~]+")
"""Signs of ASCII, and no blank."""

_OWN_FIELDS = frozenset({"model", "input", "encoding_format"})  # of a request for embeddings
_LONGEST_PRINCIPAL = 255  # characters


def one_place(path: Path) -> Path:
    """The same place from whichever directory, by one spelling."""
    try:
        return path.expanduser().resolve()
    except (OSError, RuntimeError) as error:  # an unknown user after ~, a link that leads to itself
        raise ValueError(f"it is no path: {error}") from None


def _directory(path: Path) -> Path:
    """The same place, which is a directory or not there yet."""
    if os.path.exists(path) and not os.path.isdir(path):  # noqa: PTH110, PTH112  # these never raise
        raise ValueError(f"{path} is a file: name a directory")
    return path


def decoded(given: object, *, of: str) -> object:
    """The JSON that a variable of the environment holds; a program passes the object itself.

    Pydantic's own decoder is left out (`NoDecode`): its message would quote what it could not decode.
    """
    try:
        return json.loads(given) if isinstance(given, str) else given
    except ValueError:  # whose message may quote a part of it
        raise ValueError(f"it is not JSON: write an object, {of}") from None


def _fields(given: object) -> object:
    found = decoded(given, of="field → value")
    if not isinstance(found, dict) or found.keys() & _OWN_FIELDS:
        raise ValueError(f"write a JSON object of fields other than {', '.join(sorted(_OWN_FIELDS))}")
    return found


def _names(given: object) -> object:
    """What a variable of the environment lists; a program passes the names themselves."""
    return tuple(filter(None, map(str.strip, given.split(",")))) if isinstance(given, str) else given


def _language(name: str) -> str:
    try:
        return supported_language(name)
    except InvalidSettings as error:
        raise ValueError(str(error)) from None


def _principal(name: str) -> str:
    if fault := storable_fault(name):
        raise ValueError(f"{fault}: write it in UTF-8")
    if not name.strip() or len(name) > _LONGEST_PRINCIPAL:
        raise ValueError(f"it has to be a name of 1 to {_LONGEST_PRINCIPAL} characters")
    return name


def _server_key(key: SecretStr) -> SecretStr:
    if not PLAIN.fullmatch(key.get_secret_value()):
        raise ValueError("a key has neither blanks nor signs beyond ASCII")
    return key


Place = Annotated[Path, AfterValidator(one_place)]
Directory = Annotated[Place, AfterValidator(_directory)]
Language = Annotated[str, AfterValidator(_language)]
Principal = Annotated[str, AfterValidator(_principal)]
Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_names)]
ServerKey = Annotated[SecretStr, AfterValidator(_server_key)]
Fields = Annotated[dict[str, Any], NoDecode, BeforeValidator(_fields)]
