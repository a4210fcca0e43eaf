"""Finds cards for administrators: filtered, counted and sorted over the whole archive, then paged; or one in detail."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, get_args

from sqlalchemy import TextClause, text

from memory_pipeline.archive.cards import Origin, content_of
from memory_pipeline.archive.queries import load
from memory_pipeline.cards import CardContent, Family
from memory_pipeline.errors import CardNotFound, InvalidInput
from memory_pipeline.text import storable_fault

if TYPE_CHECKING:
    from memory_pipeline.archive.database import Tx

_SQL = load("listing")
_FRAGMENTS = load("fragments/listing")

State = Literal["recallable", "pending"]
"""Whether the index is known to hold what the card says now."""
Sort = Literal["card_id", "family", "title", "updated_at", "created_at", "version", "sources"]

LONGEST_PAGE = 1_000
"""The most cards that one page may have."""
LONGEST_TEXT = 20_000
"""The most characters that may be searched for."""

_FARTHEST = 2**62  # PostgreSQL counts rows in 64 bits
# The numbers of ids have at least four digits, so that of two the longer one is the larger number.
_BY_ID = """split_part(f.card_id, '-', 1) COLLATE "C" {0}, length(f.card_id) {0}, f.card_id COLLATE "C" {0}"""
_LEVELS = ("database", "schema", "table", "column")
# The dearest last: every condition spares those after it some cards.
_FILTERS = (
    "families",
    "origin",
    "updated_after",
    "updated_before",
    "flag",
    "concept",
    "state",
    "objects",
    "words",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRequest:
    """Which cards to list, all conditions together, in which order, and which page of them.

    Attributes:
        text: words that all occur in a card's texts, concepts or id, whole or as parts of longer ones; case and accents
            do not matter.
        families: cards of any of these; empty for all.
        concept: cards that name this concept; case and accents do not matter.
        database, schema, table, column: cards that depend on an object of these names, as far as they are given, all of
            them of one and the same dependency; case does not matter.
        origin: cards that a session made, or an administrator's hand.
        updated_after: cards that last changed at this moment or later.
        updated_before: cards that last changed before this moment.
        state: cards whose current content the index is known to hold, or not.
        flag: cards with this flag.
        sort: `title` is the subject, or the question of a solved one; `sources` counts them. Ties are in order of ids.
        descending: whether the order is from the largest down.
        limit: at most so many cards, 1 to 1,000.
        offset: how many cards of the order come before the page.
    """

    text: str = ""
    families: tuple[Family | str, ...] = ()
    concept: str = ""
    database: str = ""
    schema: str = ""
    table: str = ""
    column: str = ""
    origin: Origin | None = None
    updated_after: datetime | None = None
    updated_before: datetime | None = None
    state: State | None = None
    flag: str = ""
    sort: Sort = "updated_at"
    descending: bool = True
    limit: int = 50
    offset: int = 0


@dataclass(frozen=True, slots=True)
class ListedCard:
    """A card as a row of a list.

    `title` is the beginning of its subject or question; `reason`, `attempts` and `next_try` of one that is pending are
    those of `PointState`.
    """

    card_id: str
    family: Family
    version: int
    title: str
    origin: Origin
    edited: bool
    flags: tuple[str, ...]
    sources: int
    sessions: int
    created_at: datetime
    updated_at: datetime
    updated_by: str
    state: State
    reason: str | None
    attempts: int
    next_try: datetime | None


@dataclass(frozen=True, slots=True)
class Page:
    """Some cards of a list, and how many there are on all of its pages."""

    cards: tuple[ListedCard, ...]
    total: int


@dataclass(frozen=True, slots=True)
class Source:
    """A decision behind a card: where it stands, the question it came from, and what it says itself.

    `ts`, `subject` and `detail` are None or empty where the archive has not read the session.
    """

    session_id: str
    seq: int
    decision_type: str
    question: str
    ts: datetime | None
    subject: str
    detail: str


@dataclass(frozen=True, slots=True)
class LinkedCard:
    """The card at the other end of a link; `outgoing` when the link leads to it."""

    other: str
    title: str
    meaning: str
    outgoing: bool


@dataclass(frozen=True, slots=True)
class PointState:
    """How far the index follows a card.

    Attributes:
        state: whether the index is known to hold the card's content.
        wanted_at: since when it should.
        certified_at: when it last confirmed what it holds, which may be an earlier content.
        reason: why the last try failed, if it did.
        attempts: failed tries since the content is wanted.
        next_try: not to be tried again before.
        truncated: whether a text is longer than what the model reads at once; its vector stands for a part of it.
    """

    state: State
    wanted_at: datetime
    certified_at: datetime | None
    reason: str | None
    attempts: int
    next_try: datetime | None
    truncated: bool


@dataclass(frozen=True, slots=True)
class CardDetail:
    """All that the archive knows of a card."""

    card_id: str
    version: int
    content: CardContent
    origin: Origin
    edited: bool
    flags: tuple[str, ...]
    created_at: datetime
    updated_at: datetime
    updated_by: str
    sources: tuple[Source, ...]
    links: tuple[LinkedCard, ...]
    projection: PointState


def list_cards(tx: Tx, identity: str, request: ListRequest) -> Page:
    """A page of the cards that fit a request, and how many there are in all.

    Args:
        tx: an open transaction.
        identity: the hash of the embedding identity whose points decide the state.
        request: filters, order, page.

    Raises:
        InvalidInput: a value of the request cannot be used; with all of them, and what to do.
    """
    if faults := list(_faults(request)):
        raise InvalidInput("; ".join(faults))
    values = _values(request)
    filters = tuple(name for name in _FILTERS if values[name])
    rows = tx.rows(_page(filters, request.sort, request.descending), identity=identity, **values)
    cards = [_listed(row) for row in rows if row["card_id"] is not None]
    return Page(tuple(cards), rows[0]["total"])


def detail(tx: Tx, identity: str, card_id: str) -> CardDetail:
    """All that the archive knows of a card. Ask in a snapshot, so that its parts are of one state.

    Args:
        tx: an open transaction.
        identity: the hash of the embedding identity whose point is looked at.
        card_id: which card.

    Raises:
        CardNotFound: there is none of that id in this workspace.
    """
    rows = [] if storable_fault(card_id) else tx.rows(_SQL["card"], identity=identity, card_id=card_id)
    if not rows:
        raise CardNotFound(f"no card {card_id!r} in workspace {tx.workspace!r}")
    [row] = rows
    return CardDetail(
        content=content_of(row),
        flags=tuple(row["flags"]),
        sources=tuple(Source(**each) for each in tx.rows(_SQL["sources"], card_id=card_id)),
        links=tuple(LinkedCard(**each) for each in tx.rows(_SQL["links"], card_id=card_id)),
        projection=PointState(
            state="pending" if row["pending"] else "recallable",
            **{each.name: row[each.name] for each in fields(PointState) if each.name != "state"},
        ),
        **{name: row[name] for name in _OF_THE_CARD},
    )


_OF_THE_CARD = ("card_id", "version", "origin", "edited", "created_at", "updated_at", "updated_by")


def _listed(row: Any) -> ListedCard:
    values = {each.name: row[each.name] for each in fields(ListedCard)}
    return ListedCard(**values | {"family": Family(row["family"]), "flags": tuple(row["flags"])})


def _values(request: ListRequest) -> dict[str, Any]:
    """The request's values by the names of parameters and filters; a filter without a value is none."""
    values = {each.name: getattr(request, each.name) for each in fields(ListRequest)}
    return values | {
        "words": request.text.split(),
        "families": [str(family) for family in request.families],
        "objects": any(getattr(request, level) for level in _LEVELS),
    }


@cache
def _page(filters: tuple[str, ...], sort: Sort, descending: bool) -> TextClause:  # noqa: FBT001  # a key of the cache
    """The statement for some filters and one order. It is made of fixed fragments, never of a value."""
    way = "DESC" if descending else "ASC"
    ids = _BY_ID.format(way if sort == "card_id" else "ASC")
    return text(
        _FRAGMENTS["page"].text.format(
            sort_key=_fragment(f"by_{sort}"),
            conditions=" ".join(f"AND {_fragment(f'with_{name}')}" for name in filters),
            order=f"f.sort_key {way}, {ids}",
        )
    )


def _fragment(name: str) -> str:
    return "\n".join(line for line in _FRAGMENTS[name].text.splitlines() if not line.startswith("--"))


def _faults(request: ListRequest) -> Iterator[str]:
    """What cannot be used of a request, each with what to do."""
    for name in ("text", "concept", *_LEVELS, "flag"):
        yield from _text_faults(name, getattr(request, name))
    yield from _family_faults(request.families)
    for name, known in _CHOICES.items():
        value = getattr(request, name)
        if value not in known and (value is not None or name == "sort"):
            yield f"{name}: {str(value)[:80]!r} is none: name one of {', '.join(known)}"
    for name in ("updated_after", "updated_before"):
        yield from _time_faults(name, getattr(request, name))
    yield from _range_faults("limit", request.limit, 1, LONGEST_PAGE)
    yield from _range_faults("offset", request.offset, 0, _FARTHEST)


_CHOICES: dict[str, tuple[str, ...]] = {
    "origin": get_args(Origin),
    "state": get_args(State),
    "sort": get_args(Sort),
}


def _text_faults(name: str, value: object) -> Iterator[str]:
    if not isinstance(value, str):
        yield f"{name}: has to be a text"
    elif len(value) > LONGEST_TEXT:
        yield f"{name}: has {len(value):,} characters: search for {LONGEST_TEXT:,} at most"
    elif fault := storable_fault(value):
        yield f"{name}: {fault}, which no card can hold: take it out"


def _family_faults(families: object) -> Iterator[str]:
    if isinstance(families, str) or not isinstance(families, (tuple, list, set, frozenset)):
        yield "families: have to be several: give a tuple of them"
        return
    unknown = sorted(str(family)[:80] for family in families if family not in tuple(Family))
    if unknown:
        yield f"families: {', '.join(map(repr, unknown))} is none: name some of {', '.join(Family)}"


def _time_faults(name: str, value: object) -> Iterator[str]:
    if value is None:
        return
    if not isinstance(value, datetime):
        yield f"{name}: has to be a date with a time"
    elif value.utcoffset() is None:
        yield f"{name}: names no time zone: add one, such as +00:00"


def _range_faults(name: str, value: object, smallest: int, largest: int) -> Iterator[str]:
    if not isinstance(value, int) or isinstance(value, bool) or not smallest <= value <= largest:
        yield f"{name}: has to be a whole number from {smallest:,} to {largest:,}"
