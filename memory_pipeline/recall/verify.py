"""Decides which points of the index are believed: what their payloads claim has to be what the archive says now."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache

from memory_pipeline.cards import Collection
from memory_pipeline.index.base import Hit
from memory_pipeline.points import point_id
from memory_pipeline.recall.signals import Signal
from memory_pipeline.text import storable_fault

_point_id = lru_cache(maxsize=1 << 14)(point_id)  # several searches find a point, and so do several questions


class Drop(StrEnum):
    """Why a point was not believed."""

    MALFORMED = "malformed"
    FOREIGN = "foreign"
    DUPLICATE = "duplicate"
    STALE = "stale"
    UNKNOWN_CARD = "unknown_card"
    UNKNOWN_QUESTION = "unknown_question"

    @property
    def meaning(self) -> str:
        """What it says of a point, in words for people."""
        return _MEANINGS[self]


_MEANINGS = {
    Drop.MALFORMED: "its payload is incomplete, its similarity no number, or its id not that of the item it names",
    Drop.FOREIGN: "it says that it belongs to another workspace",
    Drop.DUPLICATE: "one search returned it more than once; once it counts",
    Drop.STALE: "the archive has changed the item since the point was written",
    Drop.UNKNOWN_CARD: "the archive has no such card, or none of the collection that the point is in",
    Drop.UNKNOWN_QUESTION: "the archive has no such question",
}


@dataclass(frozen=True, slots=True)
class Claim:
    """What a well-formed point of the workspace says of itself."""

    item: str
    fingerprint: str


@dataclass(slots=True)
class Findings:
    """What searches found, as far as the points themselves can tell.

    Attributes:
        values: signal → item → what the signal measured.
        claims: collection → item → the fingerprint that its point claims to hold, of points that are believed so far.
        drops: (collection, point's or item's id) → why it is not believed, each counted once.
    """

    values: dict[Signal, dict[str, float]] = field(default_factory=dict)
    claims: dict[Collection, dict[str, str]] = field(default_factory=dict)
    drops: dict[tuple[Collection, str, bool], Drop] = field(default_factory=dict)

    def drop(self, collection: Collection, item: str, reason: Drop) -> None:
        """Note that a point is not believed. That it came twice is noted beside what else is wrong with it."""
        self.drops.setdefault((collection, item, reason is Drop.DUPLICATE), reason)

    def claimed(self, collection: Collection) -> frozenset[str]:
        """The items of a collection whose points are believed so far."""
        return frozenset(self.claims.get(collection, {}))

    def counted(self) -> dict[str, int]:
        """Reason → number of points, in alphabetical order."""
        return dict(sorted(Counter(reason.value for reason in self.drops.values()).items()))


def inspected(workspace: str, found: Mapping[Signal, Sequence[Hit]]) -> Findings:
    """What the points found say of themselves, without those that cannot be of the workspace."""
    findings = Findings()
    for signal, hits in found.items():
        values = findings.values.setdefault(signal, {})
        claims = findings.claims.setdefault(signal.searched, {})
        for hit in _once(findings, signal.searched, hits):
            claim = _claim(workspace, hit)
            if isinstance(claim, Drop):
                findings.drop(signal.searched, str(hit.id), claim)
            else:
                values[claim.item] = hit.score
                claims[claim.item] = claim.fingerprint
    return findings


def compared(findings: Findings, collection: Collection, current: Mapping[str, str]) -> None:
    """Drop the points of a collection that do not hold what the archive wants.

    Args:
        findings: changed in place.
        collection: which collection.
        current: item → the fingerprint that the archive has for it now.
    """
    unknown = Drop.UNKNOWN_QUESTION if collection is Collection.QUESTIONS else Drop.UNKNOWN_CARD
    claims = findings.claims.get(collection, {})
    refused = [item for item, fingerprint in claims.items() if current.get(item) != fingerprint]
    here = [values for signal, values in findings.values.items() if signal.searched is collection]
    for item in refused:
        findings.drop(collection, item, Drop.STALE if item in current else unknown)
        del claims[item]
        for values in here:
            values.pop(item, None)


def _once(findings: Findings, collection: Collection, hits: Sequence[Hit]) -> Iterator[Hit]:
    seen: set[str] = set()
    for hit in hits:
        if (point := str(hit.id)) in seen:
            findings.drop(collection, point, Drop.DUPLICATE)
        else:
            seen.add(point)
            yield hit


def _claim(workspace: str, hit: Hit) -> Claim | Drop:
    payload: object = hit.payload  # as stored: it can be anything
    if not isinstance(payload, Mapping):
        return Drop.MALFORMED
    of_workspace, item, fingerprint = (payload.get(name) for name in ("workspace", "item", "fingerprint"))
    if not isinstance(of_workspace, str) or not isinstance(item, str) or not isinstance(fingerprint, str):
        return Drop.MALFORMED
    if of_workspace != workspace:
        return Drop.FOREIGN
    # The archive is asked for the item, and could not even be asked for one that it cannot store.
    if storable_fault(item) or hit.id != _point_id(workspace, item) or not math.isfinite(hit.score):
        return Drop.MALFORMED
    return Claim(item, fingerprint)
