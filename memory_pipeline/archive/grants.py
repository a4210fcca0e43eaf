"""Grants: who may do what in which workspace. The one place that knows the rule."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from memory_pipeline.archive.queries import load
from memory_pipeline.errors import InvalidInput, NotPermitted
from memory_pipeline.text import storable_fault

if TYPE_CHECKING:
    from memory_pipeline.archive.database import Database, Tx

_SQL = load("grants")
_LONGEST_PRINCIPAL = 255  # characters


class Role(StrEnum):
    """What a principal may do in a workspace; each role includes those above it."""

    READER = "reader"
    """Look at the cards and at what concerns them."""
    REVIEWER = "reviewer"
    """Also decide in reviews."""
    ADMINISTRATOR = "administrator"
    """Also change cards, grants, and the workspace itself."""

    def includes(self, other: Role) -> bool:
        """Whether who has this role may do what the other one allows."""
        ranks = list(Role)
        return ranks.index(self) >= ranks.index(other)


@dataclass(frozen=True, slots=True)
class Grant:
    """What one principal may do in a workspace, and who gave it when."""

    principal: str
    role: Role
    granted_by: str
    granted_at: datetime


@contextmanager
def granted(
    database: Database,
    workspace: str,
    principal: str,
    role: Role,
    *,
    snapshot: bool = False,
    writing: bool = False,
) -> Iterator[Tx]:
    """A transaction, as `Database.transaction` opens it, for a principal who may do what a role allows.

    Raises:
        UnknownWorkspace: there is no such workspace.
        NotPermitted: the principal has no grant that includes the role.
    """
    with database.transaction(workspace, snapshot=snapshot, writing=writing) as tx:
        require_in(tx, principal, role)
        yield tx


def require_in(tx: Tx, principal: str, role: Role) -> None:
    """The same within the transaction that then does it, so that no grant is taken away in between.

    Raises:
        NotPermitted: the principal has no grant that includes the role.
    """
    held = _role(tx, principal)
    if held is None or not held.includes(role):
        raise NotPermitted(
            f"{principal!r} may not do this in workspace {tx.workspace!r}: it takes the grant of {role}, which an "
            "administrator of the workspace gives (`memory-pipeline grants give`)"
        )


def give(database: Database, workspace: str, principal: str, role: Role, *, by: str) -> bool:
    """Let a principal do what a role allows, in place of what it was granted before.

    Args:
        database: the archive.
        workspace: where.
        principal: to whom.
        role: which role.
        by: the administrator who gives it.

    Returns:
        whether that changed anything.

    Raises:
        UnknownWorkspace: there is no such workspace.
        NotPermitted: who gives it is no administrator, or the last administrator would be none any more.
        InvalidInput: nobody can be called so.
    """
    name = principal_name(principal)
    # Grants change one after the other, like cards: of two administrators, both cannot take away the other's grant.
    with database.transaction(workspace, writing=True) as tx:
        require_in(tx, by, Role.ADMINISTRATOR)
        if role is not Role.ADMINISTRATOR:
            _leave_an_administrator(tx, name)
        return tx.run(_SQL["give"], principal=name, role=role.value, by=by) == 1


def take(database: Database, workspace: str, principal: str, *, by: str) -> bool:
    """Take away what a principal was granted; whether there was anything.

    Raises:
        UnknownWorkspace: there is no such workspace.
        NotPermitted: who takes it is no administrator, or it is the last administrator's.
        InvalidInput: nobody can be called so.
    """
    name = principal_name(principal)
    with database.transaction(workspace, writing=True) as tx:
        require_in(tx, by, Role.ADMINISTRATOR)
        _leave_an_administrator(tx, name)
        return tx.run(_SQL["take"], principal=name) == 1


def of(database: Database, workspace: str) -> list[Grant]:
    """The grants of a workspace, by principal.

    Raises:
        UnknownWorkspace: there is no such workspace.
    """
    with database.transaction(workspace) as tx:
        return of_workspace(tx)


def of_workspace(tx: Tx) -> list[Grant]:
    """The grants of the transaction's workspace, by principal."""
    return [Grant(r["principal"], Role(r["role"]), r["granted_by"], r["granted_at"]) for r in tx.rows(_SQL["of"])]


def held_by(database: Database, principal: str) -> dict[str, Role]:
    """Workspace → role, for every workspace in which the principal has a grant."""
    with database.registry() as connection:
        rows = connection.execute(_SQL["held_by"], {"principal": principal}).mappings()
        return {row["workspace"]: Role(row["role"]) for row in rows}


def _role(tx: Tx, principal: str) -> Role | None:
    rows = tx.rows(_SQL["role"], principal=principal)
    return Role(rows[0]["role"]) if rows else None


def _leave_an_administrator(tx: Tx, principal: str) -> None:
    if _role(tx, principal) is not Role.ADMINISTRATOR:
        return
    administrator = Role.ADMINISTRATOR.value
    if not tx.row(_SQL["other_administrators"], principal=principal, administrator=administrator)["others"]:
        raise NotPermitted(
            f"{principal!r} is the last administrator of workspace {tx.workspace!r}: make somebody else one before"
        )


def principal_name(name: str) -> str:
    """The name, if somebody can be called so.

    Raises:
        InvalidInput: it is blank, too long, or cannot be stored.
    """
    if not name.strip() or len(name) > _LONGEST_PRINCIPAL or storable_fault(name):
        raise InvalidInput(f"a principal is a text of 1 to {_LONGEST_PRINCIPAL} characters")
    return name
