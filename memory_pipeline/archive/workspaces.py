"""Workspaces: which there are, what they hold, how they are made and removed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory_pipeline.archive.queries import load
from memory_pipeline.cards import Family, workspace_name
from memory_pipeline.lexical import supported_language

if TYPE_CHECKING:
    from memory_pipeline.archive.database import Database, Tx

_SQL = load("workspaces")


@dataclass(frozen=True, slots=True)
class Holdings:
    """What goes with a workspace.

    Attributes:
        cards: family → number of cards; every family is named.
        sources: decisions that stand behind a card.
        sessions: sessions read.
        points: points that the index is known to hold.
        grants: principals who may do something in it.
        waiting_edits: submitted edits that are not applied yet.
    """

    cards: dict[str, int]
    sources: int
    sessions: int
    points: int
    grants: int
    waiting_edits: int


def names(database: Database) -> list[str]:
    """Every workspace of the archive, in alphabetical order."""
    with database.registry() as connection:
        return list(connection.execute(_SQL["names"]).scalars())


def make(database: Database, workspace: str, *, language: str, principal: str) -> bool:
    """Make a workspace where there is none; who makes it is its first administrator.

    Args:
        database: the archive.
        workspace: its name.
        language: Snowball's name, in any case, of the language that its texts are analysed in.
        principal: who makes it.

    Returns:
        whether it was made.

    Raises:
        UnknownWorkspace: no workspace may be called so.
        InvalidSettings: the language is not supported.
    """
    parameters = {
        "workspace": workspace_name(workspace),
        "language": supported_language(language),
        "principal": principal,
    }
    with database.registry() as connection:
        made = connection.execute(_SQL["make"], parameters).rowcount == 1
        if made:
            connection.execute(_SQL["grant_maker"], parameters)
        return made


def holdings(tx: Tx) -> Holdings:
    """What goes with the transaction's workspace when it is removed."""
    found = dict(tx.row(_SQL["holdings"]))
    counted = found.pop("cards")
    return Holdings(cards={family.value: counted.get(family.value, 0) for family in Family}, **found)


def remove(tx: Tx) -> None:
    """Remove the transaction's workspace with all that the archive holds of it. Its points are the caller's to remove.

    Args:
        tx: a transaction opened with `writing=True`, so that nobody else writes to it meanwhile.
    """
    tx.row(_SQL["remove"])
