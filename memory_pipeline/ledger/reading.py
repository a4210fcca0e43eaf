"""Reads a session: its manifest, ledger and SQL become one reading, in an order that is safe while they are written."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from memory_pipeline.ledger.fields import QuarantineError
from memory_pipeline.ledger.files import read_bytes, session_id, signature
from memory_pipeline.ledger.lines import Ledger, parse_ledger
from memory_pipeline.ledger.manifest import check_language, read_manifest
from memory_pipeline.ledger.records import (
    BOM,
    LEDGER_FILE,
    LEDGER_LIMIT,
    SQL_FILE,
    SQL_LIMIT,
    Decision,
    DecisionType,
    Fault,
    FaultKind,
    SessionReading,
    Status,
)
from memory_pipeline.text import storable_fault

T = TypeVar("T")


def read_session(directory: Path, workspace: str) -> SessionReading:
    """Reads a session directory as it stands. Bad content never raises: it is counted in the reading's faults.

    The manifest is read first and the SQL last: a session that is finalized meanwhile is then seen as still open, and
    its new signature has it read again, whereas a half-written line is never taken for a finalized session's last.
    """
    before = signature(directory)
    if storable_fault(directory.name):
        return _unnameable(directory, before)
    faults: list[Fault] = []
    manifest = _kept(faults, partial(read_manifest, directory, workspace))
    finalized = manifest is not None and manifest.status is Status.FINALIZED
    if manifest is not None:
        _kept(faults, partial(check_language, manifest))
    at_rest = partial(_is_at_rest, directory, before)
    found = _kept(faults, partial(_read_ledger, directory, finalized=finalized, at_rest=at_rest))
    ledger = found or Ledger()
    sql = _kept(faults, partial(_read_sql, directory, wanted=finalized and _approved(ledger.decisions)))
    # What could not be read may become readable without any of its files changing; what waits in a finalized session
    # becomes a fault when they change no more.
    again = (finalized and ledger.waiting) or any(fault.kind is FaultKind.UNREADABLE for fault in faults)
    return SessionReading(
        session_id=session_id(directory),
        manifest=manifest,
        decisions=tuple(ledger.decisions),
        sql=sql,
        faults=(*faults, *ledger.all_faults()),
        waiting=ledger.waiting,
        signature=None if again else before,
        ledger_read=found is not None,
    )


def _unnameable(directory: Path, before: str | None) -> SessionReading:
    reason = "the directory's name is not UTF-8: rename it, as its manifest's id has it"
    return SessionReading(
        session_id=session_id(directory),
        manifest=None,
        decisions=(),
        sql=None,
        faults=(Fault(0, FaultKind.NAME_INVALID, reason),),
        waiting=False,
        signature=before,
        ledger_read=False,
    )


def _kept(faults: list[Fault], read: Callable[[], T]) -> T | None:
    try:
        return read()
    except QuarantineError as problem:
        faults.append(Fault(0, problem.kind, problem.reason))
        return None


def _is_at_rest(directory: Path, before: str | None) -> bool:
    # Looked at again after reading: a write may have begun since the signature was taken.
    return before is not None and signature(directory) == before


def _read_ledger(directory: Path, *, finalized: bool, at_rest: Callable[[], bool]) -> Ledger | None:
    data = read_bytes(directory, LEDGER_FILE, LEDGER_LIMIT)
    if data is not None:
        return parse_ledger(data, finalized=finalized, at_rest=at_rest)
    if finalized:
        raise QuarantineError(FaultKind.LEDGER_MISSING, f"the session is finalized, but there is no {LEDGER_FILE}")
    return None


def _approved(decisions: list[Decision]) -> bool:
    return any(decision.type == DecisionType.SQL_APPROVED for decision in decisions)


def _read_sql(directory: Path, *, wanted: bool) -> str | None:
    """The SQL as written, or None. It is `wanted` when a finalized session approved some."""
    data = read_bytes(directory, SQL_FILE, SQL_LIMIT)
    sql = _sql(data) if data is not None else ""
    if sql.strip():
        return sql
    if wanted:
        state = "missing" if data is None else "blank"
        reason = f"SQL was approved and the session finalized, but {SQL_FILE} is {state}"
        raise QuarantineError(FaultKind.SQL_MISSING, reason)
    return None


def _sql(data: bytes) -> str:
    if b"\x00" in data:
        raise QuarantineError(FaultKind.SQL_INVALID, f"{SQL_FILE} holds a NUL byte")
    try:
        return data.removeprefix(BOM).decode()
    except UnicodeDecodeError as error:
        raise QuarantineError(FaultKind.SQL_INVALID, f"byte {error.start + 1} of {SQL_FILE} is not UTF-8") from error
