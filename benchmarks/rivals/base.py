"""What a competitor is to the comparison: saved cards, an ordinary run, a search, and ways to do it harm."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol, TypeVar

from benchmarks.common import StubEmbedder
from memory_pipeline.embedding.base import Role, Vectors

DIMENSION = 384
LIMIT = 5
"""Hits that a search asks for."""

_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class Card:
    """A card, in the words that all competitors are given."""

    card_id: str
    subject: str
    detail: str

    @property
    def text(self) -> str:
        """What is embedded of it, as `memory_pipeline.points` has it."""
        return f"{self.subject}: {self.detail}"


class Model(StubEmbedder):
    """Stands for a model: it knows no roles, so that a card's own text finds it, and shares no vector with another."""

    def __init__(self, name: str) -> None:
        super().__init__(DIMENSION)
        self.name = name

    def embed(self, texts: Sequence[str], role: Role = Role.PASSAGE) -> Vectors:  # noqa: ARG002  # it knows none
        """See `Embedder.embed`."""
        return super().embed([f"{self.name} {text}" for text in texts], Role.PASSAGE)


def batched(items: Iterable[_Item], size: int) -> Iterator[list[_Item]]:
    """The items in lists of that size, the last one shorter."""
    stream = iter(items)
    while batch := list(islice(stream, size)):
        yield batch


@dataclass(frozen=True, slots=True)
class Did:
    """What one ordinary run did.

    Attributes:
        written: points that it had the store write.
        removed: points that it had the store remove.
        left: points that it says are still to be written or removed.
        error: what it raised, if it did.
    """

    written: int
    removed: int
    left: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """One hit of a search."""

    card_id: str
    text: str


class Competitor(Protocol):
    """Cards that somebody saves, and an index that an ordinary run brings up to date with them."""

    name: str
    settings: str

    def save(self, cards: Sequence[Card]) -> None:
        """Make or change cards where they are kept; the index knows nothing of it."""

    def delete(self, card_ids: Sequence[str]) -> None:
        """Delete cards where they are kept; the index knows nothing of it."""

    def run(self) -> Did:
        """Bring the index up to date: the call that an ordinary day consists of."""

    def search(self, text: str) -> list[Found]:
        """The cards nearest to a text by meaning alone, as a user of the search gets them, the best first."""

    def points(self, card_ids: Sequence[str]) -> int:
        """How many points of some cards the store holds."""

    def lose_points(self, card_ids: Sequence[str]) -> None:
        """Delete the points of cards from the store behind everybody's back."""

    def refuse(self, card_id: str) -> None:
        """Let the store refuse, from now on, each write that the card's point is part of; "" ends it."""

    def change_model(self, model: Model) -> None:
        """Configure another model of the same dimension; nothing is run."""

    def examine(self) -> int | None:
        """How many points differ from what they should be, by the competitor's own examination; None: it has none."""

    def mend(self) -> None:
        """Whatever the competitor has to mend what its examination found."""

    def close(self) -> None:
        """Release everything."""
