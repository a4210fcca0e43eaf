"""Promoted decisions and finalized sessions → cards, by comparing what the ledgers say with what the archive holds.

It is repeatable. Nothing is remembered between runs but the archive itself, so an interrupted intake is completed by
the next, and the same ledgers give the same cards in whatever order they arrive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from memory_pipeline.archive import cards
from memory_pipeline.archive.queries import load
from memory_pipeline.archive.sessions import Progress, no_progress
from memory_pipeline.cards import CardContent, Dependency, Family, Flag
from memory_pipeline.ledger import DecisionType
from memory_pipeline.points import question_fingerprint
from memory_pipeline.review import cited_ids
from memory_pipeline.sql_dependencies import sql_dependencies
from memory_pipeline.sql_literals import sql_literals
from memory_pipeline.text import equality_key, nfc

if TYPE_CHECKING:
    from memory_pipeline.archive.database import Row, Transactions, Tx

_SQL = load("intake")
_BATCH = 500  # clarifications, sessions or cards in one transaction: how long others wait, and how often progress shows


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


def intake_concepts(
    database: Transactions, workspace: str, *, principal: str, progress: Progress = no_progress
) -> IntakeReport:
    """Make the concept cards of a workspace what its promoted clarifications say, in batches."""
    intake = _Intake(database, workspace, principal, progress)
    # Joined before withdrawn, so that a card whose only source is replaced by an equal one stays the same card.
    intake.run("new_clarifications", _join)
    intake.run("withdraw_clarifications", _withdraw_clarifications)
    intake.run("moved_cards", _compare)
    intake.run("moved_questions", _move_questions)
    intake.run("edited_cards", _compare)
    return intake.report


def intake_solved_questions(
    database: Transactions, workspace: str, *, principal: str, progress: Progress = no_progress
) -> IntakeReport:
    """Make the solved-question cards of a workspace what its finalized sessions say, in batches."""
    intake = _Intake(database, workspace, principal, progress)
    intake.run("withdraw_approvals", _withdraw_approvals)
    intake.run("unsolved_sessions", _create_solved, ahead=_read_sql)
    intake.run("changed_solved", _update_solved, ahead=_read_sql)
    intake.run("settled_solved", _settle)
    return intake.report


Step = Callable[["Tx", "Sequence[Row]", IntakeReport, str], None]
"""What is done about the rows that a query found, in the transaction in which it found them, by a principal."""


@dataclass(frozen=True, slots=True)
class _Intake:
    """An intake of one workspace, in steps. Each is taken in transactions of its own, between which others may write.

    Every transaction compares what the ledgers say with what the archive holds, and what is done is found by none after
    it. So it does not matter where an intake is cut, and the next one goes on there.
    """

    database: Transactions
    workspace: str
    principal: str
    progress: Progress
    report: IntakeReport = field(default_factory=IntakeReport)

    def run(self, query: str, step: Step, *, ahead: Callable[[Row], object] | None = None) -> None:
        """Take a step as long as its query finds more than one batch.

        Args:
            query: finds a batch of what is to be done, each row with the `total` that there is.
            step: does it.
            ahead: called with each row beforehand, while no transaction is open, for what takes long and is remembered.
        """
        done, left = 0, 1
        while left:
            if ahead and not self._prepared(query, ahead):
                return
            with self.database.transaction(self.workspace, writing=True) as tx:
                tx.forget_plans()
                rows = _found(tx, query)
                step(tx, rows, self.report, self.principal)
            done += len(rows)
            left = rows[0]["total"] - len(rows) if rows else 0
            if rows:
                self.progress(done, done + left)

    def _prepared(self, query: str, ahead: Callable[[Row], object]) -> bool:
        with self.database.transaction(self.workspace) as tx:
            rows = _found(tx, query)
        for row in rows:
            ahead(row)
        return bool(rows)


def _found(tx: Tx, query: str) -> Sequence[Row]:
    with tx.comparing():
        return tx.rows(_SQL[query], limit=_BATCH)


def _join(tx: Tx, rows: Sequence[Row], report: IntakeReport, principal: str) -> None:
    """Give every new clarification a card: the one that it joins, else a new one for each text.

    The rows are ordered by (ts, session, seq), so that a new card shows the smallest of its text at once.
    """
    joined = joined_cards(tx, [(row["text_key"], row["rationale"]) for row in rows])
    fresh: dict[str, Row] = {}
    for row, card_id in zip(rows, joined, strict=True):
        if card_id is None:
            fresh.setdefault(row["text_key"], row)
    ids = cards.create(tx, [_concept(row) for row in fresh.values()], origin="session", principal=principal)
    report.created += len(ids)
    report.sources_added += len(rows)
    made = dict(zip(fresh, ids, strict=True))
    _save_questions(tx, rows)
    found = zip(rows, joined, strict=True)
    sources = [_clarification_source(row, card_id or made[row["text_key"]]) for row, card_id in found]
    tx.run_rows(_SQL["save_source"], sources)
    _refresh(tx, {card_id for card_id in joined if card_id}, report, principal)


def joined_cards(tx: Tx, clarifications: Sequence[tuple[str, str]]) -> list[str | None]:
    """The card that each clarification joins when it is promoted, or None where it makes a new one.

    It joins the card that it was taken from, as long as it says the same; else the concept that has a source of equal
    text, even after that was edited or merged; else the concept that an administrator has worded so.

    Args:
        tx: an open transaction.
        clarifications: text key and rationale of each.
    """
    keys = sorted({key for key, _ in clarifications})
    equal = {row["text_key"]: row["card_id"] for row in tx.rows(_SQL["cards_of_equal_text"], text_keys=keys)}
    cited = _taken_from(tx, clarifications)
    return [cited.get(number, equal.get(key)) for number, (key, _) in enumerate(clarifications)]


def _taken_from(tx: Tx, clarifications: Sequence[tuple[str, str]]) -> dict[int, str]:
    """The cards that clarifications were taken from, by their place; of other concepts their sources tell."""
    cited = [(n, card_id, key) for n, (key, rationale) in enumerate(clarifications) for card_id in cited_ids(rationale)]
    if not cited:
        return {}
    numbers, card_ids, keys = (list(each) for each in zip(*cited, strict=True))
    rows = tx.rows(_SQL["cited_cards"], numbers=numbers, card_ids=card_ids, text_keys=keys)
    return {row["number"]: row["card_id"] for row in rows}


def _withdraw_clarifications(tx: Tx, rows: Sequence[Row], report: IntakeReport, principal: str) -> None:
    """Show on the cards that lost a source the next one, and remove those that lost the last."""
    weakened = _weakened(rows, report)
    with tx.comparing():
        tx.run(_SQL["follow_promotions"])
    _refresh(tx, weakened, report, principal)
    _remove_unsupported(tx, weakened, report)
    if weakened:
        cards.forget_unused_questions(tx)


def _withdraw_approvals(tx: Tx, rows: Sequence[Row], report: IntakeReport, principal: str) -> None:
    del principal
    _remove_unsupported(tx, _weakened(rows, report), report)
    with tx.comparing():
        tx.run(_SQL["move_approvals"])


def _weakened(withdrawn: Sequence[Row], report: IntakeReport) -> set[str]:
    """The cards behind the sources that a ledger has taken back."""
    report.sources_withdrawn += len(withdrawn)
    return {row["card_id"] for row in withdrawn}


def _compare(tx: Tx, rows: Sequence[Row], report: IntakeReport, principal: str) -> None:
    _refresh(tx, {row["card_id"] for row in rows}, report, principal)


def _refresh(tx: Tx, card_ids: Iterable[str], report: IntakeReport, principal: str) -> None:
    """Show on each card the text of its smallest source; on an edited one only flag the difference."""
    shown = {row["card_id"]: row for row in tx.rows(_SQL["shown_clarifications"], card_ids=sorted(card_ids))}
    current = cards.contents(tx, shown)
    said = {card_id: _concept(row, row["family"]) for card_id, row in shown.items() if not row["taken"]}
    differing = {card_id: content for card_id, content in said.items() if content != current[card_id]}
    edited = {card_id for card_id, row in shown.items() if row["edited"]}
    _apply(tx, differing, edited, report, principal)
    report.flagged += cards.flag(tx, edited & differing.keys(), Flag.LEDGER_DIFFERS, up=True)
    cards.flag(tx, edited - differing.keys(), Flag.LEDGER_DIFFERS, up=False)
    cards.flag(tx, edited, Flag.SOURCES_WITHDRAWN, up=False)


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
    report.flagged += cards.flag(tx, kept, Flag.SOURCES_WITHDRAWN, up=True)


def _move_questions(tx: Tx, rows: Sequence[Row], report: IntakeReport, principal: str) -> None:
    """Follow sessions whose question was rewritten after their clarifications had become sources."""
    del report, principal
    _save_questions(tx, rows)
    tx.run_rows(_SQL["move_question"], [{"session_id": r["session_id"], "question_id": r["question_id"]} for r in rows])
    if rows:
        cards.forget_unused_questions(tx)


def _save_questions(tx: Tx, rows: Iterable[Row]) -> None:
    # In NFC, as its id and its point are made: which of two spellings came first does not matter.
    texts = {row["question_id"]: nfc(row["question"]) for row in rows}
    if not texts:
        return
    language = tx.language
    tx.run_rows(
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


def _create_solved(tx: Tx, rows: Sequence[Row], report: IntakeReport, principal: str) -> None:
    made = [_solved(row) for row in rows]
    ids = cards.create(tx, [content for content, _ in made], origin="session", principal=principal)
    tx.run_rows(
        _SQL["save_source"],
        [_approval_source(row, content, card_id) for row, (content, _), card_id in zip(rows, made, ids, strict=True)],
    )
    unparsed = {card_id for card_id, (_, parsed) in zip(ids, made, strict=True) if not parsed}
    report.flagged += cards.flag(tx, unparsed, Flag.SQL_UNPARSED, up=True)
    report.created += len(ids)
    report.sources_added += len(ids)


def _update_solved(tx: Tx, rows: Sequence[Row], report: IntakeReport, principal: str) -> None:
    made = {row["card_id"]: _solved(row) for row in rows}
    edited = {row["card_id"] for row in rows if row["edited"]}
    _apply(tx, {card_id: content for card_id, (content, _) in made.items()}, edited, report, principal)
    report.flagged += cards.flag(tx, edited, Flag.LEDGER_DIFFERS, up=True)
    unparsed = {card_id for card_id, (_, parsed) in made.items() if not parsed} - edited
    report.flagged += cards.flag(tx, unparsed, Flag.SQL_UNPARSED, up=True)
    cards.flag(tx, made.keys() - edited - unparsed, Flag.SQL_UNPARSED, up=False)


def _settle(tx: Tx, rows: Sequence[Row], report: IntakeReport, principal: str) -> None:
    del report, principal
    cards.flag(tx, [row["card_id"] for row in rows], Flag.LEDGER_DIFFERS, up=False)


def _read_sql(row: Row) -> None:
    """Have what is in a session's SQL remembered; both read the same tokens."""
    _solved(row)
    sql_literals(row["sql"], row["dialect"])


def _concept(row: Row, family: str = Family.CONCEPT) -> CardContent:
    tables = {Dependency(row["database"], row["schema"], table) for table in row["tables"] if table}
    return CardContent(
        family=Family(family),
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
    found = _dependencies(row["sql"], row["dialect"], row["database"], row["schema"])
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


@lru_cache(maxsize=2 * _BATCH)
def _dependencies(sql: str, dialect: str, database: str, schema: str) -> tuple[Dependency, ...] | None:
    """Remembered, so that the parser has done its work before a transaction holds up others."""
    return sql_dependencies(sql, dialect=dialect, database=database, schema=schema)


def _clarification_source(row: Row, card_id: str) -> dict[str, object]:
    return {
        "session_id": row["session_id"],
        "seq": row["seq"],
        "decision_type": DecisionType.CONCEPT_CLARIFIED.value,
        "decided_by": row["promoted_by"],
        "text_key": row["text_key"],
        "card_id": card_id,
        "question_id": row["question_id"],
    }


def _approval_source(row: Row, content: CardContent, card_id: str) -> dict[str, object]:
    return {
        "session_id": row["session_id"],
        "seq": row["approved_seq"],
        "decision_type": DecisionType.SQL_APPROVED.value,
        "decided_by": row["approved_seq"],
        "text_key": cards.text_key(content),
        "card_id": card_id,
        "question_id": None,
    }
