from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_pipeline.cards import Collection
from memory_pipeline.recall.fusion import (
    VERBATIM_BEHIND,
    VERBATIM_SOLVED,
    WEIGHTS,
    Group,
    Ranked,
    ranked,
)
from memory_pipeline.recall.signals import SEARCHED

EQUALLY = {"dense": 0.5, "lexical": 0.5}
CARDS = st.text("abc", min_size=1, max_size=2)
SHARE_OF_THE_BEST = st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.7]) | st.floats(0, 1)
OF_CONCEPTS = st.dictionaries(
    st.sampled_from(list(WEIGHTS[Collection.MEMORY_CARDS])), st.dictionaries(CARDS, SHARE_OF_THE_BEST)
)
VERBATIM = st.dictionaries(CARDS, st.sampled_from([VERBATIM_BEHIND, VERBATIM_SOLVED]))


def of(collection: Collection, values: dict[str, dict[str, float]]) -> Group:
    """A group with the weights that recall uses."""
    return Group(values, WEIGHTS[collection])


def ids(cards: list[Ranked]) -> list[str]:
    return [card.card_id for card in cards]


def test_the_weights_of_concepts_add_up_to_one_and_those_of_solved_questions_to_less():
    totals = {collection: sum(weights.values()) for collection, weights in WEIGHTS.items()}
    assert totals[Collection.MEMORY_CARDS] == pytest.approx(1)
    assert totals[Collection.SOLVED_QUESTIONS] < 1
    assert all(weight > 0 for weights in WEIGHTS.values() for weight in weights.values())


def test_whatever_is_searched_has_a_weight():
    led_to = {Collection.QUESTIONS: Collection.MEMORY_CARDS}
    assert all(signal.name in WEIGHTS[led_to.get(signal.searched, signal.searched)] for signal in SEARCHED)


@pytest.mark.parametrize("collection", WEIGHTS)
def test_a_card_that_every_signal_calls_the_best_scores_all_weights_of_its_collection(collection):
    values = {name: {"best": 1.0, "second": 0.5} for name in WEIGHTS[collection]}
    best, second = ranked([of(collection, values)], {})
    assert (best.card_id, best.score) == ("best", pytest.approx(sum(WEIGHTS[collection].values())))
    assert second.score == pytest.approx(best.score / 2)


def test_a_signal_contributes_its_weight_times_what_it_says():
    [card] = ranked([Group({"dense": {"a": 0.8}, "lexical": {"a": 0.2}}, {"dense": 0.75, "lexical": 0.25})], {})
    assert card.signals == {"dense": pytest.approx(0.6), "lexical": pytest.approx(0.05)}
    assert card.score == pytest.approx(0.65)


def test_a_signal_that_says_nothing_for_a_card_is_left_out_and_the_card_stays():
    assert ranked([Group({"dense": {"a": 0.0}, "lexical": {}}, EQUALLY)], {}) == [Ranked("a", 0.0, {})]


def test_good_everywhere_wins_over_best_in_one():
    values = {"dense": {"once": 1.0, "everywhere": 0.8}, "lexical": {"everywhere": 0.8, "other": 1.0}}
    assert ids(ranked([Group(values, EQUALLY)], {})) == ["everywhere", "once", "other"]


def test_equals_are_ordered_by_id_however_their_scores_come_about():
    values = {"one": {"a": 0.1, "b": 0.3}, "two": {"a": 0.2, "b": 0.2}, "three": {"a": 0.3, "b": 0.1}}
    forwards = Group(values, dict.fromkeys(values, 1.0))  # added up in this order, a has more than b by rounding
    backwards = Group(dict(reversed(values.items())), forwards.weights)
    assert ids(ranked([forwards], {})) == ids(ranked([backwards], {})) == ["a", "b"]


def test_the_question_asked_word_for_word_is_above_everything():
    groups = [Group({"dense": {"best": 1.0, "known": 0.5}, "lexical": {"best": 1.0}}, EQUALLY)]
    order = ranked(groups, {"known": VERBATIM_BEHIND, "not in the index": VERBATIM_SOLVED})
    assert ids(order) == ["not in the index", "known", "best"]
    assert order[1].signals == {"dense": 0.25, "verbatim": VERBATIM_BEHIND}


def test_what_answered_the_question_is_above_all_that_it_took_to_answer_it():
    concepts = of(Collection.MEMORY_CARDS, {n: {"behind": 1.0} for n in WEIGHTS[Collection.MEMORY_CARDS]})
    order = ranked([concepts], {"behind": VERBATIM_BEHIND, "solved": VERBATIM_SOLVED})
    assert ids(order) == ["solved", "behind"]


def test_cards_of_groups_with_other_signals_stand_in_one_list():
    concepts, solved = (
        Group({"dense": {"a": 0.4, "c": 0.6}}, {"dense": 1.0}),
        Group({"shape": {"b": 1.0}}, {"shape": 0.5}),
    )
    assert ids(ranked([concepts, solved], {})) == ["c", "b", "a"]


def test_the_nearest_solved_question_is_below_a_concept_that_is_nearly_best_everywhere():
    values = {n: {"concept": 0.9} for n in WEIGHTS[Collection.MEMORY_CARDS]}
    nearest = {n: {"solved": 1.0} for n in WEIGHTS[Collection.SOLVED_QUESTIONS]}
    groups = [of(Collection.MEMORY_CARDS, values), of(Collection.SOLVED_QUESTIONS, nearest)]
    assert ids(ranked(groups, {})) == ["concept", "solved"]


@pytest.mark.parametrize("groups", [[], [Group({}, {})], [Group({"dense": {}}, EQUALLY)]])
def test_nothing_found_is_no_card(groups):
    assert ranked(groups, {}) == []


@given(OF_CONCEPTS, VERBATIM)
def test_contributions_add_up_to_the_score_scores_fall_and_each_card_stands_once(values, verbatim):
    cards = ranked([of(Collection.MEMORY_CARDS, values)], verbatim)
    assert all(card.score == pytest.approx(sum(card.signals.values())) for card in cards)
    assert all(first.score >= second.score - 1e-12 for first, second in pairwise(cards))
    assert sorted(ids(cards)) == sorted(set(verbatim).union(*values.values()))
    assert all(0 <= card.score <= 1 + 1e-12 for card in cards if card.card_id not in verbatim)


@given(OF_CONCEPTS, VERBATIM, st.randoms())
def test_the_order_does_not_depend_on_the_order_of_what_is_given(values, verbatim, chance):
    def shuffled(mapping: dict) -> dict:
        return dict(chance.sample(list(mapping.items()), len(mapping)))

    otherwise = shuffled({name: shuffled(cards) for name, cards in values.items()})
    expected = ranked([of(Collection.MEMORY_CARDS, values)], verbatim)
    assert ranked([of(Collection.MEMORY_CARDS, otherwise)], shuffled(verbatim)) == expected
