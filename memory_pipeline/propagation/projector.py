"""Brings the index to what the archive wants, from pending projections, one workspace and collection at a time.

Each batch: read the current items in one transaction; embed and write with none open; certify by compare-and-set in
another. Whatever is interrupted in between stays pending and is done again by the next run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory_pipeline.archive import cards, projections, workspaces
from memory_pipeline.archive.sessions import Progress, no_progress
from memory_pipeline.cards import Collection
from memory_pipeline.errors import EmbedderUnavailable, IndexUnavailable, MemoryPipelineError
from memory_pipeline.index.base import Point
from memory_pipeline.lexical import Lexicon
from memory_pipeline.points import (
    PointText,
    card_filters,
    card_texts,
    lexical_name,
    payload,
    point_id,
    question_texts,
    target,
)
from memory_pipeline.propagation.vectors import TextKey, known_vectors, text_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from memory_pipeline.archive.projections import Wanted
    from memory_pipeline.index.base import Target
    from memory_pipeline.propagation.vectors import KnownVector
    from memory_pipeline.runtime import Runtime

_BATCH = 256  # items; what is lost when a run is killed is at most the certification of these
_LOCK_WAIT = 60.0  # seconds


@dataclass(slots=True)
class ProjectionReport:
    """What one projection did.

    Attributes:
        written: points whose write was confirmed and certified.
        removed: points whose removal was confirmed and certified.
        overtaken: writes that a newer change overtook; the change is pending and was or will be taken up.
        deferred: items put off, with their reason on the projection.
        busy: whether another projector kept a collection locked, so that its work was left to it.
        pending: items still pending afterwards, in the collections asked for.
    """

    written: int = 0
    removed: int = 0
    overtaken: int = 0
    deferred: int = 0
    busy: bool = False
    pending: int = 0


def project(
    runtime: Runtime,
    workspace: str,
    collections: Iterable[Collection] = tuple(Collection),
    *,
    retry_now: bool = False,
    progress: Progress = no_progress,
) -> ProjectionReport:
    """Write and remove the points of a workspace until none is pending but those that wait for their next try.

    Args:
        runtime: archive, index and embedder.
        workspace: which workspace.
        collections: which collections.
        retry_now: whether items that failed before are tried at once.
        progress: told what is done and how much there is.

    Raises:
        UnknownWorkspace, ArchiveUnavailable.
        IndexUnavailable, IndexIncompatible, EmbedderUnavailable: everything unfinished stays pending, with the reason.
    """
    run = _Run(runtime, workspace, progress)
    wanted = list(collections)
    try:
        run.prepare(wanted, retry_now=retry_now)
        for collection in wanted:
            run.collection(collection)
    finally:
        run.report.pending = run.count_pending(wanted)
    _make_live(runtime, workspace)
    return run.report


def _make_live(runtime: Runtime, workspace: str) -> None:
    """Let recall use the configured identity as soon as its collections are complete.

    Embedded, each workspace has collections of its own and switches by itself; on a server they are shared, and the
    aliases move when no workspace is pending.
    """
    identity, database = runtime.identity, runtime.database
    live = runtime.index.live_identity(workspace)
    if live is not None and live.get("hash") == identity.hash:
        return
    concerned = [workspace] if runtime.settings.qdrant_url is None else workspaces.names(database)
    with database.lock("make live", identity.hash, wait=_LOCK_WAIT) as held:
        if held and not any(_pending(runtime, name) for name in concerned):
            for collection in Collection:
                runtime.index.ensure(target(workspace, collection, identity))
            runtime.index.activate(workspace, identity.hash, identity.settings, [c.value for c in Collection])


def _pending(runtime: Runtime, workspace: str) -> int:
    with runtime.database.transaction(workspace) as tx:
        projections.register(tx, runtime.identity)
        return sum(state.pending for state in projections.states(tx, runtime.identity.hash))


class _Run:
    """One projection of one workspace."""

    def __init__(self, runtime: Runtime, workspace: str, progress: Progress) -> None:
        self.report = ProjectionReport()
        self._runtime = runtime
        self._workspace = workspace
        self._identity = runtime.identity.hash
        self._progress = progress
        self._total = 0

    def prepare(self, collections: Sequence[Collection], *, retry_now: bool) -> None:
        with self._runtime.database.transaction(self._workspace) as tx:
            projections.register(tx, self._runtime.identity)
            self._lexicon = Lexicon(cards.language(tx))
            if retry_now:
                for collection in collections:
                    projections.hasten(tx, self._identity, collection)
        self._total = self.count_pending(collections)

    def count_pending(self, collections: Sequence[Collection]) -> int:
        with self._runtime.database.transaction(self._workspace) as tx:
            return sum(s.pending for s in projections.states(tx, self._identity) if s.collection in collections)

    def collection(self, collection: Collection) -> None:
        """Project one collection, alone: another projector's lock is waited for, and then left to it."""
        name = ("project", self._workspace, self._identity, collection.value)
        with self._runtime.database.lock(*name, wait=_LOCK_WAIT) as held:
            if not held:
                self.report.busy = True
                return
            while items := self._next(collection):
                self._batch(collection, items)
                self._progress(self.report.written + self.report.removed + self.report.deferred, self._total)

    def _next(self, collection: Collection) -> list[Wanted]:
        with self._runtime.database.transaction(self._workspace) as tx:
            return projections.pending(tx, self._identity, collection, _BATCH)

    def _batch(self, collection: Collection, items: Sequence[Wanted]) -> None:
        try:
            self._write(collection, [item for item in items if item.fingerprint is not None])
            self._remove(collection, [item.item_id for item in items if item.fingerprint is None])
        except (EmbedderUnavailable, IndexUnavailable) as error:
            self._defer(collection, [item.item_id for item in items], error)
            raise

    def _write(self, collection: Collection, items: Sequence[Wanted]) -> None:
        if not items:
            return
        runtime, into = self._runtime, target(self._workspace, collection, self._runtime.identity)
        texts = {item.item_id: _texts(item) for item in items}
        known = known_vectors(
            runtime.database,
            runtime.embedder,
            self._workspace,
            self._identity,
            [t for ts in texts.values() for t in ts],
        )
        points = [self._point(into, item, texts[item.item_id], known) for item in items]
        runtime.index.ensure(into)
        held = runtime.index.upsert(into, points)
        written = [item for item, point in zip(items, points, strict=True) if point.id in held]
        truncated = {i for i, ts in texts.items() if any(known[text_key(t)].truncated for t in ts)}
        self._certify(collection, written, truncated)
        self._defer_refused(collection, [item.item_id for item in items if item not in written])

    def _certify(self, collection: Collection, written: Sequence[Wanted], truncated: set[str]) -> None:
        held = {item.item_id: item.fingerprint for item in written if item.fingerprint is not None}
        with self._runtime.database.transaction(self._workspace) as tx:
            certified = projections.certify(tx, self._identity, collection, held, truncated=truncated)
        self.report.written += certified
        self.report.overtaken += len(held) - certified

    def _remove(self, collection: Collection, items: Sequence[str]) -> None:
        if not items:
            return
        into = target(self._workspace, collection, self._runtime.identity)
        self._runtime.index.delete(into, [point_id(self._workspace, item) for item in items])
        with self._runtime.database.transaction(self._workspace) as tx:
            removed = projections.certify_removed(tx, self._identity, collection, items)
        self.report.removed += removed
        self.report.overtaken += len(items) - removed

    def _defer_refused(self, collection: Collection, items: Sequence[str]) -> None:
        """A point that the version guard left alone is newer than the archive: only the audit can tell why."""
        self._defer(collection, items, IndexUnavailable("the index holds a newer version of this point"))

    def _defer(self, collection: Collection, items: Sequence[str], error: MemoryPipelineError) -> None:
        with self._runtime.database.transaction(self._workspace) as tx:
            self.report.deferred += projections.defer(tx, self._identity, collection, items, str(error))

    def _point(
        self, into: Target, item: Wanted, texts: Sequence[PointText], known: Mapping[TextKey, KnownVector]
    ) -> Point:
        sparse = {lexical_name(text.name): self._lexicon.document(text.text) for text in texts}
        filters = card_filters(item.content) if item.content else {}
        return Point(
            id=point_id(into.workspace, item.item_id),
            payload=payload(into.workspace, item.item_id, item.version, item.fingerprint or "", filters),
            dense={text.name: known[text_key(text)].vector for text in texts},
            sparse={name: vector for name, vector in sparse.items() if vector},
        )


def _texts(item: Wanted) -> list[PointText]:
    return card_texts(item.content) if item.content else question_texts(item.question or "")
