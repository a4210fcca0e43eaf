"""The services are opened when first needed, once, whoever asks."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import pytest

from memory_pipeline import runtime as services
from memory_pipeline.archive import workspaces
from memory_pipeline.errors import InvalidSettings
from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import load_settings

THREADS = 8


@pytest.fixture
def unopened(tmp_path) -> Runtime:
    return Runtime(load_settings(_env_file=None, home=tmp_path))


class Service:
    """Takes its time to open, and counts what was opened."""

    opened = 0

    def __init__(self, *_: object, **__: object) -> None:
        time.sleep(0.05)
        Service.opened += 1

    def close(self) -> None:
        Service.opened -= 1


@pytest.mark.parametrize(
    ("name", "opener"), [("database", "Database"), ("index", "open_index"), ("embedder", "open_embedder")]
)
def test_threads_that_ask_at_once_share_one_service(unopened, monkeypatch, name, opener):
    monkeypatch.setattr(services, opener, Service)
    monkeypatch.setattr(Service, "opened", 0)
    monkeypatch.setattr(Runtime, "archive_url", "nowhere")
    start = Barrier(THREADS)

    def asked(_: int) -> object:
        start.wait()
        return getattr(unopened, name)

    with ThreadPoolExecutor(THREADS) as pool:
        given = set(pool.map(asked, range(THREADS)))
    assert (len(given), Service.opened) == (1, 1)


@pytest.mark.parametrize(("name", "opener"), [("index", "open_index"), ("embedder", "open_embedder")])
def test_what_was_opened_is_closed(unopened, monkeypatch, name, opener):
    monkeypatch.setattr(services, opener, Service)
    monkeypatch.setattr(Service, "opened", 0)
    with unopened as runtime:
        assert getattr(runtime, name)
        assert Service.opened == 1
    assert Service.opened == 0


def test_the_model_of_another_identity_is_opened_once_and_closed_too(unopened, monkeypatch):
    monkeypatch.setattr(services, "reopen", Service)
    monkeypatch.setattr(Service, "opened", 0)
    former = replace(unopened.identity, model="former")
    with unopened as runtime:
        assert runtime.embedder_of(former) is runtime.embedder_of(former)
        assert Service.opened == 1
    assert Service.opened == 0


def test_one_runtime_does_not_wait_until_another_has_opened(unopened, monkeypatch, tmp_path):
    other = Runtime(load_settings(_env_file=None, home=tmp_path / "other"))
    both = Barrier(2, timeout=10)

    def together(*_: object, **__: object) -> Service:
        both.wait()
        return Service()

    monkeypatch.setattr(services, "open_index", together)
    with ThreadPoolExecutor(2) as pool:
        assert all(pool.map(lambda runtime: runtime.index is not None, [unopened, other]))


def test_recall_needs_no_owner_and_a_migration_says_that_it_does(settings):
    reader = settings.model_copy(update={"owner_url": None})
    with Runtime(reader) as runtime:
        assert workspaces.names(runtime.database) == []
        with pytest.raises(InvalidSettings, match="MEMORY_OWNER_URL"):
            runtime.migrate()


def test_a_server_of_somebodys_own_is_not_taken_for_the_embedded_one(unopened, settings):
    assert unopened.embedded_server is not None
    assert Runtime(settings).embedded_server is None
