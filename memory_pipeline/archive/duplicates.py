"""Proposes cards of a workspace for merging, from the archive alone: it needs neither index nor model, changes nothing.

Only concepts, rules and pitfalls are compared: a solved question stays its session's own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from typing import TYPE_CHECKING, Literal

from memory_pipeline.archive.queries import load
from memory_pipeline.cards import Collection, Family
from memory_pipeline.duplicates import Kind, Pair, matches, pairs, rank
from memory_pipeline.statements import Reader, Statement
from memory_pipeline.text import equality_key

if TYPE_CHECKING:
    from sqlalchemy import RowMapping

    from memory_pipeline.archive.database import Tx

_SQL = load("duplicates")

FAMILIES = tuple(family for family in Family if family.collection is Collection.MEMORY_CARDS)
_BATCH = 1_000


@dataclass(frozen=True, slots=True)
class ShownCard:
    """One card of a proposal, with the version that a merge is based on."""

    card_id: str
    version: int
    subject: str
    detail: str


@dataclass(frozen=True, slots=True)
class Proposal:
    """Two cards of a family that seem to say the same.

    Attributes:
        keep: the one to keep: edited, or confirmed by more sources, or older.
        other: the one to merge into it.
        family: of both.
        kind: whether they are the same but for form, or near.
        likeness: from 0 to 1; 1 for the same but for form.
    """

    keep: ShownCard
    other: ShownCard
    family: Family
    kind: Kind
    likeness: float

    @property
    def rank(self) -> tuple[bool, float]:
        """The order of proposals."""
        return rank(self.kind, self.likeness)

    @property
    def why(self) -> str:
        """The reason, in words for people."""
        return (
            "the same but for form" if self.kind == "form" else f"near: {self.likeness:.0%} of what they say is shared"
        )


@dataclass(frozen=True, slots=True)
class Proposals:
    """What is proposed of a workspace.

    Attributes:
        pairs: the best proposals, the same but for form first.
        form: how many pairs are the same but for form, shown or not.
        near: how many are near.
        cards: how many cards were compared.
        complete: whether all near ones were looked for; of very many that look alike, some may be left out.
    """

    pairs: tuple[Proposal, ...]
    form: int
    near: int
    cards: int
    complete: bool

    @property
    def total(self) -> int:
        """How many pairs there are."""
        return self.form + self.near


@dataclass(frozen=True, slots=True)
class _Read:
    """A card as it is compared; texts are not kept."""

    card_id: str
    family: Family
    rank: tuple[bool, int]
    subject_key: str
    statement: Statement


def proposed(tx: Tx, limit: int) -> Proposals:
    """The pairs of cards that are worth merging.

    Cards that are linked with each other are left out: whoever linked them has seen both, and keeps them apart.

    Args:
        tx: an open transaction; in a snapshot all is of one state.
        limit: how many pairs are given back at most; all are counted.
    """
    read = sorted(_read(tx), key=lambda each: each.rank)  # stable: of equal rank, the smaller id first
    apart = frozenset(frozenset((row["source_id"], row["target_id"])) for row in tx.rows(_SQL["linked"]))
    found = {
        family: pairs(
            {each.card_id: each.statement for each in read if each.family == family}, apart=apart, limit=limit
        )
        for family in FAMILIES
    }
    best = nsmallest(
        limit, (pair for each in found.values() for pair in each.pairs), key=lambda pair: rank(pair.kind, pair.likeness)
    )
    return Proposals(
        pairs=tuple(_shown(tx, best)),
        form=sum(each.form for each in found.values()),
        near=sum(each.near for each in found.values()),
        cards=len(read),
        complete=all(each.complete for each in found.values()),
    )


@dataclass(frozen=True, slots=True)
class Alike:
    """A card that says the same as something else, or nearly.

    Attributes:
        card: the card.
        family: its family.
        kind: whether they are the same but for form, near, or say something else of the same subject.
        likeness: from 0 to 1; 1 for the same but for form, 0 for something else.
    """

    card: ShownCard
    family: Family
    kind: Kind | Literal["subject"]
    likeness: float


def alike(tx: Tx, texts: Sequence[tuple[str, str]]) -> list[list[Alike]]:
    """The cards that say the same as each of some texts, or something else of the same subject.

    The same but for form come first, then the near ones by likeness, then those of the same subject by id.

    Args:
        tx: an open transaction; in a snapshot all is of one state.
        texts: subject and detail of each.
    """
    if not texts:
        return []
    reader = Reader(tx.language)
    asked = {f"text {number}": reader.statement(*text) for number, text in enumerate(texts)}
    read = {each.card_id: each for each in _read(tx)}
    same = matches(asked, {card_id: each.statement for card_id, each in read.items()})
    about: dict[str, list[str]] = defaultdict(list)
    for card_id, each in read.items():
        about[each.subject_key].append(card_id)
    found: list[list[tuple[str, Kind | Literal["subject"], float]]] = []
    for (subject, _), pairs_of in zip(texts, same.values(), strict=True):
        known = {pair.second for pair in pairs_of}
        others = sorted(card_id for card_id in about[equality_key(subject)] if card_id not in known)
        found.append([(pair.second, pair.kind, pair.likeness) for pair in pairs_of])
        found[-1] += [(card_id, "subject", 0.0) for card_id in others]
    ids = sorted({card_id for cards_of in found for card_id, *_ in cards_of})
    cards = {row["card_id"]: _card(row) for row in tx.rows(_SQL["shown"], card_ids=ids)}
    return [[Alike(cards[i], read[i].family, kind, likeness) for i, kind, likeness in cards_of] for cards_of in found]


def _read(tx: Tx) -> Iterator[_Read]:
    reader, after = Reader(tx.language), ""
    while rows := tx.rows(_SQL["cards"], after=after, families=list(FAMILIES), limit=_BATCH):
        yield from (_compared(row, reader) for row in rows)
        after = rows[-1]["card_id"]


def _compared(row: RowMapping, reader: Reader) -> _Read:
    rank_of = (not row["edited"], -row["sources"])
    statement = reader.statement(row["subject"], row["detail"])
    return _Read(row["card_id"], Family(row["family"]), rank_of, equality_key(row["subject"]), statement)


def _shown(tx: Tx, best: Sequence[Pair]) -> Iterator[Proposal]:
    ids = sorted({card_id for pair in best for card_id in (pair.first, pair.second)})
    rows = {row["card_id"]: row for row in tx.rows(_SQL["shown"], card_ids=ids)} if ids else {}
    for pair in best:
        keep, other = (_card(rows[card_id]) for card_id in (pair.first, pair.second))
        yield Proposal(keep, other, Family(rows[pair.first]["family"]), pair.kind, pair.likeness)


def _card(row: RowMapping) -> ShownCard:
    return ShownCard(row["card_id"], row["version"], row["subject"], row["detail"])
