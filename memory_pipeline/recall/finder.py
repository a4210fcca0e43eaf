"""Asks the index: one round trip for each collection, as deep as wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory_pipeline.cards import Collection
from memory_pipeline.index.base import CollectionMissing
from memory_pipeline.points import target
from memory_pipeline.recall.signals import searches

if TYPE_CHECKING:
    from memory_pipeline.embedding.base import EmbeddingIdentity
    from memory_pipeline.index.base import Hit, Index
    from memory_pipeline.recall.request import Request
    from memory_pipeline.recall.signals import Asked, Signal


@dataclass(frozen=True, slots=True)
class Found:
    """What the index answered, believed by nobody yet.

    Attributes:
        hits: signal → hits, best first.
        missing: the collections that the index does not have.
        exhausted: whether the index has no further card to give. Every card has a dense vector in its own collection,
            so a search there that comes back short has seen all cards within the filters; questions carry no filter,
            and however many there are, they lead to no other.
    """

    hits: Mapping[Signal, Sequence[Hit]]
    missing: frozenset[Collection]
    exhausted: bool

    @property
    def points(self) -> int:
        """The number of distinct points."""
        return len({(signal.searched, hit.id) for signal, hits in self.hits.items() for hit in hits})


@dataclass(frozen=True, slots=True)
class Finder:
    """The searches of one request."""

    index: Index
    identity: EmbeddingIdentity
    request: Request
    asked: Asked

    def find(self, depth: int) -> Found:
        """The nearest points for each signal.

        Args:
            depth: how many points for each signal at most.

        Raises:
            IndexUnavailable, IndexIncompatible.
        """
        hits: dict[Signal, Sequence[Hit]] = {}
        missing = set()
        for collection in self.request.collections:
            try:
                hits |= self._searched(collection, depth)
            except CollectionMissing:
                missing.add(collection)
        of_cards = [found for signal, found in hits.items() if signal.searched is not Collection.QUESTIONS]
        exhausted = all(len(found) < depth for found in of_cards)
        return Found(hits, frozenset(missing), exhausted)

    def _searched(self, collection: Collection, depth: int) -> dict[Signal, Sequence[Hit]]:
        wanted = searches(self.asked, collection, depth, self.request.must(collection))
        into = target(self.request.workspace, collection, self.identity)
        return dict(zip(wanted, self.index.search(into, list(wanted.values())), strict=True))
