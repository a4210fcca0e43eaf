"""Mends what the audit finds: what is wrong leaves the index, and what is missing waits for the next projection."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from memory_pipeline.archive import projections
from memory_pipeline.cards import Collection
from memory_pipeline.embedding.base import EmbeddingIdentity
from memory_pipeline.errors import IndexUnavailable
from memory_pipeline.index.base import CollectionDamaged, CollectionMissing
from memory_pipeline.points import target
from memory_pipeline.propagation.audit import BATCH, Comparison, batched, left_over, remember
from memory_pipeline.propagation.differences import AuditReport, Finding, Findings
from memory_pipeline.propagation.distrust import start_over
from memory_pipeline.propagation.locks import alone
from memory_pipeline.propagation.switch import current_identities

if TYPE_CHECKING:
    from memory_pipeline.index.base import Target
    from memory_pipeline.runtime import Runtime

_REASON = "the audit found the point missing or wrong"


def repair(
    runtime: Runtime,
    workspace: str,
    collections: Iterable[Collection] = tuple(Collection),
    *,
    of: Sequence[EmbeddingIdentity] = (),
) -> AuditReport:
    """Audit, take what is wrong out of the index, and make what is missing pending; the next projection writes it.

    What is stale is removed rather than overwritten, because the index may hold a newer version than a restored
    archive, which the version guard would defend.

    Args:
        runtime: archive and index.
        workspace: which workspace.
        collections: which collections.
        of: which embedding identities; by default those that are kept current.

    Returns:
        what the audit found; all that is `mendable` was mended.

    Raises:
        UnknownWorkspace, ArchiveUnavailable, IndexIncompatible.
        IndexUnavailable: also when a projector stays at work in a collection, of which then nothing was mended.
    """
    report = AuditReport()
    current = of or current_identities(runtime, workspace)
    for collection in collections:
        found = report.findings.setdefault(collection, Findings())
        for identity in current:
            comparison = Comparison(runtime, workspace, collection, identity)
            result = comparison.result()
            found += _mended(runtime, workspace, collection, identity) if result.mendable else result
            report.checked += comparison.checked
        found += left_over(runtime, workspace, collection, current)
    if not of:  # else it looked at what recall does not use yet
        remember(runtime, workspace, report, repaired=True)
    return report


def _mended(runtime: Runtime, workspace: str, collection: Collection, identity: EmbeddingIdentity) -> Findings:
    with alone(runtime, workspace, collection, identity=identity.hash) as held:
        if not held:
            raise IndexUnavailable(
                f"another process goes on projecting {collection.value} of {workspace!r}: nothing of it was mended; "
                "try again when it is done"
            )
        # Again: what differed may have been mended meanwhile.
        comparison = Comparison(runtime, workspace, collection, identity)
        into = target(workspace, collection, identity)
        try:
            return Findings.of(_mending(runtime, into, comparison.findings()))
        except (CollectionMissing, CollectionDamaged) as error:
            found = comparison.lost(error)
            start_over(runtime, into, str(error))
            return found


def _mending(runtime: Runtime, into: Target, found: Iterable[Finding]) -> Iterator[Finding]:
    """The findings, each handed on when it is mended."""
    for batch in batched(found, BATCH):
        _take_out(runtime, into, batch)
        yield from batch


def _take_out(runtime: Runtime, into: Target, found: Sequence[Finding]) -> None:
    # The archive first, so that what a kill leaves half done is known to be.
    with runtime.database.transaction(into.workspace) as tx:
        unwritten = [f.item_id for f in found if f.difference.unwritten]
        projections.distrust(tx, into.identity, Collection(into.collection), unwritten, _REASON)
    runtime.index.delete(into, [f.point_id for f in found if f.difference.held])
