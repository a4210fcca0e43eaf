"""Fuses what the signals say into one score for each card, by reciprocal rank."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from memory_pipeline.cards import Collection

K = 20
"""Damps the first ranks: to be first for one signal counts as much as to be 22nd for two. With Qdrant's own default, 2,
the first card of one signal would win against almost whatever the others say."""

WEIGHTS: Mapping[Collection, Mapping[str, float]] = {
    Collection.MEMORY_CARDS: {"dense": 1.0, "lexical": 1.0, "questions": 1.0, "questions_lexical": 1.0},
    Collection.SOLVED_QUESTIONS: {"dense": 0.5, "shape": 0.5, "lexical": 1.0},
}
"""How much each signal counts among the cards of a collection. In both, meaning and words have half each: otherwise a
card of the one that shares no word with the question would stand above its equal of the other."""

SHARES: Mapping[Collection, float] = {Collection.MEMORY_CARDS: 1.0, Collection.SOLVED_QUESTIONS: 0.9}
"""The score of a card that every signal of its collection ranks first. Ranks say nothing across collections, and some
solved question is always the nearest; what speaks for a concept, its text and the questions behind it, says more than
one question can. Of BIRD's relevant concepts, 0.67 are so among the first five cards of all families; 0.58 if both
collections counted alike. With less than 0.9, solved questions asked in nearly their words would leave these places.
"""

TEXT_WEIGHTS: Mapping[str, float] = {"text": 1.0}
"""The one signal of a degraded answer: PostgreSQL's `ts_rank`."""

VERBATIM = "verbatim"
"""The signal of a question asked word for word. It is added to the score, and so stands above all the others."""
VERBATIM_SOLVED = 2.0
"""Its value for the solved question itself."""
VERBATIM_BEHIND = 1.0
"""Its value for the cards that came from the question: what it once took to answer it, after what answered it."""

Values = Mapping[str, float]
"""Card → what one signal measured for it; higher is better."""


class Group(NamedTuple):
    """Cards that the same signals speak for: what these measured, their weights, and the most that a card can score."""

    values: Mapping[str, Values]
    weights: Mapping[str, float]
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class Ranked:
    """A card in its place: its fused score and what each signal measured."""

    card_id: str
    score: float
    signals: Mapping[str, float]


def ranked(groups: Iterable[Group], verbatim: Values) -> list[Ranked]:
    """The cards by falling score, equals by id; those of a question asked word for word come first.

    Args:
        groups: no card is in two of them.
        verbatim: card → the value of its `verbatim` signal; such a card need not be in a group.
    """
    scores: defaultdict[str, float] = defaultdict(float, verbatim)
    signals: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for group in groups:
        for card, score in fused(group.values, group.weights).items():
            scores[card] += score * group.share
            signals[card] |= {name: of[card] for name, of in group.values.items() if card in of}
    for card, value in verbatim.items():
        signals[card][VERBATIM] = value
    order = sorted(scores, key=lambda card: (-verbatim.get(card, 0.0), -scores[card], card))
    return [Ranked(card, scores[card], signals[card]) for card in order]


def fused(signals: Mapping[str, Values], weights: Mapping[str, float]) -> dict[str, float]:
    """Card → score in (0, 1]; 1 for a card that every signal ranks first.

    The sum over signals of weight / (K + rank), after Cormack, Clarke and Büttcher, "Reciprocal rank fusion outperforms
    Condorcet and individual rank learning methods" (SIGIR 2009), divided by the largest that it can be, so that the
    cards of collections with different signals can stand in one list.

    Args:
        signals: signal → what it measured, for the cards that it found.
        weights: signal → its weight; signals that found nothing are named too.
    """
    scores: dict[str, float] = {}
    for name, values in signals.items():
        for card, rank in ranks(values).items():
            scores[card] = scores.get(card, 0.0) + weights[name] / (K + rank)
    best = sum(weights.values()) / (K + 1)
    return {card: score / best for card, score in scores.items()}


def ranks(values: Values) -> dict[str, int]:
    """Card → 1 + the number of cards with a higher value; equals share a rank, as cards behind one question do."""
    ordered = sorted(values, key=lambda card: -values[card])
    found: dict[str, int] = {}
    for position, card in enumerate(ordered):
        tied = position > 0 and values[card] == values[ordered[position - 1]]
        found[card] = found[ordered[position - 1]] if tied else position + 1
    return found
