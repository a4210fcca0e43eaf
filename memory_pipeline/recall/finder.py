"""Asks the index: one round trip for each collection, as deep as wanted, with a question embedded once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from memory_pipeline.archive import literals
from memory_pipeline.cards import Collection
from memory_pipeline.errors import EmbedderUnavailable
from memory_pipeline.index.base import CollectionMissing
from memory_pipeline.lexical import lexicon
from memory_pipeline.points import target
from memory_pipeline.recall.request import Scope
from memory_pipeline.recall.signals import searches, vectors_of
from memory_pipeline.shapes import phrases, shape

if TYPE_CHECKING:
    from memory_pipeline.embedding.base import EmbeddingIdentity
    from memory_pipeline.index.base import Hit, Index
    from memory_pipeline.recall.request import Request
    from memory_pipeline.recall.signals import Asked, Signal
    from memory_pipeline.runtime import Runtime


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
    """The searches of one request.

    Attributes:
        index: where.
        identity: the embedding identity of the collections.
        request: what is asked.
        asked: its vectors.
        language: Snowball's name of the language that the workspace's texts are analysed in.
    """

    index: Index
    identity: EmbeddingIdentity
    request: Request
    asked: Asked
    language: str

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

    def find_outside(self, depth: int) -> Found | None:
        """The same whatever the scope, where one was asked for and what it leaves out is to be explained.

        By searches of their own: what is found within the scope, and how well it fits, must not depend on the others.

        Raises:
            IndexUnavailable, IndexIncompatible.
        """
        if not self.request.explain or not self.request.scope.filters:
            return None
        return replace(self, request=replace(self.request, scope=Scope())).find(depth)

    def _searched(self, collection: Collection, depth: int) -> dict[Signal, Sequence[Hit]]:
        wanted = searches(self.asked, collection, depth, self.request.must(collection))
        into = target(self.request.workspace, collection, self.identity)
        return dict(zip(wanted, self.index.search(into, list(wanted.values())), strict=True))


def finder_of(runtime: Runtime, request: Request) -> Finder:
    """Prepare the searches of a request: the question is analysed and embedded, with no transaction open meanwhile.

    Raises:
        UnknownWorkspace, ArchiveUnavailable, IndexUnavailable, EmbedderUnavailable.
        IndexIncompatible: the index was made by another version of this library.
    """
    solved = Collection.SOLVED_QUESTIONS in request.collections
    with runtime.database.transaction(request.workspace, by_key=True) as tx:
        named = literals.known(tx, phrases(request.question) if solved else ())
    identity = runtime.live_identity(request.workspace)
    masked = shape(request.question, named, tx.language) if solved else request.question
    words = lexicon(tx.language).query(request.question)
    try:
        asked = vectors_of(request.question, masked, words, runtime.embedder_of(identity))
    except EmbedderUnavailable as error:
        if identity == runtime.identity:
            raise
        raise EmbedderUnavailable(_still_living_on(request.workspace, identity, error)) from error
    return Finder(runtime.index, identity, request, asked, tx.language)


def _still_living_on(workspace: str, identity: EmbeddingIdentity, error: EmbedderUnavailable) -> str:
    return (
        f"the index of workspace {workspace!r} is still searched with {identity.provider} {identity.model}, until "
        f"`memory-pipeline project` has filled it for the model that the settings name: {error}"
    )
