"""Builders of the input: decisions, ledgers, and real session directories. Each has a default that is fine as it is."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

import yaml

from memory_pipeline.ledger import LEDGER_FILE, MANIFEST_FILE, SQL_FILE, Decision

MORNING = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)
WORKSPACE = "clinic"
QUESTION = "How many active patients are there?"
SQL = "SELECT count(*) FROM patients WHERE flag_attivo"


def a_decision(
    seq: int = 1,
    type: str = "concept_clarified",  # noqa: A002  # the ledger's word
    *,
    subject: str = "active patient",
    detail: str = "flag_attivo = TRUE",
    **others: object,
) -> Decision:
    """A decision, by default a clarification; `others` are its other fields. Each seq is a minute and a line later."""
    moment = MORNING + timedelta(minutes=seq)
    return Decision(
        **{"seq": seq, "line": seq, "ts": moment, "type": type, "subject": subject, "detail": detail, **others}
    )


def clarified(
    seq: int, subject: str = "active patient", detail: str = "flag_attivo = TRUE", **others: object
) -> Decision:
    return a_decision(seq, "concept_clarified", subject=subject, detail=detail, **others)


def promoted(seq: int, target: int, **others: object) -> Decision:
    return a_decision(seq, "memory_promoted", detail=f"seq:{target}", **{"phase": 8, **others})


def declined(seq: int, target: int, **others: object) -> Decision:
    return a_decision(seq, "memory_promotion_declined", detail=f"seq:{target}", **{"phase": 8, **others})


def retracted(seq: int, target: int, **others: object) -> Decision:
    return a_decision(seq, "decision_retracted", detail=f"seq:{target}", **others)


def reopened(seq: int, to: int, **others: object) -> Decision:
    return a_decision(seq, "phase_reopened", detail=f"phase:{to}", **others)


def rewritten(seq: int, question: str = QUESTION, **others: object) -> Decision:
    return a_decision(seq, "question_rewritten", subject="question", detail=question, **{"phase": 3, **others})


def approved(seq: int, **others: object) -> Decision:
    return a_decision(seq, "sql_approved", subject="phase:7", detail="", **{"phase": 7, **others})


def rejected(seq: int, card_id: str = "mem-0001", **others: object) -> Decision:
    return a_decision(seq, "memory_rejected", detail=card_id, **others)


def a_ledger(*decisions: Decision) -> bytes:
    """The lines of a ledger, as an assistant writes them."""
    return b"".join(_line(decision) for decision in decisions)


def a_manifest(**entries: str | None) -> bytes:
    """A manifest; an entry given as None is left out."""
    usual = {
        "id": "session-1",
        "workspace": WORKSPACE,
        "question": QUESTION,
        "database": "clinic_dwh",
        "schema": "public",
        "status": "finalized",
        "created_at": MORNING.isoformat(),
        "updated_at": (MORNING + timedelta(hours=1)).isoformat(),
        "updated_by": "reviewer",
    }
    kept = {name: value for name, value in (usual | entries).items() if value is not None}
    return yaml.safe_dump(kept, allow_unicode=True, sort_keys=False).encode()


def a_session(
    root: Path,
    *decisions: Decision,
    session: str = "session-1",
    workspace: str = WORKSPACE,
    sql: str | bytes | None = SQL,
    ledger: bytes | None = None,
    **manifest: str | None,
) -> Path:
    """Writes a session directory under a sessions root, over an earlier one, and returns it.

    Without decisions it holds a promoted clarification and an approved SQL. `ledger` gives the ledger's bytes instead,
    `sql=None` leaves the SQL out, and `manifest` changes entries of the manifest (`status="open"`).
    """
    directory = root / workspace / session
    directory.mkdir(parents=True, exist_ok=True)
    lines = a_ledger(*(decisions or (clarified(1), approved(2), promoted(3, 1))))
    (directory / MANIFEST_FILE).write_bytes(a_manifest(**{"id": session, "workspace": workspace, **manifest}))
    (directory / LEDGER_FILE).write_bytes(lines if ledger is None else ledger)
    (directory / SQL_FILE).unlink(missing_ok=True)
    if sql is not None:
        (directory / SQL_FILE).write_bytes(sql if isinstance(sql, bytes) else sql.encode())
    return directory


def aged(directory: Path, seconds: float = 3600) -> Path:
    """Makes a session's files look as if they were written a while ago, so that its signature can be trusted."""
    for file in directory.iterdir():
        moment = file.stat().st_mtime - seconds
        os.utime(file, (moment, moment))
    return directory


def _line(decision: Decision) -> bytes:
    fields = {name: value for name, value in asdict(decision).items() if name != "line"}
    return json.dumps({**fields, "ts": decision.ts.isoformat()}, ensure_ascii=False).encode() + b"\n"
