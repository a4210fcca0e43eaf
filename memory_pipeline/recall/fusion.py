"""Fuses what the signals say into one score for each card: a weighted sum, whose weights are data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from memory_pipeline.cards import Collection
from memory_pipeline.recall.signals import Values

Weights = Mapping[str, float]
"""Signal → the score of a card for which it says 1."""

# Chosen by `python -m benchmarks.recall`, and rounded. It learns weights on some workspaces and reports on the others,
# what each signal achieves alone, and what the others achieve without it.
#
# Those of solved questions add up to less, since some solved question is always the nearest. Hardly fewer of BIRD's
# relevant concepts are among the first five cards of all families so than among those of concepts alone; if both added
# up to 1, it would be half of them. A question that differs in nothing but its values is among the first all the same.
WEIGHTS: Mapping[Collection, Weights] = {
    Collection.MEMORY_CARDS: {
        "lexical": 0.14,
        "dense": 0.16,
        "coverage": 0.24,
        "questions": 0.10,
        "questions_lexical": 0.13,
        "confirmations": 0.23,
    },
    Collection.SOLVED_QUESTIONS: {"shape": 0.26, "dense": 0.09, "lexical": 0.10, "same_shape": 0.30},
}

TEXT_WEIGHTS: Weights = {"text": 1.0}
"""The one signal of a degraded answer: PostgreSQL's `ts_rank`."""

VERBATIM = "verbatim"
"""The signal of a question asked word for word. It is added to the score, and so stands above all the others."""
VERBATIM_SOLVED = 2.0
"""Its value for the solved question itself."""
VERBATIM_BEHIND = 1.0
"""Its value for the cards that came from the question: what it once took to answer it, after what answered it."""


class Group(NamedTuple):
    """Cards that the same signals speak for.

    Attributes:
        values: signal → what it says of each card, from 0 to 1.
        weights: signal → how much it counts.
    """

    values: Mapping[str, Values]
    weights: Weights


@dataclass(frozen=True, slots=True)
class Ranked:
    """A card in its place: its score, and what each signal that speaks for it contributed, which adds up to it."""

    card_id: str
    score: float
    signals: Mapping[str, float]


def ranked(groups: Iterable[Group], verbatim: Values) -> list[Ranked]:
    """The cards by falling score, equals by id; those of a question asked word for word come first.

    Args:
        groups: no card is in two of them.
        verbatim: card → the value of its `verbatim` signal; such a card need not be in a group.
    """
    contributions: dict[str, dict[str, float]] = {card: {VERBATIM: value} for card, value in verbatim.items()}
    for group in groups:
        for signal, values in group.values.items():
            weight = group.weights[signal]
            for card, value in values.items():
                signals = contributions.setdefault(card, {})
                if value:
                    signals[signal] = weight * value
    # A sum that rounds once does not depend on the order of the signals, and neither do ties.
    found = [Ranked(card, math.fsum(signals.values()), signals) for card, signals in contributions.items()]
    return sorted(found, key=lambda card: (-verbatim.get(card.card_id, 0.0), -card.score, card.card_id))
