"""Writes every point of a workspace anew from the archive alone, in place, so that recall goes on answering."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from memory_pipeline.archive.sessions import Progress, no_progress
from memory_pipeline.cards import Collection
from memory_pipeline.points import target
from memory_pipeline.propagation.differences import AuditReport
from memory_pipeline.propagation.distrust import distrust_collection
from memory_pipeline.propagation.projector import ProjectionReport, project
from memory_pipeline.propagation.repair import repair
from memory_pipeline.propagation.switch import current_identities

if TYPE_CHECKING:
    from memory_pipeline.runtime import Runtime


@dataclass(frozen=True, slots=True)
class RebuildReport:
    """What a rebuild did.

    Attributes:
        mended: what the index held wrong, or did not hold, before.
        renewed: points that were as they should be, and are written anew all the same.
        projection: what was written and removed, the mended points among it.
    """

    mended: AuditReport
    renewed: int
    projection: ProjectionReport

    def as_json(self) -> dict[str, Any]:
        """The report as JSON-ready values: what was `mended` by kind, `renewed`, and the numbers of the projection."""
        return {"mended": self.mended.counts, "renewed": self.renewed, **asdict(self.projection)}


def rebuild(
    runtime: Runtime,
    workspace: str,
    collections: Iterable[Collection] = tuple(Collection),
    *,
    progress: Progress = no_progress,
) -> RebuildReport:
    """Make the index anew from the archive: what is wrong goes first, then every point is written in its place.

    Nothing is dropped that can be used, so that recall finds all the while what it found before. Vectors that are kept
    for the same embedding identity and text are not computed again. Whatever interrupts it leaves pending work, which
    the next projection completes.

    Args:
        runtime: archive, index and embedder.
        workspace: which workspace.
        collections: which collections.
        progress: told what is done and how much there is.

    Raises:
        UnknownWorkspace, ArchiveUnavailable.
        IndexIncompatible: a collection that other workspaces share is not of the configured embeddings.
        IndexUnavailable, EmbedderUnavailable: everything unfinished stays pending, with the reason.
    """
    wanted = tuple(collections)
    mended = repair(runtime, workspace, wanted)
    renewed = sum(
        distrust_collection(runtime, target(workspace, collection, identity), "the index is being rebuilt")
        for identity in current_identities(runtime, workspace)
        for collection in wanted
    )
    return RebuildReport(mended, renewed, project(runtime, workspace, wanted, retry_now=True, progress=progress))
