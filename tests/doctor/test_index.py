"""Each fault of the index is found: an engine that is away or too old, collections that are gone or of another model."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pydantic import SecretStr

from memory_pipeline.archive import identities
from memory_pipeline.cards import Collection
from memory_pipeline.doctor import State, running
from memory_pipeline.doctor.index import shows_its_key
from memory_pipeline.index import index_directory
from memory_pipeline.index.edge_files import ShardFiles
from memory_pipeline.points import target
from memory_pipeline.propagation import project
from memory_pipeline.propagation.switch import record_live
from memory_pipeline.settings import Examined, load_settings
from tests.archives import Archive
from tests.builders import WORKSPACE, clarified, promoted
from tests.canned import answering
from tests.doctor.conftest import CANARY, only, report_of, silent_server

pytestmark = pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection")

FAULT, OK, WARNING = State.FAULT, State.OK, State.WARNING
NO_COLLECTIONS = {"GET /collections": (200, {"collections": []}), "GET /aliases": (200, {"aliases": []})}


def a_qdrant(version: str) -> dict:
    return {"GET /": (200, {"title": "qdrant", "version": version}), **NO_COLLECTIONS}


@pytest.fixture
def projected(runtime):
    """A workspace whose collections are filled."""
    Archive(runtime).given(clarified(1), promoted(2, 1))
    project(runtime, WORKSPACE)
    return target(WORKSPACE, Collection.MEMORY_CARDS, runtime.identity)


class TestTheServer:
    def test_is_told_with_its_version(self, examined):
        with answering(a_qdrant("1.20.3")) as (url, _):
            report = examined(qdrant_url=url, qdrant_api_key=SecretStr(CANARY))
        state, found, _ = only(report, "index")
        assert state is OK
        assert "Qdrant 1.20.3" in found

    def test_has_to_be_new_enough(self, examined):
        with answering(a_qdrant("1.12.0")) as (url, _):
            report = examined(qdrant_url=url)
        assert only(report, "index")[:2] == (FAULT, "the Qdrant server is 1.12.0; 1.19 or newer is needed")
        assert only(report, "collections")[0] is State.NOT_APPLICABLE

    def test_is_not_far_from_its_client(self, examined):
        with answering(a_qdrant("1.99.0")) as (url, _):
            assert only(examined(qdrant_url=url), "index")[0] is WARNING

    def test_has_to_take_the_key(self, examined):
        refusing = {**a_qdrant("1.20.0"), "GET /collections": (401, "Invalid API key or JWT")}
        with answering(refusing) as (url, _):
            state, found, do = only(examined(qdrant_url=url, qdrant_api_key=SecretStr(CANARY)), "index")
        assert (state, CANARY in found) == (FAULT, False)
        assert "401: Invalid API key" in found
        assert "API key" in do

    @pytest.mark.parametrize(
        ("url", "shown"), [("http://qdrant:6333", True), ("https://qdrant", False), ("http://localhost:6333", False)]
    )
    def test_is_not_shown_its_key_where_others_see_it(self, url, shown):
        settings = load_settings(qdrant_url=url, qdrant_api_key=CANARY)
        assert shows_its_key(settings) is shown

    def test_that_is_away_or_silent_is_a_fault(self, settings, examined):
        assert "cannot be reached" in only(examined(qdrant_url="http://127.0.0.1:1"), "index")[1]
        with silent_server() as port:
            silent = settings.model_copy(update={"qdrant_url": f"http://127.0.0.1:{port}"})
            report = report_of(Examined(silent), patience=0.5)
        assert only(report, "index")[:2] == (FAULT, "no answer within 0.5 s")


def test_collections_that_are_as_they_should_be_are_ok(examined, projected, runtime):
    report = examined()
    assert only(report, "index")[0] is OK
    assert only(report, "collections")[:2] == (
        OK,
        f"1 workspace(s), identity {runtime.identity.hash} of 384 dimensions",
    )


def test_a_workspace_that_waits_for_its_first_projection_is_told(examined, runtime):
    Archive(runtime).given(clarified(1), promoted(2, 1))
    state, found, do = only(examined(), "collections")
    assert (state, found) == (WARNING, "clinic: 2 point(s) are pending, and nothing was projected yet")
    assert "memory-pipeline project" in do


def test_a_collection_that_is_gone_is_a_fault(examined, projected, runtime):
    runtime.index.remove_collection(projected)
    state, found, do = only(examined(), "collections")
    assert state is FAULT
    assert f"clinic: the index has no collection {projected.physical_name}" in found
    assert "memory-pipeline rebuild" in do


def test_a_collection_of_another_dimension_is_a_fault(examined, projected, runtime):
    runtime.index.remove_collection(projected)
    runtime.index.ensure(replace(projected, schema=replace(projected.schema, dimension=8)))
    state, found, _ = only(examined(), "collections")
    assert state is FAULT
    assert "content of 8" in found


def test_a_shard_that_stays_locked_is_told(examined, projected, settings, monkeypatch):
    monkeypatch.setattr(running, "SOON", 0.1)
    with ShardFiles.of(index_directory(settings), projected).locked(1):
        state, found, do = only(examined(), "collections")
    assert state is FAULT
    assert "stayed locked for 0.1 s" in found
    assert "look again" in do


def test_a_change_of_the_model_that_is_under_way_is_told_and_a_model_that_is_not_there_is_a_fault(examined, projected):
    report = examined(
        embedding_provider="sentence-transformers", embedding_model="/nowhere/model", embedding_dimension=8
    )
    state, found, _ = only(report, "collections")
    assert state is WARNING
    assert "clinic: recall still uses multilingual-e5-small" in found
    assert "of the configured /nowhere/model" in found
    state, found, do = only(report, "model")
    assert (state, "no directory /nowhere/model" in found, "MEMORY_EMBEDDING_" in do) == (FAULT, True, True)


def test_while_the_model_changes_the_one_that_recall_still_uses_is_asked_too(examined, projected, runtime):
    former = replace(runtime.identity, provider="openai", model="former")
    with runtime.database.transaction(WORKSPACE) as tx:
        identities.register(tx, former)
    runtime.index.activate(WORKSPACE, former.hash, former.settings, [])
    record_live(runtime, WORKSPACE)
    for collection in Collection:
        runtime.index.ensure(target(WORKSPACE, collection, former))
    report = examined()
    assert only(report, "model")[0] is OK
    under_way, away = report["collections"]
    assert (under_way.state, away.state) == (WARNING, FAULT)
    assert f"recall still uses former ({former.hash})" in away.found
    assert "MEMORY_EMBEDDING_FORMER_URL" in away.do


def test_an_index_whose_directory_is_a_file_is_a_fault(examined, settings):
    settings.home.mkdir()
    index_directory(settings).write_text("")
    assert only(examined(), "index")[0] is FAULT
