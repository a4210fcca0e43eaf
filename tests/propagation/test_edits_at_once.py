"""Edits of several administrators at once share the batches of those that are at work."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from memory_pipeline import completion
from memory_pipeline.curation import Curation
from memory_pipeline.errors import EmbedderUnavailable
from tests.archives import Archive
from tests.curating import CLINIC, a_creation, a_runtime, a_workspace
from tests.doubles import FaultyEmbedder, FaultyIndex

OTHERS = 5


@pytest.fixture
def runtime(settings, monkeypatch):
    monkeypatch.setattr(completion, "_PROJECTOR_WAIT", 60)  # on a busy machine they wait longer
    with a_runtime(settings) as opened:
        a_workspace(opened)
        opened.embedder = FaultyEmbedder()
        opened.index = FaultyIndex(opened.index)
        yield opened


def vectors(runtime):
    return len(Archive(runtime, CLINIC).column("SELECT text_hash FROM embedding WHERE workspace = :workspace"))


def saved_at_once(runtime, subjects, *, first="the first", until):
    """Save a card, and others while its point is being written, which goes on when `until` holds."""
    writing, waited = threading.Event(), threading.Event()

    def before_upsert():
        if not writing.is_set():
            writing.set()
            while not until():
                time.sleep(0.01)
            waited.set()

    runtime.index.before_upsert = before_upsert
    curation = Curation(runtime)
    with ThreadPoolExecutor(len(subjects) + 1) as administrators:
        one = administrators.submit(curation.save, CLINIC, a_creation(subject=first))
        assert writing.wait(60)
        others = [administrators.submit(curation.save, CLINIC, a_creation(subject=each)) for each in subjects]
        assert waited.wait(60)
        return one.result(), [other.result() for other in others]


def test_those_that_wait_are_written_in_one_batch_and_all_are_recallable(runtime):
    one, others = saved_at_once(
        runtime, [f"other {n}" for n in range(OTHERS)], until=lambda: vectors(runtime) == 1 + OTHERS
    )

    assert all(outcome.recallable for outcome in [one, *others])
    assert runtime.index.batches == [("memory_cards", 1), ("memory_cards", OTHERS)]


def test_one_that_the_model_refuses_holds_up_no_other(runtime):
    runtime.embedder.refused["refused"] = EmbedderUnavailable("the server answered 400")

    one, (refused, taken) = saved_at_once(runtime, ["refused", "taken"], until=lambda: vectors(runtime) == 2)

    assert one.recallable
    assert taken.recallable
    assert (refused.recallable, refused.reason) == (False, "the server answered 400")


def test_what_needs_the_model_is_left_to_whoever_asked_for_it(runtime):
    curation = Curation(runtime)
    curation.save(CLINIC, a_creation(subject="later"), propagate=False)

    assert curation.save(CLINIC, a_creation(subject="now")).recallable
    assert [each.item_id for each in curation.pending(CLINIC)] == ["mem-0001"]
