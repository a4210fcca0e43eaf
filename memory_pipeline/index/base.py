"""What an index backend is to the rest of the library: it knows points, searches and collections, but no cards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from memory_pipeline.embedding.base import Vectors
from memory_pipeline.errors import IndexUnavailable
from memory_pipeline.lexical import SparseVector

__all__ = [
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

    Every method raises IndexUnavailable when the engine cannot be reached, stays locked, or answers with anything but
    a confirmation: the outcome of a write is then unknown, and the caller keeps it pending.
    """

    def ensure(self, target: Target) -> None:
        """Create the physical collection and its payload indexes where they are missing.

        Raises:
            IndexIncompatible: it exists with other vectors or another dimension.
        """

    def upsert(self, target: Target, points: Sequence[Point], *, guarded: bool = True) -> frozenset[str]:
        """Write points durably and say which of them the index now holds.

        Args:
            target: where to; it must exist.
            points: distinct ids, all of the target's workspace.
            guarded: leave alone a stored point whose version is higher than the one to write.

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
        """Every point that the target's workspace finds there, streamed in ascending order of id (as a UUID).

        Raises:
            CollectionMissing, IndexUnavailable.
        """

    def drop(self, target: Target) -> None:
        """Remove what the target's workspace has in the physical collection; a missing one is no error.

        Afterwards the collection is missing, or empty for this workspace, until `ensure` and a write.
        """

    def live_identity(self, workspace: str) -> Mapping[str, object] | None:
        """The settings of the embedding identity that recall uses for the workspace (`hash` among them), or None."""

    def activate(
        self, workspace: str, identity_hash: str, settings: Mapping[str, str | int | bool], collections: Sequence[str]
    ) -> None:
        """Make an identity the live one in one step. `collections` are the logical names that it covers."""

    def close(self) -> None:
        """Release every resource; the object cannot be used afterwards."""
