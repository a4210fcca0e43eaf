"""Applies an administrator's edit: card, links, dependencies and sources in one transaction, all or nothing."""

from __future__ import annotations

from collections.abc import Collection as Items
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from memory_pipeline.archive import cards
from memory_pipeline.archive.queries import load
from memory_pipeline.cards import CardContent, Family, Flag
from memory_pipeline.edits import (
    EDITABLE,
    Change,
    Create,
    Delete,
    Edit,
    Link,
    Merge,
    changed,
    checked,
    edit_faults,
    link_faults,
    refuse,
    value_faults,
)
from memory_pipeline.edits_json import content_as_json, value_as_json
from memory_pipeline.errors import CardNotFound, InvalidEdit, VersionConflict
from memory_pipeline.sql_dependencies import sql_dependencies

if TYPE_CHECKING:
    from sqlalchemy import RowMapping

    from memory_pipeline.archive.database import Tx

_SQL = load("editing")

_DECIDES_DEPENDENCIES = ("sql", "dialect", "database", "schema")


@dataclass(frozen=True, slots=True)
class Saved:
    """The card that an edit left.

    Attributes:
        card_id: which card.
        version: its version; None when it was deleted.
        changed: whether the edit changed anything.
        flags: those that the card has now.
    """

    card_id: str
    version: int | None
    changed: bool = True
    flags: tuple[str, ...] = ()


def apply(tx: Tx, edit: Edit, *, principal: str) -> Saved:
    """Apply an edit.

    What it changes counts one version further, and so does each card at the other end of a link that it makes, changes
    or removes: nobody who has not seen that link can overwrite it from there. A deletion leaves the neighbours as they
    are: of a link that is gone with its card, nothing can be overwritten.

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
    _refuse(tx, edit_faults(edit), edit.links)
    content, parsed = _with_dependencies(checked(edit.content), given=bool(edit.content.dependencies))
    [card_id] = cards.create(tx, [content], origin="hand", principal=principal)
    _count_links(tx, _save_links(tx, card_id, edit.links), principal)
    cards.flag(tx, [card_id], Flag.SQL_UNPARSED, up=not parsed)
    return _saved(tx, card_id)


def _change(tx: Tx, edit: Change, principal: str) -> Saved:
    row = _based_on(tx, edit.card_id, edit.version, edit)
    before = cards.content_of(row)
    _refuse(tx, {**value_faults(before, edit.values), **link_faults(edit.links, card_id=edit.card_id)}, edit.links)
    after = changed(before, edit.values)
    given = "dependencies" in edit.values
    parsed = given or Flag.SQL_UNPARSED not in row["flags"]
    if _sql_differs(before, after):
        after, parsed = _with_dependencies(after, given=given or not _of_its_sql(before))
    linked = _save_links(tx, edit.card_id, edit.links)
    if after == before and not linked:
        return _saved(tx, edit.card_id, changed=False)
    cards.update(tx, {edit.card_id: after}, principal=principal)
    _count_links(tx, linked, principal)
    tx.run(_SQL["mark_edited"], card_id=edit.card_id)
    cards.flag(tx, [edit.card_id], Flag.SQL_UNPARSED, up=not parsed)
    return _saved(tx, edit.card_id)


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
    linked = {row["other"] for name in ("copy_links_out", "copy_links_in") for row in tx.rows(_SQL[name], **both)}
    _count_links(tx, linked, principal)
    cards.delete(tx, [edit.other])
    dependencies = tuple(sorted({*keep.dependencies, *other.dependencies}))
    cards.update(tx, {edit.keep: replace(keep, dependencies=dependencies)}, principal=principal)
    tx.run(_SQL["mark_edited"], card_id=edit.keep)
    return _saved(tx, edit.keep)


def _saved(tx: Tx, card_id: str, *, changed: bool = True) -> Saved:
    [row] = cards.full_rows(tx, [card_id])
    return Saved(card_id, row["version"], changed, tuple(row["flags"]))


def _based_on(tx: Tx, card_id: str, version: int, change: Change | None = None) -> RowMapping:
    """The card's row, if it still has the version that the edit was based on."""
    rows = cards.full_rows(tx, [card_id])
    if not rows:
        raise CardNotFound(f"no card {card_id!r} in workspace {tx.workspace!r}")
    [row] = rows
    if row["version"] != version:
        raise _conflict(tx, row, version, change)
    return row


def _conflict(tx: Tx, row: RowMapping, version: int, change: Change | None) -> VersionConflict:
    """What the edit would have met unseen: all of the card, or of one that changes some of it just that."""
    content = cards.content_of(row)
    now = {name: value for name, value in content_as_json(content).items() if name in EDITABLE}
    links: dict[tuple[str, bool], str | None] = {
        (link["other"], link["outgoing"]): link["meaning"] for link in tx.rows(_SQL["links"], card_id=row["card_id"])
    }
    if change is not None and (change.values or change.links):
        current = {name: getattr(content, name) for name in change.values if name in EDITABLE}
        now = {name: value_as_json(value) for name, value in current.items() if value != change.values[name]}
        links = {(each.other, each.outgoing): links.get((each.other, each.outgoing)) for each in change.links}
    return VersionConflict(
        row["card_id"],
        based_on=version,
        version=row["version"],
        updated_by=row["updated_by"],
        updated_at=row["updated_at"],
        now=now,
        links=[{"other": other, "meaning": meaning, "outgoing": way} for (other, way), meaning in links.items()],
    )


def _refuse(tx: Tx, faults: Mapping[str, str], links: Sequence[Link]) -> None:
    """Refuse an edit with every fault at once, cards that are not there to be linked with among them.

    Raises:
        CardNotFound: it is nothing but such a card.
        InvalidEdit: there is something else.
    """
    known = cards.contents(tx, [link.other for link in links])
    missing = {f"links.{n}": link.other for n, link in enumerate(links) if link.other not in known}
    if missing and not faults:
        names = ", ".join(map(repr, sorted(set(missing.values()))))
        raise CardNotFound(f"no card {names} in workspace {tx.workspace!r} to link with")
    refuse(
        {**{place: f"no card {other!r} in workspace {tx.workspace!r}" for place, other in missing.items()}, **faults}
    )


def _save_links(tx: Tx, card_id: str, links: Sequence[Link]) -> set[str]:
    """Make, change and remove links; the cards at the other ends of those that were not so already."""
    touched = set()
    for link in links:
        source, target = (card_id, link.other) if link.outgoing else (link.other, card_id)
        ends = {"source": source, "target": target}
        if link.meaning is None:
            differed = tx.run(_SQL["remove_link"], **ends)
        else:
            differed = tx.run(_SQL["save_link"], **ends, meaning=link.meaning)
        touched |= {link.other} if differed else set()
    return touched


def _count_links(tx: Tx, card_ids: Items[str], principal: str) -> None:
    """Let cards that others were linked with, or are not any more, count one version further; what they say stays."""
    if card_ids:
        tx.run(_SQL["count_version"], card_ids=sorted(card_ids), principal=principal)


def _sql_differs(before: CardContent, after: CardContent) -> bool:
    return any(getattr(before, name) != getattr(after, name) for name in _DECIDES_DEPENDENCIES)


def _of_its_sql(content: CardContent) -> bool:
    """Whether the card depends on what its SQL names, rather than on what somebody has given by hand."""
    return _with_dependencies(content, given=False)[0].dependencies == content.dependencies


def _with_dependencies(content: CardContent, *, given: bool) -> tuple[CardContent, bool]:
    """A solved question with what its SQL names, unless dependencies are given; and whether the SQL was parsed."""
    if content.family is not Family.SOLVED_QUESTION or given:
        return content, True
    found = sql_dependencies(
        content.sql, dialect=content.dialect or "postgres", database=content.database, schema=content.schema
    )
    return replace(content, dependencies=found or ()), found is not None
