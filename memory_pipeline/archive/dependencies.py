"""Reads what the cards of a workspace depend on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory_pipeline.archive.queries import load
from memory_pipeline.cards import Dependency

if TYPE_CHECKING:
    from memory_pipeline.archive.database import Tx

_SQL = load("dependencies")


def depended(tx: Tx) -> dict[Dependency, list[str]]:
    """Every database object that a card depends on, with the ids of those cards; both in order."""
    return {
        Dependency(row["database"], row["schema"], row["table"], row["column"]): row["card_ids"]
        for row in tx.rows(_SQL["depended"])
    }
