"""Recall: asks the index, verifies every hit in the archive, and fills up what had to be dropped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from memory_pipeline.archive import identities, lookup
from memory_pipeline.errors import EmbedderUnavailable, IndexUnavailable, MemoryPipelineError
from memory_pipeline.index.base import CollectionDamaged
from memory_pipeline.lexical import lexicon
from memory_pipeline.recall.finder import finder_of
from memory_pipeline.recall.judgement import Judgement, judged, judged_text
from memory_pipeline.recall.links import STEPS_AT_MOST, followed
from memory_pipeline.recall.omissions import Omitted, counted, listed, omissions
from memory_pipeline.recall.request import checked_request
from memory_pipeline.recall.result import LeftOut, RecallHit, RecallResult
from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import load_settings

if TYPE_CHECKING:
    from memory_pipeline.archive.database import Tx
    from memory_pipeline.archive.lookup import ShownCard
    from memory_pipeline.cards import Collection
    from memory_pipeline.recall.request import Request, Scope
    from memory_pipeline.recall.result import FollowedLink
    from memory_pipeline.settings import Settings

DEPTH = 40
"""How many points are asked for each signal at least. With 50, BIRD's relevant cards have 0.77 as MRR, not 0.76,
and a search among 10,000 cards takes a fifth longer. Up to a limit of 25 it is enough, so that the first hits do not
depend on how many are asked for; beyond that it grows with the limit."""


class Recall:
    """Answers questions with current cards. Use it as a context manager, or close it; threads may share it.

    Args:
        runtime: the services; they stay open when this is closed.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._owned: Runtime | None = None

    @classmethod
    def from_settings(cls, settings: Settings | None = None) -> Self:
        """Recall over the services that the settings name, by default those of the environment.

        Nothing is opened before the first search.

        Raises:
            InvalidSettings: a setting cannot be used.
        """
        recall = cls(Runtime(settings or load_settings(), warm=True))
        recall._owned = recall._runtime
        return recall

    def search(
        self,
        workspace: str,
        question: str,
        *,
        limit: int = 10,
        families: Iterable[str] | None = None,
        scope: Scope | None = None,
        session_id: str | None = None,
        expand_links: bool = False,
        degraded: bool = False,
        explain: bool = False,
    ) -> RecallResult:
        """The cards that fit a question best, each verified in the archive, whose text they carry.

        Points of the index that the archive does not confirm are dropped, counted, and made up for by further ones. A
        solved question asked word for word comes first, and then the cards that came from the very question, whether
        the index holds them yet or not.

        Args:
            workspace: whose cards.
            question: in any language, at most 20,000 characters.
            limit: at most so many cards, 1 to 1,000.
            families: only cards of these; by default all.
            scope: only cards of a database, schema, table or column.
            session_id: leave out the cards that this session has taken (confirmed, or cited in the rationale of a
                clarification) or rejected. It need not be known.
            expand_links: whether up to 50 cards within three links of the hits come along, after them and whatever
                their family and scope.
            degraded: whether, with the index or the embedding model away, PostgreSQL may answer by words alone.
            explain: whether the answer says which cards were found and left out, and why. What a scope left out takes
                searches of its own; the hits are the same.

        Raises:
            UnknownWorkspace: there is none of that name.
            InvalidInput: the question is blank or too long, the limit out of range, a family unknown.
            ArchiveUnavailable, SchemaOutOfDate: without the archive there is no answer.
            IndexUnavailable, EmbedderUnavailable: unless a degraded answer was asked for.
            IndexIncompatible: the index was made by another version of this library.
        """
        request = checked_request(
            workspace,
            question,
            limit=limit,
            families=families,
            scope=scope,
            session_id=session_id,
            expand_links=expand_links,
            degraded=degraded,
            explain=explain,
        )
        try:
            return self._by_index(request)
        except (IndexUnavailable, EmbedderUnavailable) as error:
            if isinstance(error, CollectionDamaged):
                self._notice_damage(request.workspace)
            if not request.degraded:
                raise
            return self._by_text(request)

    def close(self) -> None:
        """Close what `from_settings` opened."""
        if self._owned:
            self._owned.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _by_index(self, request: Request) -> RecallResult:
        # Each round takes its snapshot after the index was asked: a card that was deleted meanwhile is not shown, and
        # no transaction is open while a model loads or the index searches.
        finder = finder_of(self._runtime, request)
        depth, points = max(DEPTH, request.limit * 8 // 5), -1
        outside = finder.find_outside(depth)
        while True:
            found = finder.find(depth)
            last = found.exhausted or found.points == points  # whatever it returns, it has nothing new to say
            with self._runtime.database.transaction(request.workspace, snapshot=True, by_key=True) as tx:
                pending = self._pending(tx, finder.identity.hash, found.missing)
                judgement = judged(tx, request, found, lexicon(finder.language), outside)
                if last or len(judgement.cards) >= request.limit:
                    return _answer(tx, request, judgement, pending)
            depth, points = 2 * depth, found.points

    def _by_text(self, request: Request) -> RecallResult:
        with self._runtime.database.transaction(request.workspace, snapshot=True) as tx:
            pending = self._pending(tx, identities.serving(tx, self._runtime.identity.hash), ())
            return _answer(tx, request, judged_text(tx, request), pending, degraded=True)

    def _notice_damage(self, workspace: str) -> None:
        """Have what was damaged made anew by the next projection: until the next audit nobody else might meet it."""
        from memory_pipeline.propagation.losses import notice_damage  # noqa: PLC0415  # what recall else does without

        with suppress(MemoryPipelineError):  # the damage is what the caller is told
            notice_damage(self._runtime, workspace, self._runtime.live_identity(workspace))

    def _pending(self, tx: Tx, identity: str, missing: Iterable[Collection]) -> int:
        state = lookup.propagation(tx, identity, missing)
        if state.lost:
            raise IndexUnavailable(
                f"the index of workspace {tx.workspace!r} has lost {', '.join(state.lost)}: "
                "`memory-pipeline project` fills it again from the archive"
            )
        return state.pending


def _answer(tx: Tx, request: Request, judgement: Judgement, pending: int, *, degraded: bool = False) -> RecallResult:
    best = judgement.cards[: request.limit]
    ids = [card.card_id for card in best]
    links = _followed(tx, request, ids) if request.expand_links else {}
    omitted = omissions(judgement, request.limit, along=links) if request.explain else []
    named = listed(omitted)
    texts = lookup.shown(tx, [*ids, *links, *(each.card_id for each in named)])
    hits = [_hit(texts[card.card_id], card.score, card.signals) for card in best]
    along = [_hit(texts[card], 0.0, {}, link) for card, link in links.items()]
    return RecallResult(
        (*hits, *along),
        judgement.dropped,
        pending,
        degraded,
        explained=request.explain,
        left_out=tuple(_left_out(texts[each.card_id], each) for each in named),
        left_out_counts=counted(omitted),
    )


def _followed(tx: Tx, request: Request, hits: Sequence[str]) -> dict[str, FollowedLink]:
    links = lookup.links(tx, hits, steps=STEPS_AT_MOST)
    around = {card for link in links for card in (link.source, link.target)} - set(hits)
    candidates = lookup.candidates(tx, around, "", session_id=request.session_id, scoped=False)
    return followed(hits, links, [card for card, candidate in candidates.items() if candidate.decided])


def _left_out(card: ShownCard, omitted: Omitted) -> LeftOut:
    content = card.content
    return LeftOut(card.card_id, content.family, content.subject or content.question, omitted.reason, omitted.score)


def _hit(card: ShownCard, score: float, signals: Mapping[str, float], link: FollowedLink | None = None) -> RecallHit:
    content = card.content
    return RecallHit(
        card_id=card.card_id,
        family=content.family,
        subject=content.subject,
        detail=content.detail,
        rationale=content.rationale,
        question=content.question,
        sql=content.sql,
        context=content.context,
        tables=content.tables,
        sessions=card.sessions,
        score=score,
        signals=signals,
        version=card.version,
        concepts=content.concepts,
        link=link,
    )
