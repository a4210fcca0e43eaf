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
    terms,
    vectors_of,
    votes,
)
from tests.doubles import HashEmbedder

ITEMS = st.text("abc", min_size=1, max_size=2)
MEASURED = st.dictionaries(ITEMS, st.floats(width=32, allow_nan=False, allow_infinity=False))
COUNTS = st.dictionaries(ITEMS, st.integers(0, 1000), min_size=1)
EVIDENCE = st.lists(st.dictionaries(ITEMS, st.floats(0, 1)), max_size=3)
TOKENS = st.lists(st.integers(0, 5), max_size=5)


def covered(question: str, subject: str, detail: str = "", language: str = "italian") -> float:
    tokens = lexicon(language).tokens
    return coverage(tokens(question), map(tokens, terms(subject)), tokens(detail))


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
    @pytest.mark.parametrize("count", range(1, VOTERS + 1))
    def test_questions_that_are_equally_near_give_nobody_more_votes_than_anyway(self, count):
        questions = {f"q{n}": 1.0 for n in range(count)}
        assert votes(questions, {question: [f"card {n % 3}"] for n, question in enumerate(questions)}) == {}

    def test_a_question_votes_for_all_of_its_cards(self):
        assert votes({"near": 1.0, "far": 0.0}, {"near": ["a", "b"], "far": ["c"]}) == {"a": 1.0, "b": 1.0}

    def test_the_card_behind_only_the_nearest_question_gains_the_most_and_those_behind_far_ones_nothing(self):
        questions = {"near": 1.0, "middle": 0.5, "far": 0.0}
        assert votes(questions, {"near": ["a"], "middle": ["b"], "far": ["c"]}) == {"a": 1.0}

    def test_what_a_card_would_have_whatever_is_asked_does_not_count(self):
        questions = {"near": 1.0, "q2": 0.5, "q3": 0.25, "far": 0.0}
        cards_of = {"near": ["all", "two", "one"], "q2": ["all"], "q3": ["all"], "far": ["all", "two"]}
        gained = votes(questions, cards_of)
        assert gained.keys() == {"one", "two"}
        assert gained["one"] == 1.0 > gained["two"]

    def test_two_near_questions_count_for_more_than_either(self):
        gained = votes({"q1": 1.0, "q2": 0.9, "far": 0.0}, {"q1": ["both", "one"], "q2": ["both"], "far": ["other"]})
        assert gained.keys() == {"both", "one"}
        assert gained["both"] == 1.0 > gained["one"]

    def test_questions_beyond_the_voters_are_not_asked_and_equals_are_chosen_by_id(self):
        crowd = {f"q{n:02d}": 0.5 for n in reversed(range(VOTERS + 5))}
        assert votes(crowd, {name: [name] for name in crowd}).keys() == {f"q{n:02d}" for n in range(VOTERS)}

    @given(st.dictionaries(ITEMS, st.floats(0, 1)), st.dictionaries(ITEMS, st.sets(ITEMS)))
    def test_what_is_gained_is_a_share_of_the_best(self, questions, cards_of):
        gained = votes(questions, cards_of).values()
        assert all(0 < share <= 1 for share in gained)
        assert not gained or max(gained) == 1

    @given(st.dictionaries(ITEMS, st.floats(0, 1)), st.dictionaries(ITEMS, st.sets(ITEMS)))
    def test_a_card_behind_all_questions_gains_nothing(self, questions, cards_of):
        behind_all = {question: {"all", *cards_of.get(question, ())} for question in questions}
        assert "all" not in votes(questions, behind_all)


class TestTerms:
    @pytest.mark.parametrize(
        ("subject", "others"),
        [
            ("Infarto miocardico (IMA)", ["Infarto miocardico", "IMA"]),
            ("Indice di massa (BMI)", ["Indice di massa", "BMI"]),
            ("CO2 (kPa)", []),
            ("Infarto (IMA) acuto", []),
            ("Peso (kg)", []),
            ("Children (ages 5-17)", []),
            ("Infarto miocardico", []),
            ("(IMA)", []),
            ("infarto ()", []),
            ("infarto (acuto (IMA))", []),
            ("infarto (IMA", []),
            ("infarto) o (IMA", []),
            ("infarto (IMA) o ictus (TIA)", []),
            ("", []),
        ],
    )
    def test_a_subject_with_its_abbreviation_is_asked_for_as_either(self, subject, others):
        first, *rest = terms(subject)
        assert first == subject
        assert [" ".join(term.split()) for term in rest] == others


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
            ("quanti infarti miocardici?", "Infarto miocardico (IMA)", 1.0),
            ("quanti con IMA?", "Infarto miocardico (IMA)", 1.0),
            ("quanti infarti?", "Infarto miocardico (IMA)", 0.25),
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

    @given(TOKENS, st.lists(TOKENS, min_size=1, max_size=3), TOKENS)
    def test_it_is_from_zero_to_one_and_each_subject_is_covered_by_itself(self, asked, subjects, detail):
        assert 0 <= coverage(asked, subjects, detail) <= 1
        named = [subject for subject in subjects if subject]  # an empty one is nowhere
        assert all(coverage([9, *subject, 9], subjects, detail) == 1.0 for subject in named)

    @given(TOKENS, st.lists(TOKENS, min_size=1, max_size=3), TOKENS, TOKENS)
    def test_another_word_for_it_never_lowers_it(self, asked, subjects, another, detail):
        assert coverage(asked, [*subjects, another], detail) >= coverage(asked, subjects, detail)


class TestConfirmations:
    @pytest.mark.parametrize(
        ("sessions", "shares"),
        [
            ({}, {}),
            ({"by hand": 0, "once": 1}, {}),
            ({"twice": 2}, {"twice": 0.5}),
            ({"a": 4, "b": 2, "c": 1, "d": 4}, {"a": 1.0, "b": 0.5, "d": 1.0}),
            ({"a": 16, "b": 4, "c": 2}, {"a": 1.0, "b": 0.5, "c": 0.25}),
        ],
        ids=["no card", "not confirmed by another", "young archive", "just enough", "many"],
    )
    def test_of_cards_that_fit_the_logarithm_counts_as_a_share_of_the_most_often_confirmed(self, sessions, shares):
        assert confirmations(sessions, [dict.fromkeys(sessions, 1.0)]) == pytest.approx(shares)

    def test_a_card_counts_as_far_as_the_strongest_of_the_other_signals_speaks_for_it(self):
        sessions, evidence = {"a": 4, "b": 4, "c": 2}, [{"a": 0.25, "b": 0.5}, {"a": 0.75, "c": 1.0}]
        assert confirmations(sessions, evidence) == pytest.approx({"a": 0.75, "b": 0.5, "c": 0.5})

    @given(COUNTS, EVIDENCE)
    def test_popularity_never_lifts_a_card_that_nothing_else_speaks_for(self, sessions, evidence):
        for card, share in confirmations(sessions, evidence).items():
            assert 0 <= share <= max((values.get(card, 0.0) for values in evidence), default=0.0)

    @given(COUNTS, st.integers(1, 1000), st.integers(1, 1000), st.floats(0.01, 1))
    def test_of_two_equal_cards_the_one_more_often_confirmed_is_first(self, others, fewer, more, fits):
        sessions = {**others, "fewer": fewer, "more": fewer + more}
        counted = confirmations(sessions, [{"fewer": fits, "more": fits}])
        assert counted["more"] > counted.get("fewer", 0.0)

    @given(COUNTS, EVIDENCE, st.data())
    def test_one_more_never_lowers_a_card_and_never_raises_another(self, sessions, evidence, data):
        card = data.draw(st.sampled_from(sorted(sessions)))
        before = confirmations(sessions, evidence)
        after = confirmations({**sessions, card: sessions[card] + 1}, evidence)
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
