"""Builders of points and targets, and one index for each backend."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from qdrant_client import QdrantClient

from memory_pipeline.embedding.base import Vectors
from memory_pipeline.index import Index, Point, Schema, Search, SparseVector, Target
from memory_pipeline.index.edge import EdgeIndex
from memory_pipeline.index.server import QdrantServerIndex

SCHEMA = Schema(dense=("content", "subject"), sparse=("words",), dimension=4, keywords=("family", "tables"))


def vector(*numbers: float) -> Vectors:
    return np.array(numbers, dtype=np.float32)


def point_id(workspace: str, item: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{workspace}/{item}"))


def make_point(
    item: str,
    version: int = 1,
    *,
    workspace: str = "psd",
    content: Vectors | None = None,
    words: dict[int, float] | None = None,
    **payload: str | tuple[str, ...],
) -> Point:
    return Point(
        id=point_id(workspace, item),
        payload={
            "workspace": workspace,
            "item": item,
            "version": version,
            "fingerprint": f"{item}-{version}",
            **payload,
        },
        dense={"content": vector(1, 0, 0, 0) if content is None else content},
        sparse={"words": SparseVector(tuple(words), tuple(words.values()))} if words else {},
    )


@pytest.fixture
def a_point() -> Callable[..., Point]:
    return make_point


@pytest.fixture
def nearest() -> Callable[..., Search]:
    def build(*numbers: float, limit: int = 10, **must: tuple[str, ...]) -> Search:
        return Search("content", vector(*(numbers or (1, 0, 0, 0))), limit, must)

    return build


@pytest.fixture
def containing() -> Callable[..., Search]:
    def build(*words: int, limit: int = 10, **must: tuple[str, ...]) -> Search:
        return Search("words", SparseVector(words, (1.0,) * len(words)), limit, must)

    return build


@pytest.fixture
def collection() -> str:
    # Of its own for each test: a real server keeps what earlier runs left.
    return f"cards_{uuid.uuid4().hex[:8]}"


@pytest.fixture
def a_target(collection: str) -> Callable[..., Target]:
    def build(workspace: str = "psd", *, identity: str = "e5", schema: Schema = SCHEMA) -> Target:
        return Target(workspace, collection, identity, schema)

    return build


@pytest.fixture
def target(a_target: Callable[..., Target]) -> Target:
    return a_target()


# A real server is one more backend where one is named.
BACKENDS = ["edge", "edge-warm", "server-in-memory", *(["server"] if "MEMORY_TEST_QDRANT_URL" in os.environ else [])]


@pytest.fixture(params=BACKENDS)
def index(request: pytest.FixtureRequest, room: Path, collection: str) -> Iterator[Index]:
    if request.param.startswith("edge"):
        made: Index = EdgeIndex(room / "index", warm=request.param == "edge-warm")
        yield made
        made.close()
    elif request.param == "server-in-memory":
        yield from in_memory_server()
    else:
        yield from real_server(collection)


def in_memory_server() -> Iterator[Index]:
    made = QdrantServerIndex(QdrantClient(":memory:"))
    owner = threading.get_ident()
    yield made
    assert owner == threading.get_ident()
    made.close()


def real_server(collection: str) -> Iterator[Index]:
    client = QdrantClient(url=os.environ["MEMORY_TEST_QDRANT_URL"], timeout=30)
    yield QdrantServerIndex(client)
    for found in client.get_collections().collections:
        if found.name.startswith(collection):
            client.delete_collection(found.name)
    client.close()
