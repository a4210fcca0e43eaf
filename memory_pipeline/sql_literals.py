"""Finds the texts that a piece of SQL compares columns with (pure; tokens by sqlglot)."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from memory_pipeline.shapes import could_be_named, folded
from memory_pipeline.sql_tokens import tokens

if TYPE_CHECKING:
    from sqlglot import Token

_READ_AT_MOST = 50_000  # characters
_TRIES = 4
_QUOTES = "'\"`"

# Names of sqlglot's types of tokens:
_TEXTS = {"STRING", "NATIONAL_STRING", "BYTE_STRING", "RAW_STRING", "UNICODE_STRING", "HEREDOC_STRING"}
_COMPARES = {"EQ", "NEQ", "NULLSAFE_EQ", "LT", "LTE", "GT", "GTE", "IN", "BETWEEN"} | {
    "LIKE",
    "ILIKE",
    "GLOB",
    "RLIKE",
    "IRLIKE",
    "SIMILAR_TO",
}
# A text right after them is a value: BETWEEN 'a' AND 'b', IS DISTINCT FROM 'a', CASE city WHEN 'Roma'.
_MAY_COMPARE = {"AND", "FROM", "WHEN"}
_BEFORE_OPERAND = {"WHERE", "ON", "HAVING", "OR", "NOT", "L_PAREN"}  # 'Roma' = city
_OPENS = {"L_PAREN", "L_BRACKET"}
_CLOSES = {"R_PAREN", "R_BRACKET"}
_NO_FUNCTIONS = {"SELECT", "WITH", "CASE", "INTERVAL"}
_LISTS = {"IN", "ANY", "ALL", "SOME", "ARRAY", "ROW", "UNNEST"}

_Group = Literal["values", "argument", "other"]


@lru_cache(maxsize=1_000)  # more than one batch of an intake, which reads them ahead
def sql_literals(sql: str, dialect: str) -> frozenset[str]:
    """The texts that a piece of SQL compares columns with, folded, as far as a question could name them.

    Not those that it formats, labels or cuts dates with ('month' of date_trunc, what follows THEN): a question has such
    words whatever values it asks about. A function of one text is looked through: `= lower('Roma')`.

    Tokens are enough, so that it takes next to no time, and SQL that cannot be parsed has literals too. What stands in
    double quotes is one only where it is compared with: SQLite and MySQL take it for a text there, whatever the dialect
    was declared to be. The pattern of a LIKE gives the texts between its `%`.

    Args:
        sql: one statement or several; of a very long one the beginning is read.
        dialect: sqlglot's name of the SQL dialect.
    """
    found = (folded(part) for literal in _compared(*_tokens(sql, dialect)) for part in literal.split("%"))
    return frozenset(text for text in found if could_be_named(text))


def _tokens(sql: str, dialect: str) -> tuple[str, Sequence[Token]]:
    """As much of the SQL as can be read, and its tokens: of a text with a quote left open there are none at all."""
    logging.getLogger("sqlglot").setLevel(logging.ERROR)
    read = sql[:_READ_AT_MOST]
    for _ in range(_TRIES):
        try:
            return read, tokens(read, dialect)
        except Exception:  # noqa: BLE001  # whatever a tokenizer may trip over, one text does not stop the others' intake
            read = read[: max(0, *(read.rfind(quote) for quote in _QUOTES))]
    return "", ()


def _compared(sql: str, tokens: Sequence[Token]) -> Iterator[str]:
    groups: list[_Group] = ["other"]  # what each open bracket holds
    compared = False  # whether the token is, or begins, what something is compared with
    for before, token, after in zip(tokens, tokens[1:], [*tokens[2:], None], strict=False):
        named = compared and _names_function(before)
        was, now, then = (each.token_type.name if each else "" for each in (before, token, after))
        compared = (
            was in _COMPARES
            or (was in _OPENS and groups[-1] != "other")
            or (was == "COMMA" and groups[-1] == "values")
            or (named and now in _OPENS | _TEXTS)  # = lower('Roma'), = DATE '2020-01-01'
        )
        if now in _OPENS:
            groups.append(_group(before, call=named) if compared else "other")
        elif now in _CLOSES and len(groups) > 1:
            groups.pop()
        elif now in {"SELECT", "WITH"}:
            groups[-1] = "other"
        elif groups[-1] == "argument" and then not in _CLOSES | {"ALIAS"}:
            continue  # one argument of several
        elif sql[token.start] == '"':
            if compared and then != "DOT":
                yield token.text
        elif now in _TEXTS and (compared or was in _MAY_COMPARE or (was in _BEFORE_OPERAND and then in _COMPARES)):
            yield token.text


def _names_function(token: Token) -> bool:
    return token.text[:1].isalpha() and token.token_type.name not in _NO_FUNCTIONS | _TEXTS


def _group(before: Token, *, call: bool) -> _Group:
    return "argument" if call and before.text.upper() not in _LISTS else "values"
