"""Measures how long changes took from the archive to the index."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory_pipeline.archive.queries import load
from memory_pipeline.cards import Collection

if TYPE_CHECKING:
    from memory_pipeline.archive.database import Tx

_SQL = load("latency")
_LATEST = 1_000  # points


@dataclass(frozen=True, slots=True)
class Latency:
    """How long it took until points held what the archive wanted, over those certified last.

    Attributes:
        points: how many it was measured over.
        p50: seconds that half of them took at most, interpolated; None where nothing is certified.
        p95: seconds that 19 of 20 took at most.
    """

    points: int
    p50: float | None
    p95: float | None


def latency(
    tx: Tx, identity: str, collections: Iterable[Collection] = tuple(Collection), *, limit: int = _LATEST
) -> Latency:
    """The seconds from when a point's content was wanted to when the index was certified to hold it.

    Of each point its last change alone is known. It counts from the statement that made the point's wanted content what
    it is, just before its transaction's commit, to the certification, after which recall finds it; attempts that failed
    in between are part of it. A change that was overtaken before it was written does not count, the one that overtook
    it does. What the audit found wrong counts from when it was found, and what a new embedding identity is filled with
    from when that was registered. A removal is not measured: certified, it leaves no projection behind.

    Args:
        tx: an open transaction.
        identity: the hash of the embedding identity.
        collections: whose points; by default of all.
        limit: over how many points at most, those certified last.

    Returns:
        the percentiles, and over how many points.
    """
    among = [collection.value for collection in collections]
    return Latency(**tx.row(_SQL["latency"], identity=identity, collections=among, limit=limit))
