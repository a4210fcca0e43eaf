"""What an audit asks the archive, a batch of items at a time, and what the archive keeps of the last one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memory_pipeline.archive.projections import kept_reason
from memory_pipeline.archive.queries import load
from memory_pipeline.cards import Collection

if TYPE_CHECKING:
    from sqlalchemy import RowMapping

    from memory_pipeline.archive.database import Tx

_SQL = load("audit")


@dataclass(frozen=True, slots=True)
class Expected:
    """What the archive expects of one item's point.

    Attributes:
        fingerprint: what it should hold; None when there is to be no point.
        version: the highest that it can have; None when there is to be no point.
        pending: whether it may still hold something else.
    """

    fingerprint: str | None
    version: int | None
    pending: bool


@dataclass(frozen=True, slots=True)
class Certification:
    """The certified items of a collection, so far as that tells whether they are still the same ones.

    Attributes:
        items: how many there are.
        latest: when the last of them was certified; None when there is none.
    """

    items: int
    latest: datetime | None


@dataclass(frozen=True, slots=True)
class LastAudit:
    """What the last audit of all collections of a workspace found.

    Attributes:
        at: when it ended.
        checked: how many certified points it looked for.
        differing: kind of difference → how many points; those of which there are none are left out.
        repaired: whether it mended at once what can be mended.
    """

    at: datetime
    checked: int
    differing: Mapping[str, int]
    repaired: bool

    def as_json(self) -> dict[str, Any]:
        """The audit as JSON-ready values."""
        return {**asdict(self), "at": self.at.isoformat()}


def expected(tx: Tx, identity: str, collection: Collection, items: Iterable[str]) -> dict[str, Expected]:
    """Item → what the archive expects of its point; items that neither have nor had one are left out.

    Args:
        tx: an open transaction.
        identity: the hash of the embedding identity.
        collection: which collection.
        items: some hundreds or thousands, doubles allowed.
    """
    return _by_item(tx.rows(_SQL["expected"], identity=identity, collection=collection.value, items=sorted(set(items))))


def certified(tx: Tx, identity: str, collection: Collection, *, after: str, limit: int) -> dict[str, Expected]:
    """The next certified items in the archive's order of ids, each with what the archive expects of its point.

    Args:
        tx: an open transaction.
        identity: the hash of the embedding identity.
        collection: which collection.
        after: the last item of the page before; "" for the first page.
        limit: how many at most.
    """
    parameters = {"identity": identity, "collection": collection.value, "after": after, "limit": limit}
    return _by_item(tx.rows(_SQL["certified"], **parameters))


def certification(tx: Tx, identity: str, collection: Collection) -> Certification:
    """How many items of a collection are certified for an embedding identity (its hash), and since when."""
    return Certification(**tx.row(_SQL["certification"], identity=identity, collection=collection.value))


def distrust_collection(tx: Tx, identity: str, collection: Collection, reason: str) -> int:
    """Make all certified items of a collection pending, and due, in one statement; how many there were."""
    tx.wait_for_writers()  # who change the same rows by triggers, in an order of their own
    return tx.run(
        _SQL["distrust_collection"], identity=identity, collection=collection.value, reason=kept_reason(reason)
    )


def record(tx: Tx, checked: int, differing: Mapping[str, int], *, repaired: bool) -> datetime:
    """Keep an audit that ends now as the workspace's last one, in place of the one before; now. See `LastAudit`."""
    kinds = json.dumps({kind: points for kind, points in differing.items() if points})
    ended: datetime = tx.row(_SQL["record"], checked=checked, differing=kinds, repaired=repaired)["at"]
    return ended


def last(tx: Tx) -> LastAudit | None:
    """The last audit of the workspace; None where there was none."""
    return next((LastAudit(**row) for row in tx.rows(_SQL["last"])), None)


def _by_item(rows: Sequence[RowMapping]) -> dict[str, Expected]:
    return {row["item_id"]: Expected(row["wanted"], row["version"], row["pending"]) for row in rows}
