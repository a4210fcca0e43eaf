"""Follows links from hits to the cards around them, nearest first, each card once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection as Items
from collections.abc import Sequence
from typing import TYPE_CHECKING

from memory_pipeline.recall.result import FollowedLink

if TYPE_CHECKING:
    from memory_pipeline.archive.lookup import Link

STEPS_AT_MOST = 3
LINKED_AT_MOST = 50


def followed(hits: Sequence[str], links: Sequence[Link], refused: Items[str] = ()) -> dict[str, FollowedLink]:
    """Card → the link by which it comes along, breadth first from the hits in their order.

    Args:
        hits: the ids of the hits, best first; they do not come along themselves.
        links: the links around them, in a fixed order, whichever way they point.
        refused: cards that do not come along, though links lead on through them.
    """
    around = _around(links)
    origin = {hit: hit for hit in hits}
    found: dict[str, FollowedLink] = {}
    border = list(hits)
    for _ in range(STEPS_AT_MOST):
        reached = []
        for card in border:
            for link in around[card]:
                other = link.target if link.source == card else link.source
                if other not in origin:
                    origin[other] = origin[card]
                    reached.append(other)
                    found[other] = FollowedLink(origin[card], link.source, link.target, link.meaning)
        border = reached
    kept = [card for card in found if card not in refused]
    return {card: found[card] for card in kept[:LINKED_AT_MOST]}


def _around(links: Sequence[Link]) -> defaultdict[str, list[Link]]:
    around: defaultdict[str, list[Link]] = defaultdict(list)
    for link in links:
        around[link.source].append(link)
        around[link.target].append(link)
    return around
