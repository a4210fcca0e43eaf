"""Two people changed a card at once: brings together what both wrote, so that neither is lost. Pure.

What only the other one changed is taken over, and what it said before is shown. Of what both changed, mine stays in the
field, the other's stands beside it, and may be chosen. The form that comes of it is based on the card as it is now.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from memory_pipeline.text import digest
from memory_pipeline.web.pages.card_form import CardForm, LinkRow

if TYPE_CHECKING:
    from memory_pipeline.archive.listing import CardDetail


@dataclass(frozen=True, slots=True)
class Difference:
    """A field that somebody else has changed since the form was opened.

    Attributes:
        kind: whether both changed it, or only the other.
        text: of the former what the card says now, of the latter what it said before.
    """

    kind: Literal["both", "theirs"]
    text: str


def brought_together(sent: CardForm, card: CardDetail) -> tuple[CardForm, dict[str, Difference]]:
    """The form to go on with, and by field what the other one did.

    Args:
        sent: what somebody wrote, based on an earlier version.
        card: as it is now.
    """
    now = CardForm.opened(card)
    values, differences = dict(now.values), {}
    for name, theirs in now.values.items():
        mine, changed = sent.values[name], digest(theirs) != sent.was.get(name)
        if sent.touched(name) and mine != theirs:
            values[name] = mine
            if changed:
                differences[name] = Difference("both", theirs)
        elif changed and mine != theirs:
            differences[name] = Difference("theirs", mine)
    return replace(now, values=values, links=tuple(_links(sent.links, now.links))), differences


def as_new(sent: CardForm) -> CardForm:
    """The form of a new card that says what somebody wrote of one that is gone."""
    links = tuple(replace(row, was="", note="") for row in sent.links if not row.remove)
    return replace(sent, version=0, was={}, taken=frozenset(), links=links)


def _links(mine: tuple[LinkRow, ...], theirs: tuple[LinkRow, ...]) -> Iterator[LinkRow]:
    wrote = {(row.other.strip(), row.outgoing): row for row in mine if not row.blank}
    for row in theirs:
        my = wrote.pop((row.other, row.outgoing), None)
        yield _link(my, row) if my else replace(row, note="made meanwhile")
    for row in wrote.values():
        if not row.was:
            yield row
        elif row.touched and not row.remove:
            yield replace(row, was="", note="removed meanwhile: saving it makes it again")


def _link(mine: LinkRow, theirs: LinkRow) -> LinkRow:
    changed = theirs.was != mine.was
    if not mine.touched:
        return replace(theirs, note=f"changed meanwhile; it said “{mine.meaning}”" if changed else "")
    note = f"changed meanwhile; it says “{theirs.meaning}” now" if changed and theirs.meaning != mine.meaning else ""
    return replace(theirs, meaning=mine.meaning, remove=mine.remove, note=note)
