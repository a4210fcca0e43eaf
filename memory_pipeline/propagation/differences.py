"""How a point of the index can differ from what the archive says, and what an audit tells of it (pure)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Self

from memory_pipeline.cards import Collection
from memory_pipeline.points import point_id

if TYPE_CHECKING:
    from datetime import datetime

    from memory_pipeline.archive.audits import Expected
    from memory_pipeline.index.base import StoredPoint

EXAMPLES = 100
"""How many differing points of a collection are named at most; the counts cover all of them."""


class Difference(StrEnum):
    """How a point can differ from what the archive says."""

    MISSING = "missing"
    """The archive certified a point that the index does not hold."""
    STALE = "stale"
    """The index holds another fingerprint than the archive certified, or a version that the archive has not reached.

    The latter is what a restored archive finds, and what the version guard defends, pending or not.
    """
    ORPHANED = "orphaned"
    """The index holds a point that no item of the archive stands behind."""
    DUPLICATE = "duplicate"
    """A point names an item whose point has another id: one too many, left by an older way of making ids, or copied."""
    FOREIGN = "foreign"
    """A point names another workspace than the one that it is kept for, or none."""
    DAMAGED = "damaged"
    """The collection cannot be used, so that all its certified points are missing. It names no point and no item."""
    OTHER_IDENTITY = "other_identity"
    """The point is of an embedding identity that the archive keeps no collections for."""

    @property
    def mendable(self) -> bool:
        """Whether `repair` mends it. A collection of another identity is read by nobody; who drops it must mean it."""
        return self is not Difference.OTHER_IDENTITY

    @property
    def unwritten(self) -> bool:
        """Whether the item's own point is not what was certified, so that it has to be written again."""
        return self in {Difference.MISSING, Difference.STALE}

    @property
    def never_projected(self) -> bool:
        """Whether no projection makes such a point, so that it cannot be the trace of one at work."""
        return self in {Difference.DUPLICATE, Difference.FOREIGN}

    @property
    def held(self) -> bool:
        """Whether there is a point in the index that has to go."""
        return self not in {Difference.MISSING, Difference.DAMAGED}


@dataclass(frozen=True, slots=True)
class Finding:
    """One point that differs.

    Attributes:
        difference: in which way.
        point_id: its id; "" where a whole collection differs.
        item_id: whose it is; "" where it does not say.
        reason: of a collection that cannot be used, why.
    """

    difference: Difference
    point_id: str
    item_id: str
    reason: str = ""


@dataclass(slots=True)
class Findings:
    """What differs in one collection: how many points in which way, and the first of them as examples."""

    counts: Counter[Difference] = field(default_factory=Counter)
    examples: list[Finding] = field(default_factory=list)

    @classmethod
    def of(cls, found: Iterable[Finding]) -> Self:
        """The findings of a stream, which is read to its end."""
        findings = cls()
        for finding in found:
            findings.add(finding.difference, 1, [finding])
        return findings

    def add(self, difference: Difference, number: int, examples: Iterable[Finding]) -> None:
        """Count points that differ in one way, with some of them."""
        self.counts[difference] += number
        if len(self.examples) < EXAMPLES:
            self.examples = [*self.examples, *examples][:EXAMPLES]

    def __iadd__(self, other: Findings) -> Self:
        """Both together."""
        for difference, number in other.counts.items():
            self.add(difference, number, ())
        self.examples = [*self.examples, *other.examples][:EXAMPLES]
        return self

    def __bool__(self) -> bool:
        """Whether anything differs."""
        return self.counts.total() > 0

    @property
    def mendable(self) -> bool:
        """Whether there is something that `repair` mends."""
        return any(number for difference, number in self.counts.items() if difference.mendable)


@dataclass(slots=True)
class AuditReport:
    """What an audit of one workspace found.

    Attributes:
        findings: by collection.
        checked: how many certified points it looked for.
        ended: when, as the archive keeps it; None of an audit that it does not keep.
    """

    findings: dict[Collection, Findings] = field(default_factory=dict)
    checked: int = 0
    ended: datetime | None = None

    def count(self, difference: Difference) -> int:
        """How many points differ in this way."""
        return sum(found.counts[difference] for found in self.findings.values())

    @property
    def counts(self) -> dict[str, int]:
        """How many points differ, by the name of every way to."""
        return {difference.value: self.count(difference) for difference in Difference}

    def look_at(self, limit: int) -> list[dict[str, str]]:
        """Some of what differs, as JSON-ready values: collection, difference, item, and the reason where it has one."""
        found = [(collection, each) for collection, findings in self.findings.items() for each in findings.examples]
        return [
            {"collection": collection.value, "difference": each.difference.value, "item": each.item_id}
            | ({"reason": each.reason} if each.reason else {})
            for collection, each in found[:limit]
        ]

    def __bool__(self) -> bool:
        """Whether anything differs."""
        return any(self.findings.values())


def item_of(payload: Mapping[str, object]) -> str:
    """The item that a point names; "" when it names none that the archive could have."""
    item = payload.get("item")
    return item if isinstance(item, str) and "\0" not in item else ""


def is_own(workspace: str, point: StoredPoint) -> bool:
    """Whether a point is the one that its item has in the workspace, whatever else it says."""
    return point.payload.get("workspace") == workspace and point.id == point_id(workspace, item_of(point.payload))


def judge(workspace: str, point: StoredPoint, expected: Expected | None) -> Difference | None:
    """How a point differs from what the archive expects; None when it does not.

    Args:
        workspace: the one that the point is kept for.
        point: as the index holds it.
        expected: of the item that the point names; None when the archive does not know the item.
    """
    if point.payload.get("workspace") != workspace:
        return Difference.FOREIGN
    if expected is None:
        return Difference.ORPHANED
    if not is_own(workspace, point):
        return Difference.DUPLICATE
    return Difference.STALE if _is_stale(expected, point.payload) else None


def _is_stale(expected: Expected, payload: Mapping[str, object]) -> bool:
    # Whatever else a pending point holds, the next projection replaces or removes it.
    version, reached = payload.get("version"), expected.version
    unreached = isinstance(version, int) and reached is not None and version > reached
    return unreached or (not expected.pending and payload.get("fingerprint") != expected.fingerprint)
