"""What each point should hold and is known to hold: pending work, certification, deferral.

A mutation of a card or question makes its projections pending by a trigger of the schema; nothing here has to
remember it.
"""

from __future__ import annotations

from collections.abc import Collection as Items
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memory_pipeline.archive import cards
from memory_pipeline.archive.queries import load
from memory_pipeline.cards import CardContent, Collection
from memory_pipeline.text import readable

if TYPE_CHECKING:
    from memory_pipeline.archive.database import Tx

_SQL = load("projections")
_REASON = 500  # characters


@dataclass(frozen=True, slots=True)
class Wanted:
    """The current state of one pending item: what its point should hold, read from the archive, never from a request.

    Attributes:
        item_id: a card's id or a question's.
        fingerprint: None when there is to be no point.
        version: of the card; a question's is always 1.
        content: of a card, or None.
        question: the text of a question, or None.
        literals: those of the workspace that a solved question names.
    """

    item_id: str
    fingerprint: str | None
    version: int = 1
    content: CardContent | None = None
    question: str | None = None
    literals: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Waiting:
    """The pending points of a workspace.

    Attributes:
        pending: how many do not hold yet what the archive wants.
        due: whether some of them can be tried now; the others wait for their next try.
        oldest: since when the longest waiting one is pending.
    """

    pending: int
    due: bool
    oldest: datetime | None


@dataclass(frozen=True, slots=True)
class CollectionState:
    """How far the projections of one collection are."""

    collection: Collection
    certified: int
    pending: int
    oldest_pending: datetime | None


@dataclass(frozen=True, slots=True)
class PendingReason:
    """Why some points of a workspace are still pending, or pending again.

    Attributes:
        reason: what the last attempt failed with, or what the audit found.
        points: how many are pending for it.
        deferred: how many of them an attempt has failed for, and that are put off since.
        attempts: how many failed for the one that was tried most often.
        next_try: when the first of them is tried again; None when all that were put off may be tried now.
    """

    reason: str
    points: int
    deferred: int
    attempts: int
    next_try: datetime | None

    def as_json(self) -> dict[str, Any]:
        """The reason as JSON-ready values."""
        return {**asdict(self), "next_try": self.next_try.isoformat() if self.next_try else None}


def pending(
    tx: Tx, identity: str, collection: Collection, limit: int, *, items: Items[str] | None = None
) -> list[Wanted]:
    """The next pending items, each with its current state: the least often tried first, then the longest waiting.

    Args:
        tx: an open transaction.
        identity: the hash of the embedding identity.
        collection: which collection.
        limit: how many at most. Items that wait for their next try are not among them.
        items: only some of these; by default of all.
    """
    among = None if items is None else sorted(items)
    rows = tx.rows(_SQL["pending"], identity=identity, collection=collection.value, limit=limit, items=among)
    ids = [row["item_id"] for row in rows]
    current = _questions(tx, ids) if collection is Collection.QUESTIONS else _cards(tx, ids)
    return [current.get(item_id, Wanted(item_id, None)) for item_id in ids]


def made_pending(tx: Tx, since: datetime | None = None) -> set[str]:
    """The items whose points became pending since a moment, by default since the transaction began."""
    return {str(row["item_id"]) for row in tx.rows(_SQL["made_pending"], since=since)}


def certify(
    tx: Tx, identity: str, collection: Collection, held: Mapping[str, str], *, truncated: Items[str] = ()
) -> int:
    """Record what the index confirmed to hold, where the archive still wants just that.

    Args:
        tx: an open transaction.
        identity: the hash of the embedding identity.
        collection: which collection.
        held: item → fingerprint that its point now holds.
        truncated: the items with a text that is longer than what the model reads at once.

    Returns:
        how many were certified; the others were overtaken by a newer change and stay pending.
    """
    fingerprints, cut = list(held.values()), [item in truncated for item in held]
    return _change(tx, "certify", identity, collection, list(held), fingerprints=fingerprints, truncated=cut)


def certify_removed(tx: Tx, identity: str, collection: Collection, items: Sequence[str]) -> int:
    """Forget the projections whose points the index confirmed to have removed, where none is wanted still."""
    return _change(tx, "certify_removed", identity, collection, items)


def kept_reason(said: str) -> str:
    """What somebody said, an index or a model that quotes a text for instance, as PostgreSQL can keep it."""
    return readable(said)[:_REASON]


def defer(tx: Tx, identity: str, collection: Collection, items: Sequence[str], reason: str) -> int:
    """Leave items pending with a reason; each further attempt waits twice as long, up to an hour."""
    return _change(tx, "defer", identity, collection, items, reason=kept_reason(reason))


def hasten(tx: Tx, identity: str, collection: Collection, items: Items[str] | None = None) -> int:
    """Let the items (by default all) that wait for their next try be taken at once; how many did."""
    tx.wait_for_writers()
    among = None if items is None else sorted(items)
    return tx.run(_SQL["hasten"], identity=identity, collection=collection.value, items=among)


def distrust(tx: Tx, identity: str, collection: Collection, items: Sequence[str], reason: str) -> int:
    """Make items pending, and due, whose points are not what the archive believed them to be."""
    return _change(tx, "distrust", identity, collection, items, reason=kept_reason(reason))


def distrust_all(tx: Tx, reason: str) -> None:
    """Make every item of the workspace pending, for every embedding identity; `tx` was opened with `writing=True`."""
    tx.run(_SQL["distrust_all"], reason=reason)


def waiting(tx: Tx, identity: str) -> Waiting:
    """What is pending for an embedding identity (its hash): everything, where it is not registered."""
    row = tx.row(_SQL["waiting"], identity=identity)
    return Waiting(row["pending"], row["due"], row["oldest"])


def wanted(tx: Tx, identity: str, collections: Sequence[Collection], *, certified: bool) -> dict[Collection, int]:
    """Collection → points that the archive wants in it, where there are any.

    Args:
        tx: an open transaction.
        identity: the hash of the embedding identity.
        collections: which collections.
        certified: whether only those count that the index was seen to hold.
    """
    parameters = {"identity": identity, "collections": [c.value for c in collections], "certified": certified}
    return {Collection(row["collection"]): row["points"] for row in tx.rows(_SQL["wanted"], **parameters)}


def states(tx: Tx, identity: str) -> list[CollectionState]:
    """How far each collection is, in the order of `Collection`."""
    rows = {row["collection"]: row for row in tx.rows(_SQL["states"], identity=identity)}
    return [
        CollectionState(c, row["certified"], row["pending"], row["oldest_pending"])
        if (row := rows.get(c.value))
        else CollectionState(c, 0, 0, None)
        for c in Collection
    ]


def reasons(tx: Tx, identity: str) -> dict[str, int]:
    """Why items are still pending after an attempt, with how many are."""
    return {each.reason: each.points for each in pending_reasons(tx, identity)}


def pending_reasons(tx: Tx, identity: str) -> list[PendingReason]:
    """Why items are still pending, with their attempts and the next one; what most are pending for first."""
    return [PendingReason(**row) for row in tx.rows(_SQL["reasons"], identity=identity)]


def _change(
    tx: Tx, query: str, identity: str, collection: Collection, items: Sequence[str], **parameters: object
) -> int:
    if not items:
        return 0
    # A writer of cards changes the same rows by triggers, in an order of its own: at once they would deadlock.
    tx.wait_for_writers()
    return tx.run(_SQL[query], identity=identity, collection=collection.value, items=list(items), **parameters)


def _cards(tx: Tx, ids: Sequence[str]) -> dict[str, Wanted]:
    return {
        row["card_id"]: Wanted(
            item_id=row["card_id"],
            fingerprint=row["fingerprint"],
            version=row["version"],
            content=cards.content_of(row),
            literals=tuple(row["named_literals"]),
        )
        for row in cards.full_rows(tx, ids)
    }


def _questions(tx: Tx, ids: Sequence[str]) -> dict[str, Wanted]:
    rows = tx.rows(_SQL["questions"], question_ids=list(ids))
    return {r["question_id"]: Wanted(r["question_id"], r["fingerprint"], question=r["text"]) for r in rows}
