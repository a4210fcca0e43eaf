from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_pipeline.cards import Collection
from memory_pipeline.lexical import SparseVector, lexicon
from memory_pipeline.recall.signals import (
    SEARCHED,
    VOTERS,
    Asked,
    best_behind,
    confirmations,
    coverage,
    scaled,
    searches,
    vectors_of,
    votes,
)
from tests.doubles import HashEmbedder

ITEMS = st.text("abc", min_size=1, max_size=2)
MEASURED = st.dictionaries(ITEMS, st.floats(width=32, allow_nan=False, allow_infinity=False))
COUNTS = st.dictionaries(ITEMS, st.integers(0, 1000), min_size=1)


def covered(question: str, subject: str, detail: str = "", language: str = "italian") -> float:
    tokens = lexicon(language).tokens
    return coverage(tokens(question), tokens(subject), tokens(detail))


class TestScaled:
    @pytest.mark.parametrize(
        ("measured", "shares"),
        [
            ({}, {}),
            ({"a": 0.83}, {"a": 1.0}),
            ({"a": 0.83, "b": 0.83}, {"a": 1.0, "b": 1.0}),
            ({"a": 0.86, "b": 0.80, "c": 0.83}, {"a": 1.0, "b": 0.0, "c": 0.5}),
            ({"a": -0.5, "b": 0.5}, {"a": 0.0, "b": 1.0}),
        ],
        ids=["nothing", "one hit", "equal", "compressed", "negative"],
    )
    def test_of_cosines_the_least_counts_as_zero(self, measured, shares):
        assert scaled(measured, lexical=False) == pytest.approx(shares)

    @pytest.mark.parametrize(
        ("measured", "shares"),
        [
            ({}, {}),
            ({"a": 3.2}, {"a": 1.0}),
            ({"a": 3.2, "b": 3.2}, {"a": 1.0, "b": 1.0}),
            ({"a": 4.0, "b": 1.0}, {"a": 1.0, "b": 0.25}),
            ({"a": 4.0, "b": 0.0}, {"a": 1.0, "b": 0.0}),
            ({"a": 0.0, "b": 0.0}, {"a": 0.0, "b": 0.0}),
        ],
        ids=["nothing", "one hit", "equal", "four times", "no word", "no word in any"],
    )
    def test_of_words_zero_is_zero(self, measured, shares):
        assert scaled(measured, lexical=True) == pytest.approx(shares)

    @given(MEASURED, st.booleans())
    def test_shares_are_from_zero_to_one_and_keep_the_order(self, measured, lexical):
        shares = scaled(measured, lexical=lexical)
        assert shares.keys() == measured.keys()
        assert all(0 <= share <= 1 for share in shares.values())
        assert all(shares[a] <= shares[b] for a in measured for b in measured if measured[a] <= measured[b])


class TestBestBehind:
    def test_a_card_counts_by_the_best_of_its_questions(self):
        cards_of = {"q1": ["a"], "q2": ["a", "b"], "q3": [], "q4": ["unseen"]}
        assert best_behind({"q1": 0.2, "q2": 0.9, "q3": 0.5}, cards_of) == {"a": 0.9, "b": 0.9}

    @pytest.mark.parametrize(("questions", "cards_of"), [({}, {"q": ["a"]}), ({"q": 1.0}, {}), ({"q": 1.0}, {"q": []})])
    def test_without_a_question_or_a_card_behind_it_there_is_nothing(self, questions, cards_of):
        assert best_behind(questions, cards_of) == votes(questions, cards_of) == {}


class TestVotes:
    def test_a_question_votes_for_all_of_its_cards(self):
        assert votes({"q": 1.0}, {"q": ["a", "b"]}) == {"a": 1.0, "b": 1.0}

    def test_the_nearest_question_weighs_more_than_the_others(self):
        shares = votes({"near": 1.0, "far": 0.0, "middle": 0.5}, {"near": ["a"], "far": ["b"], "middle": ["c"]})
        assert shares["a"] > shares["c"] > shares["b"] > 0
        assert sum(shares.values()) == pytest.approx(1)

    def test_two_questions_count_for_more_than_either(self):
        shares = votes({"q1": 1.0, "q2": 0.9}, {"q1": ["both", "one"], "q2": ["both"]})
        assert shares["both"] == pytest.approx(1)
        assert shares["both"] > shares["one"]

    def test_questions_beyond_the_voters_are_not_asked_and_equals_are_chosen_by_id(self):
        crowd = {f"q{n:02d}": 0.5 for n in reversed(range(VOTERS + 5))}
        assert votes(crowd, {name: [name] for name in crowd}).keys() == {f"q{n:02d}" for n in range(VOTERS)}

    @given(st.dictionaries(ITEMS, st.floats(0, 1)), st.dictionaries(ITEMS, st.sets(ITEMS)))
    def test_no_card_has_more_than_all_votes(self, questions, cards_of):
        assert all(0 < share <= 1 + 1e-12 for share in votes(questions, cards_of).values())


class TestCoverage:
    @pytest.mark.parametrize(
        ("question", "subject", "share"),
        [
            ("quanti pazienti attivi ci sono?", "paziente attivo", 1.0),
            ("quante ablazioni della fibrillazione?", "ablazione di fibrillazione", 1.0),
            ("l'età media", "ETA", 1.0),
            ("quanti con flag_attivo?", "flag_attivo", 1.0),
            ("attivo è il paziente?", "paziente attivo", 0.5),
            ("quanti pazienti?", "paziente attivo", 0.25),
            ("quanti attivi?", "flag_attivo", 1 / 6),
            ("quanti reparti?", "paziente attivo", 0.0),
            ("perché più di là?", "perché", 0.0),
            ("", "paziente attivo", 0.0),
            ("quanti pazienti attivi?", "", 0.0),
        ],
    )
    def test_half_of_the_subject_counts_when_its_words_follow_each_other(self, question, subject, share):
        assert covered(question, subject) == pytest.approx(share)

    @pytest.mark.parametrize(
        ("question", "detail", "share"),
        [
            ("chi è deceduto in ospedale?", "deceduto in ospedale", 1.0),
            ("quanti deceduti?", "deceduto in ospedale", 0.5),
            ("d'oro", "vitamina d", 0.0),  # no token is left of an elision
        ],
    )
    def test_a_detail_counts_by_the_part_of_it_that_is_asked(self, question, detail, share):
        assert covered(question, "nient'altro", detail) == pytest.approx(share)

    def test_the_better_of_subject_and_detail_counts(self):
        assert covered("paziente attivo", "paziente attivo", "stato") == 1.0
        assert covered("stato", "paziente attivo", "stato") == 1.0

    @given(*[st.lists(st.integers(0, 5), max_size=5)] * 3)
    def test_it_is_from_zero_to_one_and_all_is_covered_by_itself(self, asked, subject, detail):
        assert 0 <= coverage(asked, subject, detail) <= 1
        assert coverage([9, *subject, 9], subject, detail) == 1.0 or not subject  # an empty one is nowhere


class TestConfirmations:
    @pytest.mark.parametrize(
        ("sessions", "shares"),
        [
            ({}, {}),
            ({"by hand": 0, "once": 1}, {}),
            ({"twice": 2}, {"twice": 1.0}),
            ({"a": 4, "b": 2, "c": 1, "d": 4}, {"a": 1.0, "b": 0.5, "d": 1.0}),
        ],
    )
    def test_the_logarithm_counts_as_a_share_of_the_most_often_confirmed(self, sessions, shares):
        assert confirmations(sessions) == pytest.approx(shares)

    @given(COUNTS, st.data())
    def test_one_more_never_lowers_a_card_and_never_raises_another(self, sessions, data):
        card = data.draw(st.sampled_from(sorted(sessions)))
        before, after = confirmations(sessions), confirmations({**sessions, card: sessions[card] + 1})
        assert after.get(card, 0.0) >= before.get(card, 0.0)
        assert all(after.get(other, 0.0) <= before.get(other, 0.0) for other in sessions if other != card)


class TestSearches:
    ASKED = Asked(np.ones(3), np.zeros(3), SparseVector((1,), (1.0,)))

    def test_a_shape_is_compared_with_shapes_and_the_question_with_all_else(self):
        of_solved = searches(self.ASKED, Collection.SOLVED_QUESTIONS, 50, {})
        compared = {search.using: search.vector for search in of_solved.values()}
        assert compared["shape"] is self.ASKED.shape
        assert compared["question"] is self.ASKED.question
        assert compared["question_lexical"] is self.ASKED.words

    @pytest.mark.parametrize("collection", Collection)
    def test_without_a_word_nothing_is_searched_by_words(self, collection):
        wordless = Asked(self.ASKED.question, self.ASKED.shape, SparseVector())
        dense = [signal for signal in SEARCHED if signal.searched is collection and not signal.lexical]
        assert list(searches(wordless, collection, 50, {})) == dense

    def test_every_search_is_as_deep_and_as_narrow_as_asked(self):
        narrow = {"family": ("pitfall",)}
        of_cards = searches(self.ASKED, Collection.MEMORY_CARDS, 7, narrow).values()
        assert [(search.limit, search.must) for search in of_cards] == [(7, narrow)] * 2

    def test_a_question_that_is_its_own_shape_is_embedded_once(self):
        embedder = HashEmbedder(3)
        asked = vectors_of("how many?", "how many?", SparseVector(), embedder)
        assert embedder.embedded == 1
        np.testing.assert_array_equal(asked.question, asked.shape)
