"""Compares the real index with the archive, in both directions: bookkeeping alone is not trusted.

Both are read in batches, and differences are streamed, so that the size of a workspace does not matter. First every
point of the index is looked up in the archive. Only when fewer certified points were met than there are, every
certified point of the archive is looked up in the index.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice, tee
from typing import TYPE_CHECKING, TypeVar

from memory_pipeline.archive import audits, identities
from memory_pipeline.archive.audits import Certification
from memory_pipeline.cards import Collection
from memory_pipeline.embedding.base import EmbeddingIdentity
from memory_pipeline.index.base import CollectionDamaged, CollectionMissing, StoredPoint
from memory_pipeline.points import point_id, target
from memory_pipeline.propagation.differences import (
    EXAMPLES,
    AuditReport,
    Difference,
    Finding,
    Findings,
    is_own,
    item_of,
    judge,
)
from memory_pipeline.propagation.switch import current_identities

if TYPE_CHECKING:
    from memory_pipeline.archive.audits import Expected
    from memory_pipeline.index.base import Target
    from memory_pipeline.runtime import Runtime

BATCH = 1000
"""Points that are compared, or mended, at a time: nothing that an audit keeps is larger."""

_Item = TypeVar("_Item")


def audit(runtime: Runtime, workspace: str, collections: Iterable[Collection] = tuple(Collection)) -> AuditReport:
    """Compare collections of a workspace with the archive. What the next projection does anyway is no difference.

    The archive keeps what the last audit of all collections found.

    Args:
        runtime: archive and index.
        workspace: which workspace.
        collections: which collections.

    Returns:
        counts of all that differs, and some examples of it.

    Raises:
        UnknownWorkspace, ArchiveUnavailable, IndexUnavailable, IndexIncompatible.
    """
    report = AuditReport()
    current = current_identities(runtime, workspace)
    for collection in collections:
        found = report.findings.setdefault(collection, Findings())
        for identity in current:
            comparison = Comparison(runtime, workspace, collection, identity)
            found += comparison.result()
            report.checked += comparison.checked
        found += left_over(runtime, workspace, collection, current)
    remember(runtime, workspace, report, repaired=False)
    return report


def remember(runtime: Runtime, workspace: str, report: AuditReport, *, repaired: bool) -> None:
    """Keep an audit as the workspace's last one, unless it was of some collections: that says nothing of the others.

    Raises:
        UnknownWorkspace, ArchiveUnavailable.
    """
    if report.findings.keys() == set(Collection):
        with runtime.database.transaction(workspace) as tx:
            report.ended = audits.record(tx, report.checked, report.counts, repaired=repaired)


class Comparison:
    """One collection of a workspace, for one embedding identity, compared with the archive once.

    Args:
        runtime: archive and index.
        workspace: whose points.
        collection: which collection.
        identity: which vectors of it.
    """

    def __init__(self, runtime: Runtime, workspace: str, collection: Collection, identity: EmbeddingIdentity) -> None:
        self._runtime = runtime
        self._workspace = workspace
        self._collection = collection
        self._identity = identity.hash
        self._into = target(workspace, collection, identity)
        self._before = self._certification()
        self._met = 0

    @property
    def checked(self) -> int:
        """How many points were certified when the comparison began."""
        return self._before.items

    def result(self) -> Findings:
        """All that differs, also where the collection cannot be read.

        Raises:
            UnknownWorkspace, ArchiveUnavailable, IndexUnavailable, IndexIncompatible.
        """
        try:
            return Findings.of(self.findings())
        except (CollectionMissing, CollectionDamaged) as error:
            return self.lost(error)

    def findings(self) -> Iterator[Finding]:
        """What differs, one by one; to be read once. What was found may be mended while it is read.

        Raises:
            CollectionMissing, CollectionDamaged: at any moment; what came before then counts no more, but `lost` does.
            UnknownWorkspace, ArchiveUnavailable, IndexUnavailable, IndexIncompatible.
        """
        self._runtime.index.check(self._into)
        yield from self._confirmed(self._in_the_index())
        # Each of the points met is another one's. So when nothing was certified or lost its certificate meanwhile, the
        # numbers are only equal if none is missing.
        if not self._met == self._before.items == self._certification().items or self._certified_meanwhile():
            yield from self._confirmed(self._certified_only())

    def lost(self, error: CollectionMissing | CollectionDamaged) -> Findings:
        """What differs where a collection is missing or damaged: it holds nothing, whatever was still read of it."""
        found = Findings()
        if isinstance(error, CollectionDamaged):
            found.add(Difference.DAMAGED, 1, [Finding(Difference.DAMAGED, "", "", str(error))])
        if not self._certified_meanwhile():  # else a projector is about to fill it
            first = self._page("", EXAMPLES)
            found.add(Difference.MISSING, self._certification().items, [self._missing(item) for item in first])
        return found

    def _in_the_index(self) -> Iterator[_Suspected]:
        for batch in batched(self._runtime.index.scan(self._into, batch=BATCH), BATCH):
            known = self._expected(item_of(point.payload) for point in batch)
            for point in batch:
                item = item_of(point.payload)
                expected = known.get(item)
                self._met += expected is not None and not expected.pending and is_own(self._workspace, point)
                if difference := judge(self._workspace, point, expected):
                    yield _Suspected(Finding(difference, point.id, item), expected)

    def _certified_only(self) -> Iterator[_Suspected]:
        pages, asked = tee(self._pages())
        held = self._runtime.index.retrieve(self._into, (self._ids(page) for page in asked))
        for page, points in zip(pages, held, strict=True):
            for item, expected in page.items():
                finding = self._missing(item)
                if not self._holds(points, finding):
                    yield _Suspected(finding, expected)

    def _confirmed(self, suspected: Iterable[_Suspected]) -> Iterator[Finding]:
        """Those that differ still, and are not just the trace of a change that was projected while they were read.

        The index is asked between two questions to the archive: only where those are answered alike, the three belong
        together. A repair of what was found before changes the answers too.
        """
        for batch in batched(suspected, BATCH):
            (points,) = self._runtime.index.retrieve(self._into, [[each.finding.point_id for each in batch]])
            known = self._expected(each.finding.item_id for each in batch)
            for each in batch:
                finding, expected = each.finding, known.get(each.finding.item_id)
                unchanged = expected == each.expected or finding.difference.never_projected
                if unchanged and (difference := self._difference(finding, points, expected)):
                    yield replace(finding, difference=difference)

    def _difference(
        self, finding: Finding, points: Mapping[str, Mapping[str, object]], expected: Expected | None
    ) -> Difference | None:
        if finding.difference is Difference.MISSING:
            return None if self._holds(points, finding) else Difference.MISSING
        payload = points.get(finding.point_id)
        return None if payload is None else judge(self._workspace, StoredPoint(finding.point_id, payload), expected)

    def _holds(self, points: Mapping[str, Mapping[str, object]], finding: Finding) -> bool:
        payload = points.get(finding.point_id, {})
        return item_of(payload) == finding.item_id and payload.get("workspace") == self._workspace

    def _missing(self, item: str) -> Finding:
        return Finding(Difference.MISSING, point_id(self._workspace, item), item)

    def _ids(self, items: Iterable[str]) -> list[str]:
        return [point_id(self._workspace, item) for item in items]

    def _pages(self) -> Iterator[dict[str, Expected]]:
        last = ""
        while page := self._page(last, BATCH):
            yield page
            last = next(reversed(page))  # by the order of the archive, whose collation Python does not know

    def _page(self, after: str, limit: int) -> dict[str, Expected]:
        with self._runtime.database.transaction(self._workspace) as tx:
            return audits.certified(tx, self._identity, self._collection, after=after, limit=limit)

    def _expected(self, items: Iterable[str]) -> dict[str, Expected]:
        with self._runtime.database.transaction(self._workspace) as tx:
            return audits.expected(tx, self._identity, self._collection, items)

    def _certification(self) -> Certification:
        with self._runtime.database.transaction(self._workspace) as tx:
            return audits.certification(tx, self._identity, self._collection)

    def _certified_meanwhile(self) -> bool:
        now, before = self._certification().latest, self._before.latest
        return now is not None and (before is None or now > before)


@dataclass(frozen=True, slots=True)
class _Suspected:
    """A finding to be confirmed, and what the archive expected of its item when it was made."""

    finding: Finding
    expected: Expected | None


def left_over(
    runtime: Runtime, workspace: str, collection: Collection, current: Iterable[EmbeddingIdentity]
) -> Findings:
    """The points of embedding identities that the archive keeps no collections for.

    Args:
        runtime: archive and index.
        workspace: whose points.
        collection: which collection.
        current: those that are compared with the archive anyway.
    """
    audited = {identity.hash: identity for identity in current}
    held = runtime.index.identities(workspace, collection.value)
    with runtime.database.transaction(workspace) as tx:
        # Read last: an identity is registered before anything is written for it.
        kept = {each.identity for each in identities.registered(tx)} | audited.keys()
    into = target(workspace, collection, next(iter(audited.values())))
    found = Findings()
    for other in sorted(held - kept):
        found += _of_other_identity(runtime, replace(into, identity=other))
    return found


def _of_other_identity(runtime: Runtime, into: Target) -> Findings:
    other = Difference.OTHER_IDENTITY
    try:
        return Findings.of(Finding(other, point.id, item_of(point.payload)) for point in runtime.index.scan(into))
    except CollectionMissing:
        return Findings()
    except CollectionDamaged:
        return Findings.of([Finding(other, "", "")])  # whatever it holds


def batched(items: Iterable[_Item], size: int) -> Iterator[list[_Item]]:
    """The items of a stream in lists of that size, the last one shorter."""
    stream = iter(items)
    while batch := list(islice(stream, size)):
        yield batch
