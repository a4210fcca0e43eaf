"""What of a workspace the index does not hold yet, item by item, deleted cards included."""

from __future__ import annotations

from collections.abc import Collection as Items
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from memory_pipeline.archive.queries import load
from memory_pipeline.cards import Collection
from memory_pipeline.errors import CardNotFound
from memory_pipeline.text import storable_fault

if TYPE_CHECKING:
    from memory_pipeline.archive.database import Tx

_SQL = load("incomplete")


@dataclass(frozen=True, slots=True)
class Incomplete:
    """One point that does not hold yet what the archive wants.

    Attributes:
        item_id: a card's id, of a deleted one too, or a question's.
        title: what it is about, in its own words, to the beginning; None of one that is gone.
        collection: which collection the point is in.
        removal: whether the point is to go.
        reason: why the last attempt failed; None before the first.
        attempts: how many failed.
        next_try: before when it is not tried again by itself; None when it is due.
        since: since when it is pending.
        identity: the hash of the embedding identity whose point it is.
    """

    item_id: str
    title: str | None
    collection: Collection
    removal: bool
    reason: str | None
    attempts: int
    next_try: datetime | None
    since: datetime
    identity: str


@dataclass(frozen=True, slots=True)
class IncompletePage:
    """Some of the points that are pending, longest waiting first, and how many there are in all."""

    items: tuple[Incomplete, ...]
    total: int


def incomplete(tx: Tx, current: Sequence[str], items: Items[str] | None = None) -> list[Incomplete]:
    """The points that are pending, longest waiting first.

    Args:
        tx: an open transaction.
        current: the hashes of embedding identities. Of one that is not registered, everything is incomplete.
        items: only the points of these; by default all.
    """
    found = [
        Incomplete(**{**row, "collection": Collection(row["collection"])}, identity=identity)
        for identity in current
        for row in tx.rows(_SQL["incomplete"], identity=identity, items=sorted(items or ()), everything=items is None)
    ]
    return sorted(found, key=lambda point: point.since)


def points_of(tx: Tx, card_ids: Iterable[str]) -> set[str]:
    """The items that recall needs for these cards: they themselves, and the questions that they came from."""
    ids = sorted({card_id for card_id in card_ids if not storable_fault(card_id)})
    return {*ids, *(row["question_id"] for row in tx.rows(_SQL["questions_behind"], card_ids=ids))}


def require_known(tx: Tx, card_id: str) -> None:
    """Ask whether the workspace has such a card, or has deleted one whose point is still to be removed.

    Raises:
        CardNotFound: it has not.
    """
    if storable_fault(card_id) or not tx.row(_SQL["known"], card_id=card_id)["known"]:
        raise CardNotFound(f"no card {card_id!r} in workspace {tx.workspace!r}")
