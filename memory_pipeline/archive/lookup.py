"""What recall asks of the archive: which of the cards found may be shown, and what they say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from memory_pipeline.archive.cards import content_of
from memory_pipeline.archive.queries import load
from memory_pipeline.cards import CardContent, Collection, Dependency, Family

if TYPE_CHECKING:
    from memory_pipeline.archive.database import Row, Tx

_SQL = load("lookup")

_READ_AT_MOST = 1_000  # characters of a detail: no question has a part of a longer one that would count


@dataclass(frozen=True, slots=True)
class Propagation:
    """How far the index follows the archive.

    Attributes:
        pending: points that do not yet hold what the archive wants.
        lost: of the collections that are missing, those that the archive knows to have held points.
    """

    pending: int
    lost: tuple[Collection, ...]


@dataclass(frozen=True, slots=True)
class KnownQuestion:
    """A stored question and the cards behind it; `verbatim` when it is the one asked, word for word."""

    question_id: str
    fingerprint: str
    verbatim: bool
    card_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """What decides whether a card may be shown.

    Attributes:
        card_id: its human id.
        family: its family.
        fingerprint: what its point should hold.
        place: its family, database and schema, and, where they were asked for, its dependencies; no text.
        subject: what it is about; like the detail empty for a solved question.
        detail: the beginning of what it says.
        sessions: how many distinct sessions confirmed it.
        verbatim: whether it is a solved question that was asked word for word.
        decided: what the session that asks has decided about it, "confirmed" (it is a source of it), "rejected", or
            "cited" (in the rationale of an effective clarification); None where it has not, or no session asks.
    """

    card_id: str
    family: Family
    fingerprint: str
    place: CardContent
    subject: str
    detail: str
    sessions: int
    verbatim: bool
    decided: Literal["confirmed", "rejected", "cited"] | None


@dataclass(frozen=True, slots=True)
class ShownCard:
    """A card as it is now; `sessions` counts the distinct sessions that confirmed it."""

    card_id: str
    version: int
    content: CardContent
    sessions: int


@dataclass(frozen=True, slots=True)
class Link:
    """One card points to another, with a meaning."""

    source: str
    target: str
    meaning: str


def propagation(tx: Tx, identity: str, missing: Iterable[Collection]) -> Propagation:
    """How far the index follows the archive for an embedding identity (its hash).

    Args:
        tx: an open transaction.
        identity: the hash of the embedding identity.
        missing: the collections that the index does not have.
    """
    row = tx.row(_SQL["propagation"], identity=identity, missing=[collection.value for collection in missing])
    return Propagation(row["pending"], tuple(Collection(name) for name in row["lost"]))


def questions(tx: Tx, question_ids: Iterable[str], text_key: str) -> list[KnownQuestion]:
    """The stored questions of these ids, and those whose text counts as equal; ids without a question are left out."""
    rows = tx.rows(_SQL["questions"], question_ids=sorted(question_ids), text_key=text_key)
    return [KnownQuestion(**{**row, "card_ids": tuple(row["card_ids"])}) for row in rows]


def candidates(
    tx: Tx, card_ids: Iterable[str], text_key: str, *, session_id: str | None, scoped: bool
) -> dict[str, Candidate]:
    """What decides about the cards of these ids, and about solved questions asked word for word, by card id.

    Args:
        tx: an open transaction.
        card_ids: ids without a card are left out.
        text_key: of the question; "" for none.
        session_id: the session that asks, or None.
        scoped: whether dependencies are needed.
    """
    parameters = {
        "text_key": text_key,
        "session_id": session_id,
        "scoped": scoped,
        "read_at_most": _READ_AT_MOST,
    }
    rows = tx.rows(_SQL["candidates"], card_ids=sorted(card_ids), **parameters)
    return {row["card_id"]: _candidate(row) for row in rows}


def shown(tx: Tx, card_ids: Sequence[str]) -> dict[str, ShownCard]:
    """What cards say, by id; ids without a card are left out."""
    rows = tx.rows(_SQL["shown"], card_ids=list(card_ids))
    return {r["card_id"]: ShownCard(r["card_id"], r["version"], content_of(r), r["sessions"]) for r in rows}


def links(tx: Tx, card_ids: Sequence[str], *, steps: int) -> list[Link]:
    """The links among the cards that are at most `steps` links away from the given ones, by source and target."""
    rows = tx.rows(_SQL["links"], card_ids=list(card_ids), steps=steps)
    return [Link(row["source_id"], row["target_id"], row["meaning"]) for row in rows]


def by_text(tx: Tx, question: str, families: Iterable[Family]) -> dict[str, float]:
    """Card → PostgreSQL's `ts_rank`, for the cards of some families that share a word with a question.

    It takes neither index nor model, and reads the first 100,000 characters of a card.
    """
    rows = tx.rows(_SQL["by_text"], question=question, families=[family.value for family in families])
    return {row["card_id"]: row["rank"] for row in rows}


def _candidate(row: Row) -> Candidate:
    place = _place(row["family"], row["database"], row["schema"], tuple(map(tuple, row["dependencies"])))
    same = ("card_id", "fingerprint", "subject", "detail", "sessions", "verbatim", "decided")
    return Candidate(family=place.family, place=place, **{name: row[name] for name in same})


@lru_cache(maxsize=1024)
def _place(family: str, database: str, schema: str, dependencies: tuple[tuple[str, ...], ...]) -> CardContent:
    # The hundreds of candidates of a search lie in few places, unless their dependencies are asked for.
    named = tuple(Dependency(*names) for names in dependencies)
    return CardContent(family=Family(family), database=database, schema=schema, dependencies=named)
