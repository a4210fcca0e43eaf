from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_pipeline.cards import Collection
from memory_pipeline.recall.fusion import SHARES, Group, K, fused, ranked, ranks
from memory_pipeline.recall.fusion import WEIGHTS as WEIGHTS_OF_SIGNALS
from memory_pipeline.recall.signals import SIGNALS, cards_behind

WEIGHTS = {"dense": 1.0, "lexical": 1.0}


def test_equal_values_share_a_rank_and_the_next_one_is_counted_on():
    assert ranks({"a": 0.5, "b": 0.9, "c": 0.5, "d": 0.1}) == {"b": 1, "a": 2, "c": 2, "d": 4}


def test_a_card_that_every_signal_ranks_first_scores_one():
    assert fused({"dense": {"a": 0.8, "b": 0.7}, "lexical": {"a": 3.0}}, WEIGHTS)["a"] == pytest.approx(1.0)


def test_a_card_that_one_signal_alone_ranks_first_scores_half():
    assert fused({"dense": {"a": 0.8}, "lexical": {}}, WEIGHTS) == {"a": pytest.approx(0.5)}


def test_good_everywhere_wins_over_first_once():
    dense = {"first": 1.0} | {f"d{n}": 0.9 - n / 100 for n in range(5)} | {"everywhere": 0.5}
    lexical = {f"l{n}": 9.0 - n for n in range(5)} | {"everywhere": 1.0}
    scores = fused({"dense": dense, "lexical": lexical}, WEIGHTS)
    assert scores["everywhere"] == pytest.approx((1 / (K + 7) + 1 / (K + 6)) / (2 / (K + 1)))
    assert scores["everywhere"] > scores["first"]


def test_the_question_asked_word_for_word_is_above_everything():
    groups = [Group({"dense": {"best": 0.9, "known": 0.1}, "lexical": {"best": 5.0}}, WEIGHTS)]
    order = ranked(groups, {"known": 1.0, "not in the index": 2.0})
    assert [card.card_id for card in order] == ["not in the index", "known", "best"]
    assert order[1].signals == {"dense": 0.1, "verbatim": 1.0}


def test_cards_of_groups_with_other_signals_stand_in_one_list():
    groups = [Group({"dense": {"concept": 0.9}}, {"dense": 1.0}), Group({"shape": {"solved": 0.9}}, {"shape": 3.0})]
    assert [(card.card_id, card.score) for card in ranked(groups, {})] == [("concept", 1.0), ("solved", 1.0)]


def test_the_nearest_solved_question_is_below_a_concept_that_is_nearly_first_everywhere():
    concepts, solved = WEIGHTS_OF_SIGNALS.values()
    values = {name: {"nearest": 1.0, "second": 0.5} for name in concepts}
    groups = [
        Group(values, concepts, SHARES[Collection.MEMORY_CARDS]),
        Group({name: {"solved": 1.0} for name in solved}, solved, SHARES[Collection.SOLVED_QUESTIONS]),
    ]
    assert [card.card_id for card in ranked(groups, {})] == ["nearest", "second", "solved"]
    assert ranked(groups, {"solved": 2.0})[0].card_id == "solved"


@given(
    st.dictionaries(
        st.sampled_from(list(WEIGHTS)), st.dictionaries(st.text("abc", min_size=1, max_size=3), st.floats(-1, 1))
    ),
    st.dictionaries(st.text("abc", min_size=1, max_size=2), st.sampled_from([1.0, 2.0])),
)
def test_scores_fall_from_card_to_card_and_each_card_stands_once(signals, verbatim):
    cards = ranked([Group(signals, WEIGHTS)], verbatim)
    scores = [card.score for card in cards]
    assert all(a >= b - 1e-12 for a, b in pairwise(scores))
    assert {card.card_id for card in cards} == set(verbatim).union(*signals.values())
    assert len({card.card_id for card in cards}) == len(cards)


def test_a_card_counts_by_the_best_of_its_questions():
    behind = cards_behind({"q1": 0.2, "q2": 0.9, "q3": 0.5}, {"q1": ["a"], "q2": ["a", "b"], "q3": []})
    assert behind == {"a": 0.9, "b": 0.9}


def test_meaning_and_words_have_half_each_among_the_cards_of_every_collection():
    for collection, weights in WEIGHTS_OF_SIGNALS.items():
        lexical = {signal.name for signal in SIGNALS if signal.ranks is collection and signal.lexical}
        assert weights.keys() == {signal.name for signal in SIGNALS if signal.ranks is collection}
        assert sum(weights[name] for name in lexical) * 2 == sum(weights.values())
