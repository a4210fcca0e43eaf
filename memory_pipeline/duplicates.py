"""Finds which of many statements may be merged: the same but for form, and near ones. It proposes, and changes nothing.

The near ones are found by an exact set-similarity join: statements that share enough weight share one of their heaviest
terms (Bayardo, Ma and Srikant, "Scaling Up All Pairs Similarity Search", 2007), so that few pairs are compared at all.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from heapq import nsmallest
from itertools import chain
from typing import Literal

from memory_pipeline.statements import Statement, Weights, likeness

NEAR = 0.7
"""How alike near statements are at least. `python -m benchmarks.near_duplicates` measures what it finds."""
MOST_COMPARED = 500_000
"""Pairs of one workspace that are compared at most, a matter of seconds; what is left out then is said."""

_PRIOR = 100  # cards that a small workspace is taken to have besides, so that its few words are not all frequent
_COMMON, _COMMON_SHARE = 5, 0.05  # cards, and part of all cards, that have a term which does not tell cards apart

Kind = Literal["form", "near"]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two cards to be looked at; `first` is the one that ranks higher.

    Attributes:
        first, second: their ids.
        kind: whether they are the same but for form, or near.
        likeness: from 0 to 1; 1 for the same but for form.
    """

    first: str
    second: str
    kind: Kind
    likeness: float


@dataclass(frozen=True, slots=True)
class Found:
    """What was found among some statements.

    Attributes:
        pairs: the best of them.
        form: how many are the same but for form.
        near: how many are near.
        complete: whether all was compared; if not, there may be more near ones.
    """

    pairs: tuple[Pair, ...]
    form: int
    near: int
    complete: bool


def pairs(
    statements: Mapping[str, Statement],
    *,
    apart: AbstractSet[frozenset[str]] = frozenset(),
    near: float = NEAR,
    limit: int | None = None,
) -> Found:
    """The pairs worth merging, the same but for form first, then by likeness.

    Of several that are the same but for form, each is paired with the first one only, since one merge for each of them
    does; and only that first one is compared with others.

    Args:
        statements: by id, those of one workspace and family, in the order in which cards rank.
        apart: pairs of ids that are not proposed.
        near: how alike near ones are at least.
        limit: how many pairs are given back at most; by default all. All are counted.
    """
    alike: dict[str, list[str]] = defaultdict(list)
    for card_id, statement in statements.items():
        alike[statement.form].append(card_id)
    join = _Join({ids[0]: statements[ids[0]] for ids in alike.values()}, near)
    same = (Pair(first, other, "form", 1.0) for first, *others in alike.values() for other in others)
    counts: Counter[Kind] = Counter()
    wanted = (pair for pair in chain(same, join.pairs()) if frozenset((pair.first, pair.second)) not in apart)
    best = _best(_counted(wanted, counts), limit)
    return Found(tuple(best), counts["form"], counts["near"], complete=not join.gave_up)


def matches(
    asked: Mapping[str, Statement], statements: Mapping[str, Statement], *, near: float = NEAR
) -> dict[str, list[Pair]]:
    """Which statements say the same as each of some others, by the others' ids; `first` is the one asked about.

    Args:
        asked: by id, which none of the statements has.
        statements: by id.
        near: how alike near ones are at least.

    Returns:
        the same but for form first, then by likeness, then by id.
    """
    join = _Join({**statements, **asked}, near)
    same: dict[str, set[str]] = defaultdict(set)
    blocks: dict[str, list[str]] = defaultdict(list)
    for card_id, statement in statements.items():  # once, however many are asked about
        same[statement.form].add(card_id)
        blocks[statement.facts].append(card_id)
    found: dict[str, list[Pair]] = {each: [] for each in asked}
    for each, one in asked.items():
        equal, near_ones = same.get(one.form, set()), join.near_to(each, among=blocks.get(one.facts, ()))
        found[each] += [Pair(each, other, "form", 1.0) for other in equal]
        found[each] += [pair for pair in near_ones if pair.second not in equal]
        found[each].sort(key=lambda pair: (*rank(pair.kind, pair.likeness), pair.second))
    return found


def rank(kind: Kind, likeness: float) -> tuple[bool, float]:
    """The order of pairs: the same but for form first, then the more alike."""
    return kind != "form", -likeness


def _counted(found: Iterable[Pair], counts: Counter[Kind]) -> Iterator[Pair]:
    for pair in found:
        counts[pair.kind] += 1
        yield pair


def _best(found: Iterable[Pair], limit: int | None) -> list[Pair]:
    def order(pair: Pair) -> tuple[bool, float]:
        return rank(pair.kind, pair.likeness)

    return sorted(found, key=order) if limit is None else nsmallest(limit, found, key=order)


@dataclass
class _Join:
    """The near ones among statements by id; `left` counts down the comparisons that are still allowed."""

    statements: Mapping[str, Statement]
    near: float
    left: int = field(default_factory=lambda: MOST_COMPARED)
    gave_up: bool = False
    weights: Weights = field(init=False)

    def __post_init__(self) -> None:
        self.weights = _weights(self.statements.values())

    def pairs(self) -> Iterator[Pair]:
        blocks: dict[str, list[str]] = defaultdict(list)
        for card_id, statement in self.statements.items():
            if statement.terms:
                blocks[statement.facts].append(card_id)
        for block in blocks.values():
            yield from self._within(block)

    def _within(self, block: Iterable[str]) -> Iterator[Pair]:
        """The near pairs of statements with the same facts."""
        holders: dict[int, list[str]] = defaultdict(list)
        for card_id in block:
            heaviest = self._heaviest(self.statements[card_id])
            for other in dict.fromkeys(other for term in heaviest for other in holders[term]):
                if self.left <= 0:
                    self.gave_up = True
                    return
                self.left -= 1
                alike = likeness(self.statements[other], self.statements[card_id], self.weights)
                if alike >= self.near:
                    yield Pair(other, card_id, "near", round(alike, 3))
            for term in heaviest:
                holders[term].append(card_id)

    def near_to(self, asked: str, among: Iterable[str]) -> Iterator[Pair]:
        """The near pairs of one statement with others, all of the same facts."""
        one = self.statements[asked]
        if not one.terms:
            return
        for other in among:
            alike = likeness(one, self.statements[other], self.weights)
            if alike >= self.near:
                yield Pair(asked, other, "near", round(alike, 3))

    def _heaviest(self, statement: Statement) -> list[int]:
        """The heaviest terms, without which what is left is too light for any near statement."""
        ordered = sorted(statement.terms, key=lambda term: (-self.weights.of[term], term))
        left = sum(self.weights.of[term] for term in ordered)
        enough = self.near * left - 1e-9  # sums of floats differ in their last digits
        heaviest = []
        for term in ordered:
            if left < enough:
                break
            heaviest.append(term)
            left -= self.weights.of[term]
        return heaviest


def _weights(statements: Collection[Statement]) -> Weights:
    counts = Counter(term for statement in statements for term in statement.terms)
    cards = len(statements)
    common = max(_COMMON, _COMMON_SHARE * cards)
    return Weights(
        {term: math.log((cards + _PRIOR) / count) for term, count in counts.items()},
        math.log((cards + _PRIOR) / common),
    )
