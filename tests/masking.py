"""What solved questions name, and what their points are made from, computed anew from all cards of a workspace."""

from __future__ import annotations

from collections.abc import Mapping

from memory_pipeline.archive.literals import solved
from memory_pipeline.cards import CardContent
from memory_pipeline.lexical import lexicon
from memory_pipeline.points import card_fingerprint
from memory_pipeline.shapes import phrases
from memory_pipeline.sql_literals import sql_literals


def named_literals(contents: Mapping[str, CardContent], language: str = "italian") -> dict[str, list[str]]:
    """Solved question → those of the workspace's literals that it names."""
    questions = solved(contents)
    found = {text for c in questions.values() for text in sql_literals(c.sql, c.dialect or "postgres")}
    literals = {text for text in found if lexicon(language).query(text)}
    return {card_id: sorted(phrases(c.question) & literals) for card_id, c in questions.items()}


def fingerprints(contents: Mapping[str, CardContent], language: str = "italian") -> dict[str, str]:
    """Card → the fingerprint that is due to it."""
    named = named_literals(contents, language)
    return {card_id: card_fingerprint(c, named.get(card_id, ()), language) for card_id, c in contents.items()}
