"""Session directories → the archive's copy of their decisions, which only grows: what was read once is never lost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from memory_pipeline import ledger
from memory_pipeline.archive.database import Database, Tx
from memory_pipeline.archive.queries import load
from memory_pipeline.ledger import Decision, Fault, FaultKind, SessionReading
from memory_pipeline.points import question_id
from memory_pipeline.review import Outcome, Review, review
from memory_pipeline.text import equality_key

_SQL = load("sessions")
_BATCH = 250  # sessions in one transaction: bounds memory and how long others wait, and lets progress show
_MISSING = "missing"  # the signature of a session whose directory is gone

Progress = Callable[[int, int], None]
"""Called with what is done and how much there is."""


def no_progress(_done: int, _total: int) -> None:
    """Show nothing."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Which sessions differ from what the archive has read."""

    read: tuple[str, ...]
    gone: tuple[str, ...]

    def __bool__(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.read or self.gone)


@dataclass(slots=True)
class SessionsReport:
    """What one synchronization did."""

    read: int = 0
    decisions: int = 0
    faults: dict[str, int] = field(default_factory=dict)

    def count(self, faults: Iterable[Fault]) -> None:
        """Add faults to those counted by kind."""
        for fault in faults:
            self.faults[fault.kind.value] = self.faults.get(fault.kind.value, 0) + 1


def changes(found: Mapping[str, str | None], known: Mapping[str, str | None]) -> Changes:
    """Compare the sessions on disk with those in the archive.

    Args:
        found: session → signature of its files now; None when they are too fresh to be trusted.
        known: session → signature of its files when they were last read.

    Returns:
        which to read, and which have no directory any more.
    """
    read = tuple(name for name, now in found.items() if now is None or known.get(name) != now)
    gone = tuple(name for name, then in known.items() if name not in found and then != _MISSING)
    return Changes(read, gone)


def pending_changes(database: Database, root: Path, workspace: str) -> Changes:
    """What a synchronization of the workspace would read now; only names and times of files are looked at."""
    return _compared(database, root, workspace)[0]


def synchronize(database: Database, root: Path, workspace: str, progress: Progress = no_progress) -> SessionsReport:
    """Read every session of a workspace that changed since it was last read, in batches, each its own transaction.

    Nothing is withdrawn because a file is shorter, damaged or gone: such a session keeps what was read before, and the
    difference is a fault.
    """
    todo, directories = _compared(database, root, workspace)
    report = SessionsReport()
    for start in range(0, len(todo.read), _BATCH):
        batch = todo.read[start : start + _BATCH]
        # Read inside the transaction: of two processes, the later one records the later state of the files.
        with database.transaction(workspace, writing=True) as tx:
            tx.forget_plans()
            _record(tx, [ledger.read_session(Path(directories[name]), workspace) for name in batch], report)
        progress(start + len(batch), len(todo.read))
    if todo.gone:
        with database.transaction(workspace, writing=True) as tx:
            _record_gone(tx, todo.gone, report)
    return report


def take_in(tx: Tx, reading: SessionReading) -> None:
    """Record one session, in a transaction for writing. If it is to stay, that is opened before the session is read."""
    _record(tx, [reading], SessionsReport())


def stored_decisions(tx: Tx, session_id: str) -> list[Decision]:
    """What the archive has read of a session, whatever became of its ledger since."""
    return _stored_decisions(tx, [session_id]).get(session_id, [])


def were_read(database: Database, workspace: str) -> bool:
    """Whether any session of the workspace was ever read."""
    with database.transaction(workspace) as tx:
        return bool(tx.row(_SQL["were_read"])["were_read"])


def merged(stored: Sequence[Decision], reading: SessionReading) -> tuple[list[Decision], list[Fault]]:
    """The decisions of a session: those stored, which no file can change or take back, and those that are new.

    Returns:
        all of them in seq order, and a fault for each stored one that the file has lost or changed.
    """
    read = {decision.seq: decision for decision in reading.decisions}
    known = {decision.seq: decision for decision in stored}
    # Where a line stands is not stored: only what was read tells it, to whoever finds a fault in it later.
    placed = {seq: replace(first, line=read[seq].line) for seq, first in known.items() if seq in read}
    faults = [_changed(first) for seq, first in placed.items() if first != read[seq]]
    lost = sorted(known.keys() - read.keys())
    # Of a ledger that could not be read, its own fault says all there is to say.
    if lost and (reading.ledger_read or not reading.faults):
        faults.append(_shorter(lost))
    after = sorted({**read, **known, **placed}.items())
    return [decision for _, decision in after], sorted(faults, key=lambda fault: fault.reason)


def _changed(first: Decision) -> Fault:
    reason = f"decision {first.seq} was changed after it was read; the first reading stands: append a decision instead"
    return Fault(first.line, FaultKind.DECISION_CHANGED, reason)


def _shorter(lost: Sequence[int]) -> Fault:
    named = ", ".join(map(str, lost[:5])) + (", …" if len(lost) > 5 else "")  # noqa: PLR2004  # enough to find them
    reason = f"{len(lost)} decision(s) read before are no longer there (seq {named}); they are kept: restore the ledger"
    return Fault(0, FaultKind.LEDGER_SHORTER, reason)


def _compared(database: Database, root: Path, workspace: str) -> tuple[Changes, dict[str, str]]:
    """What differs, and where each session is.

    The archive is asked before the disk: what another process reads meanwhile is then found, and not taken for gone.
    """
    with database.transaction(workspace) as tx:
        known = _known(tx)
    directories = ledger.sessions_by_id(root, workspace)
    return changes({name: ledger.signature(path) for name, path in directories.items()}, known), directories


def _known(tx: Tx) -> dict[str, str | None]:
    return {row["session_id"]: row["signature"] for row in tx.rows(_SQL["signatures"])}


def _record(tx: Tx, readings: Sequence[SessionReading], report: SessionsReport) -> None:
    stored = _stored_decisions(tx, [reading.session_id for reading in readings])
    sessions, decisions, faults = [], [], []
    for reading in readings:
        before = stored.get(reading.session_id, [])
        after, found = merged(before, reading)
        found = [*reading.faults, *found]
        if reading.manifest is not None:
            view = review(after)
            found += view.faults
            sessions.append(_session_row(reading, view))
            decisions += [_decision_row(reading.session_id, d, view) for d in after]
            report.decisions += len(after) - len(before)
        faults += [_fault_row(reading.session_id, n, fault) for n, fault in enumerate(found)]
        report.read += 1
        report.count(found)
    tx.run_rows(_SQL["save_reading"], [_reading_row(r) for r in readings])
    tx.run_rows(_SQL["save_session"], sessions)
    tx.run_rows(_SQL["save_decision"], decisions)
    _replace_faults(tx, [reading.session_id for reading in readings], faults)


def _record_gone(tx: Tx, names: Sequence[str], report: SessionsReport) -> None:
    fault = Fault(0, FaultKind.SESSION_MISSING, "the session's directory is gone; what was read from it is kept")
    tx.run_rows(_SQL["save_reading"], [{"session_id": n, "signature": _MISSING, "waiting": False} for n in names])
    _replace_faults(tx, names, [_fault_row(name, 0, fault) for name in names])
    report.count([fault] * len(names))


def _stored_decisions(tx: Tx, session_ids: Sequence[str]) -> dict[str, list[Decision]]:
    stored: dict[str, list[Decision]] = {}
    for row in tx.rows(_SQL["decisions"], session_ids=list(session_ids)):
        values = {**row, "concepts": tuple(row["concepts"]), "tables": tuple(row["tables"])}
        stored.setdefault(values.pop("session_id"), []).append(Decision(**values))
    return stored


def _replace_faults(tx: Tx, session_ids: Sequence[str], faults: Sequence[Mapping[str, object]]) -> None:
    tx.run(_SQL["forget_faults"], session_ids=list(session_ids))
    tx.run_rows(_SQL["save_fault"], faults)


def _reading_row(reading: SessionReading) -> dict[str, object]:
    return {"session_id": reading.session_id, "signature": reading.signature, "waiting": reading.waiting}


def _fault_row(session_id: str, ordinal: int, fault: Fault) -> dict[str, object]:
    return {
        "session_id": session_id,
        "ordinal": ordinal,
        "line": fault.line,
        "kind": fault.kind.value,
        "reason": fault.reason,
    }


def _session_row(reading: SessionReading, view: Review) -> dict[str, object]:
    manifest = reading.manifest
    assert manifest is not None  # noqa: S101  # the caller has looked
    question = view.question or manifest.question
    return {
        "session_id": reading.session_id,
        "status": manifest.status.value,
        "question": manifest.question,
        "database": manifest.database,
        "schema": manifest.schema,
        "dialect": manifest.dialect,
        "created_at": manifest.created_at,
        "updated_at": manifest.updated_at,
        "updated_by": manifest.updated_by,
        "sql": reading.sql,
        "effective_question": question,
        "question_id": question_id(question),
        "approved_seq": view.approved,
        "context": view.context,
        "rejected_cards": list(view.rejected_cards),
    }


def _decision_row(session_id: str, decision: Decision, view: Review) -> dict[str, object]:
    outcome = view.outcomes.get(decision.seq)
    return {
        "session_id": session_id,
        "seq": decision.seq,
        "ts": decision.ts,
        "type": decision.type,
        "phase": decision.phase,
        "subject": decision.subject,
        "detail": decision.detail,
        "rationale": decision.rationale,
        "concepts": list(decision.concepts),
        "tables": list(decision.tables),
        "text_key": equality_key(decision.subject, decision.detail),
        "effective": decision.seq in view.effective,
        "outcome": outcome.value if outcome else None,
        "promoted_by": None if outcome is Outcome.DECLINED else view.decided_by.get(decision.seq),
    }
