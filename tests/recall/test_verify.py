from __future__ import annotations

import math

import pytest

from memory_pipeline.cards import Collection
from memory_pipeline.index.base import Hit
from memory_pipeline.points import payload, point_id
from memory_pipeline.recall.signals import SEARCHED
from memory_pipeline.recall.verify import compared, inspected

DENSE, LEXICAL, QUESTIONS = SEARCHED[:3]


def a_hit(item: str = "mem-0001", score: float = 0.9, *, id: str | None = None, **fields: object) -> Hit:  # noqa: A002  # the field's name
    held = payload("clinic", item, 1, "f1", {}) | fields
    return Hit(id or point_id("clinic", str(item)), score, {name: v for name, v in held.items() if v is not None})


def test_a_point_is_taken_at_its_word_until_the_archive_is_asked():
    findings = inspected("clinic", {DENSE: [a_hit()], LEXICAL: [a_hit(score=4.0)]})
    assert findings.values == {DENSE: {"mem-0001": 0.9}, LEXICAL: {"mem-0001": 4.0}}
    assert findings.claims == {Collection.MEMORY_CARDS: {"mem-0001": "f1"}}
    assert findings.counted() == {}


@pytest.mark.parametrize(
    ("hit", "reason"),
    [
        (a_hit(workspace="other"), "foreign"),
        (a_hit(workspace=None), "malformed"),
        (a_hit(workspace=7), "malformed"),
        (a_hit(item=None), "malformed"),
        (a_hit(item=["mem-0001"]), "malformed"),
        (a_hit("mem\x00"), "malformed"),
        (a_hit("mem\ud800", id=point_id("clinic", "mem-0001")), "malformed"),
        (a_hit(fingerprint=None), "malformed"),
        (a_hit(fingerprint={"a": 1}), "malformed"),
        (a_hit(id="no-uuid"), "malformed"),
        (a_hit(id=point_id("clinic", "mem-0002")), "malformed"),
        (a_hit(score=math.nan), "malformed"),
        (Hit(point_id("clinic", "mem-0001"), 0.9, {}), "malformed"),
        (Hit(point_id("clinic", "mem-0001"), 0.9, None), "malformed"),
        (Hit(None, 0.9, {}), "malformed"),
        (Hit(7, 0.9, {}), "malformed"),
    ],
)
def test_a_point_that_cannot_be_true_is_dropped_once_whatever_signals_find_it(hit, reason):
    findings = inspected("clinic", {DENSE: [hit], LEXICAL: [hit]})
    assert findings.counted() == {reason: 1}
    assert not any(findings.values.values())


def test_a_point_that_one_search_returns_twice_counts_once():
    findings = inspected("clinic", {DENSE: [a_hit(), a_hit(score=0.8), a_hit("mem-0002")]})
    assert findings.counted() == {"duplicate": 1}
    assert findings.values == {DENSE: {"mem-0001": 0.9, "mem-0002": 0.9}}


def test_a_point_that_holds_something_else_than_the_archive_wants_is_stale():
    findings = inspected("clinic", {DENSE: [a_hit(), a_hit("mem-0002")], LEXICAL: [a_hit()]})
    compared(findings, Collection.MEMORY_CARDS, {"mem-0001": "f2", "mem-0002": "f1"})
    assert findings.counted() == {"stale": 1}
    assert findings.values == {DENSE: {"mem-0002": 0.9}, LEXICAL: {}}
    assert findings.claimed(Collection.MEMORY_CARDS) == {"mem-0002"}


@pytest.mark.parametrize(("signal", "reason"), [(DENSE, "unknown_card"), (QUESTIONS, "unknown_question")])
def test_a_point_that_the_archive_knows_nothing_of_is_dropped(signal, reason):
    findings = inspected("clinic", {signal: [a_hit("gone")]})
    compared(findings, signal.searched, {})
    assert findings.counted() == {reason: 1}


def test_comparing_one_collection_leaves_the_others_alone():
    findings = inspected("clinic", {DENSE: [a_hit()], QUESTIONS: [a_hit("q-1")]})
    compared(findings, Collection.QUESTIONS, {"q-1": "f1"})
    assert findings.values == {DENSE: {"mem-0001": 0.9}, QUESTIONS: {"q-1": 0.9}}
