"""The shapes of the domain: families, cards, dependencies, and what a workspace may be called."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from memory_pipeline.errors import UnknownWorkspace

_LONGEST_NAME = 255  # bytes
_LONGEST_SHOWN = 80
WORKSPACE_PATTERN = "[a-z0-9][a-z0-9_-]{0,62}"
"""What a workspace's name looks like."""


class Family(StrEnum):
    """What kind of reusable knowledge a card is."""

    CONCEPT = "concept"
    SQL_RULE = "sql_rule"
    PITFALL = "pitfall"
    SOLVED_QUESTION = "solved_question"

    @property
    def id_prefix(self) -> str:
        """The prefix of the human ids of the family's cards."""
        return "sq" if self is Family.SOLVED_QUESTION else "mem"

    @property
    def collection(self) -> Collection:
        """The collection that holds the family's points."""
        return Collection.SOLVED_QUESTIONS if self is Family.SOLVED_QUESTION else Collection.MEMORY_CARDS


class Collection(StrEnum):
    """The kinds of points, kept apart."""

    MEMORY_CARDS = "memory_cards"
    SOLVED_QUESTIONS = "solved_questions"
    QUESTIONS = "questions"


class Flag(StrEnum):
    """What an administrator should look at: a card has any number of these."""

    LEDGER_DIFFERS = "ledger_differs"
    SOURCES_WITHDRAWN = "sources_withdrawn"
    SQL_UNPARSED = "sql_unparsed"

    @property
    def meaning(self) -> str:
        """What it says of a card, in words for people."""
        return _MEANINGS[self]


_MEANINGS = {
    Flag.LEDGER_DIFFERS: "it was edited, and its ledgers say something else",
    Flag.SOURCES_WITHDRAWN: "it was edited, and no reviewer stands behind it any more",
    Flag.SQL_UNPARSED: "its dependencies are unknown",
}


@dataclass(frozen=True, slots=True, order=True)
class Dependency:
    """A database object that a card depends on; "" where a level does not apply."""

    database: str = ""
    schema: str = ""
    table: str = ""
    column: str = ""

    @property
    def plausible(self) -> bool:
        """Whether a database could hold an object of these names: no system allows names of more than 255 bytes.

        PostgreSQL could not index longer ones either, and one such name would stop all others of its workspace.
        """
        return all(
            len(name.encode()) <= _LONGEST_NAME for name in (self.database, self.schema, self.table, self.column)
        )

    @property
    def dotted(self) -> str:
        """Its name for people, the innermost level last."""
        return ".".join(level for level in (self.database, self.schema, self.table, self.column) if level)


@dataclass(frozen=True, slots=True)
class CardContent:
    """What a card says. A change of any field is a change of content and counts in the card's version.

    A solved question uses question, sql, dialect and context; the other families use subject, detail, rationale and
    concepts. `dialect` is sqlglot's name of what the SQL is written in.
    """

    family: Family
    subject: str = ""
    detail: str = ""
    rationale: str = ""
    question: str = ""
    sql: str = ""
    dialect: str = ""
    context: str = ""
    database: str = ""
    schema: str = ""
    concepts: tuple[str, ...] = ()
    dependencies: tuple[Dependency, ...] = ()

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables that the card depends on, once each, sorted."""
        return tuple(sorted({d.table for d in self.dependencies if d.table}))

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that the card depends on, once each, sorted."""
        return tuple(sorted({d.column for d in self.dependencies if d.column}))


def is_workspace_name(name: str) -> bool:
    """Whether a workspace may be called so; see `WORKSPACE_PATTERN`."""
    return re.fullmatch(WORKSPACE_PATTERN, name) is not None


def workspace_name(name: object) -> str:
    """The name, if a workspace may be called so.

    Raises:
        UnknownWorkspace: it is missing or malformed; there is no wildcard and no default.
    """
    if not isinstance(name, str) or not is_workspace_name(name):
        shown = name if isinstance(name, str) and len(name) <= _LONGEST_SHOWN else type(name).__name__
        raise UnknownWorkspace(
            f"{shown!r} is not a workspace: name one, in lower-case letters, digits, '-' and '_' (at most 63, "
            "beginning with a letter or digit)"
        )
    return name
