"""The form of a card: what it is opened with, what comes back from it, and the edit that this means. Pure.

A browser gives back what it was given in its own way: with other line ends, and without any in a field of one line. So
the form carries a digest of each field as the browser would give it back; a field that comes back like that was not
touched, is no part of the edit, and stays in the archive as it is, to the byte.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from memory_pipeline.cards import CardContent, Dependency, Family
from memory_pipeline.edits import Change, Create, Link, refuse
from memory_pipeline.text import digest
from memory_pipeline.web.pages.lines import dotted_lines, lines_of, read_dotted, read_lines
from memory_pipeline.web.pages.numbers import whole

if TYPE_CHECKING:
    from starlette.datastructures import FormData

    from memory_pipeline.archive.listing import CardDetail

SOLVED_TEXTS = ("question", "sql", "dialect", "context")
OTHER_TEXTS = ("subject", "detail", "rationale")
SCOPE = ("database", "schema")
LISTS = ("concepts", "tables", "columns")
_ONE_LINE = frozenset({"dialect", *SCOPE})
_TABLE = ("database", "schema", "table")
_COLUMN = (*_TABLE, "column")
_ROWS_AT_MOST = 5_000
_LINK = re.compile(r"link\.(\d{1,6})\.other")


@dataclass(frozen=True, slots=True)
class LinkRow:
    """One row of the form's links.

    Attributes:
        other: the id of the card at the other end.
        meaning: what the link says.
        outgoing: whether it leads from this card to the other.
        title: what the other card is about, to be shown.
        was: the digest of the meaning that the row was opened with; "" for one that is new.
        remove: whether the link is to be removed.
        note: what somebody else did to it since the form was opened, to be shown.
    """

    other: str = ""
    meaning: str = ""
    outgoing: bool = True
    title: str = ""
    was: str = ""
    remove: bool = False
    note: str = ""

    @property
    def blank(self) -> bool:
        """Whether it is a new row that nobody filled in."""
        return not self.was and not self.other.strip() and not self.meaning.strip()

    @property
    def touched(self) -> bool:
        """Whether it says something else than what it was opened with."""
        return self.remove or (digest(self.meaning) != self.was and not self.blank)

    def link(self) -> Link:
        """What it makes of the link."""
        return Link(self.other.strip(), None if self.remove else self.meaning, self.outgoing)


@dataclass(frozen=True, slots=True)
class Difference:
    """A field that somebody else has changed since the form was opened.

    Attributes:
        both: whether both changed it, or only the other.
        text: of the former what the card says now, of the latter what it said before.
    """

    both: bool
    text: str


@dataclass(frozen=True, slots=True)
class CardForm:
    """What the fields of a form hold.

    Attributes:
        family: of the card.
        values: field → what stands in it, of those that the family has.
        links: the rows of links.
        version: the version that the form was opened from; 0 for a new card.
        was: field → digest of what it was opened with; empty for a new card.
        title: what the card is about.
        conflict: who changed it since the form was opened, and when; "" for nobody.
        differences: the fields that they changed. They stay with the form until it is saved, however often it is shown.
        taken: the fields of which the other's version is chosen.
        notes: what else they did, to be shown.
    """

    family: Family
    values: Mapping[str, str]
    links: tuple[LinkRow, ...] = ()
    version: int = 0
    was: Mapping[str, str] = field(default_factory=dict)
    title: str = ""
    conflict: str = ""
    differences: Mapping[str, Difference] = field(default_factory=dict)
    taken: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()

    @classmethod
    def blank(cls, family: Family) -> CardForm:
        """The form of a new card."""
        return cls(family, dict.fromkeys(fields_of(family), ""))

    @classmethod
    def opened(cls, card: CardDetail) -> CardForm:
        """The form of a card as it is."""
        values = written(card.content)
        meanings = [_one_line(link.meaning) for link in card.links]
        links = tuple(
            LinkRow(link.other, meaning, link.outgoing, link.title, was=digest(meaning))
            for link, meaning in zip(card.links, meanings, strict=True)
        )
        was = {name: digest(value) for name, value in values.items()}
        title = card.content.subject or card.content.question
        return cls(card.content.family, values, links, card.version, was, title)

    @classmethod
    def sent(cls, form: FormData) -> CardForm:
        """The form that somebody sent.

        Raises:
            InvalidEdit: it names no family.
            InvalidInput: it does not say which version it was opened from.
        """
        said = str(form.get("family", ""))
        if said not in set(Family):
            refuse({"family": f"has to be one of {', '.join(Family)}"})
        family = Family(said)
        names = fields_of(family)
        return cls(
            family,
            {name: _given(name, str(form.get(name, ""))) for name in names},
            tuple(_rows(form)),
            whole("version", form.get("version")),
            {name: str(form[f"was.{name}"]) for name in names if f"was.{name}" in form},
            str(form.get("title", "")),
            str(form.get("conflict", "")),
            {
                name: Difference(both=kind == "both", text=_given(name, str(form[f"{kind}.{name}"])))
                for name in names
                for kind in ("both", "theirs")
                if f"{kind}.{name}" in form
            },
            frozenset(name for name in names if form.get(f"take.{name}") == "theirs"),
            tuple(str(note) for note in form.getlist("note")),
        )

    def touched(self, name: str) -> bool:
        """Whether somebody wrote something else into a field than it was opened with."""
        return digest(self.values[name]) != self.was.get(name, digest(""))

    def with_rows(self, number: int) -> CardForm:
        """The form with so many more empty rows for links."""
        return replace(self, links=(*self.links, *(LinkRow() for _ in range(number))))

    def with_link(self, other: str) -> CardForm:
        """The form with a row for a link to another card."""
        return replace(self, links=(*self.links, LinkRow(other)))

    def creation(self) -> Create:
        """The edit that makes the card.

        Raises:
            InvalidEdit: a list cannot be read.
        """
        return Create(CardContent(family=self.family, **self._read(self.values)), self._links(everything=True))

    def change(self, card_id: str) -> Change:
        """The edit that changes the card: only what was touched.

        Raises:
            InvalidEdit: a list cannot be read.
        """
        touched = {name for name in self.values if self.touched(name) and name not in self.taken}
        if touched & {"tables", "columns"}:
            touched |= {"tables", "columns"}  # one list, which is shown as two
        return Change(card_id, self.version, self._read(touched), self._links(everything=False))

    def fault_rows(self, faults: Mapping[str, str]) -> dict[str, str]:
        """Faults by field and by row of the form, where the library names places in its edit."""
        rows = [number for number, row in enumerate(self.links) if self._counts(row, everything=not self.version)]
        return {_place(place, rows): fault for place, fault in faults.items()}

    def _links(self, *, everything: bool) -> tuple[Link, ...]:
        return tuple(row.link() for row in self.links if self._counts(row, everything=everything))

    def _counts(self, row: LinkRow, *, everything: bool) -> bool:
        """Whether a row is part of the edit: of a new card all that are filled in, else those that were touched."""
        return not (row.blank or row.remove) if everything else row.touched

    def _read(self, names: Any) -> dict[str, Any]:
        """The values of some fields as the library has them."""
        read: dict[str, Any] = {name: self.values[name] for name in self.values if name in names and name not in LISTS}
        faults: dict[str, str] = {}
        try:
            if "concepts" in names:
                read["concepts"] = tuple(read_lines(self.values["concepts"]))
        except ValueError as error:
            faults["concepts"] = str(error)
        dependencies: list[Dependency] = []
        for name, levels in (("tables", _TABLE), ("columns", _COLUMN)):
            try:
                if name in names:
                    dependencies += [Dependency(**each) for each in read_dotted(self.values[name], levels)]
                    read["dependencies"] = tuple(dependencies)
            except ValueError as error:
                faults[name] = str(error)
        refuse(faults)
        return read


def fields_of(family: Family) -> tuple[str, ...]:
    """The fields that the form of a family has."""
    if family is Family.SOLVED_QUESTION:
        return (*SOLVED_TEXTS, *SCOPE, "tables", "columns")
    return (*OTHER_TEXTS, *SCOPE, *LISTS)


def written(content: CardContent) -> dict[str, str]:
    """Field → what stands in it of a content, as a browser gives it back."""
    tables = [each for each in content.dependencies if not each.column]
    columns = [each for each in content.dependencies if each.column]
    lists = {
        "concepts": lines_of(content.concepts),
        "tables": dotted_lines([[getattr(each, level) for level in _TABLE] for each in tables]),
        "columns": dotted_lines([[getattr(each, level) for level in _COLUMN] for each in columns]),
    }
    texts = {name: lists[name] if name in lists else getattr(content, name) for name in fields_of(content.family)}
    return {name: _given(name, text) for name, text in texts.items()}


def _given(name: str, text: str) -> str:
    """A field's text as a browser gives it back, with line ends as they are usual here."""
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    return _one_line(plain) if name in _ONE_LINE else plain


def _one_line(text: str) -> str:
    """A text as a browser gives it back from a field of one line."""
    return text.replace("\r", "").replace("\n", "")


def _rows(form: FormData) -> list[LinkRow]:
    """The rows of links that were sent, in their order."""
    numbers = sorted({int(found[1]) for name in form if (found := _LINK.fullmatch(name))})[:_ROWS_AT_MOST]

    def said(number: int, name: str) -> str:
        return str(form.get(f"link.{number}.{name}", ""))

    return [
        LinkRow(
            other=said(number, "other"),
            meaning=_one_line(said(number, "meaning")),
            outgoing=said(number, "way") != "in",
            title=said(number, "title"),
            was=said(number, "was"),
            remove=said(number, "remove") == "yes",
            note=said(number, "note"),
        )
        for number in numbers
    ]


def _place(place: str, rows: list[int]) -> str:
    name, _, number = place.partition(".")
    if name == "links" and number.isdigit() and int(number) < len(rows):
        return f"link.{rows[int(number)]}"
    return name if name in {"dependencies", "links"} else place
