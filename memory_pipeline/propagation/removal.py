"""Takes everything of a workspace out of the index, and keeps it out until the archive has forgotten the workspace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from memory_pipeline.archive import identities, projections
from memory_pipeline.cards import Collection
from memory_pipeline.errors import IndexUnavailable
from memory_pipeline.points import target
from memory_pipeline.propagation.locks import alone, switching

if TYPE_CHECKING:
    from memory_pipeline.index.base import Target
    from memory_pipeline.runtime import Runtime


@contextmanager
def points_removed(runtime: Runtime, workspace: str) -> Iterator[None]:
    """Remove all points of a workspace, of every embedding identity, and keep projectors away during the block.

    From the first removed point on, all of them are pending: whatever comes in between, nobody takes the index for
    complete, and the next projection fills it again unless the block has removed the workspace.

    Raises:
        UnknownWorkspace, ArchiveUnavailable.
        IndexUnavailable: the index is away, and nothing was removed or not all; or a projector stays at work.
    """
    targets = _targets(runtime, workspace)
    with ExitStack() as held:
        for into in targets:
            if not held.enter_context(alone(runtime, workspace, Collection(into.collection), identity=into.identity)):
                raise _busy(workspace)
        # Who makes an identity live asks before whether a workspace is complete, and writes for it afterwards.
        if not held.enter_context(switching(runtime)):
            raise _busy(workspace)
        with runtime.database.transaction(workspace, writing=True) as tx:
            projections.distrust_all(tx, "the workspace was being removed")
        for into in targets:
            runtime.index.drop(into)
        runtime.index.forget(workspace)
        yield


def _targets(runtime: Runtime, workspace: str) -> list[Target]:
    """Every physical collection that may hold points of the workspace, known to the archive or found in the index."""
    with runtime.database.transaction(workspace) as tx:
        registered = {each.identity for each in identities.registered(tx)} | {runtime.identity.hash}
    return [
        replace(target(workspace, collection, runtime.identity), identity=identity)
        for collection in Collection
        for identity in sorted(registered | runtime.index.identities(workspace, collection.value))
    ]


def _busy(workspace: str) -> IndexUnavailable:
    return IndexUnavailable(
        f"another process goes on projecting workspace {workspace!r}: nothing of it was removed; "
        "try again when it is done"
    )
