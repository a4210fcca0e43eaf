"""Writes cards: numbers, content with dependencies, version and fingerprint, each in the caller's transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from memory_pipeline.archive import literals
from memory_pipeline.archive.queries import load
from memory_pipeline.cards import CardContent, Dependency, Family, Flag
from memory_pipeline.points import card_fingerprint
from memory_pipeline.shapes import words
from memory_pipeline.text import equality_key, storable_fault

if TYPE_CHECKING:
    from sqlalchemy import RowMapping

    from memory_pipeline.archive.database import Row, Tx

_SQL = load("cards")

_READ_AT_ONCE = 250  # cards

Origin = Literal["session", "hand"]


def create(tx: Tx, contents: Sequence[CardContent], *, origin: Origin, principal: str) -> list[str]:
    """Make one card of each content, all of one family's numbering.

    Args:
        tx: an open transaction.
        contents: what the cards say, in the order of their numbers.
        origin: whether a session or an administrator stands behind them.
        principal: who makes them.

    Returns:
        the human ids, in the order of the contents.
    """
    if not contents:
        return []
    ids = _numbers(tx, contents[0].family.id_prefix, len(contents))
    insert(tx, dict(zip(ids, contents, strict=True)), origin=origin, principal=principal)
    return ids


def insert(tx: Tx, contents: Mapping[str, CardContent], *, origin: Origin, principal: str) -> None:
    """Make cards whose ids were chosen before, by id; `reserve` keeps their numbers from being given again."""
    made = {"origin": origin, "edited": origin == "hand", "updated_by": principal}
    rows = [{**columns(card_id, content, tx.language), **made} for card_id, content in contents.items()]
    tx.run_rows(_SQL["insert"], rows)
    insert_parts(tx, contents)


def reserve(tx: Tx, prefix: str, last: int) -> None:
    """See to it that no number up to this one is given to a new card."""
    tx.run(_SQL["reserve_numbers"], prefix=prefix, last=last)


def update(tx: Tx, contents: Mapping[str, CardContent], *, principal: str) -> None:
    """Give cards another content; each counts one version further."""
    if not contents:
        return
    rows = [
        {**columns(card_id, content, tx.language), "updated_by": principal} for card_id, content in contents.items()
    ]
    tx.run_rows(_SQL["update"], rows)
    tx.run(_SQL["delete_dependencies"], card_ids=list(contents))
    insert_parts(tx, contents)


def delete(tx: Tx, card_ids: Sequence[str]) -> None:
    """Remove cards with their incident links and dependencies, and the questions that only they came from.

    The projections of all of them then say "remove", and what was a source of theirs is consumed.
    """
    if card_ids:
        of_cards = literals.of_cards(tx, card_ids)
        tx.run(_SQL["delete"], card_ids=list(card_ids))
        forget_unused_questions(tx)
        if gone := of_cards - literals.known(tx, of_cards):
            _mask(tx, (), gone)


def forget_unused_questions(tx: Tx) -> None:
    """Drop the questions that no card's source came from; their points are then to be removed."""
    tx.run(_SQL["release_questions"])
    tx.run(_SQL["forget_unused_questions"])


def flag(tx: Tx, card_ids: Iterable[str], name: Flag, *, up: bool) -> int:
    """Raise or lower a flag on cards; the number of cards whose flags changed."""
    ids = sorted(set(card_ids))
    return tx.run(_SQL["raise_flag" if up else "lower_flag"], card_ids=ids, flag=name.value) if ids else 0


def contents(tx: Tx, card_ids: Iterable[str]) -> dict[str, CardContent]:
    """What cards say, by id; ids without a card are left out."""
    return {row["card_id"]: content_of(row) for row in full_rows(tx, card_ids)}


def full_rows(tx: Tx, card_ids: Iterable[str]) -> Sequence[RowMapping]:
    """The rows of `card`, each with its dependencies as an array; ids without a card are left out."""
    return tx.rows(_SQL["contents"], card_ids=sorted({each for each in card_ids if not storable_fault(each)}))


def content_of(row: Row) -> CardContent:
    """The content in a row of `card` that also has `dependencies`, an array of [database, schema, table, column]."""
    return CardContent(
        family=Family(row["family"]),
        **{name: row[name] for name in _TEXTS},
        concepts=tuple(row["concepts"]),
        dependencies=tuple(sorted(Dependency(*names) for names in row["dependencies"])),
    )


_TEXTS = ("subject", "detail", "rationale", "question", "sql", "dialect", "context", "database", "schema")


def text_key(content: CardContent) -> str:
    """Equal for contents whose texts count as equal: question of a solved question, else subject and detail."""
    if content.family is Family.SOLVED_QUESTION:
        return equality_key(content.question)
    return equality_key(content.subject, content.detail)


def _numbers(tx: Tx, prefix: str, count: int) -> list[str]:
    last = int(tx.row(_SQL["issue_numbers"], prefix=prefix, count=count)["last"])
    return [f"{prefix}-{number:04d}" for number in range(last - count + 1, last + 1)]


def columns(card_id: str, content: CardContent, of_language: str) -> dict[str, object]:
    """What the columns of `card` hold of a content, and what is derived from it in a language.

    As long as it names no literal: whatever writes them goes on with `insert_parts`.
    """
    return {
        "card_id": card_id,
        "family": content.family.value,
        **{name: getattr(content, name) for name in _TEXTS},
        "concepts": list(content.concepts),
        "text_key": text_key(content),
        "fingerprint": card_fingerprint(content, (), of_language),
        "question_words": sorted({*words(content.question)}),
    }


def insert_parts(tx: Tx, contents: Mapping[str, CardContent]) -> None:
    """Write what cards consist of besides their rows: dependencies, of which they have none yet, and literals."""
    rows = [
        {"card_id": card_id, "database": d.database, "schema": d.schema, "table": d.table, "column": d.column}
        for card_id, content in contents.items()
        for d in content.dependencies
    ]
    tx.run_rows(_SQL["insert_dependency"], rows)
    _read_literals(tx, contents)


def read_unread(tx: Tx) -> None:
    """Read the solved questions that were written by a version of this library which masked no literals."""
    while ids := [row["card_id"] for row in tx.rows(_SQL["unread"], limit=_READ_AT_ONCE)]:
        found = contents(tx, ids)
        tx.run_rows(_SQL["keep_words"], [columns(card_id, content, tx.language) for card_id, content in found.items()])
        _read_literals(tx, found)


def _read_literals(tx: Tx, contents: Mapping[str, CardContent]) -> None:
    """Keep the literals of solved questions among some cards, and mask them in all questions that name them."""
    if of_questions := literals.solved(contents):
        _mask(tx, of_questions, literals.keep(tx, of_questions))


def _mask(tx: Tx, card_ids: Iterable[str], changed: Iterable[str]) -> None:
    """Give some solved questions, and those that name a literal which came or went, the fingerprints due to them.

    Of those others no content changes, so no version does.
    """
    named = literals.named(tx, card_ids, changed)
    if not named:
        return
    rows = [
        {
            "card_id": card_id,
            "named_literals": named[card_id],
            "fingerprint": card_fingerprint(content, named[card_id], tx.language),
        }
        for card_id, content in contents(tx, named).items()
    ]
    tx.run_rows(_SQL["name_literals"], rows)
