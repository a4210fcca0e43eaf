"""Promoted decisions and finalized sessions → cards, by comparing what the ledgers say with what the archive holds.

It is repeatable. Nothing is remembered between runs but the archive itself, so an interrupted intake is completed by
the next, and the same ledgers give the same cards in whatever order they arrive.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from memory_pipeline.archive import cards
from memory_pipeline.archive.queries import load
from memory_pipeline.cards import CardContent, Dependency, Family
from memory_pipeline.points import question_fingerprint
from memory_pipeline.sql_dependencies import sql_dependencies
from memory_pipeline.text import equality_key, nfc

if TYPE_CHECKING:
    from memory_pipeline.archive.database import Database, Row, Tx

_SQL = load("intake")

LEDGER_DIFFERS = "ledger_differs"
"""Flag of an edited card whose ledgers say something else; the administrator's word stands."""
SOURCES_WITHDRAWN = "sources_withdrawn"
"""Flag of an edited card that no reviewer stands behind any more."""
SQL_UNPARSED = "sql_unparsed"
"""Flag of a solved question whose SQL could not be parsed, so that its dependencies are unknown."""


@dataclass(slots=True)
class IntakeReport:
    """What one intake changed."""

    created: int = 0
    updated: int = 0
    deleted: int = 0
    sources_added: int = 0
    sources_withdrawn: int = 0
    flagged: int = 0

    def __bool__(self) -> bool:
        """Whether anything changed."""
        return any((self.created, self.updated, self.deleted, self.sources_added, self.sources_withdrawn, self.flagged))


def intake_concepts(database: Database, workspace: str, *, principal: str) -> IntakeReport:
    """Make the concept cards of a workspace what its promoted clarifications say, in one transaction."""
    report = IntakeReport()
    with database.transaction(workspace, writing=True) as tx:
        # Joined before withdrawn, so that a card whose only source is replaced by an equal one stays the same card.
        joined = _add_clarifications(tx, report, principal)
        weakened = _withdraw(tx, "withdraw_clarifications", report)
        tx.run(_SQL["follow_promotions"])
        moved_cards = {row["card_id"] for row in tx.rows(_SQL["moved_cards"])}
        moved_questions = _move_questions(tx)
        _refresh(tx, joined | weakened | moved_cards, report, principal)
        _remove_unsupported(tx, weakened, report)
        if weakened or moved_questions:
            cards.forget_unused_questions(tx)
    return report


def intake_solved_questions(database: Database, workspace: str, *, principal: str) -> IntakeReport:
    """Make the solved-question cards of a workspace what its finalized sessions say, in one transaction."""
    report = IntakeReport()
    with database.transaction(workspace, writing=True) as tx:
        _remove_unsupported(tx, _withdraw(tx, "withdraw_approvals", report), report)
        tx.run(_SQL["move_approvals"])
        _create_solved(tx, tx.rows(_SQL["unsolved_sessions"]), report, principal)
        _update_solved(tx, tx.rows(_SQL["changed_solved"]), report, principal)
        settled = [row["card_id"] for row in tx.rows(_SQL["settled_solved"])]
        cards.flag(tx, settled, LEDGER_DIFFERS, up=False)
    return report


def _withdraw(tx: Tx, query: str, report: IntakeReport) -> set[str]:
    """Drop the sources that a ledger has taken back; the cards that they stood behind."""
    withdrawn = tx.rows(_SQL[query])
    report.sources_withdrawn += len(withdrawn)
    return {row["card_id"] for row in withdrawn}


def _add_clarifications(tx: Tx, report: IntakeReport, principal: str) -> set[str]:
    """Give every new clarification a card: one with a source of equal text, else one so worded by hand, else a new one.

    Returns:
        the cards that were there before.
    """
    new = tx.rows(_SQL["new_clarifications"])  # ordered by text, then by (ts, session, seq)
    if not new:
        return set()
    keys = sorted({row["text_key"] for row in new})
    known = {row["text_key"]: row["card_id"] for row in tx.rows(_SQL["cards_of_equal_text"], text_keys=keys)}
    fresh = [next(rows) for key, rows in groupby(new, key=lambda row: row["text_key"]) if key not in known]
    fresh.sort(key=_order)
    ids = cards.create(tx, [_concept(row) for row in fresh], origin="session", principal=principal)
    report.created += len(ids)
    report.sources_added += len(new)
    card_of = known | {row["text_key"]: card_id for row, card_id in zip(fresh, ids, strict=True)}
    _save_questions(tx, new)
    tx.run_many(_SQL["save_source"], [_clarification_source(row, card_of[row["text_key"]]) for row in new])
    return set(known.values())


def _refresh(tx: Tx, card_ids: Iterable[str], report: IntakeReport, principal: str) -> None:
    """Show on each card the text of its smallest source; on an edited one only flag the difference."""
    shown = {row["card_id"]: row for row in tx.rows(_SQL["shown_clarifications"], card_ids=sorted(card_ids))}
    current = cards.contents(tx, shown)
    differing = {card_id: content for card_id, row in shown.items() if (content := _concept(row)) != current[card_id]}
    edited = {card_id for card_id, row in shown.items() if row["edited"]}
    _apply(tx, differing, edited, report, principal)
    report.flagged += cards.flag(tx, edited & differing.keys(), LEDGER_DIFFERS, up=True)
    cards.flag(tx, edited - differing.keys(), LEDGER_DIFFERS, up=False)
    cards.flag(tx, edited, SOURCES_WITHDRAWN, up=False)


def _apply(
    tx: Tx, differing: Mapping[str, CardContent], edited: set[str], report: IntakeReport, principal: str
) -> None:
    changed = {card_id: content for card_id, content in differing.items() if card_id not in edited}
    cards.update(tx, changed, principal=principal)
    report.updated += len(changed)


def _remove_unsupported(tx: Tx, card_ids: set[str], report: IntakeReport) -> None:
    """Delete the cards that lost their last source; one that an administrator edited stays, flagged."""
    orphans = tx.rows(_SQL["without_sources"], card_ids=sorted(card_ids))
    gone = [row["card_id"] for row in orphans if not row["edited"]]
    cards.delete(tx, gone)
    report.deleted += len(gone)
    kept = [row["card_id"] for row in orphans if row["edited"]]
    report.flagged += cards.flag(tx, kept, SOURCES_WITHDRAWN, up=True)


def _move_questions(tx: Tx) -> int:
    """Follow sessions whose question was rewritten after their clarifications had become sources."""
    moved = tx.rows(_SQL["moved_questions"])
    _save_questions(tx, moved)
    tx.run_many(
        _SQL["move_question"], [{"session_id": r["session_id"], "question_id": r["question_id"]} for r in moved]
    )
    return len(moved)


def _save_questions(tx: Tx, rows: Iterable[Row]) -> None:
    # In NFC, as its id and its point are made: which of two spellings came first does not matter.
    texts = {row["question_id"]: nfc(row["question"]) for row in rows}
    if not texts:
        return
    language = cards.language(tx)
    tx.run_many(
        _SQL["save_question"],
        [
            {
                "question_id": question_id,
                "text": text,
                "text_key": equality_key(text),
                "fingerprint": question_fingerprint(text, language),
            }
            for question_id, text in texts.items()
        ],
    )


def _create_solved(tx: Tx, sessions: Sequence[Row], report: IntakeReport, principal: str) -> None:
    made = [_solved(row) for row in sessions]
    ids = cards.create(tx, [content for content, _ in made], origin="session", principal=principal)
    tx.run_many(
        _SQL["save_source"],
        [
            _approval_source(row, content, card_id)
            for row, (content, _), card_id in zip(sessions, made, ids, strict=True)
        ],
    )
    unparsed = {card_id for card_id, (_, parsed) in zip(ids, made, strict=True) if not parsed}
    report.flagged += cards.flag(tx, unparsed, SQL_UNPARSED, up=True)
    report.created += len(ids)
    report.sources_added += len(ids)


def _update_solved(tx: Tx, changed: Sequence[Row], report: IntakeReport, principal: str) -> None:
    made = {row["card_id"]: _solved(row) for row in changed}
    edited = {row["card_id"] for row in changed if row["edited"]}
    _apply(tx, {card_id: content for card_id, (content, _) in made.items()}, edited, report, principal)
    report.flagged += cards.flag(tx, edited, LEDGER_DIFFERS, up=True)
    unparsed = {card_id for card_id, (_, parsed) in made.items() if not parsed} - edited
    report.flagged += cards.flag(tx, unparsed, SQL_UNPARSED, up=True)
    cards.flag(tx, made.keys() - edited - unparsed, SQL_UNPARSED, up=False)


def _order(row: Row) -> tuple[object, ...]:
    return (row["ts"], row["session_id"], row["seq"])


def _concept(row: Row) -> CardContent:
    tables = {Dependency(row["database"], row["schema"], table) for table in row["tables"] if table}
    return CardContent(
        family=Family.CONCEPT,
        subject=row["subject"],
        detail=row["detail"],
        rationale=row["rationale"],
        database=row["database"],
        schema=row["schema"],
        concepts=tuple(row["concepts"]),
        dependencies=tuple(sorted(table for table in tables if table.plausible)),
    )


def _solved(row: Row) -> tuple[CardContent, bool]:
    """The content of a session's solved question, and whether its SQL could be parsed."""
    found = sql_dependencies(row["sql"], dialect=row["dialect"], database=row["database"], schema=row["schema"])
    content = CardContent(
        family=Family.SOLVED_QUESTION,
        question=row["question"],
        sql=row["sql"],
        dialect=row["dialect"],
        context=row["context"],
        database=row["database"],
        schema=row["schema"],
        dependencies=found or (),
    )
    return content, found is not None


def _clarification_source(row: Row, card_id: str) -> dict[str, object]:
    return {
        "session_id": row["session_id"],
        "seq": row["seq"],
        "decision_type": "concept_clarified",
        "decided_by": row["promoted_by"],
        "text_key": row["text_key"],
        "card_id": card_id,
        "question_id": row["question_id"],
    }


def _approval_source(row: Row, content: CardContent, card_id: str) -> dict[str, object]:
    return {
        "session_id": row["session_id"],
        "seq": row["approved_seq"],
        "decision_type": "sql_approved",
        "decided_by": row["approved_seq"],
        "text_key": cards.text_key(content),
        "card_id": card_id,
        "question_id": None,
    }
