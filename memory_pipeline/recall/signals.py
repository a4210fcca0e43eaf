"""What speaks for a card: the searches that are made, as data, and what each of their answers is worth, from 0 to 1."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from memory_pipeline.cards import Collection
from memory_pipeline.embedding.base import READ_AT_MOST, Embedder, Role, Vectors
from memory_pipeline.index.base import Search
from memory_pipeline.lexical import SparseVector
from memory_pipeline.points import lexical_name

Values = Mapping[str, float]
"""Card or question → what a signal says of it; higher is better."""

VOTERS = 20
"""So many of the nearest questions vote."""
SHARPNESS = 4.0
"""How much more the nearest question's vote weighs than that of the least near of those that were found: e^4 times."""

_ROUNDED = 1e-9  # of a sum

MANY = 4
"""Sessions: in an archive where no card was confirmed so often yet, none counts as confirmed by all."""

_ABBREVIATED = re.compile(r"([^()]+) \(([A-Z][A-Za-z0-9]*[A-Z0-9])\)")
_SAME = 0.9999  # of a cosine, which is computed in single precision


@dataclass(frozen=True, slots=True)
class Signal:
    """One comparison of what is asked with what is stored.

    Attributes:
        name: under which a hit shows what it contributed.
        searched: the collection whose points are compared.
        text: the stored text that is compared (see `points.card_texts`, `points.question_texts`).
        lexical: whether by words (BM25) instead of by meaning (cosine similarity).
    """

    name: str
    searched: Collection
    text: str
    lexical: bool = False

    @property
    def vector(self) -> str:
        """The name of the vector that is searched."""
        return lexical_name(self.text) if self.lexical else self.text


SHAPE = Signal("shape", Collection.SOLVED_QUESTIONS, "shape")

SEARCHED = (
    Signal("dense", Collection.MEMORY_CARDS, "content"),
    Signal("lexical", Collection.MEMORY_CARDS, "content", lexical=True),
    Signal("questions", Collection.QUESTIONS, "question"),
    Signal("questions_lexical", Collection.QUESTIONS, "question", lexical=True),
    Signal("dense", Collection.SOLVED_QUESTIONS, "question"),
    SHAPE,
    Signal("lexical", Collection.SOLVED_QUESTIONS, "question", lexical=True),
)


@dataclass(frozen=True, slots=True)
class Asked:
    """The vectors of a question. Its shape is compared with shapes, and the question itself with all else."""

    question: Vectors
    shape: Vectors
    words: SparseVector

    def vector(self, signal: Signal) -> Vectors | SparseVector:
        """What a signal compares."""
        if signal.lexical:
            return self.words
        return self.shape if signal is SHAPE else self.question


def vectors_of(question: str, shape: str, words: SparseVector, embedder: Embedder) -> Asked:
    """The vectors of a question, embedded in one call with its shape. Of a very long one the beginning is read.

    Raises:
        EmbedderUnavailable: the model cannot be loaded or did not answer.
    """
    dense = embedder.embed(list(dict.fromkeys((question[:READ_AT_MOST], shape))), Role.QUERY)
    return Asked(dense[0], dense[-1], words)


def searches(
    asked: Asked, collection: Collection, limit: int, must: Mapping[str, tuple[str, ...]]
) -> dict[Signal, Search]:
    """The searches in one collection; one by words is left out when the question has none.

    Args:
        asked: what to compare with.
        collection: where.
        limit: how many points for each search at most.
        must: payload field → values of which one has to match.
    """
    here = [signal for signal in SEARCHED if signal.searched is collection]
    vectors = {signal: asked.vector(signal) for signal in here}
    return {signal: Search(signal.vector, v, limit, must) for signal, v in vectors.items() if len(v)}


def scaled(values: Values, *, lexical: bool) -> dict[str, float]:
    """What one search measured, as shares of the best.

    BM25 is zero for what has no word in common. A cosine says something only beside others (those of some models are
    all between 0.80 and 0.86), so the least of those found counts as zero, unless all are equal: then each is the best.

    Args:
        values: item → what was measured.
        lexical: whether by words, on a scale whose zero means something.
    """
    if not values:
        return {}
    least = 0.0 if lexical else min(values.values())
    spread = max(values.values()) - least
    if spread <= 0:
        return dict.fromkeys(values, 0.0 if lexical else 1.0)
    return {item: max(0.0, value - least) / spread for item, value in values.items()}


def same_text(cosines: Values) -> dict[str, float]:
    """Those whose text is the very same as the one asked for, each with 1: no other is as near to any model."""
    return {item: 1.0 for item, cosine in cosines.items() if cosine > _SAME}


def best_behind(questions: Values, cards_of: Mapping[str, Iterable[str]]) -> dict[str, float]:
    """Card → the best value among the questions that it stands behind.

    Args:
        questions: question → what a signal says of it.
        cards_of: question → the cards that came from it.
    """
    best: dict[str, float] = {}
    for question, value in questions.items():
        for card in cards_of.get(question, ()):
            best[card] = max(value, best.get(card, value))
    return best


def votes(questions: Values, cards_of: Mapping[str, Iterable[str]]) -> dict[str, float]:
    """Card → how much more of the votes of the nearest questions it has than it has of all, as a share of the best.

    Each question votes for all cards that came from it. The votes weigh by likeness (a softmax), after the attention
    over neighbours in Vinyals et al., "Matching Networks for One Shot Learning" (2016). A card that came from half of
    all questions has half of the votes whatever is asked: what it would have anyway does not count.

    Args:
        questions: question → how near it is, from 0 to 1, of all that were found.
        cards_of: question → the cards that came from it.
    """
    nearest = sorted(questions, key=lambda question: (-questions[question], question))[:VOTERS]
    cast = _shares({question: math.exp(SHARPNESS * questions[question]) for question in nearest}, cards_of)
    anyway = _shares(dict.fromkeys(questions, 1.0), cards_of)
    gained = {card: share - anyway[card] for card, share in cast.items() if share - anyway[card] > _ROUNDED}
    most = max(gained.values(), default=1.0)
    return {card: gain / most for card, gain in gained.items()}


def _shares(weights: Mapping[str, float], cards_of: Mapping[str, Iterable[str]]) -> dict[str, float]:
    """Card → its share of all weights, of questions that it came from."""
    total = math.fsum(weights.values())
    behind: dict[str, list[float]] = {}
    for question, weight in weights.items():
        for card in cards_of.get(question, ()):
            behind.setdefault(card, []).append(weight)
    return {card: math.fsum(of) / total for card, of in behind.items()}


def terms(subject: str) -> list[str]:
    """What a subject is asked for as: "Infarto miocardico (IMA)" also without its abbreviation, or as that alone."""
    found = _ABBREVIATED.fullmatch(subject)
    return [subject, *found.groups()] if found else [subject]


def coverage(asked: Sequence[int], subjects: Iterable[Sequence[int]], detail: Sequence[int]) -> float:
    """How far a question uses the term that a card explains, from 0 to 1.

    The best of these: the part of a subject's tokens that the question has, of which half counts only when they all
    follow each other there as they do in the subject; and the part of the detail's tokens that it has.

    Args:
        asked: the tokens of the question, in their order; so are the others.
        subjects: what the card is about, in one or several words for it.
        detail: what it says.
    """
    words = set(asked)
    of_subject = max((_part(words, subject) + _contained(subject, asked)) / 2 for subject in subjects)
    return max(of_subject, _part(words, detail))


def confirmations(sessions: Mapping[str, int], evidence: Iterable[Values]) -> dict[str, float]:
    """Card → how often it was confirmed, as far as anything else speaks for it.

    That is the logarithm's share of the most often confirmed one's (of MANY sessions at least), times the most that
    another signal says: of two cards that fit, the one that more sessions confirmed is the likelier, but none fits for
    being popular. One confirmation counts as none: it is what a card owes its existence to, as one made by hand does to
    its maker.

    Args:
        sessions: card → how many distinct sessions confirmed it.
        evidence: what the other signals say.
    """
    logarithms = {card: math.log(count) for card, count in sessions.items() if count > 1}
    most = max(*logarithms.values(), math.log(MANY), 0.0)
    others = list(evidence)
    strongest = {card: max((values.get(card, 0.0) for values in others), default=0.0) for card in logarithms}
    return {card: value / most * strongest[card] for card, value in logarithms.items()}


def _part(of: set[int], tokens: Sequence[int]) -> float:
    return sum(token in of for token in tokens) / len(tokens) if tokens else 0.0


def _contained(part: Sequence[int], whole: Sequence[int]) -> bool:
    length = len(part)
    return length > 0 and any(whole[start : start + length] == part for start in range(len(whole) - length + 1))
