"""The embedded backend: Qdrant Edge, one shard for each workspace and physical collection, no server."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter
from qdrant_edge import (
    EdgeShard,
    FieldCondition,
    Filter,
    MatchAny,
    MatchValue,
    Query,
    QueryBatchRequest,
    QueryRequest,
    ScrollRequest,
    SearchParams,
    UpdateOperation,
)
from qdrant_edge import Point as EdgePoint
from qdrant_edge import SparseVector as EdgeSparseVector

from memory_pipeline.cards import workspace_name
from memory_pipeline.embedding.base import Vectors
from memory_pipeline.errors import IndexIncompatible, IndexUnavailable
from memory_pipeline.index.base import (
    CollectionMissing,
    Hit,
    Point,
    Search,
    SparseVector,
    StoredPoint,
    Target,
    physical_name,
)
from memory_pipeline.index.edge_copies import Copies
from memory_pipeline.index.edge_files import (
    ShardFiles,
    damaged,
    engine_errors,
    forget_workspace,
    is_want_of_room,
    read_file,
    shards_in,
    write_text,
)
from memory_pipeline.index.validation import (
    check_points,
    check_searches,
    engine_id,
    holds,
    may_replace,
    search_with_ties,
    trials,
)

_IDENTITY_FILE = "identity.json"
_AT_ONCE = 1_000  # points handed to the engine, whose lists of numbers take ten times the room of the vectors
_HASH = re.compile(r"[0-9a-f]{16}")
_SETTINGS = TypeAdapter(dict[str, Any])


class EdgeIndex:
    """An index in a directory, shared by processes and threads through locks. Implements `Index`.

    Args:
        root: the directory of the index; it is made when something is first written.
        warm: whether searches go to a private copy that stays open (a service, a benchmark) instead of opening the
            shard for each call. A warm index sees a write as soon as it was flushed, and waits for no writer once it
            holds a copy of the newest state.
        lock_timeout: how many seconds to wait for a shard that somebody else has open.
    """

    def __init__(self, root: Path, *, warm: bool, lock_timeout: float = 30.0) -> None:
        self._root = root
        self._warm = warm
        self._lock_timeout = lock_timeout
        self._copies = Copies(lock_timeout)

    def ensure(self, target: Target) -> None:
        """Create the shard and its payload indexes where they are missing.

        Raises:
            IndexIncompatible: it exists with other vectors or another dimension.
            IndexUnavailable: it stayed locked, or cannot be written.
        """
        files = self._files(target)
        with engine_errors(files.directory):
            files.workspace_directory.mkdir(parents=True, exist_ok=True)
            with files.locked(self._lock_timeout):
                if not files.exists():
                    files.create(target.schema)
                files.check(target.schema)
                files.add_keywords(target.schema)

    def check(self, target: Target) -> None:
        """Open the shard in place and search it by each of its vectors. See `Index.check`.

        A shard is the workspace's own: one of other vectors than its name promises is no less in need of being made
        anew than one that does not load.
        """
        try:
            with self._opened(self._checked(target)) as shard:
                _query(shard, target, trials(target.schema))
        except IndexIncompatible as error:
            raise damaged(self._files(target).directory, str(error)) from error

    def upsert(self, target: Target, points: Sequence[Point]) -> frozenset[str]:
        """Write points in one batch, flush, and say which of them the shard now holds. See `Index.upsert`.

        The lock is held from reading the stored versions to the flush, so the guard is exact.
        """
        check_points(target, points)
        if not points:
            return frozenset()
        ids = [point.id for point in points]
        with self._writing(target) as shard:
            stored = _payloads(shard, ids)
            writable = [point for point in points if may_replace(point, stored.get(point.id))]
            for start in range(0, len(writable), _AT_ONCE):
                some = writable[start : start + _AT_ONCE]
                shard.update(UpdateOperation.upsert_points([_edge_point(point) for point in some]))
            held = _payloads(shard, ids)
        return frozenset(point.id for point in points if holds(point, held.get(point.id)))

    def delete(self, target: Target, ids: Sequence[str]) -> None:
        """Delete points by id, durably, whatever they say; absent ids and an absent shard are no error."""
        if not ids:
            return
        of_ids: list[Any] = [engine_id(each) for each in ids]
        with contextlib.suppress(CollectionMissing), self._writing(target) as shard:
            shard.update(UpdateOperation.delete_points(of_ids))
            shard.flush()
            _reclaim(shard)

    def search(self, target: Target, searches: Sequence[Search]) -> list[list[Hit]]:
        """Run several searches in one opening of the shard, exactly, without approximation. See `Index.search`."""
        check_searches(target, searches)
        if not searches:
            return []
        with self._reading(target) as shard:
            found = search_with_ties(searches, lambda wanted: _query(shard, target, wanted))
            return _with_payloads(shard, found)

    def scan(self, target: Target, *, batch: int = 1000) -> Iterator[StoredPoint]:
        """Every point of the shard in ascending order of id, as it was when the scan began.

        It reads a private copy: a consumer may take its time without keeping writers out, and what it compares
        does not change under it. Opening the shard again for each page would cost more than one copy.
        """
        with self._copied(self._files(target)) as shard:
            offset: Any = None
            while True:
                records, offset = shard.scroll(ScrollRequest(offset, batch, with_payload=True))
                for record in records:
                    yield StoredPoint(str(record.id), record.payload or {})
                if offset is None:
                    return

    def retrieve(
        self, target: Target, batches: Iterable[Sequence[str]]
    ) -> Iterator[Mapping[str, Mapping[str, object]]]:
        """The payloads of points by id, batch by batch, as they were at the first: from a private copy, like a scan."""
        with self._copied(self._files(target)) as shard:
            for ids in batches:
                yield _payloads(shard, ids)

    def identities(self, workspace: str, collection: str) -> frozenset[str]:
        """The embedding identities that the workspace has a shard of the collection for."""
        prefix, directory = physical_name(collection, ""), self._directory(workspace)
        with engine_errors(directory):
            shards = shards_in(directory)
        return frozenset(shard.removeprefix(prefix) for shard in shards if shard.startswith(prefix))

    def drop(self, target: Target) -> None:
        """Remove the shard, damaged or not; an absent one is no error."""
        files = self._files(target)
        with engine_errors(files.directory):
            if not files.workspace_directory.is_dir():
                return
            with files.locked(self._lock_timeout):
                files.drop()

    def remove_collection(self, target: Target) -> None:
        """Remove the shard: the workspace shares it with nobody."""
        self.drop(target)

    def forget(self, workspace: str) -> None:
        """Remove the workspace's directory: its identity, its locks, and shards that are no whole ones."""
        forget_workspace(self._directory(workspace))

    def live_identity(self, workspace: str) -> Mapping[str, object] | None:
        """The settings of the identity that recall uses for the workspace (`hash` among them), or None.

        Whatever it is that a file says without naming a hash, it tells recall nothing, and is no more than a missing
        one: recall then uses the configured identity, and the next projection makes that the live one.
        """
        path = self._directory(workspace) / _IDENTITY_FILE
        try:
            with engine_errors(path):
                settings = _SETTINGS.validate_json(read_file(path) or b"")
        except ValueError:
            return None
        named = settings.get("hash")
        return settings if isinstance(named, str) and _HASH.fullmatch(named) else None

    def activate(
        self, workspace: str, identity_hash: str, settings: Mapping[str, str | int | bool], collections: Sequence[str]
    ) -> None:
        """Make an identity the live one of the workspace, in one step that survives a power failure.

        Every collection of a workspace follows the one file, so `collections` needs no record of its own.
        """
        path = self._directory(workspace) / _IDENTITY_FILE
        text = json.dumps({**settings, "hash": identity_hash, "collections": list(collections)}, ensure_ascii=False)
        with engine_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, text, sync=True)

    def close(self) -> None:
        """Close and remove the private copies."""
        self._copies.close()

    def _directory(self, workspace: str) -> Path:
        # Otherwise everything would count as absent: a removal as done, and a collection as lost.
        if self._root.exists() and not self._root.is_dir():
            raise IndexUnavailable(f"the index cannot be used: {self._root} is no directory")
        return self._root / workspace_name(workspace)

    def _files(self, target: Target) -> ShardFiles:
        self._directory(target.workspace)
        return ShardFiles.of(self._root, target)

    @contextlib.contextmanager
    def _writing(self, target: Target) -> Iterator[EdgeShard]:
        files = self._files(target)
        with engine_errors(files.directory):
            files.generation()  # fails before a lock file is made where there is no shard
            with files.locked(self._lock_timeout):
                files.check(target.schema)
                with files.writing() as shard:
                    yield shard

    def _reading(self, target: Target) -> AbstractContextManager[EdgeShard]:
        files = self._checked(target)
        return self._copied(files) if self._warm else self._opened(files)

    def _checked(self, target: Target) -> ShardFiles:
        files = self._files(target)
        with engine_errors(files.directory):
            files.check(target.schema)
        return files

    @contextlib.contextmanager
    def _opened(self, files: ShardFiles) -> Iterator[EdgeShard]:
        with engine_errors(files.directory), files.locked(self._lock_timeout), files.opened() as shard:
            yield shard

    @contextlib.contextmanager
    def _copied(self, files: ShardFiles) -> Iterator[EdgeShard]:
        copied = self._copies.newest if self._warm else self._copies.once
        with engine_errors(files.directory), copied(files) as shard:
            yield shard


def _scope(target: Target) -> list[Any]:
    # The shard is the workspace's own; a point that lies about it is not served all the same.
    return [FieldCondition("workspace", MatchValue(target.workspace))]


def _filter(target: Target, search: Search) -> Filter:
    return Filter(must=[*_scope(target), *(FieldCondition(key, MatchAny(list(v))) for key, v in search.must.items())])


def _query(shard: EdgeShard, target: Target, searches: Sequence[Search]) -> list[list[Hit]]:
    """What searches find in an open shard, without payloads."""
    requests = [
        QueryRequest(
            search.limit,
            query=Query.Nearest(_vector(search.vector), search.using),
            filter=_filter(target, search),
            with_payload=False,
            params=SearchParams(exact=True),
        )
        for search in searches
    ]
    answers = shard.query_batch(QueryBatchRequest(requests))
    return [[Hit(str(hit.id), hit.score, {}) for hit in hits] for hits in answers]


def _with_payloads(shard: EdgeShard, found: Sequence[Sequence[Hit]]) -> list[list[Hit]]:
    # Once for each point: several searches find the same ones, and looking for equals at the limit finds more than are
    # kept. Reading the payload of a hit takes longer than finding it by its words.
    payloads = _payloads(shard, list({hit.id for hits in found for hit in hits}))
    return [[Hit(hit.id, hit.score, payloads.get(hit.id, {})) for hit in hits] for hits in found]


def _reclaim(shard: EdgeShard) -> None:
    """Reclaim the room of deleted points once they are a fifth of the shard; otherwise it returns at once."""
    try:
        shard.optimize()
    except Exception as error:
        # It writes the others anew first, and asks for room; where there is none, the points are deleted all the same.
        if not is_want_of_room(error):
            raise


def _payloads(shard: EdgeShard, ids: Sequence[str]) -> dict[str, Mapping[str, object]]:
    wanted: list[Any] = [engine_id(each) for each in ids]
    return {str(record.id): record.payload or {} for record in shard.retrieve(wanted, True, False)}  # noqa: FBT003  # the engine takes them by position only


def _edge_point(point: Point) -> EdgePoint:
    vectors = {name: _vector(vector) for name, vector in point.dense.items()}
    vectors |= {name: _vector(vector) for name, vector in point.sparse.items()}
    payload = {key: list(value) if isinstance(value, tuple) else value for key, value in point.payload.items()}
    return EdgePoint(engine_id(point.id), vectors, payload)


def _vector(vector: Vectors | SparseVector) -> Any:
    if isinstance(vector, SparseVector):
        return EdgeSparseVector(list(vector.indices), list(vector.values))
    return np.asarray(vector, dtype=np.float32).tolist()
