"""The server backend: a Qdrant server or cluster, with collections that all workspaces share.

The client's in-process mode (`QdrantClient(":memory:")`) serves for tests: it is not thread-safe, ignores payload
indexes and write ordering, and raises ValueError where a server answers with a status.
"""

from __future__ import annotations

import contextlib
import math
import re
import threading
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

import httpx
import numpy as np
from qdrant_client import QdrantClient, models
from qdrant_client.common.client_exceptions import QdrantException, ResourceExhaustedResponse
from qdrant_client.http.exceptions import ApiException, ResponseHandlingException, UnexpectedResponse
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential

from memory_pipeline.cards import workspace_name
from memory_pipeline.embedding.base import Vectors
from memory_pipeline.errors import IndexIncompatible, IndexUnavailable
from memory_pipeline.index.base import (
    CollectionMissing,
    Hit,
    Point,
    Schema,
    Search,
    SparseVector,
    StoredPoint,
    Target,
    physical_name,
)
from memory_pipeline.index.validation import (
    StoredVectors,
    check_points,
    check_schema,
    check_searches,
    engine_id,
    holds,
    search_with_ties,
)
from memory_pipeline.settings import Settings

_Answer = TypeVar("_Answer")
_Parameters = ParamSpec("_Parameters")

OLDEST_SERVER = (1, 19)
"""Earlier servers do not know the statistics of one tenant, and would score by everybody's words."""

_IDENTITY = "embedding_identity"
# A server refuses requests over 32 MB; 200 points of three vectors of 1,024 numbers, written out, are a third of that.
_POINTS_PER_REQUEST = 200
_BUSY = frozenset({429, 502, 503, 504})
_NOT_FOUND = 404
_INCOMPATIBLE = ("Vector dimension error", "Not existing vector name", "expected dim")


def connect(settings: Settings, *, patience: float | None = None) -> QdrantServerIndex:
    """The index of the server that the settings name; nothing is sent before it is used.

    Args:
        settings: which server.
        patience: seconds for one request, where they are to be fewer than the settings allow; then it is sent once.
    """
    key = settings.qdrant_api_key
    seconds = settings.qdrant_timeout if patience is None else min(settings.qdrant_timeout, patience)
    with warnings.catch_warnings():
        # The doctor says it, where it matters: not of this machine's own server, and not beside every answer.
        warnings.filterwarnings("ignore", message="Api key is used with an insecure connection")
        client = QdrantClient(
            url=settings.qdrant_url,
            api_key=key.get_secret_value() if key else None,
            timeout=math.ceil(seconds),
            check_compatibility=False,  # it asks from a thread of its own and only warns; this class asks and refuses
        )
    return QdrantServerIndex(client) if patience is None else QdrantServerIndex(client, attempts=1)


class QdrantServerIndex:
    """An index on a server of `OLDEST_SERVER` or newer. Implements `Index`, and is as thread-safe as its client.

    Args:
        client: connected to the server; closed by `close()`.
        attempts: how often a request is sent when the connection fails or the server is busy. Every request can be
            repeated. One that timed out is not: its outcome is unknown, and the caller has waited enough.
    """

    def __init__(self, client: QdrantClient, *, attempts: int = 3) -> None:
        self._client = client
        self._retrying = Retrying(
            stop=stop_after_attempt(attempts),
            wait=wait_exponential(multiplier=0.1, max=2),
            retry=retry_if_exception(_is_transient),
            reraise=True,
        )
        self._checked: set[tuple[str, Schema]] = set()
        self._identities: dict[str, Mapping[str, object]] = {}
        self._version_checked = False
        self._guard = threading.Lock()

    def ensure(self, target: Target) -> None:
        """Create the shared collection and its payload indexes where they are missing.

        Raises:
            IndexIncompatible: it exists with other vectors or another dimension.
            IndexUnavailable: the server does not confirm.
        """
        name = target.physical_name
        workspace_name(target.workspace)
        self._check_version()
        if not self._exists(name):
            try:
                self._call(None, self._client.create_collection, name, **_collection(target.schema))
            except IndexUnavailable:
                if not self._exists(name):  # else somebody else was faster
                    raise
        info = self._check_schema(target)
        for field, index in _payload_indexes(target.schema).items():
            if field not in info.payload_schema:
                self._confirmed(name, self._client.create_payload_index, name, field, index, wait=True)

    def check(self, target: Target) -> None:
        """Check that the collection is of the schema; its files are the server's business. See `Index.check`."""
        self._check_schema(target)

    def upsert(self, target: Target, points: Sequence[Point]) -> frozenset[str]:
        """Write points and ask back which of them the collection holds. See `Index.upsert`.

        The guard is one filter for a whole request, hence a request for each version (and for each 200 points). The
        server does not say which points it left alone, hence the question afterwards. A point of another workspace is
        never replaced.
        """
        check_points(target, points)
        if not points:
            return frozenset()
        self._check_once(target)
        for version, group in _by_version(points):
            for chunk in _chunks(group):
                self._write(target, chunk, _replaceable(target, version))
        held = self._payloads(target, [point.id for point in points])
        return frozenset(point.id for point in points if holds(point, held.get(point.id)))

    def delete(self, target: Target, ids: Sequence[str]) -> None:
        """Delete points of the workspace by id, durably; absent ids and an absent collection are no error."""
        for chunk in _chunks(ids):
            self._delete(target, [models.HasIdCondition(has_id=[engine_id(each) for each in chunk])])

    def search(self, target: Target, searches: Sequence[Search]) -> list[list[Hit]]:
        """Run several searches in one request (two, when a limit cuts through equal scores). See `Index.search`."""
        check_searches(target, searches)
        if not searches:
            return []
        self._check_once(target)
        return search_with_ties(searches, lambda wanted: self._query(target, wanted))

    def scan(self, target: Target, *, batch: int = 1000) -> Iterator[StoredPoint]:
        """Every point of the workspace in ascending order of id, page by page; writes show in pages yet to come."""
        name = target.physical_name
        scope = models.Filter(must=_scope(target))
        offset: Any = None
        while True:
            records, offset = self._call(
                name, self._client.scroll, name, scope, limit=batch, offset=offset, with_payload=True
            )
            for record in records:
                yield StoredPoint(str(record.id), record.payload or {})
            if offset is None:
                return

    def retrieve(
        self, target: Target, batches: Iterable[Sequence[str]]
    ) -> Iterator[Mapping[str, Mapping[str, object]]]:
        """The payloads of the workspace's points by id, a request for each batch; writes show in batches to come."""
        workspace = workspace_name(target.workspace)
        for ids in batches:
            held = self._payloads(target, ids)
            yield {id_: payload for id_, payload in held.items() if payload.get("workspace") == workspace}

    def identities(self, workspace: str, collection: str) -> frozenset[str]:
        """The embedding identities that there is a physical collection for, whoever has points in it."""
        workspace_name(workspace)
        prefix = physical_name(collection, "")
        names = [found.name for found in self._call(None, self._client.get_collections).collections]
        return frozenset(name.removeprefix(prefix) for name in names if name.startswith(prefix))

    def drop(self, target: Target) -> None:
        """Delete the workspace's points; the collection stays.

        Removing it when it is empty would race with another workspace that begins to fill it.
        """
        self._delete(target, [])

    def remove_collection(self, target: Target) -> None:
        """Remove the shared collection, with the points of every workspace. An alias of it would go too."""
        name = target.physical_name
        with contextlib.suppress(CollectionMissing):
            self._call(name, self._client.delete_collection, name)
        self._forget_checks(name)

    def forget(self, workspace: str) -> None:
        """Nothing is kept for a workspace but its points: collections and aliases are shared."""
        workspace_name(workspace)

    def live_identity(self, workspace: str) -> Mapping[str, object] | None:
        """The settings of the identity that the aliases point to (`hash` among them), or None.

        All workspaces share it.
        """
        workspace_name(workspace)
        for alias, name in sorted(self._aliases().items()):
            if name.startswith(physical_name(alias, "")) and (settings := self._identity_of(name)):
                return settings
        return None

    def activate(
        self, workspace: str, identity_hash: str, settings: Mapping[str, str | int | bool], collections: Sequence[str]
    ) -> None:
        """Point the aliases named like the logical collections to an identity's physical ones, all in one request.

        The identity's settings are written into the metadata of its collections before: they belong to a collection for
        life, come and go with it, and are read together with it, whereas a collection of their own could disagree.
        """
        workspace_name(workspace)
        metadata = {_IDENTITY: {**settings, "hash": identity_hash}}
        for collection in collections:
            name = physical_name(collection, identity_hash)
            self._call(name, self._client.update_collection, name, metadata=metadata)
        moves = _alias_moves(collections, identity_hash, self._aliases())
        if not self._call(None, self._client.update_collection_aliases, moves):
            raise IndexUnavailable("the Qdrant server did not move its aliases")

    def close(self) -> None:
        """Close the client."""
        self._client.close()

    def _exists(self, name: str) -> bool:
        return self._call(None, self._client.collection_exists, name)

    def _aliases(self) -> dict[str, str]:
        aliases = self._call(None, self._client.get_aliases).aliases
        return {alias.alias_name: alias.collection_name for alias in aliases}

    def _identity_of(self, name: str) -> Mapping[str, object] | None:
        """The identity that a collection says it is of; once known, it is asked no more, since it stays for life."""
        if name not in self._identities:
            metadata = self._call(name, self._client.get_collection, name).config.metadata or {}
            if not isinstance(settings := metadata.get(_IDENTITY), dict):
                return None
            self._identities[name] = settings
        return self._identities[name]

    def _check_once(self, target: Target) -> None:
        """Check the collection when it is first used; a server says little when vectors do not fit."""
        with self._guard:
            if (target.physical_name, target.schema) in self._checked:
                return
        self._check_version()
        self._check_schema(target)

    def _check_schema(self, target: Target) -> models.CollectionInfo:
        name = target.physical_name
        info = self._call(name, self._client.get_collection, name)
        check_schema(name, _stored_vectors(info), target.schema)
        with self._guard:
            self._checked.add((name, target.schema))
        return info

    def version(self) -> str:
        """The server's version.

        Raises:
            IndexUnavailable: it is too old, or the server does not say.
        """
        version = self._call(None, self._client.info).version
        if tuple(int(number) for number in re.findall(r"\d+", version)[:2]) < OLDEST_SERVER:
            oldest = ".".join(map(str, OLDEST_SERVER))
            raise IndexUnavailable(f"the Qdrant server is {version}; {oldest} or newer is needed")
        return version

    def _check_version(self) -> None:
        if not self._version_checked:
            self.version()
            self._version_checked = True

    def _write(self, target: Target, points: Sequence[Point], replaceable: models.Filter) -> None:
        name = target.physical_name
        self._confirmed(
            name,
            self._client.upsert,
            name,
            [_struct(point) for point in points],
            wait=True,
            ordering=models.WriteOrdering.STRONG,
            update_filter=replaceable,
        )

    def _delete(self, target: Target, conditions: list[Any]) -> None:
        selector = models.FilterSelector(filter=models.Filter(must=[*_scope(target), *conditions]))
        name = target.physical_name
        with contextlib.suppress(CollectionMissing):
            self._confirmed(name, self._client.delete, name, selector, wait=True, ordering=models.WriteOrdering.STRONG)

    def _query(self, target: Target, searches: Sequence[Search]) -> list[list[Hit]]:
        requests = [_request(target, search) for search in searches]
        name = target.physical_name
        answers = self._call(name, self._client.query_batch_points, name, requests)
        return [[Hit(str(hit.id), hit.score, hit.payload or {}) for hit in answer.points] for answer in answers]

    def _payloads(self, target: Target, ids: Sequence[str]) -> dict[str, Mapping[str, object]]:
        # By majority: a replica that lags behind would deny what was just confirmed.
        name = target.physical_name
        majority = models.ReadConsistencyType.MAJORITY
        records = self._call(
            name,
            self._client.retrieve,
            name,
            [engine_id(each) for each in ids],
            with_payload=True,
            consistency=majority,
        )
        return {str(record.id): record.payload or {} for record in records}

    def _confirmed(
        self,
        name: str,
        send: Callable[_Parameters, models.UpdateResult],
        *args: _Parameters.args,
        **kwargs: _Parameters.kwargs,
    ) -> None:
        status = self._call(name, send, *args, **kwargs).status
        if status is not models.UpdateStatus.COMPLETED:
            raise IndexUnavailable(
                f"the Qdrant server answered {status.value!r} instead of confirming a write to {name}"
            )

    def _call(
        self,
        name: str | None,
        send: Callable[_Parameters, _Answer],
        *args: _Parameters.args,
        **kwargs: _Parameters.kwargs,
    ) -> _Answer:
        """Send a request, repeat it where that can help, and translate what the client raises.

        A collection that is named is one without which the request cannot succeed. `from None`, since the client's
        errors carry the URL.
        """
        try:
            return self._retrying(send, *args, **kwargs)
        except (ApiException, QdrantException) as error:
            raise self._translated(name, error) from None
        except ValueError as error:
            if name is not None and not self._client.collection_exists(name):
                raise self._forgotten(name) from None
            raise IndexUnavailable(f"the Qdrant client refused a request: {error}") from None

    def _translated(self, name: str | None, error: Exception) -> IndexUnavailable | IndexIncompatible:
        if not isinstance(error, UnexpectedResponse):
            source = error.source if isinstance(error, ResponseHandlingException) else error
            return IndexUnavailable(
                f"the Qdrant server cannot be reached or did not answer in time ({type(source).__name__})"
            )
        if error.status_code == _NOT_FOUND and name is not None:
            return self._forgotten(name)
        message = _server_message(error)
        if any(sign in message for sign in _INCOMPATIBLE):
            return IndexIncompatible(f"{name}: {message}")
        return IndexUnavailable(f"the Qdrant server answered {error.status_code}: {message}")

    def _forget_checks(self, name: str) -> None:
        with self._guard:
            self._checked = {known for known in self._checked if known[0] != name}

    def _forgotten(self, name: str) -> CollectionMissing:
        self._forget_checks(name)
        return CollectionMissing(f"the index has no collection {name}: run the projection to fill it from the archive")


def _is_transient(error: BaseException) -> bool:
    if isinstance(error, ResponseHandlingException):
        return isinstance(error.source, httpx.TransportError) and not isinstance(error.source, httpx.TimeoutException)
    if isinstance(error, UnexpectedResponse):
        return error.status_code in _BUSY
    return isinstance(error, ResourceExhaustedResponse)


def _server_message(error: UnexpectedResponse) -> str:
    """What the server itself says; the client's own text would repeat the raw response."""
    try:
        return str(error.structured()["status"]["error"])[:300]
    except (ValueError, KeyError, TypeError):
        return error.reason_phrase or "no reason given"


def _collection(schema: Schema) -> dict[str, Any]:
    """How a collection is made.

    With m=0 and payload_m there is no graph over all workspaces, but one for each, as Qdrant's guide to multitenancy
    has it: small workspaces are compared exactly, and none is searched through another's points.
    """
    return {
        "vectors_config": {
            name: models.VectorParams(size=schema.dimension, distance=models.Distance.COSINE) for name in schema.dense
        },
        "sparse_vectors_config": {
            name: models.SparseVectorParams(modifier=models.Modifier.IDF) for name in schema.sparse
        },
        "hnsw_config": models.HnswConfigDiff(m=0, payload_m=16),
    }


def _payload_indexes(schema: Schema) -> dict[str, Any]:
    keyword = models.KeywordIndexType.KEYWORD
    # Only the tenant has graphs of its own: one more for each table or family would cost memory and find nothing more.
    plain = models.KeywordIndexParams(type=keyword, enable_hnsw=False)
    return {
        "workspace": models.KeywordIndexParams(type=keyword, is_tenant=True),
        # The guard filters by it, and a server in strict mode refuses filters without an index.
        "version": models.IntegerIndexParams(type=models.IntegerIndexType.INTEGER, enable_hnsw=False),
        **dict.fromkeys(schema.keywords, plain),
    }


def _stored_vectors(info: models.CollectionInfo) -> StoredVectors:
    params = info.config.params
    dense = params.vectors if isinstance(params.vectors, dict) else {}
    return StoredVectors({name: vector.size for name, vector in dense.items()}, frozenset(params.sparse_vectors or {}))


def _scope(target: Target) -> list[Any]:
    workspace = workspace_name(target.workspace)
    return [models.FieldCondition(key="workspace", match=models.MatchValue(value=workspace))]


def _replaceable(target: Target, version: int) -> models.Filter:
    """Which stored points a write may replace: the workspace's own that are not newer."""
    newer = models.FieldCondition(key="version", range=models.Range(gt=version))
    return models.Filter(must=_scope(target), must_not=[newer])


def _by_version(points: Sequence[Point]) -> Iterable[tuple[int, list[Point]]]:
    groups: defaultdict[Any, list[Point]] = defaultdict(list)
    for point in points:
        groups[point.payload["version"]].append(point)
    return groups.items()


_Item = TypeVar("_Item")


def _chunks(items: Sequence[_Item]) -> Iterator[Sequence[_Item]]:
    for start in range(0, len(items), _POINTS_PER_REQUEST):
        yield items[start : start + _POINTS_PER_REQUEST]


def _struct(point: Point) -> models.PointStruct:
    vectors: dict[str, Any] = {name: _vector(vector) for name, vector in point.dense.items()}
    vectors |= {name: _vector(vector) for name, vector in point.sparse.items()}
    payload = {key: list(value) if isinstance(value, tuple) else value for key, value in point.payload.items()}
    return models.PointStruct(id=engine_id(point.id), vector=vectors, payload=payload)


def _request(target: Target, search: Search) -> models.QueryRequest:
    sparse = isinstance(search.vector, SparseVector)
    corpus = models.IdfCorpusParams(corpus=models.Filter(must=_scope(target)))
    return models.QueryRequest(
        query=_vector(search.vector),
        using=search.using,
        limit=search.limit,
        filter=models.Filter(must=[*_scope(target), *_must(search)]),
        with_payload=True,
        # How rare a word is, is counted in the workspace alone: others must not change its scores.
        params=models.SearchParams(idf=corpus) if sparse else None,
    )


def _must(search: Search) -> list[models.FieldCondition]:
    return [
        models.FieldCondition(key=key, match=models.MatchAny(any=list(values))) for key, values in search.must.items()
    ]


def _vector(vector: Vectors | SparseVector) -> Any:
    if isinstance(vector, SparseVector):
        return models.SparseVector(indices=list(vector.indices), values=list(vector.values))
    return np.asarray(vector, dtype=np.float32).tolist()


def _alias_moves(collections: Sequence[str], identity_hash: str, existing: Mapping[str, str]) -> list[Any]:
    moves: list[Any] = [
        models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=collection))
        for collection in collections
        if collection in existing
    ]
    for collection in collections:
        target = models.CreateAlias(collection_name=physical_name(collection, identity_hash), alias_name=collection)
        moves.append(models.CreateAliasOperation(create_alias=target))
    return moves
