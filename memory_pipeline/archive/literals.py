"""The values that the SQL of solved questions compares columns with, and which questions name them.

They decide what the shape of a question is. So a solved question that comes, changes or goes can change the points of
others: `named` finds those.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from memory_pipeline.archive.queries import load
from memory_pipeline.cards import CardContent, Family
from memory_pipeline.shapes import phrases, words
from memory_pipeline.sql_literals import sql_literals
from memory_pipeline.turning import turns

if TYPE_CHECKING:
    from memory_pipeline.archive.database import Tx

_SQL = load("literals")


def known(tx: Tx, among: Iterable[str]) -> frozenset[str]:
    """Those of some phrases that are literals of the workspace."""
    wanted = sorted(among)
    return frozenset(row["literal"] for row in tx.rows(_SQL["known"], phrases=wanted)) if wanted else frozenset()


def of_cards(tx: Tx, card_ids: Iterable[str]) -> set[str]:
    """The literals that cards have."""
    return {row["literal"] for row in tx.rows(_SQL["of_cards"], card_ids=sorted(card_ids))}


def keep(tx: Tx, contents: Mapping[str, CardContent]) -> set[str]:
    """Keep the literals of solved questions, by card id; those that came to the workspace by it, or went.

    A word that says nothing by itself is none, though some SQL may compare with it ("or" is a state, and in every other
    question), and neither is one that turns a meaning round ("media" is a level, and a mean).
    """
    rows = [
        {"card_id": card_id, "literal": literal}
        for card_id, content in contents.items()
        for literal in sorted(sql_literals(content.sql, content.dialect or "postgres"))
        if not turns(literal, tx.language)
    ]
    touched = of_cards(tx, contents) | {str(row["literal"]) for row in rows}
    if not touched:
        return set()
    before = known(tx, touched)
    tx.run(_SQL["forget"], card_ids=sorted(contents))
    tx.run_rows(_SQL["keep"], rows)
    return {*(before ^ known(tx, touched))}


def named(tx: Tx, card_ids: Iterable[str], changed: Iterable[str]) -> dict[str, list[str]]:
    """What solved questions name, sorted, by card id: that of some cards, and of those for which it has changed.

    Args:
        tx: an open transaction.
        card_ids: the cards.
        changed: the literals that came or went.
    """
    own = set(card_ids)
    first_words = sorted({word for literal in changed for word in words(literal)[:1]})
    rows = tx.rows(_SQL["concerned"], card_ids=sorted(own), words=first_words)
    asked = {row["card_id"]: phrases(row["question"]) for row in rows}
    current = known(tx, frozenset().union(*asked.values()))
    found = {card_id: sorted(of_question & current) for card_id, of_question in asked.items()}
    before = {row["card_id"]: row["named_literals"] for row in rows}
    return {card_id: now for card_id, now in found.items() if card_id in own or now != before[card_id]}


def solved(contents: Mapping[str, CardContent]) -> dict[str, CardContent]:
    """Those of the cards that have SQL to read."""
    return {card_id: c for card_id, c in contents.items() if c.family is Family.SOLVED_QUESTION}
