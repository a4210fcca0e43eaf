"""Collections that the archive certified points in, and that the index does not have or cannot use any more."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from memory_pipeline.archive import identities, projections
from memory_pipeline.cards import Collection
from memory_pipeline.errors import IndexUnavailable, UnknownWorkspace
from memory_pipeline.index.base import CollectionDamaged, CollectionMissing
from memory_pipeline.points import target
from memory_pipeline.propagation.distrust import distrust_collection

if TYPE_CHECKING:
    from collections.abc import Mapping

    from memory_pipeline.archive.database import Tx
    from memory_pipeline.embedding.base import EmbeddingIdentity
    from memory_pipeline.index.base import Index
    from memory_pipeline.runtime import Runtime

Held = dict[Collection, frozenset[str]]
"""Collection → the embedding identities that the index has it for."""


class Presence:
    """What collections the index has. It is asked workspace by workspace, until it does not answer once.

    So a look at all workspaces waits no more than once for an index that is away.

    Attributes:
        fault: why the index did not answer; None as long as it does.
    """

    def __init__(self, index: Index) -> None:
        self.fault: IndexUnavailable | None = None
        self._index = index

    def of(self, workspace: str) -> Held | None:
        """What it has for a workspace; None when it does not say."""
        if self.fault is None:
            try:
                return {c: self._index.identities(workspace, c.value) for c in Collection}
            except IndexUnavailable as error:
                self.fault = error
        return None


def lost(tx: Tx, identity: str, held: Held | None) -> Mapping[Collection, int]:
    """Collection → how many certified points went with it, of those that the index does not have any more.

    Args:
        tx: an open transaction.
        identity: the hash of the embedding identity.
        held: what the index has for the workspace; where it does not say, nothing counts as lost.
    """
    return _wanted(tx, identity, held, certified=True)


def lost_points(runtime: Runtime, workspace: str, presence: Presence) -> dict[str, int]:
    """Collection → points of a workspace that went with it, of those that recall uses; none of one that is removed.

    Raises:
        ArchiveUnavailable.
    """
    held = presence.of(workspace)
    with suppress(UnknownWorkspace), runtime.database.transaction(workspace) as tx:
        return {c.value: n for c, n in lost(tx, identities.serving(tx, runtime.identity.hash), held).items()}
    return {}


def lacking(tx: Tx, identity: str, held: Held | None) -> Mapping[Collection, int]:
    """Collection → how many points are wanted in it, of those that the index does not have, any more or yet.

    See `lost` for the arguments.
    """
    return _wanted(tx, identity, held, certified=False)


def notice_damage(runtime: Runtime, workspace: str, identity: EmbeddingIdentity) -> None:
    """Make pending what a workspace's collections held that are found damaged or gone, for somebody who met such a one.

    The next projection makes them anew. What is pending already is not looked at again.

    Raises:
        UnknownWorkspace, ArchiveUnavailable, IndexIncompatible.
        IndexUnavailable: one of them cannot be looked at.
    """
    with runtime.database.transaction(workspace) as tx:
        held = projections.wanted(tx, identity.hash, list(Collection), certified=True)
    for collection in held:
        into = target(workspace, collection, identity)
        try:
            runtime.index.check(into)
        except (CollectionMissing, CollectionDamaged) as error:
            distrust_collection(runtime, into, str(error))


def _wanted(tx: Tx, identity: str, held: Held | None, *, certified: bool) -> dict[Collection, int]:
    missing = [] if held is None else [c for c in Collection if identity not in held[c]]
    return projections.wanted(tx, identity, missing, certified=certified) if missing else {}
