"""Compares the real index with the archive, in both directions, and mends it: bookkeeping alone is not trusted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from memory_pipeline.archive import identities, projections
from memory_pipeline.cards import Collection
from memory_pipeline.errors import IndexUnavailable
from memory_pipeline.index.base import CollectionDamaged, CollectionMissing, StoredPoint
from memory_pipeline.points import point_id, target
from memory_pipeline.propagation.locks import alone
from memory_pipeline.propagation.projector import start_over

if TYPE_CHECKING:
    from memory_pipeline.archive.projections import Expected
    from memory_pipeline.index.base import Target
    from memory_pipeline.runtime import Runtime


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
    FOREIGN = "foreign"
    """The point's id is not the one that its workspace and item give."""
    DAMAGED = "damaged"
    """The collection cannot be used, so that all its certified points are missing. It names no point and no item."""
    OTHER_IDENTITY = "other_identity"
    """The point is of an embedding identity that the archive keeps no collections for."""

    @property
    def mendable(self) -> bool:
        """Whether `repair` mends it. A collection of another identity is read by nobody; who drops it must mean it."""
        return self is not Difference.OTHER_IDENTITY


@dataclass(frozen=True, slots=True)
class Finding:
    """One point that differs. `item_id` is "" where the point does not say whose it is."""

    difference: Difference
    point_id: str
    item_id: str


@dataclass(slots=True)
class AuditReport:
    """What an audit of one workspace found, by collection, and how many certified points it looked for."""

    findings: dict[Collection, list[Finding]] = field(default_factory=dict)
    checked: int = 0

    def count(self, difference: Difference) -> int:
        """How many points differ in this way."""
        return sum(f.difference is difference for found in self.findings.values() for f in found)

    def __bool__(self) -> bool:
        """Whether anything differs."""
        return any(self.findings.values())


def compare(workspace: str, expected: Mapping[str, Expected], points: Iterable[StoredPoint]) -> Iterator[Finding]:
    """The differences between what the archive expects and what the index holds (pure).

    Args:
        workspace: whose points these are.
        expected: item → what the archive expects of its point.
        points: everything that the index holds for the workspace, in any order; read once.
    """
    seen = set()
    for point in points:
        item = str(point.payload.get("item", ""))
        if point.payload.get("workspace") != workspace or point.id != point_id(workspace, item):
            yield Finding(Difference.FOREIGN, point.id, item)
            continue
        seen.add(item)
        if item not in expected:
            yield Finding(Difference.ORPHANED, point.id, item)
        elif _is_stale(expected[item], point.payload):
            yield Finding(Difference.STALE, point.id, item)
    for item, wanted in expected.items():
        if item not in seen and not wanted.pending:
            yield Finding(Difference.MISSING, point_id(workspace, item), item)


def _is_stale(expected: Expected, payload: Mapping[str, object]) -> bool:
    # Whatever else a pending point holds, the next projection replaces or removes it.
    version, reached = payload.get("version"), expected.version
    unreached = isinstance(version, int) and reached is not None and version > reached
    return unreached or (not expected.pending and payload.get("fingerprint") != expected.fingerprint)


def audit(runtime: Runtime, workspace: str, collections: Iterable[Collection] = tuple(Collection)) -> AuditReport:
    """Compare collections of a workspace with the archive. What the next projection does anyway is no difference.

    Raises:
        UnknownWorkspace, ArchiveUnavailable, IndexUnavailable, IndexIncompatible.
    """
    report = AuditReport()
    for collection in collections:
        before = _expected(runtime, workspace, collection)
        found = _found(runtime, workspace, collection, before)
        found = _confirmed(runtime, workspace, collection, before, found)
        report.findings[collection] = [*found, *_of_other_identities(runtime, workspace, collection)]
        report.checked += sum(not wanted.pending for wanted in before.values())
    return report


def repair(runtime: Runtime, workspace: str, collections: Iterable[Collection] = tuple(Collection)) -> AuditReport:
    """Audit, take what is wrong out of the index, and make what is missing pending; the next projection writes it.

    What is stale is removed rather than overwritten, because the index may hold a newer version than a restored
    archive, which the version guard would defend.

    Returns:
        what the audit found; all that is `mendable` was mended.

    Raises:
        UnknownWorkspace, ArchiveUnavailable, IndexIncompatible.
        IndexUnavailable: also when a projector stays at work in a collection, of which then nothing was mended.
    """
    report = AuditReport()
    for collection in collections:
        found = audit(runtime, workspace, [collection])
        if any(f.difference.mendable for f in found.findings[collection]):
            found = _mended(runtime, workspace, collection)
        report.findings |= found.findings
        report.checked += found.checked
    return report


def _mended(runtime: Runtime, workspace: str, collection: Collection) -> AuditReport:
    with alone(runtime, workspace, collection) as held:
        if not held:
            raise IndexUnavailable(
                f"another process goes on projecting {collection.value} of {workspace!r}: nothing of it was mended; "
                "try again when it is done"
            )
        found = audit(runtime, workspace, [collection])  # again: what differed may have been mended meanwhile
        try:
            _take_out(runtime, workspace, collection, found.findings[collection])
        except CollectionDamaged as error:
            start_over(runtime, workspace, collection, str(error))
    return found


def _take_out(runtime: Runtime, workspace: str, collection: Collection, found: Iterable[Finding]) -> None:
    wrong = [f for f in found if f.difference.mendable]
    if any(f.difference is Difference.DAMAGED for f in wrong):
        raise CollectionDamaged("the audit found the collection damaged")
    # First, so that what a kill leaves half done is known to be.
    with runtime.database.transaction(workspace) as tx:
        items = [f.item_id for f in wrong]  # an orphan has no projection to distrust
        reason = "the audit found the point missing or wrong"
        projections.distrust(tx, runtime.identity.hash, collection, items, reason)
    held_points = [f.point_id for f in wrong if f.difference is not Difference.MISSING]
    runtime.index.delete(target(workspace, collection, runtime.identity), held_points)


def _found(runtime: Runtime, workspace: str, collection: Collection, expected: Mapping[str, Expected]) -> list[Finding]:
    """The differences of a collection. One that is missing or damaged holds nothing, whatever was still read of it."""
    into = target(workspace, collection, runtime.identity)
    try:
        runtime.index.check(into)
        return list(compare(workspace, expected, runtime.index.scan(into)))
    except CollectionMissing:
        return list(compare(workspace, expected, ()))
    except CollectionDamaged:
        return [Finding(Difference.DAMAGED, "", ""), *compare(workspace, expected, ())]


def _confirmed(
    runtime: Runtime, workspace: str, collection: Collection, before: Mapping[str, Expected], found: list[Finding]
) -> list[Finding]:
    """The findings that are not just the trace of a change that was projected while the index was read."""
    if not found:
        return []
    after = _expected(runtime, workspace, collection)
    return [f for f in found if before.get(f.item_id) == after.get(f.item_id)]


def _of_other_identities(runtime: Runtime, workspace: str, collection: Collection) -> Iterator[Finding]:
    held = runtime.index.identities(workspace, collection.value)
    with runtime.database.transaction(workspace) as tx:
        # Read last: an identity is registered before anything is written for it.
        kept = {each.identity for each in identities.registered(tx)} | {runtime.identity.hash}
    for identity in sorted(held - kept):
        for point in _points(runtime, replace(target(workspace, collection, runtime.identity), identity=identity)):
            yield Finding(Difference.OTHER_IDENTITY, point.id, str(point.payload.get("item", "")))


def _expected(runtime: Runtime, workspace: str, collection: Collection) -> dict[str, Expected]:
    with runtime.database.transaction(workspace) as tx:
        return projections.expected(tx, runtime.identity.hash, collection)


def _points(runtime: Runtime, of: Target) -> Iterator[StoredPoint]:
    try:
        yield from runtime.index.scan(of)
    except CollectionMissing:
        return
    except CollectionDamaged:
        yield StoredPoint("", {})  # whatever else it holds
