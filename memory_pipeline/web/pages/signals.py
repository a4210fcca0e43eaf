"""What recall's signals are called, and what each says, for people."""

from __future__ import annotations

from typing import NamedTuple


class Words(NamedTuple):
    """A signal's name, and what it measured."""

    title: str
    meaning: str


SIGNALS = {
    "dense": Words("meaning", "likeness of meaning, beside the others that were found"),
    "lexical": Words("words", "shared words, stemmed"),
    "coverage": Words("subject", "how much of the card's subject the question uses"),
    "questions": Words("like questions", "the nearest stored questions vote for the cards that came from them"),
    "questions_lexical": Words("question's words", "words shared with a question that the card came from"),
    "confirmations": Words("confirmations", "how many sessions confirmed it"),
    "shape": Words("form", "likeness of the question's form, its values masked"),
    "same_shape": Words("same form", "nothing differs but values"),
    "verbatim": Words("word for word", "the very question was asked before"),
    "text": Words("words in the archive", "PostgreSQL's rank, with the index or the model away"),
}
