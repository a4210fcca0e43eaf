"""Many who read, and some who write, at the same time, over a real server."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import uvicorn

from benchmarks.web import Crowd
from memory_pipeline.archive import database
from memory_pipeline.listening import address, listening
from memory_pipeline.runtime import Runtime
from memory_pipeline.web import create_app, serve
from memory_pipeline.web.identity import LocalToken
from memory_pipeline.web.services import Services
from tests.curating import CLINIC, a_creation, a_runtime, a_workspace
from tests.web.conftest import TOKEN
from tests.web.serving import free_port

READERS, WRITERS, ROUNDS = 50, 5, 2


@pytest.fixture
def watched(settings) -> Iterator[Runtime]:
    """Services of which one caller may ask for as much as fifty do; nobody may wait for a connection to the archive."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "_CONNECTION_WAIT", 0.0)
        opened = a_runtime(settings.model_copy(update={"web_requests_per_minute": 1_000_000}))
        a_workspace(opened)
        with opened:
            yield opened


@pytest.fixture
def at(watched) -> Iterator[str]:
    """The address of a server of this process."""
    services = Services.of(watched, LocalToken(TOKEN, watched.settings.acting_principal))
    port = free_port()
    # As `serve` has it: after five seconds, a connection would be closed under a reader whom a busy machine held up.
    kept = {"timeout_keep_alive": serve._KEEP_ALIVE_SECONDS}
    server = uvicorn.Server(uvicorn.Config(create_app(services), log_config=None, ws="none", **kept))
    with listening("127.0.0.1", port) as held:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [held]})
        held.listen()  # who asks before the server runs waits for it
        thread.start()
        yield address("127.0.0.1", port)
        server.should_exit = True
        thread.join()


def test_fifty_readers_and_five_writers_meet_no_error_and_lose_no_edit(curation, at):
    shown = [curation.save(CLINIC, a_creation(subject=f"patient {n}")).card_id for n in range(20)]
    counters = [
        curation.save(CLINIC, a_creation(family="pitfall", subject=f"counter {n}", detail="0")).card_id
        for n in range(1 + WRITERS)
    ]
    crowd = Crowd(at, TOKEN, CLINIC, shown, counters)

    told = crowd.ask(lambda: range(ROUNDS), readers=READERS)

    assert told.faults == {}
    assert told.done == dict.fromkeys(counters[1:], ROUNDS) | {counters[0]: ROUNDS * WRITERS}
    assert crowd.lost(told) == 0
    assert {len(told.times[kind]) for kind in ("list", "recall", "page: list")} == {READERS * ROUNDS}
