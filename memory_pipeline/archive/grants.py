"""Grants: who may do what in which workspace. The one place that knows the rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from memory_pipeline.archive import workspaces
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


@dataclass(frozen=True, slots=True)
class Principal:
    """Who acts, and in which roles.

    Attributes:
        name: under which grants are kept, and which stands beside what was changed.
        roles: workspace → role, as whoever issued a token vouches for it; None where the archive's grants say.
    """

    name: str
    roles: Mapping[str, Role] | None = None

    @classmethod
    def of(cls, who: str | Principal) -> Principal:
        """The principal of a name that stands for its grants, or the one that is given.

        Raises:
            InvalidInput: nobody can be called so.
        """
        principal = who if isinstance(who, Principal) else cls(who)
        principal_name(principal.name)
        return principal


@contextmanager
def granted(
    database: Database,
    workspace: str,
    principal: str | Principal,
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


def require_in(tx: Tx, principal: str | Principal, role: Role) -> None:
    """The same within the transaction that then does it, so that no grant is taken away in between.

    Raises:
        NotPermitted: the principal has no grant that includes the role.
    """
    who = Principal.of(principal)
    held = role_in(tx, who)
    if held is None or not held.includes(role):
        raise NotPermitted(
            f"{who.name!r} may not do this in workspace {tx.workspace!r}: it takes the grant of {role}, which an "
            "administrator of the workspace gives (`memory-pipeline grants give`)"
        )


def role_in(tx: Tx, principal: Principal) -> Role | None:
    """What a principal may do in the transaction's workspace; None for nothing."""
    return _granted(tx, principal.name) if principal.roles is None else principal.roles.get(tx.workspace)


def give(database: Database, workspace: str, principal: str, role: Role, *, by: str | Principal) -> bool:
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
        return tx.run(_SQL["give"], principal=name, role=role.value, by=Principal.of(by).name) == 1


def take(database: Database, workspace: str, principal: str, *, by: str | Principal) -> bool:
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


def held_by(database: Database, principal: str | Principal) -> dict[str, Role]:
    """Workspace → role, for every workspace of the archive in which the principal has one, in alphabetical order."""
    who = Principal.of(principal)
    if who.roles is not None:
        return {name: who.roles[name] for name in workspaces.names(database) if name in who.roles}
    with database.registry() as connection:
        rows = connection.execute(_SQL["held_by"], {"principal": who.name}).mappings()
        return {row["workspace"]: Role(row["role"]) for row in rows}


def _granted(tx: Tx, principal: str) -> Role | None:
    rows = tx.rows(_SQL["role"], principal=principal)
    return Role(rows[0]["role"]) if rows else None


def _leave_an_administrator(tx: Tx, principal: str) -> None:
    if _granted(tx, principal) is not Role.ADMINISTRATOR:
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
