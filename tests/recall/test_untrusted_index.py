"""The index is not trusted: what it returns is shown only as far as the archive confirms it, and never an exception.

The real index holds what it can be made to hold; a stub changes its answers to what it would not say by itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from uuid import NAMESPACE_URL, uuid5

import pytest

from memory_pipeline.cards import Collection
from memory_pipeline.index.base import Hit
from tests.builders import clarified, promoted
from tests.recall.memories import Memory, a_concept, ids


def with_payload(**fields: object) -> Callable[[Hit], Hit]:
    """Changes fields of a hit's payload."""
    return lambda hit: replace(hit, payload={**hit.payload, **fields})


def test_the_top_three_are_orphaned_and_three_valid_hits_take_their_places(memory: Memory):
    memory.hold(*[a_concept(f"subject {n}", f"detail {n}") for n in range(10)])
    memory.project()
    memory.plant(*[memory.point("subject", f"mem-9{n}") for n in range(3)])
    result = memory.search("subject", limit=3)
    assert len(result.hits) == 3
    assert result.dropped == {"unknown_card": 3}


def test_a_crowd_of_orphans_is_searched_through_to_the_valid_cards_behind_it(memory: Memory):
    held = memory.hold(*[a_concept(f"a{n}", f"b{n}") for n in range(4)])
    memory.project()
    memory.plant(*[memory.point("subject", f"mem-9{n:03d}") for n in range(170)])
    result = memory.search("subject", limit=3)
    assert len(result.hits) == 3
    assert set(ids(result)) <= set(held)
    assert result.dropped["unknown_card"] >= 150


def test_a_planted_point_that_lies_about_its_fingerprint_or_id_is_dropped(memory: Memory):
    held = memory.hold(a_concept(), a_concept("ward", "a unit"))
    memory.project()
    memory.plant(
        memory.point("active patient", held[1]),  # the fingerprint of nothing
        replace(memory.point("active patient", held[0]), id="00000000-0000-4000-8000-000000000001"),
    )
    result = memory.search("active patient")
    assert (ids(result), result.dropped) == ([held[0]], {"malformed": 1, "stale": 1})


@pytest.mark.parametrize(
    ("lie", "reason"),
    [
        (with_payload(workspace="other"), "foreign"),
        (with_payload(workspace=None), "malformed"),
        (with_payload(item="mem-9999"), "malformed"),
        (with_payload(item="sq-0001"), "malformed"),
        (with_payload(fingerprint="f" * 32), "stale"),
        (with_payload(fingerprint=7), "malformed"),
        (lambda hit: replace(hit, id=str(uuid5(NAMESPACE_URL, hit.id))), "malformed"),
        (lambda hit: replace(hit, id=f"no-uuid-{hit.id}"), "malformed"),
        (lambda hit: replace(hit, score=math.nan), "malformed"),
        (lambda hit: replace(hit, score=math.inf), "malformed"),
        (lambda hit: replace(hit, payload={}), "malformed"),
        (lambda hit: replace(hit, payload=None), "malformed"),
        (lambda hit: replace(hit, payload=["workspace", "item"]), "malformed"),
        (lambda hit: replace(hit, payload=str(hit.payload)), "malformed"),
    ],
    ids=[
        "another workspace",
        "no workspace",
        "another item",
        "an item of another kind",
        "another fingerprint",
        "no fingerprint",
        "another id",
        "an id that is no UUID",
        "not a number",
        "infinite",
        "an empty payload",
        "no payload",
        "a list",
        "a text",
    ],
)
def test_what_cannot_be_true_is_dropped_and_counted_and_its_place_filled(memory: Memory, lie, reason):
    memory.hold(*[a_concept(f"subject {n}", f"detail {n}") for n in range(10)])
    memory.project()
    best = ids(memory.search("anything", limit=3))
    memory.index.change = lambda target, hits: [*map(lie, hits[:3]), *hits[3:]]
    result = memory.search("anything", limit=3)
    assert (len(result.hits), result.dropped) == (3, {reason: 3})
    assert not set(ids(result)) & set(best)


def test_a_question_whose_point_is_not_confirmed_leads_to_no_card(memory: Memory):
    memory.session(clarified(1), promoted(2, 1), question="How many?", sql=None)
    memory.ingest()
    memory.project()
    lie = with_payload(fingerprint="f" * 32)
    memory.index.change = lambda target, hits: [lie(hit) for hit in hits if target.collection == Collection.QUESTIONS]
    result = memory.search("something else")
    assert (result.hits, result.dropped) == ((), {"stale": 1})


def test_a_point_returned_twice_is_shown_once_and_counted(memory: Memory):
    held = memory.hold(a_concept(), a_concept("ward", "a unit"))
    memory.project()
    expected = memory.search("active patient").hits
    memory.index.change = lambda target, hits: [hit for hit in hits for _ in range(2)]
    result = memory.search("active patient")
    assert (result.hits, result.dropped) == (expected, {"duplicate": len(held)})


def test_an_index_that_repeats_one_point_for_ever_ends_the_search(memory: Memory):
    held = memory.hold(a_concept())
    memory.project()
    memory.index.change = lambda target, hits: hits[:1] * 5000
    result = memory.search("active patient", limit=10)
    assert (ids(result), result.dropped) == (held, {"duplicate": 1})


def test_a_point_of_another_workspace_is_dropped(memory: Memory):
    memory.make("other")
    [theirs] = memory.hold(a_concept("theirs", "secret"), workspace="other")
    [ours] = memory.hold(a_concept("ours", "known"))
    memory.project("other")
    memory.project()
    [foreign] = list(memory.index.scan(memory.target(Collection.MEMORY_CARDS, "other")))
    memory.index.change = lambda target, hits: [Hit(foreign.id, 99.0, foreign.payload), *hits] if hits else []
    result = memory.search("theirs")
    assert (result.dropped["foreign"], [hit.subject for hit in result.hits]) == (1, ["ours"])
    assert theirs == ours  # the same human id in both, and still not the other's text
