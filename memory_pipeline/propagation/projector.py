"""Brings the index to what the archive wants, from pending projections, one workspace and collection at a time.

Each batch: read the current items in one transaction; embed and write with none open; certify by compare-and-set in
another. Whatever is interrupted in between stays pending and is done again by the next run. How large a batch is, its
predecessors say (`pace.py`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass, fields
from functools import partial
from itertools import chain, compress
from operator import not_
from typing import TYPE_CHECKING

from memory_pipeline.archive import identities, projections
from memory_pipeline.archive.sessions import Progress, no_progress
from memory_pipeline.cards import Collection
from memory_pipeline.errors import EmbedderUnavailable, IndexIncompatible, IndexUnavailable, MemoryPipelineError
from memory_pipeline.index.base import CollectionDamaged, Point
from memory_pipeline.lexical import lexicon
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
from memory_pipeline.propagation.distrust import distrust_collection, start_over
from memory_pipeline.propagation.locks import alone
from memory_pipeline.propagation.losses import Presence
from memory_pipeline.propagation.pace import LARGEST, Pace
from memory_pipeline.propagation.repair import repair
from memory_pipeline.propagation.sampling import Sampling
from memory_pipeline.propagation.switch import complete, current_identities, make_live, record_live, sharing
from memory_pipeline.propagation.vectors import TextKey, known_vectors, missing_vectors, text_key

if TYPE_CHECKING:
    from collections.abc import Collection as Items
    from collections.abc import Mapping

    from memory_pipeline.archive.projections import Wanted
    from memory_pipeline.embedding.base import EmbeddingIdentity
    from memory_pipeline.index.base import Target
    from memory_pipeline.propagation.vectors import KnownVector
    from memory_pipeline.runtime import Runtime

_ALONG = 64  # items of others that are written with those asked for
_TRIED = 4  # items of a failed batch at most, to tell an outage from refusals
_GIVEN_UP = 32  # attempts in vain one after the other, after which it is an outage all the same
Unavailable = EmbedderUnavailable | IndexIncompatible | IndexUnavailable
Work = Callable[[Collection, Sequence["Wanted"]], None]
UNAVAILABLE = (EmbedderUnavailable, IndexIncompatible, IndexUnavailable)
"""What index and model raise when they cannot do what they were asked for, for whatever reason."""


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

    What was written along with the items asked for counts too.

    While the embeddings change, the points of both identities count.
    """

    written: int = 0
    removed: int = 0
    overtaken: int = 0
    deferred: int = 0
    busy: bool = False
    pending: int = 0

    def __add__(self, other: ProjectionReport) -> ProjectionReport:
        """Both together."""
        numbers = {each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(self)}
        return ProjectionReport(**{**numbers, "busy": self.busy or other.busy})


def project(
    runtime: Runtime,
    workspace: str,
    collections: Iterable[Collection] = tuple(Collection),
    *,
    retry_now: bool = False,
    items: Items[str] | None = None,
    wait: float | None = None,
    progress: Progress = no_progress,
) -> ProjectionReport:
    """Write and remove the points of a workspace until those asked for are done, or wait for their next try.

    Args:
        runtime: archive, index and embedder.
        workspace: which workspace.
        collections: which collections.
        retry_now: whether items that failed before are tried at once.
        items: these, so that an edit does not wait for everything else, and in their batches some of what else is
            pending and takes no model; by default all.
        wait: seconds to wait for another projector of a collection; by default a minute.
        progress: told what is done and how much there is.

    Raises:
        UnknownWorkspace, ArchiveUnavailable.
        IndexUnavailable, IndexIncompatible, EmbedderUnavailable: some collection could not be worked on; everything
            unfinished stays pending, what was tried with the reason.
    """
    wanted, done = list(collections), ProjectionReport()
    failed: list[tuple[EmbeddingIdentity, MemoryPipelineError]] = []
    with Sampling(runtime, workspace) as sampling:
        for identity in current_identities(runtime, workspace):
            run = _Run(runtime, workspace, identity, progress=progress, items=items, wait=wait)
            sampling.begin(run.prepare(wanted, retry_now=retry_now))
            for collection in wanted:
                try:
                    run.collection(collection)
                except UNAVAILABLE as error:  # which keeps no other collection from what can be done for it
                    failed.append((identity, error))
            run.report.pending = run.count_pending(wanted)
            done += run.report
            filled = run.from_nothing and identity == runtime.identity
        with suppress(MemoryPipelineError) if failed else nullcontext():
            live = record_live(runtime, workspace)
            usable = all(identity != runtime.identity for identity, _ in failed)
            if usable and _switched(runtime, workspace, live, filled=filled):
                failed = []  # what was left behind does not matter any more
    if failed:
        raise failed[0][1]
    return done


def _switched(runtime: Runtime, workspace: str, live: str | None, *, filled: bool) -> bool:
    """Let recall use the configured identity if its collections are complete; whether it does.

    `filled` says that the workspace's were made and filled just now.
    """
    if live == runtime.identity.hash:
        return True
    if not complete(runtime, workspace, live):
        return False
    # The others may hold what was left in them when they were last used, by this archive or another.
    for name in set(sharing(runtime, workspace)) - ({workspace} if filled else set()):
        repair(runtime, name, of=[runtime.identity])
    return make_live(runtime, workspace)


class _Run:
    """One projection of one workspace, for one embedding identity."""

    def __init__(
        self,
        runtime: Runtime,
        workspace: str,
        identity: EmbeddingIdentity,
        *,
        progress: Progress,
        items: Items[str] | None,
        wait: float | None,
    ) -> None:
        self.report = ProjectionReport()
        self.from_nothing = False  # whether the index held no collection of the identity when this began
        self._runtime = runtime
        self._workspace = workspace
        self._embeddings = identity
        self._identity = identity.hash
        self._progress = progress
        self._items = items
        self._wait = wait
        self._total = 0
        self._in_vain = 0
        self._ensured: set[Collection] = set()
        self._made_anew: set[Collection] = set()

    def prepare(self, collections: Sequence[Collection], *, retry_now: bool) -> int:
        """Make ready for some collections; how many of their points are pending."""
        database = self._runtime.database
        # Apart from what follows: it waits for whoever makes a card, who keeps others from what `hasten` changes.
        with database.transaction(self._workspace, by_key=True) as tx:
            identities.register(tx, self._embeddings)
        self._notice_losses()
        with database.transaction(self._workspace, by_key=True) as tx:
            self._lexicon = lexicon(tx.language)
            for collection in collections if retry_now else ():
                projections.hasten(tx, self._identity, collection, self._items)
        self._total = self.count_pending(collections)
        self._tell()
        return self._total

    def _notice_losses(self) -> None:
        """Make everything pending that a collection held which is gone: made anew, it would pass for complete."""
        held = Presence(self._runtime.index).of(self._workspace)
        if held is None:  # an index that is away says so where there is work for it
            return
        missing = [collection for collection in Collection if self._identity not in held[collection]]
        self.from_nothing = len(missing) == len(Collection)
        for collection in missing:
            distrust_collection(self._runtime, self._target(collection), "the index has lost the collection")

    def count_pending(self, collections: Sequence[Collection]) -> int:
        with self._runtime.database.transaction(self._workspace, by_key=True) as tx:
            return sum(s.pending for s in projections.states(tx, self._identity) if s.collection in collections)

    def collection(self, collection: Collection) -> None:
        """Project one collection, alone: another projector's lock is waited for, and then left to it."""
        with ExitStack() as stack:
            if not self._alone(stack, collection):
                self.report.busy = True
                return
            pace = Pace()
            while items := self._next(collection, pace.size):
                self._in_vain = 0
                with pace.measured():
                    error = self._batch(collection, [*items, *self._along(collection, items)])
                if error is not None:
                    raise error
                self._tell()

    def _alone(self, stack: ExitStack, collection: Collection) -> bool:
        """Take the collection's lock; of some items the vectors are made while another projector keeps it."""
        lock = partial(alone, self._runtime, self._workspace, collection, identity=self._identity)
        if self._items is not None:
            if stack.enter_context(lock(wait=0)):
                return True
            self._embed_ahead(collection)
        return stack.enter_context(lock(wait=self._wait))

    def _embed_ahead(self, collection: Collection) -> None:
        texts = chain.from_iterable(self._texts(item) for item in self._next(collection, LARGEST) if item.fingerprint)
        with suppress(Exception):  # whatever it is, it is met again where it is isolated and kept as the reason
            known_vectors(self._runtime, self._workspace, self._embeddings, texts)

    def _along(self, collection: Collection, items: Sequence[Wanted]) -> list[Wanted]:
        """What others wait to have written, and takes no model: it costs next to nothing in the same batch.

        So the edits of several administrators at once wait for one or two batches, and not each for all before it.
        """
        if self._items is None:
            return []
        own = {item.item_id for item in items}
        with self._runtime.database.transaction(self._workspace, by_key=True) as tx:
            due = projections.pending(tx, self._identity, collection, _ALONG + len(own))
        others = [item for item in due if item.item_id not in own]
        ready = {item.item_id for item in self._embedded([item for item in others if item.fingerprint])}
        return [item for item in others if item.fingerprint is None or item.item_id in ready]

    def _target(self, collection: Collection) -> Target:
        return target(self._workspace, collection, self._embeddings)

    def _tell(self, ahead: int = 0) -> None:
        """Tell the progress; `ahead` of what is done are items of the batch at work."""
        done = self.report.written + self.report.removed + self.report.deferred + ahead
        self._progress(min(done, self._total), self._total)

    def _next(self, collection: Collection, limit: int) -> list[Wanted]:
        with self._runtime.database.transaction(self._workspace, by_key=True) as tx:
            return projections.pending(tx, self._identity, collection, limit, items=self._items)

    def _batch(self, collection: Collection, items: Sequence[Wanted]) -> Unavailable | None:
        """Write and remove the points of some items, and put off those for which that fails.

        Returns:
            why none of them could be worked on, if that is so: then index or model is away, as far as these tell.
        """
        writes = [item for item in items if item.fingerprint is not None]
        removals = [item for item in items if item.fingerprint is None]
        return self._attempt(collection, writes, self._write) or self._attempt(collection, removals, self._remove)

    def _attempt(
        self, collection: Collection, items: Sequence[Wanted], work: Work, *, bisecting: bool = False
    ) -> Unavailable | None:
        if not items:
            return None
        try:
            work(collection, items)
        except UNAVAILABLE as error:
            self._in_vain += 1
            if self._made_usable(collection, error):
                return None  # all of it is pending now, and comes again
            if len(items) == 1:
                self._defer(collection, items, str(error))
                return error
            if not bisecting:
                return self._isolated(collection, items, work, error)
            return self._halves(collection, items, work, str(error), error)
        except MemoryPipelineError:
            raise
        except Exception as error:  # noqa: BLE001  # nobody foresaw it, so it says nothing about the other items
            self._in_vain += 1
            reason = f"{type(error).__name__}: {error}"
            if len(items) == 1:
                self._defer(collection, items, reason)
            else:  # by lot, so that what is given up untried is not the same each time
                self._halves(collection, random.sample(items, len(items)), work, reason)
        else:
            self._in_vain = 0
        return None

    def _isolated(
        self, collection: Collection, items: Sequence[Wanted], work: Work, error: Unavailable
    ) -> Unavailable | None:
        """Tell an outage, which is everybody's, from items that index or model refuse, which hold up nobody else.

        Some items are tried alone: as soon as one of them goes through, only some of the others can be to blame. They
        are drawn by lot, so that none that are refused stand for an outage for ever, and among those that need what
        failed.
        """
        if isinstance(error, EmbedderUnavailable) and (embedded := self._embedded(items)):
            again = self._attempt(collection, embedded, work)
            items = [item for item in items if item not in embedded]
            if not items:
                return again
        drawn = random.sample(items, len(items))
        for number, item in enumerate(drawn[:_TRIED], start=1):
            if self._attempt(collection, [item], work) is None:
                return self._halves(collection, drawn[number:], work, str(error), error)
        if self._started_over(collection, error):
            return None
        self._defer(collection, drawn[_TRIED:], str(error))
        return error

    def _embedded(self, items: Sequence[Wanted]) -> list[Wanted]:
        """The items for which the model is not needed any more."""
        texts = {item.item_id: self._texts(item) for item in items}
        missing = missing_vectors(self._runtime, self._workspace, self._embeddings, chain.from_iterable(texts.values()))
        return [item for item in items if missing.isdisjoint(map(text_key, texts[item.item_id]))]

    def _halves(
        self,
        collection: Collection,
        items: Sequence[Wanted],
        work: Work,
        reason: str,
        error: Unavailable | None = None,
    ) -> Unavailable | None:
        """Find the items that an error comes from, so that the others of their batch are done all the same.

        Returns:
            the error, when too many were tried in vain. What was not tried is then left for the next run, which begins
            with it; of an error that nobody foresaw it is put off, since there is none to end this run with.
        """
        middle = len(items) // 2
        for half in (items[:middle], items[middle:]):
            if self._in_vain < _GIVEN_UP:
                self._attempt(collection, half, work, bisecting=True)
            elif error is None:
                self._defer(collection, half, reason)
        return error if self._in_vain >= _GIVEN_UP else None

    def _made_usable(self, collection: Collection, error: Unavailable) -> bool:
        """Start over with a collection of which reading shows, too, that it is damaged; whether that was done."""
        if not isinstance(error, CollectionDamaged) or collection in self._made_anew:
            return False
        try:
            self._runtime.index.check(self._target(collection))
            for _ in self._runtime.index.scan(self._target(collection)):
                pass
        except UNAVAILABLE as read:
            return isinstance(read, CollectionDamaged) and self._started_over(collection, error)
        return False

    def _started_over(self, collection: Collection, error: Unavailable) -> bool:
        """Make a damaged collection anew; once, since what is damaged again at once is so for another reason."""
        if not isinstance(error, CollectionDamaged) or collection in self._made_anew:
            return False
        start_over(self._runtime, self._target(collection), str(error))
        self._made_anew.add(collection)
        self._ensured.discard(collection)
        return True

    def _write(self, collection: Collection, items: Sequence[Wanted]) -> None:
        runtime, into = self._runtime, self._target(collection)
        texts = {item.item_id: self._texts(item) for item in items}
        known = known_vectors(
            runtime,
            self._workspace,
            self._embeddings,
            chain.from_iterable(texts.values()),
            lambda done, total: self._tell(len(items) * done // total),
        )
        points = [self._point(into, item, texts[item.item_id], known) for item in items]
        self._ensure(collection, into)
        held = runtime.index.upsert(into, points)
        took = [point.id in held for point in points]
        truncated = {i for i, ts in texts.items() if any(known[text_key(t)].truncated for t in ts)}
        self._certify(collection, list(compress(items, took)), truncated)
        self._defer_refused(collection, list(compress(items, map(not_, took))))

    def _ensure(self, collection: Collection, into: Target) -> None:
        if collection not in self._ensured:
            self._runtime.index.ensure(into)
            self._ensured.add(collection)

    def _certify(self, collection: Collection, written: Sequence[Wanted], truncated: set[str]) -> None:
        held = {item.item_id: item.fingerprint for item in written if item.fingerprint is not None}
        with self._runtime.database.transaction(self._workspace, by_key=True) as tx:
            certified = projections.certify(tx, self._identity, collection, held, truncated=truncated)
        self.report.written += certified
        self.report.overtaken += len(held) - certified

    def _remove(self, collection: Collection, items: Sequence[Wanted]) -> None:
        ids = [item.item_id for item in items]
        self._runtime.index.delete(self._target(collection), [point_id(self._workspace, item) for item in ids])
        with self._runtime.database.transaction(self._workspace, by_key=True) as tx:
            removed = projections.certify_removed(tx, self._identity, collection, ids)
        self.report.removed += removed
        self.report.overtaken += len(ids) - removed

    def _defer_refused(self, collection: Collection, items: Sequence[Wanted]) -> None:
        """A point that the version guard left alone is newer than the archive, which the audit finds and mends."""
        reason = "the index did not take this point, or holds a newer version of it: audit and repair it"
        self._defer(collection, items, reason)

    def _defer(self, collection: Collection, items: Sequence[Wanted], reason: str) -> None:
        ids = [item.item_id for item in items]
        with self._runtime.database.transaction(self._workspace, by_key=True) as tx:
            self.report.deferred += projections.defer(tx, self._identity, collection, ids, reason)

    def _point(
        self, into: Target, item: Wanted, texts: Sequence[PointText], known: Mapping[TextKey, KnownVector]
    ) -> Point:
        by_words = {name: t.text for t in texts if (name := lexical_name(t.name)) in into.schema.sparse}
        sparse = {name: self._lexicon.document(text) for name, text in by_words.items()}
        filters = card_filters(item.content) if item.content else {}
        return Point(
            id=point_id(into.workspace, item.item_id),
            payload=payload(into.workspace, item.item_id, item.version, item.fingerprint or "", filters),
            dense={text.name: known[text_key(text)].vector for text in texts},
            sparse={name: vector for name, vector in sparse.items() if vector},
        )

    def _texts(self, item: Wanted) -> list[PointText]:
        if item.content is None:
            return question_texts(item.question or "")
        return card_texts(item.content, item.literals, self._lexicon.language)
