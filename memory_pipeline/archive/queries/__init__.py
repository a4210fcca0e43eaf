"""Loads the archive's SQL: files of named, commented statements beside this module."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

from sqlalchemy import TextClause, text

SCHEMA_REVISION = "0006"
"""The revision of the migrations in `sql/` that these statements are written for."""

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


@cache
def load(file: str) -> dict[str, TextClause]:
    """The statements (or, in `fragments`, parts of them) of `<file>.sql` by what stands above each as `-- name: …`."""
    _, *parts = _NAME.split(files(__name__).joinpath(f"{file}.sql").read_text(encoding="utf-8"))
    return {name: text(body.strip()) for name, body in zip(parts[::2], parts[1::2], strict=True)}
