"""What speaks for a card: which vectors a question is compared with, as data, and the searches that this takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from memory_pipeline.cards import Collection
from memory_pipeline.embedding.base import Embedder, Role, Vectors
from memory_pipeline.index.base import Search
from memory_pipeline.lexical import Lexicon, SparseVector
from memory_pipeline.points import lexical_name, shape


@dataclass(frozen=True, slots=True)
class Signal:
    """One comparison of what is asked with what is stored.

    Attributes:
        name: under which a hit shows what it measured.
        searched: the collection whose points are compared.
        text: the stored text that is compared (see `points.card_texts`, `points.question_texts`).
        lexical: whether by words (BM25) instead of by meaning (cosine similarity).
    """

    name: str
    searched: Collection
    text: str
    lexical: bool = False

    @property
    def ranks(self) -> Collection:
        """The collection whose cards it speaks for; a question speaks for the cards behind it."""
        return Collection.MEMORY_CARDS if self.searched is Collection.QUESTIONS else self.searched

    @property
    def vector(self) -> str:
        """The name of the vector that is searched."""
        return lexical_name(self.text) if self.lexical else self.text


SIGNALS = (
    Signal("dense", Collection.MEMORY_CARDS, "content"),
    Signal("lexical", Collection.MEMORY_CARDS, "content", lexical=True),
    Signal("questions", Collection.QUESTIONS, "question"),
    Signal("questions_lexical", Collection.QUESTIONS, "question", lexical=True),
    Signal("dense", Collection.SOLVED_QUESTIONS, "question"),
    Signal("shape", Collection.SOLVED_QUESTIONS, "shape"),
    Signal("lexical", Collection.SOLVED_QUESTIONS, "question", lexical=True),
)

_SHAPE = "shape"


@dataclass(frozen=True, slots=True)
class Asked:
    """The vectors of a question. Its masked shape is compared with shapes, and the question itself with all else."""

    question: Vectors
    shape: Vectors
    words: SparseVector

    def vector(self, signal: Signal) -> Vectors | SparseVector:
        """What a signal compares."""
        if signal.lexical:
            return self.words
        return self.shape if signal.text == _SHAPE else self.question


def vectors_of(question: str, embedder: Embedder, lexicon: Lexicon) -> Asked:
    """The vectors of a question, embedded in one call.

    Raises:
        EmbedderUnavailable: the model cannot be loaded or did not answer.
    """
    masked = shape(question)
    dense = embedder.embed(list(dict.fromkeys((question, masked))), Role.QUERY)
    return Asked(dense[0], dense[-1], lexicon.query(question))


def cards_behind(questions: Mapping[str, float], cards_of: Mapping[str, Iterable[str]]) -> dict[str, float]:
    """Card → the best value among the questions that it stands behind.

    Args:
        questions: question → what a signal measured for it.
        cards_of: question → the cards that came from it.
    """
    best: dict[str, float] = {}
    for question, value in questions.items():
        for card in cards_of.get(question, ()):
            best[card] = max(value, best.get(card, value))
    return best


def searches(
    asked: Asked, collection: Collection, limit: int, must: Mapping[str, tuple[str, ...]]
) -> dict[Signal, Search]:
    """The searches in one collection; one by words is left out when the question has none."""
    here = [signal for signal in SIGNALS if signal.searched is collection]
    vectors = {signal: asked.vector(signal) for signal in here}
    return {signal: Search(signal.vector, v, limit, must) for signal, v in vectors.items() if len(v)}
