"""What is asked: a question with its limits and filters, checked before anything is opened."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from memory_pipeline.cards import CardContent, Collection, Family, workspace_name
from memory_pipeline.errors import InvalidInput
from memory_pipeline.points import card_filters
from memory_pipeline.text import equality_key, nfc, storable_fault

QUESTION_AT_MOST = 20_000  # characters; no question is longer, and a model would read only its beginning
LIMIT_AT_MOST = 1000


@dataclass(frozen=True, slots=True)
class Scope:
    """Keeps the cards that belong to a database or schema, and that name a table or column.

    A card has to match every field that is given; one that says nothing about a field does not match it. Database and
    schema are those of the card itself and are compared exactly. Table and column are those that it depends on,
    compared without case and each for itself: the column may be one of another table.
    """

    database: str | None = None
    schema: str | None = None
    table: str | None = None
    column: str | None = None

    @property
    def filters(self) -> dict[str, tuple[str, ...]]:
        """The payload fields that have to match, with the value of each."""
        asked = {
            "database": self.database,
            "schema": self.schema,
            "tables": self.table and self.table.casefold(),
            "columns": self.column and self.column.casefold(),
        }
        return {field: (value,) for field, value in asked.items() if value}

    def holds(self, content: CardContent) -> bool:
        """Whether a card is within the scope, by the same fields that its point carries."""
        asked = self.filters
        if not asked:  # as for most searches, for each of their hundreds of candidates
            return True
        fields = card_filters(content)
        return all(not set(wanted).isdisjoint(_values(fields.get(name, ()))) for name, wanted in asked.items())


@dataclass(frozen=True, slots=True)
class Request:
    """A checked search. `families` are distinct and never empty."""

    workspace: str
    question: str
    limit: int
    families: tuple[Family, ...]
    scope: Scope
    session_id: str | None
    expand_links: bool
    degraded: bool
    explain: bool = False

    @property
    def text_key(self) -> str:
        """Equal for questions that count as the same, word for word."""
        return equality_key(self.question)

    @property
    def collections(self) -> tuple[Collection, ...]:
        """The collections that can lead to a card of the families asked for."""
        homes = {family.collection for family in self.families}
        reachable = homes | ({Collection.QUESTIONS} if Collection.MEMORY_CARDS in homes else set())
        return tuple(collection for collection in Collection if collection in reachable)

    def must(self, collection: Collection) -> Mapping[str, tuple[str, ...]]:
        """The filters of searches in a collection. The point of a question carries none."""
        if collection is Collection.QUESTIONS:
            return {}
        here = [family for family in Family if family.collection is collection]
        asked = tuple(family.value for family in here if family in self.families)
        return self.scope.filters | ({"family": asked} if len(asked) < len(here) else {})


def checked_request(
    workspace: str,
    question: str,
    *,
    limit: int,
    families: Iterable[str] | None,
    scope: Scope | None,
    session_id: str | None,
    expand_links: bool,
    degraded: bool,
    explain: bool = False,
) -> Request:
    """The request, if it can be answered.

    Raises:
        UnknownWorkspace: the workspace is missing or no name.
        InvalidInput: the question is blank, too long, or no text; the limit is out of range; a family is unknown; the
            scope or session is no text.
    """
    return Request(
        workspace=workspace_name(workspace),
        question=_question(question),
        limit=_limit(limit),
        families=_families(families),
        scope=_scope(scope),
        session_id=None if session_id is None else _text("session", session_id),
        expand_links=expand_links,
        degraded=degraded,
        explain=explain,
    )


def _question(question: object) -> str:
    text = _text("question", question)
    if len(text) > QUESTION_AT_MOST:
        raise InvalidInput(f"the question has {len(text):,} characters: ask in at most {QUESTION_AT_MOST:,}")
    return nfc(text).strip()


def _limit(limit: object) -> int:
    if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= LIMIT_AT_MOST:
        raise InvalidInput(f"the limit is {limit!r}: ask for 1 to {LIMIT_AT_MOST} cards")
    return limit


def _families(families: Iterable[str] | None) -> tuple[Family, ...]:
    if families is None:
        return tuple(Family)
    asked = list(families) if isinstance(families, Iterable) and not isinstance(families, str) else [families]
    known = list(Family)
    if not asked or any(name not in known for name in asked):
        unknown = ", ".join(repr(name) for name in asked if name not in known) or "none"
        raise InvalidInput(f"families: {unknown:.200} given; there are {', '.join(Family)}")
    return tuple(family for family in Family if family in asked)


def _scope(scope: Scope | None) -> Scope:
    if scope is not None and not isinstance(scope, Scope):
        raise InvalidInput("the scope is none: give a `Scope(database=…, schema=…, table=…, column=…)`")
    for field, value in asdict(scope).items() if scope else ():
        if value is not None:
            _text(f"scope's {field}", value)
    return scope or Scope()


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput(f"the {name} is empty" if isinstance(value, str) else f"the {name} is no text")
    if fault := storable_fault(value):
        raise InvalidInput(f"the {name} cannot be used: {fault}")
    return value


def _values(field: str | int | tuple[str, ...]) -> tuple[str, ...]:
    return field if isinstance(field, tuple) else (str(field),)
