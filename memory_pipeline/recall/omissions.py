"""Says which of the cards that were found are not in the answer, and why (pure)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory_pipeline.recall.result import Omission

if TYPE_CHECKING:
    from memory_pipeline.recall.judgement import Judgement

LISTED = 10
"""How many cards outside the scope, and how many beyond the limit, are named: the best of what may be hundreds."""

_ORDER = {reason: place for place, reason in enumerate(Omission)}
_MANY = (Omission.OUTSIDE_SCOPE, Omission.BEYOND_LIMIT)


@dataclass(frozen=True, slots=True)
class Omitted:
    """A card that was found and is left out; with its score only where that compares with those of the hits."""

    card_id: str
    reason: Omission
    score: float | None = None


def omissions(judgement: Judgement, limit: int, *, along: Container[str] = ()) -> list[Omitted]:
    """All cards that were found and are not in the answer: those that may not be shown, then those beyond the limit.

    Args:
        judgement: of what was found.
        limit: how many cards were asked for.
        along: cards that come along by links, and so are in the answer all the same.
    """
    refused = [Omitted(card.card_id, judgement.reasons[card.card_id]) for card in judgement.refused]
    beyond = [Omitted(card.card_id, Omission.BEYOND_LIMIT, card.score) for card in judgement.cards[limit:]]
    omitted = [each for each in (*refused, *beyond) if each.card_id not in along]
    return sorted(omitted, key=lambda each: _ORDER[each.reason])  # which keeps the best first


def listed(omitted: Sequence[Omitted]) -> list[Omitted]:
    """Those that are named: all about which the session has decided, and the best few of the others."""
    seen: Counter[Omission] = Counter()
    named = []
    for each in omitted:
        seen[each.reason] += 1
        if each.reason not in _MANY or seen[each.reason] <= LISTED:
            named.append(each)
    return named


def counted(omitted: Sequence[Omitted]) -> dict[Omission, int]:
    """Reason → how many there are."""
    return dict(Counter(each.reason for each in omitted))
