"""Workspaces and their grants: who may do what where."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory_pipeline.archive.queries import load
from memory_pipeline.cards import workspace_name

if TYPE_CHECKING:
    from memory_pipeline.archive.database import Database

_SQL = load("workspaces")


def names(database: Database) -> list[str]:
    """Every workspace of the archive, in alphabetical order."""
    with database.registry() as connection:
        return list(connection.execute(_SQL["names"]).scalars())


def make(database: Database, workspace: str, *, language: str, principal: str) -> bool:
    """Make a workspace where there is none; who makes it is its first administrator.

    Args:
        database: the archive.
        workspace: its name.
        language: Snowball's name of the language that its texts are analysed in.
        principal: who makes it.

    Returns:
        whether it was made.
    """
    parameters = {"workspace": workspace_name(workspace), "language": language, "principal": principal}
    with database.registry() as connection:
        made = connection.execute(_SQL["make"], parameters).rowcount == 1
        if made:
            connection.execute(_SQL["grant_maker"], parameters)
        return made
