"""Applies an administrator's edit: card, links, dependencies and sources in one transaction, all or nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from memory_pipeline.archive import cards
from memory_pipeline.archive.intake import SQL_UNPARSED
from memory_pipeline.archive.queries import load
from memory_pipeline.cards import CardContent, Family
from memory_pipeline.edits import (
    Change,
    Create,
    Delete,
    Edit,
    Link,
    Merge,
    changed,
    checked,
    content_faults,
    link_faults,
    refuse,
    value_faults,
)
from memory_pipeline.errors import CardNotFound, InvalidEdit, VersionConflict
from memory_pipeline.sql_dependencies import sql_dependencies

if TYPE_CHECKING:
    from sqlalchemy import RowMapping

    from memory_pipeline.archive.database import Tx

_SQL = load("editing")

_NO_VALUES: Mapping[str, Any] = {}
_DECIDES_DEPENDENCIES = ("sql", "dialect", "database", "schema")


@dataclass(frozen=True, slots=True)
class Saved:
    """The card that an edit left: its id and version, None when it was deleted."""

    card_id: str
    version: int | None


def apply(tx: Tx, edit: Edit, *, principal: str) -> Saved:
    """Apply an edit.

    Args:
        tx: a transaction opened with `writing=True`, so that no other change comes in between.
        edit: what to do.
        principal: who does it; whether they may is the caller's to ask.

    Raises:
        InvalidEdit: the family, a link or a value does not allow it; with every fault, field by field.
        CardNotFound: a card that is edited or linked is not in this workspace.
        VersionConflict: a card changed since the version that the edit was based on; it says what and who.
    """
    if isinstance(edit, Create):
        return _create(tx, edit, principal)
    if isinstance(edit, Change):
        return _change(tx, edit, principal)
    if isinstance(edit, Delete):
        return _delete(tx, edit)
    return _merge(tx, edit, principal)


def _create(tx: Tx, edit: Create, principal: str) -> Saved:
    refuse({**content_faults(edit.content), **link_faults(edit.links)})
    content, parsed = _with_dependencies(checked(edit.content), given=bool(edit.content.dependencies))
    _require(tx, [link.other for link in edit.links])
    [card_id] = cards.create(tx, [content], origin="hand", principal=principal)
    _save_links(tx, card_id, edit.links)
    cards.flag(tx, [card_id], SQL_UNPARSED, up=not parsed)
    return Saved(card_id, 1)


def _change(tx: Tx, edit: Change, principal: str) -> Saved:
    row = _based_on(tx, edit.card_id, edit.version, edit.values)
    before = cards.content_of(row)
    refuse({**value_faults(before, edit.values), **link_faults(edit.links, card_id=edit.card_id)})
    after = changed(before, edit.values)
    given = "dependencies" in edit.values
    parsed = given or SQL_UNPARSED not in row["flags"]
    if _sql_differs(before, after):
        after, parsed = _with_dependencies(after, given=given)
    _require(tx, [link.other for link in edit.links])
    linked = _save_links(tx, edit.card_id, edit.links)
    if after == before and not linked:
        return Saved(edit.card_id, edit.version)
    cards.update(tx, {edit.card_id: after}, principal=principal)
    tx.run(_SQL["mark_edited"], card_id=edit.card_id)
    cards.flag(tx, [edit.card_id], SQL_UNPARSED, up=not parsed)
    return Saved(edit.card_id, edit.version + 1)


def _delete(tx: Tx, edit: Delete) -> Saved:
    _based_on(tx, edit.card_id, edit.version)
    cards.delete(tx, [edit.card_id])
    return Saved(edit.card_id, None)


def _merge(tx: Tx, edit: Merge, principal: str) -> Saved:
    if edit.keep == edit.other:
        raise InvalidEdit({"other": "a card cannot be merged with itself: name another card"})
    keep = cards.content_of(_based_on(tx, edit.keep, edit.keep_version))
    other = cards.content_of(_based_on(tx, edit.other, edit.other_version))
    if keep.family != other.family:
        raise InvalidEdit({"other": f"is a {other.family}, and {edit.keep} a {keep.family}: only equals are merged"})
    both = {"keep": edit.keep, "other": edit.other}
    tx.run(_SQL["move_sources"], **both)
    tx.run(_SQL["copy_links_out"], **both)
    tx.run(_SQL["copy_links_in"], **both)
    cards.delete(tx, [edit.other])
    dependencies = tuple(sorted({*keep.dependencies, *other.dependencies}))
    cards.update(tx, {edit.keep: replace(keep, dependencies=dependencies)}, principal=principal)
    tx.run(_SQL["mark_edited"], card_id=edit.keep)
    return Saved(edit.keep, edit.keep_version + 1)


def _based_on(tx: Tx, card_id: str, version: int, values: Mapping[str, Any] = _NO_VALUES) -> RowMapping:
    """The card's row, if it still has the version that the edit was based on."""
    rows = cards.full_rows(tx, [card_id])
    if not rows:
        raise CardNotFound(f"no card {card_id!r} in workspace {tx.workspace!r}")
    [row] = rows
    if row["version"] != version:
        content = cards.content_of(row)
        now = {name: getattr(content, name) for name in values if hasattr(content, name)}
        raise VersionConflict(
            card_id,
            based_on=version,
            version=row["version"],
            updated_by=row["updated_by"],
            updated_at=row["updated_at"],
            values={name: value for name, value in now.items() if value != values[name]},
        )
    return row


def _require(tx: Tx, card_ids: Sequence[str]) -> None:
    missing = sorted(set(card_ids) - cards.contents(tx, card_ids).keys())
    if missing:
        raise CardNotFound(f"no card {', '.join(map(repr, missing))} in workspace {tx.workspace!r} to link with")


def _save_links(tx: Tx, card_id: str, links: Sequence[Link]) -> int:
    """Make, change and remove links; how many rows that touched."""
    touched = 0
    for link in links:
        source, target = (card_id, link.other) if link.outgoing else (link.other, card_id)
        ends = {"source": source, "target": target}
        if link.meaning is None:
            touched += tx.run(_SQL["remove_link"], **ends)
        else:
            touched += tx.run(_SQL["save_link"], **ends, meaning=link.meaning)
    return touched


def _sql_differs(before: CardContent, after: CardContent) -> bool:
    return any(getattr(before, name) != getattr(after, name) for name in _DECIDES_DEPENDENCIES)


def _with_dependencies(content: CardContent, *, given: bool) -> tuple[CardContent, bool]:
    """A solved question with what its SQL names, unless dependencies are given; and whether the SQL was parsed."""
    if content.family is not Family.SOLVED_QUESTION or given:
        return content, True
    found = sql_dependencies(
        content.sql, dialect=content.dialect or "postgres", database=content.database, schema=content.schema
    )
    return replace(content, dependencies=found or ()), found is not None
