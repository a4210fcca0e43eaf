"""Compares the real index with the archive, in both directions, and mends it: bookkeeping alone is not trusted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from memory_pipeline.archive import projections
from memory_pipeline.cards import Collection
from memory_pipeline.index.base import CollectionMissing
from memory_pipeline.points import point_id, target

if TYPE_CHECKING:
    from memory_pipeline.index.base import StoredPoint, Target
    from memory_pipeline.runtime import Runtime

_LOCK_WAIT = 60.0  # seconds


class Difference(StrEnum):
    """How a point can differ from what the archive certified."""

    MISSING = "missing"
    """The archive certified a point that the index does not hold."""
    STALE = "stale"
    """The index holds another fingerprint than the archive certified."""
    ORPHANED = "orphaned"
    """The index holds a point that no item of the archive stands behind."""
    FOREIGN = "foreign"
    """The point's id is not the one that its workspace and item give."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One point that differs. `item_id` is "" where the point does not say whose it is."""

    difference: Difference
    point_id: str
    item_id: str


@dataclass(slots=True)
class AuditReport:
    """What an audit of one workspace found, by collection."""

    findings: dict[Collection, list[Finding]] = field(default_factory=dict)
    checked: int = 0

    def count(self, difference: Difference) -> int:
        """How many points differ in this way."""
        return sum(f.difference is difference for found in self.findings.values() for f in found)

    def __bool__(self) -> bool:
        """Whether anything differs."""
        return any(self.findings.values())


def compare(workspace: str, certified: Mapping[str, str], points: Iterable[StoredPoint]) -> Iterator[Finding]:
    """The differences between what the archive certified and what the index holds (pure).

    Args:
        workspace: whose points these are.
        certified: item → fingerprint.
        points: everything that the index holds for the workspace, in any order; read once.
    """
    seen = set()
    for point in points:
        item = str(point.payload.get("item", ""))
        seen.add(item)
        if point.payload.get("workspace") != workspace or point.id != point_id(workspace, item):
            yield Finding(Difference.FOREIGN, point.id, item)
        elif item not in certified:
            yield Finding(Difference.ORPHANED, point.id, item)
        elif point.payload.get("fingerprint") != certified[item]:
            yield Finding(Difference.STALE, point.id, item)
    for item in certified.keys() - seen:
        yield Finding(Difference.MISSING, point_id(workspace, item), item)


def audit(runtime: Runtime, workspace: str, collections: Iterable[Collection] = tuple(Collection)) -> AuditReport:
    """Compare collections of a workspace with the archive. Pending work is no difference: it is known.

    Raises:
        UnknownWorkspace, ArchiveUnavailable, IndexUnavailable, IndexIncompatible.
    """
    report = AuditReport()
    for collection in collections:
        before = _certified(runtime, workspace, collection)
        found = list(compare(workspace, before, _points(runtime, target(workspace, collection, runtime.identity))))
        report.findings[collection] = _confirmed(runtime, workspace, collection, before, found)
        report.checked += len(before)
    return report


def repair(runtime: Runtime, workspace: str, collections: Iterable[Collection] = tuple(Collection)) -> AuditReport:
    """Audit, take what is wrong out of the index, and make what is missing pending; the next projection writes it.

    What is stale is removed rather than overwritten, because the index may hold a newer version than a restored
    archive, which the version guard would defend.
    """
    report = audit(runtime, workspace, collections)
    for collection, found in report.findings.items():
        _repair(runtime, workspace, collection, found)
    return report


def _repair(runtime: Runtime, workspace: str, collection: Collection, found: list[Finding]) -> None:
    identity = runtime.identity
    wrong = [f.point_id for f in found if f.difference is not Difference.MISSING]
    lost = [f.item_id for f in found]  # an orphan has no projection to distrust
    with runtime.database.lock("project", workspace, identity.hash, collection.value, wait=_LOCK_WAIT) as held:
        if not held or not found:
            return
        runtime.index.delete(target(workspace, collection, identity), wrong)
        with runtime.database.transaction(workspace) as tx:
            projections.distrust(tx, identity.hash, collection, lost, "the audit found the point missing or wrong")


def _confirmed(
    runtime: Runtime, workspace: str, collection: Collection, before: Mapping[str, str], found: list[Finding]
) -> list[Finding]:
    """The findings that are not just the trace of a projection at work while the index was read."""
    if not found:
        return []
    with runtime.database.transaction(workspace) as tx:
        pending = projections.pending_items(tx, runtime.identity.hash, collection)
    after = _certified(runtime, workspace, collection)
    return [f for f in found if f.item_id not in pending and before.get(f.item_id) == after.get(f.item_id)]


def _certified(runtime: Runtime, workspace: str, collection: Collection) -> dict[str, str]:
    with runtime.database.transaction(workspace) as tx:
        return projections.certified(tx, runtime.identity.hash, collection)


def _points(runtime: Runtime, of: Target) -> Iterator[StoredPoint]:
    try:
        yield from runtime.index.scan(of)
    except CollectionMissing:
        return
