"""Makes tokens of SQL, as sqlglot reads it, once for all who ask about the same text one after the other."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlglot import Token


@lru_cache(maxsize=1)  # those of the longest SQL that is read are some megabytes
def tokens(sql: str, dialect: str) -> tuple[Token, ...]:
    """The tokens of a text, in order.

    Raises:
        Exception: whatever sqlglot trips over.
    """
    import sqlglot

    return tuple(sqlglot.tokenize(sql, dialect=dialect))
