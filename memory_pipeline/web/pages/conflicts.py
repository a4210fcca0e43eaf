"""Two people changed a card at once: brings together what both wrote, so that neither is lost. Pure.

What only the other one changed is taken over, and what it said before is shown. Of what both changed, mine stays in the
field, the other's stands beside it, and may be chosen. The form that comes of it is based on the card as it is now, and
carries what it shows for as long as it is not saved.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from memory_pipeline.errors import InvalidInput
from memory_pipeline.text import digest
from memory_pipeline.web.pages.card_form import CardForm, Difference, LinkRow

if TYPE_CHECKING:
    from memory_pipeline.archive.listing import CardDetail


def brought_together(sent: CardForm, card: CardDetail, conflict: str) -> CardForm:
    """The form to go on with.

    Args:
        sent: what somebody wrote, based on an earlier version.
        card: as it is now.
        conflict: who was faster, and when.

    Raises:
        InvalidInput: it is the form of another card.
    """
    now = CardForm.opened(card)
    if sent.family is not now.family:
        raise InvalidInput(f"this is no form of {card.card_id}: open the card, and change it from there")
    values, differences = dict(now.values), {}
    for name, theirs in now.values.items():
        mine, changed = sent.values[name], digest(theirs) != sent.was.get(name)
        known = sent.differences.get(name)
        contested = changed or (known is not None and known.both)
        if mine == theirs:
            continue
        if sent.touched(name):
            values[name] = mine
            if contested:
                differences[name] = Difference(both=True, text=theirs)
        elif changed:
            differences[name] = Difference(both=False, text=mine)
    return replace(
        now,
        values=values,
        links=tuple(_links(sent.links, now.links)),
        conflict=conflict,
        differences=differences,
        taken=sent.taken & {name for name, each in differences.items() if each.both},
        notes=(*sent.notes, *_gone(sent.links, now.links)),
    )


def as_new(sent: CardForm) -> CardForm:
    """The form of a new card that says what somebody wrote of one that is gone."""
    links = tuple(replace(row, was="", note="") for row in sent.links if not row.remove)
    return CardForm(sent.family, sent.values, links)


def _links(mine: tuple[LinkRow, ...], theirs: tuple[LinkRow, ...]) -> Iterator[LinkRow]:
    wrote = {_ends(row): row for row in mine if not row.blank}
    for row in theirs:
        my = wrote.pop(_ends(row), None)
        yield _link(my, row) if my else replace(row, note="made meanwhile")
    for row in wrote.values():
        if not row.was:
            yield row
        elif row.touched and not row.remove:
            yield replace(row, was="", note="removed meanwhile: saving it makes it again")


def _link(mine: LinkRow, theirs: LinkRow) -> LinkRow:
    changed = theirs.was != mine.was
    if not mine.touched:
        return replace(theirs, note=f"changed meanwhile; it said “{mine.meaning}”" if changed else mine.note)
    differs = changed and theirs.meaning != mine.meaning
    note = f"changed meanwhile; it says “{theirs.meaning}” now" if differs else mine.note
    return replace(theirs, meaning=mine.meaning, remove=mine.remove, note=note)


def _gone(mine: tuple[LinkRow, ...], theirs: tuple[LinkRow, ...]) -> Iterator[str]:
    """What to say of the links that the other removed, and that I had left as they were."""
    stay = {_ends(row) for row in theirs}
    for row in mine:
        if row.was and not row.touched and _ends(row) not in stay:
            yield f"The link {'to' if row.outgoing else 'from'} {row.other} (“{row.meaning}”) was removed meanwhile."


def _ends(row: LinkRow) -> tuple[str, bool]:
    return row.other.strip(), row.outgoing
