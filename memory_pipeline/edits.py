"""What an administrator may do to cards, as data, and what a family allows (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from memory_pipeline.cards import CardContent, Dependency, Family
from memory_pipeline.errors import InvalidEdit
from memory_pipeline.sql_dependencies import dialect_fault
from memory_pipeline.text import storable_fault

TEXT_LIMIT = 1_000_000
"""The most characters that one text of a card may have."""
LIST_LIMIT = 1_000
"""The most concepts that a card may have."""
DEPENDENCY_LIMIT = 25_000
"""The most database objects that a card may depend on: the longest SQL that is parsed can name no more."""
NAME_LIMIT = 255
"""The most characters of a concept's name and a link's meaning, and bytes of a database object's name."""

_SOLVED_TEXTS = ("question", "sql", "dialect", "context")
_OTHER_TEXTS = ("subject", "detail", "rationale")
_SCOPE = ("database", "schema")
_NAMES = (*_SCOPE, "dialect")
_REQUIRED = {True: ("question", "sql"), False: ("subject", "detail")}


@dataclass(frozen=True, slots=True, order=True)
class Link:
    """A link of the edited card to make, change or remove: to another card of the workspace, or from it.

    Attributes:
        other: the id of the card at the other end.
        meaning: what the link says of its source and target; None removes it.
        outgoing: whether the edited card is the source.
    """

    other: str
    meaning: str | None
    outgoing: bool = True


@dataclass(frozen=True, slots=True)
class Create:
    """Make a card by hand."""

    content: CardContent
    links: tuple[Link, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """Give a card other values, based on one of its versions.

    A link belongs to both of its ends: to make, change or remove one counts a version of the other card too.

    Attributes:
        card_id: which card.
        version: the version that the change was made from.
        values: fields of `CardContent` to replace, but for the family; the others stay as they are.
        links: the links to make, change or remove; the others stay as they are, so that nobody removes one unseen.
    """

    card_id: str
    version: int
    values: Mapping[str, Any] = field(default_factory=dict)
    links: tuple[Link, ...] = ()


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete a card, based on one of its versions."""

    card_id: str
    version: int


@dataclass(frozen=True, slots=True)
class Merge:
    """Make one card of two of a family.

    `keep` takes the sources, links and dependencies of `other`, which is deleted like any card.
    """

    keep: str
    keep_version: int
    other: str
    other_version: int


Edit = Create | Change | Delete | Merge


def checked(content: CardContent) -> CardContent:
    """The content with its dependencies once each and in order, if its family allows it.

    Raises:
        InvalidEdit: with every fault at once, field by field, in words that tell what to do.
    """
    refuse(content_faults(content))
    return replace(content, family=Family(content.family), dependencies=tuple(sorted(set(content.dependencies))))


def changed(content: CardContent, values: Mapping[str, Any]) -> CardContent:
    """The content with other values, as `checked` gives it.

    Raises:
        InvalidEdit: a value is not a field's, or the family does not allow the outcome.
    """
    refuse(value_faults(content, values))
    return checked(replace(content, **values))


def refuse(faults: Mapping[str, str]) -> None:
    """Raises `InvalidEdit` if there is any fault."""
    if faults:
        raise InvalidEdit(faults)


def content_faults(content: CardContent) -> dict[str, str]:
    """What its family does not allow of a content, field → what to do."""
    if content.family not in tuple(Family):
        return {"family": f"has to be one of {', '.join(Family)}"}
    solved = content.family == Family.SOLVED_QUESTION
    allowed, others = (_SOLVED_TEXTS, _OTHER_TEXTS) if solved else (_OTHER_TEXTS, _SOLVED_TEXTS)
    faults: dict[str, str] = {}
    for name in (*allowed, *_SCOPE):
        faults |= _text_faults(name, getattr(content, name))
    if solved and "dialect" not in faults and content.dialect and (fault := dialect_fault(content.dialect)):
        faults["dialect"] = fault
    for name in _REQUIRED[solved]:
        if name not in faults and not getattr(content, name).strip():
            faults[name] = f"a {content.family} needs it: write some text"
    for name in (*others, "concepts") if solved else others:
        if getattr(content, name):
            faults[name] = f"a {content.family} has none: leave it out"
    return {**_list_faults("concepts", content.concepts), **_dependency_faults(content.dependencies), **faults}


def edit_faults(edit: Edit) -> dict[str, str]:
    """What can be said to be wrong with an edit without knowing the cards, place → what to do."""
    return {**content_faults(edit.content), **link_faults(edit.links)} if isinstance(edit, Create) else {}


def value_faults(content: CardContent, values: Mapping[str, Any]) -> dict[str, str]:
    """What cannot be done to a content, field → what to do."""
    unknown = {name: _UNKNOWN.get(name, "is not a field of a card: leave it out") for name in values.keys() - EDITABLE}
    known = {name: value for name, value in values.items() if name in EDITABLE}
    return unknown | content_faults(replace(content, **known))


EDITABLE = frozenset(each.name for each in fields(CardContent)) - {"family"}
"""The fields of a card that a change may replace."""
_UNKNOWN = {"family": "cannot be changed: make a card of the other family, and delete this one"}


def link_faults(links: Sequence[Link], *, card_id: str | None = None) -> dict[str, str]:
    """What keeps links from being made, changed or removed together, place → what to do.

    Args:
        links: in both directions.
        card_id: the edited card; None for one that is being made, which has no link to remove.
    """
    faults: dict[str, str] = {}
    for number, link in enumerate(links):
        place = f"links.{number}"
        if link.other == card_id:
            faults[place] = "a card has no link to itself: name another card"
        elif any((link.other, link.outgoing) == (each.other, each.outgoing) for each in links[:number]):
            faults[place] = "this link stands here twice: leave one of them out"
        elif link.meaning is None and card_id is None:
            faults[place] = "a new card has no link to remove: give it a meaning"
        elif link.meaning is not None and not _usable_name(link.meaning):
            faults[place] = f"its meaning has to be a text of 1 to {NAME_LIMIT} characters, without NUL bytes"
    return faults


def _usable_name(value: str) -> bool:
    return bool(value.strip()) and len(value) <= NAME_LIMIT and not storable_fault(value)


def _text_faults(name: str, value: object) -> dict[str, str]:
    limit = NAME_LIMIT if name in _NAMES else TEXT_LIMIT
    if not isinstance(value, str):
        return {name: "has to be a text"}
    if len(value) > limit:
        return {name: f"has {len(value):,} characters: at most {limit:,} can be kept"}
    fault = storable_fault(value)
    return {name: f"cannot be kept, since {fault}: take it out"} if fault else {}


def _list_faults(name: str, values: object) -> dict[str, str]:
    if not isinstance(values, tuple) or not all(isinstance(value, str) for value in values):
        return {name: "has to be a list of texts"}
    if len(values) > LIST_LIMIT:
        return {name: f"has {len(values):,} entries: at most {LIST_LIMIT:,} can be kept"}
    if not all(_usable_name(value) for value in values):
        return {name: f"each has to be a text of 1 to {NAME_LIMIT} characters"}
    return {}


def _dependency_faults(dependencies: object) -> dict[str, str]:
    if not isinstance(dependencies, tuple) or not all(isinstance(d, Dependency) for d in dependencies):
        return {"dependencies": "has to be a list of objects with database, schema, table and column"}
    if len(dependencies) > DEPENDENCY_LIMIT:
        return {"dependencies": f"has {len(dependencies):,} entries: at most {DEPENDENCY_LIMIT:,} can be kept"}
    faults = {}
    for number, dependency in enumerate(dependencies):
        names = (dependency.database, dependency.schema, dependency.table, dependency.column)
        place = f"dependencies.{number}"
        if not all(isinstance(name, str) for name in names):
            faults[place] = "database, schema, table and column have to be texts"
        elif not any(names):
            faults[place] = "names nothing: give a database, schema, table or column"
        elif dependency.column and not dependency.table:
            faults[place] = "a column needs its table"
        elif any(len(name.encode(errors="replace")) > NAME_LIMIT or storable_fault(name) for name in names):
            faults[place] = f"a name may have {NAME_LIMIT} bytes at most, and no NUL byte or lone surrogate"
    return faults
