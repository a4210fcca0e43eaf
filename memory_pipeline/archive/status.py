"""Counts the archive: cards, decisions, faults, and how far propagation is, workspace by workspace."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from memory_pipeline.archive import identities, workspaces
from memory_pipeline.archive.latency import latency
from memory_pipeline.archive.projections import PendingReason, pending_reasons
from memory_pipeline.archive.queries import load
from memory_pipeline.archive.waiting import count_waiting_edits
from memory_pipeline.cards import Family
from memory_pipeline.errors import UnknownWorkspace

if TYPE_CHECKING:
    from memory_pipeline.archive.database import Database, Tx

_SQL = load("status")


@dataclass(frozen=True, slots=True)
class WorkspaceStatus:
    """The state of one workspace.

    Attributes:
        cards: family → number of cards; every family is named.
        sources: decisions that stand behind a card (clarifications and approvals).
        candidates: effective clarifications neither promoted nor declined.
        declined: effective clarifications that were declined.
        sessions: sessions read.
        faults: what could not be used of session directories.
        certified: points known to hold what the archive wants, in the collections that recall uses.
        truncated: those of the certified whose text is longer than what the model reads at once.
        pending: points of them that do not yet. Where nothing was projected yet, all of them.
        lag_seconds: the age of the oldest pending work; 0 when there is none. It begins with the projections.
        decisions: ledger lines kept.
        effective: decisions that nothing took away.
        promoted: clarifications that stand behind a card's text.
        cards_with_several_sources: cards that more than one decision confirms.
        propagation_p50_seconds: from when a point's content was wanted to when the index was certified to hold it,
            which half of the points certified last took at most (see `latency`); None where none is certified.
        propagation_p95_seconds: what 19 of 20 took at most.
        deferred: pending points that an attempt has failed for.
        reasons: why points are pending, as far as an attempt or the audit has said it, with how many are.
        put_off: the same reasons with attempts and next tries.
        waiting_edits: submitted edits that are not applied yet.
        changing: while the embeddings change, the same two numbers for the collections that are filled beside those;
            else None.
    """

    cards: dict[str, int]
    sources: int
    candidates: int
    declined: int
    sessions: int
    faults: int
    certified: int
    truncated: int
    pending: int
    lag_seconds: float
    decisions: int
    effective: int
    promoted: int
    cards_with_several_sources: int
    propagation_p50_seconds: float | None
    propagation_p95_seconds: float | None
    deferred: int
    reasons: dict[str, int]
    put_off: tuple[PendingReason, ...]
    waiting_edits: int
    changing: dict[str, int] | None

    def as_json(self) -> dict[str, Any]:
        """The status as JSON-ready values."""
        return {**asdict(self), "put_off": [each.as_json() for each in self.put_off]}


@dataclass(frozen=True, slots=True)
class StoredFault:
    """One fault of a session directory."""

    session_id: str
    line: int
    kind: str
    reason: str


def workspace_status(tx: Tx, configured: str) -> WorkspaceStatus:
    """The state of the transaction's workspace; `configured` is the hash of the settings' embedding identity."""
    current = serving, *_ = identities.current(tx, configured)
    points, *beside = [tx.row(_SQL["points"], identity=each) for each in current]
    sources = {name: int(number) for name, number in tx.row(_SQL["sources"]).items()}
    counted: dict[str, Any] = {**ledger_counts(tx), **sources, **points, **_propagation(tx, serving)}
    changing = next(({name: each[name] for name in ("certified", "pending")} for each in beside), None)
    waiting = count_waiting_edits(tx)
    return WorkspaceStatus(cards=card_counts(tx), **counted, waiting_edits=waiting, changing=changing)


def status(database: Database, configured: str) -> dict[str, WorkspaceStatus]:
    """The state of every workspace, one transaction each; see `workspace_status`. One removed meanwhile is left out."""
    found = {}
    for name in workspaces.names(database):
        with suppress(UnknownWorkspace), database.transaction(name) as tx:
            found[name] = workspace_status(tx, configured)
    return found


def _propagation(tx: Tx, identity: str) -> dict[str, Any]:
    """The fields that say how long propagation takes, and what holds it up."""
    took, reasons = latency(tx, identity), pending_reasons(tx, identity)
    return {
        "propagation_p50_seconds": took.p50,
        "propagation_p95_seconds": took.p95,
        "deferred": sum(each.deferred for each in reasons),
        "reasons": {each.reason: each.points for each in reasons},
        "put_off": tuple(reasons),
    }


def card_counts(tx: Tx) -> dict[str, int]:
    """Family → number of cards; every family is named."""
    counted = {row["family"]: row["cards"] for row in tx.rows(_SQL["cards"])}
    return {family.value: counted.get(family.value, 0) for family in Family}


def ledger_counts(tx: Tx) -> dict[str, int]:
    """What was read of session directories: the numbers of `WorkspaceStatus` that are about ledgers, by name."""
    return dict(tx.row(_SQL["ledgers"]))


def fault_counts(tx: Tx) -> dict[str, int]:
    """The faults of the workspace's session directories by kind, the most frequent first."""
    return {row["kind"]: row["faults"] for row in tx.rows(_SQL["fault_counts"])}


def faults(tx: Tx, limit: int = 100) -> list[StoredFault]:
    """The first faults of the workspace's session directories, by session and line."""
    return [StoredFault(**row) for row in tx.rows(_SQL["faults"], limit=limit)]
