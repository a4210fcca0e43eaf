"""What only a server can do: aliases for all workspaces, answers that confirm nothing, connections that fail."""

from __future__ import annotations

import contextlib
import json
import warnings

import pytest
from qdrant_client import QdrantClient, models

from memory_pipeline.errors import IndexIncompatible, IndexUnavailable
from memory_pipeline.index import CollectionMissing, open_index
from memory_pipeline.index.server import QdrantServerIndex
from memory_pipeline.settings import Settings
from tests.canned import answering

pytestmark = [
    pytest.mark.filterwarnings("ignore:Payload indexes have no effect in the local Qdrant"),
    pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection"),
]

VERSION = {"title": "qdrant - vector search engine", "version": "1.20.0"}
COLLECTION = {
    "status": "green",
    "optimizer_status": "ok",
    "segments_count": 1,
    "config": {
        "params": {
            "vectors": {name: {"size": 4, "distance": "Cosine"} for name in ("content", "subject")},
            "sparse_vectors": {"words": {"modifier": "idf"}},
        },
        "hnsw_config": {"m": 0, "ef_construct": 100, "full_scan_threshold": 10000},
        "optimizer_config": {
            "deleted_threshold": 0.2,
            "vacuum_min_vector_number": 1000,
            "default_segment_number": 0,
            "flush_interval_sec": 5,
        },
    },
    "payload_schema": {},
}


@pytest.fixture
def client():
    client = QdrantClient(":memory:")
    yield client
    client.close()


@contextlib.contextmanager
def connected(url, qdrant_api_key=None):
    index = open_index(Settings(_env_file=None, qdrant_url=url, qdrant_api_key=qdrant_api_key), warm=False)
    try:
        yield index
    finally:
        index.close()


def answers_for(target):
    return {"GET /": (200, VERSION), f"GET /collections/{target.physical_name}": (200, COLLECTION)}


def test_aliases_of_all_collections_move_together_and_serve_every_workspace(client, a_target):
    index = QdrantServerIndex(client)
    names = ["memory_cards", "questions"]
    for name in names:
        for identity in ("old", "new"):
            client.create_collection(f"{name}__{identity}", vectors_config={})
    index.activate("psd", "old", {"model": "a"}, names)
    index.activate("psd", "new", {"model": "b"}, names)
    aliases = {alias.alias_name: alias.collection_name for alias in client.get_aliases().aliases}
    assert aliases == {"memory_cards": "memory_cards__new", "questions": "questions__new"}
    assert index.live_identity("other") == {"model": "b", "hash": "new"}


def test_an_identity_without_its_collection_is_not_activated(client):
    index = QdrantServerIndex(client)
    with pytest.raises(CollectionMissing):
        index.activate("psd", "new", {"model": "b"}, ["memory_cards"])
    assert index.live_identity("psd") is None


def test_what_the_live_collection_says_of_its_identity_is_asked_once():
    config = {**COLLECTION["config"], "metadata": {"embedding_identity": {"model": "a", "hash": "old"}}}
    aliases = {"aliases": [{"alias_name": "questions", "collection_name": "questions__old"}]}
    answers = {
        "GET /aliases": (200, aliases),
        "GET /collections/questions__old": (200, {**COLLECTION, "config": config}),
    }
    with answering(answers) as (url, asked), connected(url) as index:
        assert [index.live_identity(workspace)["hash"] for workspace in ("psd", "other", "psd")] == ["old"] * 3
    assert sorted(key for key, _ in asked) == ["GET /aliases"] * 3 + ["GET /collections/questions__old"]


def test_aliases_of_others_are_not_taken_for_an_identity(client):
    client.create_collection("theirs__1", vectors_config={})
    client.create_collection("elsewhere", vectors_config={})
    for name, alias in (("theirs__1", "theirs"), ("elsewhere", "questions")):
        create = models.CreateAlias(collection_name=name, alias_name=alias)
        client.update_collection_aliases([models.CreateAliasOperation(create_alias=create)])
    assert QdrantServerIndex(client).live_identity("psd") is None


def test_a_stolen_id_is_not_overwritten_in_another_workspace(client, a_target, a_point):
    index = QdrantServerIndex(client)
    mine, theirs = a_target("psd"), a_target("other")
    index.ensure(mine)
    foreign = a_point("mem-0001", workspace="other")
    index.upsert(theirs, [foreign])
    same_id = type(foreign)(foreign.id, {**foreign.payload, "workspace": "psd", "version": 9}, foreign.dense)
    assert index.upsert(mine, [same_id]) == frozenset()
    assert [point.payload["workspace"] for point in index.scan(theirs)] == ["other"]


def test_a_collection_that_vanishes_after_its_first_use_is_missing(client, target, nearest):
    index = QdrantServerIndex(client)
    index.ensure(target)
    index.search(target, [nearest()])
    client.delete_collection(target.physical_name)
    with pytest.raises(CollectionMissing):
        index.search(target, [nearest()])


def test_payload_indexes_are_asked_for_before_loading(a_target):
    target = a_target()
    put = f"PUT /collections/{target.physical_name}/index"
    answers = answers_for(target) | {
        f"GET /collections/{target.physical_name}/exists": (200, {"exists": True}),
        put: (200, {"operation_id": 1, "status": "completed"}),
    }
    with answering(answers) as (url, asked), connected(url) as index:
        index.ensure(target)
    indexes = {body["field_name"]: body["field_schema"] for body in (json.loads(b) for key, b in asked if key == put)}
    assert set(indexes) == {"workspace", "version", "family", "tables"}
    assert indexes["workspace"]["is_tenant"] is True


@pytest.mark.parametrize("status", ["acknowledged", "wait_timeout"])
def test_a_write_that_is_only_accepted_is_not_confirmed(target, a_point, status):
    put = f"PUT /collections/{target.physical_name}/points"
    answers = answers_for(target) | {put: (200, {"operation_id": 1, "status": status})}
    with answering(answers) as (url, _), connected(url) as index, pytest.raises(IndexUnavailable, match=status):
        index.upsert(target, [a_point("mem-0001")])


def test_a_guarded_write_sends_one_filter_for_each_version(target, a_point):
    name = target.physical_name
    put = f"PUT /collections/{name}/points"
    answers = answers_for(target) | {
        put: (200, {"operation_id": 1, "status": "completed"}),
        f"POST /collections/{name}/points": (200, []),
    }
    with answering(answers) as (url, asked), connected(url) as index:
        index.upsert(target, [a_point("mem-0001", 1), a_point("mem-0002", 2), a_point("mem-0003", 1)])
    sent = [json.loads(body) for key, body in asked if key == put]
    guards = [(len(body["points"]), body["update_filter"]["must_not"][0]["range"]["gt"]) for body in sent]
    assert guards == [(2, 1.0), (1, 2.0)]


def test_a_busy_server_and_a_broken_connection_are_tried_again(target):
    scroll = f"POST /collections/{target.physical_name}/points/scroll"
    answers = {scroll: [(503, "starting"), (None, None), (200, {"points": [], "next_page_offset": None})]}
    with answering(answers) as (url, asked), connected(url) as index:
        assert list(index.scan(target)) == []
    assert len(asked) == 3


def test_a_server_that_stays_busy_is_unavailable(target):
    scroll = f"POST /collections/{target.physical_name}/points/scroll"
    busy = {scroll: (503, "starting")}
    with (
        answering(busy) as (url, asked),
        connected(url) as index,
        pytest.raises(IndexUnavailable, match="503: starting"),
    ):
        list(index.scan(target))
    assert len(asked) == 3


def test_an_earlier_server_is_refused(target, nearest):
    answers = answers_for(target) | {"GET /": (200, VERSION | {"version": "1.18.2"})}
    with answering(answers) as (url, _), connected(url) as index, pytest.raises(IndexUnavailable, match=r"1\.18\.2"):
        index.search(target, [nearest()])


def test_what_the_server_says_about_dimensions_and_collections_is_understood(target):
    scroll = f"POST /collections/{target.physical_name}/points/scroll"
    answers = {
        scroll: [
            (400, "Wrong input: Vector dimension error: expected dim: 4, got 2"),
            (404, "Not found: Collection doesn't exist!"),
            (403, "forbidden"),
        ]
    }
    with answering(answers) as (url, _), connected(url) as index:
        for error in (IndexIncompatible, CollectionMissing, IndexUnavailable):
            with pytest.raises(error):
                list(index.scan(target))


def test_a_key_over_http_is_the_doctors_to_tell_and_no_warning_beside_every_answer():
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        with connected("http://qdrant.example:6333", qdrant_api_key="top-secret"):
            pass
    assert [str(each.message) for each in warned] == []


def test_no_secret_reaches_the_message_of_an_unreachable_server(target, nearest):
    with (
        connected("http://127.0.0.1:1", qdrant_api_key="top-secret") as index,
        pytest.raises(IndexUnavailable, match="ConnectError") as caught,
    ):
        index.search(target, [nearest()])
    shown = f"{caught.value!r} {caught.value.__cause__!r}"
    assert not {"top-secret", "127.0.0.1"} & set(shown.replace("@", " ").replace(":", " ").split())
    assert caught.value.__suppress_context__
