"""This project as a competitor: the embedded archive and the embedded index, in a home of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.rivals.base import LIMIT, Card, Did, Found, Model, batched
from memory_pipeline.archive import cards as archive
from memory_pipeline.archive import workspaces
from memory_pipeline.cards import CardContent, Collection, Family
from memory_pipeline.embedding.base import Embedder, EmbeddingIdentity
from memory_pipeline.errors import IndexUnavailable, MemoryPipelineError
from memory_pipeline.index.base import Point, Target
from memory_pipeline.points import point_id, target
from memory_pipeline.propagation import audit, project, repair
from memory_pipeline.recall import Recall
from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import Settings

_WORKSPACE = "peers"
_SAVED_AT_ONCE = 1_000


class _RefusingIndex:
    """The real index, which refuses a batch that some point is in, as a server answers 400 for all of a request."""

    def __init__(self, index: Any) -> None:
        self._index = index
        self.refused = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._index, name)

    def upsert(self, into: Target, points: Sequence[Point]) -> frozenset[str]:
        """See `Index.upsert`."""
        if any(point.payload["item"] == self.refused for point in points):
            raise IndexUnavailable("400 (Bad Request): a point of this request is refused")
        held: frozenset[str] = self._index.upsert(into, points)
        return held


class _StubbedRuntime(Runtime):
    """A runtime whose models are stand-ins, by the identities that the settings give them."""

    def __init__(self, settings: Settings, models: dict[str, Model]) -> None:
        super().__init__(settings, warm=True)
        self._stubs = models

    def embedder_of(self, identity: EmbeddingIdentity) -> Embedder:
        """See `Runtime.embedder_of`."""
        return self._stubs[identity.revision]


class Ours:
    """Cards in the archive; the run is `project`, the examination `audit`, and what mends is `repair`."""

    name = "memory-pipeline"
    settings = "as they come"

    def __init__(self, settings: Settings, model: Model) -> None:
        self._settings = settings
        self._models: dict[str, Model] = {}
        self.change_model(model)
        workspaces.make(self._runtime.database, _WORKSPACE, language="italian", principal="benchmark")
        self._saved: set[str] = set()

    def save(self, cards: Sequence[Card]) -> None:
        """See `Competitor.save`."""
        for some in batched(cards, _SAVED_AT_ONCE):
            contents = {card.card_id: CardContent(Family.CONCEPT, card.subject, card.detail) for card in some}
            with self._runtime.database.transaction(_WORKSPACE, writing=True) as tx:
                fresh = {card_id: content for card_id, content in contents.items() if card_id not in self._saved}
                if fresh:
                    archive.insert(tx, fresh, origin="hand", principal="benchmark")
                changed = {card_id: contents[card_id] for card_id in contents.keys() & self._saved}
                archive.update(tx, changed, principal="benchmark")
            self._saved |= contents.keys()

    def delete(self, card_ids: Sequence[str]) -> None:
        """See `Competitor.delete`."""
        with self._runtime.database.transaction(_WORKSPACE, writing=True) as tx:
            archive.delete(tx, card_ids)
        self._saved.difference_update(card_ids)

    def run(self) -> Did:
        """See `Competitor.run`."""
        try:
            report = project(self._runtime, _WORKSPACE)
        except MemoryPipelineError as error:
            return Did(0, 0, error=str(error))
        return Did(report.written, report.removed, left=report.pending)

    def search(self, text: str) -> list[Found]:
        """See `Competitor.search`. Words would find a card whose vector is wrong, so what they say is left out."""
        hits = Recall(self._runtime).search(_WORKSPACE, text, limit=LIMIT).hits
        by_meaning = sorted(hits, key=lambda hit: hit.signals.get("dense", 0.0), reverse=True)
        return [Found(hit.card_id, f"{hit.subject}: {hit.detail}") for hit in by_meaning]

    def points(self, card_ids: Sequence[str]) -> int:
        """See `Competitor.points`."""
        return sum(point.payload["item"] in card_ids for point in self._runtime.index.scan(self._target))

    def lose_points(self, card_ids: Sequence[str]) -> None:
        """See `Competitor.lose_points`."""
        self._runtime.index.delete(self._target, [point_id(_WORKSPACE, card_id) for card_id in card_ids])

    def refuse(self, card_id: str) -> None:
        """See `Competitor.refuse`."""
        self._index.refused = card_id

    def change_model(self, model: Model) -> None:
        """See `Competitor.change_model`. The revision in the settings names the model."""
        self._models[model.name] = model
        settings = self._settings.model_copy(update={"embedding_revision": model.name})
        before = vars(self).get("_runtime")
        self._runtime = _StubbedRuntime(settings, self._models)
        self._index = _RefusingIndex(self._runtime.index)
        self._runtime.index = self._index  # type: ignore[assignment]  # in place of what is opened
        if before:
            before.close()

    def examine(self) -> int | None:
        """See `Competitor.examine`."""
        return sum(audit(self._runtime, _WORKSPACE).counts.values())

    def mend(self) -> None:
        """See `Competitor.mend`."""
        repair(self._runtime, _WORKSPACE)

    def close(self) -> None:
        """See `Competitor.close`."""
        self._runtime.close()

    @property
    def _target(self) -> Target:
        return target(_WORKSPACE, Collection.MEMORY_CARDS, self._runtime.live_identity(_WORKSPACE))
