"""What both backends refuse and promise alike: vectors that fit the schema, and a total order of hits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from memory_pipeline.errors import IndexIncompatible
from memory_pipeline.index.base import Hit, Point, Schema, Search, SparseVector, Target

_TIES_AT_MOST = 4096


@dataclass(frozen=True, slots=True)
class StoredVectors:
    """The named vectors that a physical collection was created with."""

    dense: Mapping[str, int]
    sparse: frozenset[str]

    @classmethod
    def of(cls, schema: Schema) -> StoredVectors:
        """What a collection of this schema holds."""
        return cls(dict.fromkeys(schema.dense, schema.dimension), frozenset(schema.sparse))

    def __str__(self) -> str:
        dense = ", ".join(f"{name} of {size}" for name, size in sorted(self.dense.items()))
        return f"dense vectors {dense or '(none)'} and sparse vectors {', '.join(sorted(self.sparse)) or '(none)'}"


def check_schema(name: str, stored: StoredVectors, schema: Schema) -> None:
    """Check that a physical collection is what the settings ask for.

    Raises:
        IndexIncompatible: naming what it holds and what was expected.
    """
    wanted = StoredVectors.of(schema)
    if stored != wanted:
        raise IndexIncompatible(
            f"{name} holds {stored}, but the settings ask for {wanted}: index again under a new name"
        )


def check_points(target: Target, points: Sequence[Point]) -> None:
    """Check points before any of them is written, since an engine that refuses one may have written others.

    Raises:
        IndexIncompatible: a vector that the collection does not have, or of another dimension.
        ValueError: a point of another workspace, or an id given twice.
    """
    if len({point.id for point in points}) != len(points):
        raise ValueError("an id is given twice in one batch")
    for point in points:
        if point.payload.get("workspace") != target.workspace:
            raise ValueError(f"point {point.id} is not of the workspace {target.workspace!r}")
        for name, vector in point.dense.items():
            _check_dense(target, name, vector.shape)
        for name in point.sparse:
            _check_sparse(target, name)


def check_searches(target: Target, searches: Sequence[Search]) -> None:
    """Check what is searched for.

    Raises:
        IndexIncompatible: a vector that the collection does not have, or of another dimension.
        ValueError: a limit below one.
    """
    for search in searches:
        if search.limit < 1:
            raise ValueError("a search has to ask for at least one hit")
        if isinstance(search.vector, SparseVector):
            _check_sparse(target, search.using)
        else:
            _check_dense(target, search.using, search.vector.shape)


def trials(schema: Schema) -> list[Search]:
    """One search by each vector, which whatever holds points of the schema can answer."""
    dense = np.ones(schema.dimension, dtype=np.float32)
    words = SparseVector((0,), (1.0,))
    return [Search(name, dense, 1) for name in schema.dense] + [Search(name, words, 1) for name in schema.sparse]


def engine_id(point_id: str) -> int | str:
    """A point's id as the engine knows it: ours are UUIDs, but somebody may have written one with a number."""
    return int(point_id) if point_id.isdecimal() else point_id


def holds(point: Point, payload: Mapping[str, object] | None) -> bool:
    """Whether a stored payload is that of the point: same workspace, same fingerprint."""
    return payload is not None and all(payload.get(key) == point.payload[key] for key in ("workspace", "fingerprint"))


def may_replace(point: Point, payload: Mapping[str, object] | None) -> bool:
    """Whether the point is at least as new as what is stored in its place."""
    version = None if payload is None else payload.get("version")
    return not isinstance(version, int) or version <= _version(point)


def _version(point: Point) -> int:
    version = point.payload["version"]
    if not isinstance(version, int):
        raise TypeError(f"the version of point {point.id} is no integer")
    return version


def search_with_ties(
    searches: Sequence[Search], fetch: Callable[[Sequence[Search]], list[list[Hit]]]
) -> list[list[Hit]]:
    """Run searches so that equal scores are ordered by id, also where the limit cuts through them.

    Engines choose among equal scores as they like. One hit more than asked tells whether the limit falls among equals;
    only then is the search repeated with a doubled limit, until they are all there (or 4,096 hits are).

    Args:
        searches: what to look for.
        fetch: runs searches in one round trip, and returns hits for each.

    Returns:
        for each search at most its limit of hits, by falling score, then by id.
    """
    wanted = [search.limit + 1 for search in searches]
    found: list[list[Hit]] = [[] for _ in searches]
    pending = list(range(len(searches)))
    while pending:
        answers = fetch([replace(searches[n], limit=wanted[n]) for n in pending])
        for n, hits in zip(pending, answers, strict=True):
            found[n] = sorted(hits, key=lambda hit: (-hit.score, hit.id))
        pending = [n for n in pending if _cut_among_equals(found[n], searches[n].limit, wanted[n])]
        for n in pending:
            wanted[n] *= 2
    return [hits[: search.limit] for search, hits in zip(searches, found, strict=True)]


def _cut_among_equals(hits: Sequence[Hit], limit: int, wanted: int) -> bool:
    complete = len(hits) < wanted or wanted >= max(_TIES_AT_MOST, limit + 1)
    return not complete and hits[limit - 1].score == hits[-1].score


def _check_dense(target: Target, name: str, shape: tuple[int, ...]) -> None:
    schema = target.schema
    if name not in schema.dense:
        raise IndexIncompatible(
            f"{target.physical_name} has no dense vector {name!r}; it has {', '.join(schema.dense)}"
        )
    if shape != (schema.dimension,):
        raise IndexIncompatible(
            f"{target.physical_name} holds vectors of dimension {schema.dimension}, and was given one of shape {shape}"
        )


def _check_sparse(target: Target, name: str) -> None:
    if name not in target.schema.sparse:
        raise IndexIncompatible(
            f"{target.physical_name} has no sparse vector {name!r}; it has {', '.join(target.schema.sparse) or 'none'}"
        )
