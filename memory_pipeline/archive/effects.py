"""What a session's decisions do to cards: compared before and after, or tried in a transaction that is undone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from memory_pipeline.archive import sessions
from memory_pipeline.archive.intake import intake_concepts, intake_solved_questions
from memory_pipeline.archive.queries import load
from memory_pipeline.cards import Family
from memory_pipeline.ledger import Decision, SessionReading

if TYPE_CHECKING:
    from sqlalchemy import RowMapping

    from memory_pipeline.archive.database import Database, Tx

_SQL = load("effects")


class Change(StrEnum):
    """What happened to a card."""

    CREATED = "created"
    """It is new."""
    JOINED = "joined"
    """The session confirms it, as one more source."""
    CHANGED = "changed"
    """It says something else, or got a flag."""
    WITHDRAWN = "withdrawn"
    """Fewer of the session's decisions stand behind it; others, or an administrator's edit, keep it."""
    DELETED = "deleted"
    """It is gone, since nothing stood behind it any more."""


@dataclass(frozen=True, slots=True)
class CardState:
    """A card as far as a session's decisions can change it.

    Attributes:
        card_id, family, version, created_at, updated_at: of the card.
        title: its subject, or its question.
        flags: what an administrator should look at.
        sources: how many decisions stand behind it.
        seqs: those of them that are the session's.
    """

    card_id: str
    family: Family
    version: int
    created_at: datetime
    updated_at: datetime
    title: str
    flags: tuple[str, ...]
    sources: int
    seqs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Standing:
    """Cards by id, and the moment from which on others are new."""

    cards: Mapping[str, CardState]
    at: datetime


@dataclass(frozen=True, slots=True)
class Effect:
    """What became of one card.

    Attributes:
        card_id: which card; None of one that is only foreseen, and has no id yet.
        family: its family.
        title: its subject, or its question.
        change: what happened.
        sources: how many decisions stand behind it now.
        rewritten: whether it says something else than before, though it is no new card.
        flags: those that it has got.
    """

    card_id: str | None
    family: Family
    title: str
    change: Change
    sources: int
    rewritten: bool = False
    flags: tuple[str, ...] = ()


def standing(tx: Tx, session_id: str, others: Iterable[str] = ()) -> Standing:
    """The cards that a session stands behind, and others by id as far as they exist."""
    rows = tx.rows(_SQL["of_session"], session_id=session_id, card_ids=sorted(others))
    return Standing({row["card_id"]: _state(row) for row in rows}, tx.row(_SQL["moment"])["now"])


def effects(before: Standing, after: Standing) -> tuple[Effect, ...]:
    """What happened to each card of two states, by card id; of one that stayed as it was, nothing.

    `after` has to hold every card of `before` that still exists.
    """
    ids = sorted({*before.cards, *after.cards})
    compared = (_effect(before.cards.get(card_id), after.cards.get(card_id), before.at) for card_id in ids)
    return tuple(effect for effect in compared if effect)


def rehearsed(
    database: Database, reading: SessionReading, workspace: str, further: Sequence[Decision], *, principal: str
) -> tuple[Effect, ...]:
    """What a session with decisions that would be appended to it would do to cards; nothing of it stays.

    The intake itself is run, in one transaction that is undone: it says what it would do, and not what somebody thinks
    that it does. Other writers of the workspace wait meanwhile.

    Args:
        database: the archive.
        reading: the session as it is.
        workspace: whose.
        further: what would be appended to its ledger.
        principal: who would do it.
    """
    after = replace(reading, decisions=(*reading.decisions, *further))
    with _undone(database, workspace) as tx:
        before = standing(tx, reading.session_id)
        sessions.take_in(tx, after)
        rehearsal = _Rehearsal(tx)
        intake_concepts(rehearsal, workspace, principal=principal)
        intake_solved_questions(rehearsal, workspace, principal=principal)
        found = effects(before, standing(tx, reading.session_id, before.cards))
    return tuple(replace(effect, card_id=None) if effect.change is Change.CREATED else effect for effect in found)


@dataclass(frozen=True, slots=True)
class _Rehearsal:
    """Gives one open transaction to whoever asks the archive for one."""

    tx: Tx

    def transaction(self, workspace: str, *, writing: bool = False) -> AbstractContextManager[Tx]:
        del workspace, writing  # it is of the same workspace, and was opened for writing
        return nullcontext(self.tx)


@contextmanager
def _undone(database: Database, workspace: str) -> Iterator[Tx]:
    with database.transaction(workspace, writing=True) as tx, tx.connection.begin_nested() as savepoint:
        yield tx
        savepoint.rollback()


def _state(row: RowMapping) -> CardState:
    values = {**row, "family": Family(row["family"]), "flags": tuple(row["flags"]), "seqs": tuple(row["seqs"])}
    return CardState(**values)


def _effect(was: CardState | None, now: CardState | None, since: datetime) -> Effect | None:
    if now is None:
        return Effect(was.card_id, was.family, was.title, Change.DELETED, sources=0) if was else None
    change = _came(now, since) if was is None else _change(was, now)
    if change is None:
        return None
    return Effect(
        now.card_id,
        now.family,
        now.title,
        change,
        now.sources,
        rewritten=change is not Change.CREATED and now.updated_at >= since,
        flags=tuple(flag for flag in now.flags if was is None or flag not in was.flags),
    )


def _came(now: CardState, since: datetime) -> Change:
    """Others may have made the card meanwhile; then the session is not its only source."""
    return Change.CREATED if now.created_at >= since and now.sources == len(now.seqs) else Change.JOINED


def _change(was: CardState, now: CardState) -> Change | None:
    if len(now.seqs) < len(was.seqs):
        return Change.WITHDRAWN
    if now.version != was.version or set(now.flags) - set(was.flags):
        return Change.CHANGED
    return Change.JOINED if set(now.seqs) - set(was.seqs) else None
