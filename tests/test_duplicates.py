"""Which pairs of many statements are proposed, in which order, and within which bounds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_pipeline import duplicates
from memory_pipeline.duplicates import NEAR, matches, pairs
from memory_pipeline.statements import Reader, Statement, likeness

READER = Reader("italian")
WORDS = st.sampled_from(["alfa", "beta", "gamma", "delta", "ricovero", "reparto", "paziente", "dose"])
DETAILS = st.lists(WORDS, min_size=1, max_size=6).map(" ".join)


def statements(*details: str) -> dict[str, Statement]:
    return {f"mem-{n:04d}": READER.statement("", detail) for n, detail in enumerate(details, 1)}


def proposed(*details: str, **options: object) -> list[tuple[str, str, str]]:
    return [(p.first[-1], p.second[-1], p.kind) for p in pairs(statements(*details), **options).pairs]


def test_the_same_but_for_form_comes_first_and_what_is_near_after_it():
    details = ("codice 1 significa febbre", "codice 1: febbre", "tosse secca", "Tosse (secca)", "altro")
    assert proposed(*details) == [("3", "4", "form"), ("1", "2", "near")]


def test_of_several_that_are_the_same_each_is_paired_with_the_first_and_only_that_one_is_near_others():
    details = ("febbre alta", "Febbre alta", "«febbre» alta", "la febbre alta")
    assert proposed(*details) == [("1", "2", "form"), ("1", "3", "form"), ("1", "4", "near")]


def test_opposites_and_other_words_of_one_stem_are_not_proposed():
    opposites = ("sistolica 140 e diastolica 90", "sistolica 90 e diastolica 140", "medico rifiuta paziente")
    assert proposed(*opposites, "paziente rifiuta medico", "parto", "parte", "ferito", "ferita", "x²", "x2") == []


def test_what_is_kept_apart_is_neither_shown_nor_counted():
    found = pairs(statements("febbre", "Febbre", "la febbre"), apart=frozenset({frozenset({"mem-0001", "mem-0002"})}))
    assert [(p.first, p.second) for p in found.pairs] == [("mem-0001", "mem-0003")]
    assert (found.form, found.near) == (0, 1)


def test_a_limit_shows_the_best_and_counts_all():
    found = pairs(statements("febbre", "tosse", "Febbre", "la febbre", "la tosse"), limit=1)
    assert [(p.first, p.second, p.kind) for p in found.pairs] == [("mem-0001", "mem-0003", "form")]
    assert (found.form, found.near, found.complete) == (1, 2, True)


def test_when_too_many_look_alike_it_stops_and_says_so(monkeypatch):
    monkeypatch.setattr(duplicates, "MOST_COMPARED", 5)
    articles = ["il", "lo", "la", "i", "gli", "le", "un", "uno", "una"]
    found = pairs(statements(*[f"{article} febbre" for article in articles]))
    assert (found.near, found.complete) == (5, False)


def test_a_common_word_may_be_in_one_alone_and_a_rare_one_may_not():
    common = [f"ricovero in {chr(97 + n) * 4}" for n in range(12)]
    details = ["reparto, letto bianco verde", "ricovero in reparto, letto bianco verde"]
    rare = ["zinco, piombo ferro rame", "zinco, piombo ferro rame argento"]
    assert proposed(*details, *rare, *common) == [("1", "2", "near")]
    assert proposed(*details, *rare) == []


@pytest.mark.parametrize("details", [(), ("febbre",), ("", "?"), ("febbre", "tosse")])
def test_where_nothing_is_alike_nothing_is_proposed(details):
    found = pairs(statements(*details))
    assert (found.form + found.near, found.complete) in {(0, True), (1, True)}
    assert found.form == (details == ("", "?"))


@given(st.lists(DETAILS, max_size=30), st.sampled_from([0.4, NEAR, 1.0]))
def test_the_join_finds_what_comparing_all_would_find(details, near):
    distinct = {one.form: (card_id, one) for card_id, one in reversed(statements(*details).items())}
    known = dict(reversed(distinct.values()))
    weights = duplicates._weights(known.values())
    expected = {frozenset(ids) for ids in combinations(known, 2) if likeness(*map(known.get, ids), weights) >= near}
    found = pairs(known, near=near)
    assert {frozenset((p.first, p.second)) for p in found.pairs} == expected


@given(st.lists(DETAILS, max_size=6), st.lists(DETAILS, max_size=6))
def test_what_is_asked_about_is_compared_with_all_that_could_be_alike(asked, known):
    questions = {f"text {n}": READER.statement("", detail) for n, detail in enumerate(asked)}
    cards = statements(*known)
    found = matches(questions, cards)
    weights = duplicates._weights({**cards, **questions}.values())
    for each, one in questions.items():
        same = {card_id for card_id, other in cards.items() if other.form == one.form}
        assert {pair.second for pair in found[each] if pair.kind == "form"} == same
        near = {
            card_id
            for card_id, other in cards.items()
            if card_id not in same and one.terms and other.facts == one.facts and likeness(one, other, weights) >= NEAR
        }
        assert {pair.second for pair in found[each] if pair.kind == "near"} == near


def test_the_cards_are_gone_through_once_however_many_texts_are_asked_about():
    class Counted(dict):
        gone_through = 0

        def items(self):
            self.gone_through += 1
            return super().items()

        def __iter__(self) -> Iterator[str]:
            self.gone_through += 1
            return super().__iter__()

    cards = Counted(statements(*(f"codice {n} vale {n}" for n in range(9))))
    few, many = ({f"text {n}": READER.statement("", f"codice {n}") for n in range(number)} for number in (1, 50))
    matches(few, cards)
    for_few, cards.gone_through = cards.gone_through, 0
    matches(many, cards)
    assert cards.gone_through == for_few
