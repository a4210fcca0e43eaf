"""Gives up what the index was believed to hold of a whole collection, so that the next projection writes it again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory_pipeline.archive import audits, projections
from memory_pipeline.cards import Collection

if TYPE_CHECKING:
    from memory_pipeline.index.base import Target
    from memory_pipeline.runtime import Runtime


def distrust_collection(runtime: Runtime, into: Target, reason: str) -> int:
    """Make all certified points of a collection pending; how many there were. The index is not touched.

    Args:
        runtime: the archive.
        into: one workspace's points in the collection of one embedding identity.
        reason: why, for whoever looks at what is pending.
    """
    with runtime.database.transaction(into.workspace) as tx:
        return audits.distrust_collection(tx, into.identity, Collection(into.collection), reason)


def start_over(runtime: Runtime, into: Target, reason: str) -> None:
    """Make all of a collection pending and drop it, damaged or not; for somebody who is `alone` with it."""
    # In this order, so that whoever is killed in between leaves nothing that is taken for complete.
    distrust_collection(runtime, into, reason)
    with runtime.database.transaction(into.workspace) as tx:  # what failed in it before has another collection now
        projections.hasten(tx, into.identity, Collection(into.collection))
    runtime.index.drop(into)
