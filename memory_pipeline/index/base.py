"""What an index backend is to the rest of the library: it knows points, searches and collections, but no cards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from memory_pipeline.embedding.base import Vectors
from memory_pipeline.errors import IndexUnavailable
from memory_pipeline.lexical import SparseVector

__all__ = [
    "CollectionDamaged",
    "CollectionMissing",
    "Hit",
    "Index",
    "PayloadValue",
    "Point",
    "Schema",
    "Search",
    "SparseVector",
    "StoredPoint",
    "Target",
    "physical_name",
]

PayloadValue = str | int | tuple[str, ...]


def physical_name(collection: str, identity: str) -> str:
    """The name of the physical collection that holds a logical one's points for an embedding identity."""
    return f"{collection}__{identity}"


class CollectionMissing(IndexUnavailable):
    """The physical collection does not exist (never filled, dropped, or its directory wiped)."""


class CollectionDamaged(IndexUnavailable):
    """The physical collection is there and cannot be used; nothing in it is lost for good.

    Who owns it drops it and fills it again from the archive, which the audit's repair and the projection do.
    """


@dataclass(frozen=True, slots=True)
class Schema:
    """The named vectors of a collection.

    Attributes:
        dense: the names of its dense vectors (cosine distance).
        sparse: the names of its sparse vectors (dot product, weighted by inverse document frequency).
        dimension: the length of every dense vector.
        keywords: payload fields that are filtered by exact value, besides `workspace`, the tenant.
    """

    dense: tuple[str, ...]
    sparse: tuple[str, ...]
    dimension: int
    keywords: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Target:
    """One physical collection as one workspace sees it: every operation names exactly one workspace."""

    workspace: str
    collection: str
    identity: str
    schema: Schema

    @property
    def physical_name(self) -> str:
        """The name of the physical collection, which carries the embedding identity."""
        return physical_name(self.collection, self.identity)


@dataclass(frozen=True, slots=True)
class Point:
    """A point to write. `payload` holds at least workspace, item, version (int) and fingerprint, and no card text.

    A vector that is empty is left out of its mapping.
    """

    id: str
    payload: Mapping[str, PayloadValue]
    dense: Mapping[str, Vectors] = field(default_factory=dict)
    sparse: Mapping[str, SparseVector] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Search:
    """One nearest-neighbour search.

    Attributes:
        using: the name of the vector to compare with.
        vector: a dense vector of shape (dimension,), or a sparse one.
        limit: how many hits at most.
        must: payload field → values of which at least one has to match (the field may hold several).
    """

    using: str
    vector: Vectors | SparseVector
    limit: int
    must: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Hit:
    """One point found: its id, similarity (higher is nearer), and payload exactly as stored, trusted by nobody."""

    id: str
    score: float
    payload: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class StoredPoint:
    """One point as the index holds it."""

    id: str
    payload: Mapping[str, object]


class Index(Protocol):
    """A Qdrant of some kind. Safe to use from several threads.

    Every method raises IndexUnavailable when the engine cannot be reached, stays locked, has no room or no permission,
    or answers with anything but a confirmation: the outcome of a write is then unknown, and the caller keeps it
    pending. Where the files of a collection are to blame, it is CollectionDamaged.
    """

    def ensure(self, target: Target) -> None:
        """Create the physical collection and its payload indexes where they are missing.

        Raises:
            IndexIncompatible: it exists with other vectors or another dimension.
        """

    def check(self, target: Target) -> None:
        """Try out what reading all points does not: that the collection is of the schema, and searched by each vector.

        Raises:
            CollectionMissing, IndexUnavailable.
            CollectionDamaged: whatever it is, dropping the collection and filling it again mends it.
            IndexIncompatible: it has other vectors, and is not this workspace's alone to drop.
        """

    def upsert(self, target: Target, points: Sequence[Point]) -> frozenset[str]:
        """Write points durably and say which of them the index now holds.

        A stored point of a higher version is left alone. Where the archive is right all the same, since it was restored
        from a backup, that point is deleted first.

        Args:
            target: where to; it must exist.
            points: distinct ids, all of the target's workspace.

        Returns:
            the ids whose stored fingerprint is, after the write, the one that was to be written.

        Raises:
            CollectionMissing, IndexIncompatible, IndexUnavailable.
        """

    def delete(self, target: Target, ids: Sequence[str]) -> None:
        """Delete points by id, durably; ids that do not exist are no error, and neither is a missing collection."""

    def search(self, target: Target, searches: Sequence[Search]) -> list[list[Hit]]:
        """Run several searches in one round trip; hits of the target's workspace only, best first, ties by id.

        Raises:
            CollectionMissing, IndexIncompatible, IndexUnavailable.
        """

    def scan(self, target: Target, *, batch: int = 1000) -> Iterator[StoredPoint]:
        """Every point that the target's workspace has there, streamed in ascending order of id (as a UUID).

        On a server these are the points that name the workspace; embedded, all of its shard, whatever they name.

        Raises:
            CollectionMissing, IndexUnavailable.
        """

    def identities(self, workspace: str, collection: str) -> frozenset[str]:
        """The embedding identities that a logical collection has physical ones of, on a server for any workspace."""

    def drop(self, target: Target) -> None:
        """Remove what the target's workspace has in the physical collection; a missing one is no error.

        Afterwards the collection is missing, or empty for this workspace, until `ensure` and a write.
        """

    def remove_collection(self, target: Target) -> None:
        """Remove the physical collection itself, on a server for all workspaces; a missing one is no error.

        It is for a collection of an identity that nobody uses any more.
        """

    def forget(self, workspace: str) -> None:
        """Remove what is kept for the workspace apart from its points, and embedded whatever is left of those.

        It is for somebody who has dropped every collection of the workspace and keeps others from writing to it.
        """

    def live_identity(self, workspace: str) -> Mapping[str, object] | None:
        """The settings of the embedding identity that recall uses for the workspace (`hash` among them).

        None when there is no record of one, or one that says nothing: the next projection writes it anew.
        """

    def activate(
        self, workspace: str, identity_hash: str, settings: Mapping[str, str | int | bool], collections: Sequence[str]
    ) -> None:
        """Make an identity the live one in one step. `collections` are the logical names that it covers."""

    def close(self) -> None:
        """Release every resource; the object cannot be used afterwards."""
