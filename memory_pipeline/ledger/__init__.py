"""Session directories: a manifest, a ledger and an SQL file become one reading, and decisions are appended.

Content never raises: a line that cannot be used is quarantined with its number and the reason, and stops nothing else.
A file that cannot be read is a fault too, and is told apart from an empty one, because it withdraws nothing.
"""

from __future__ import annotations

from memory_pipeline.ledger.appending import LOCK_FILE, Entry, LedgerWriter, open_for_appending, read_ended
from memory_pipeline.ledger.fields import excerpt
from memory_pipeline.ledger.files import list_root, list_sessions, session_id, sessions_by_id, signature
from memory_pipeline.ledger.finalizing import finalize
from memory_pipeline.ledger.reading import read_session
from memory_pipeline.ledger.records import (
    LEDGER_FILE,
    LEDGER_LIMIT,
    LINE_FAULTS_LIMIT,
    LINE_LIMIT,
    MANIFEST_FILE,
    MANIFEST_LIMIT,
    PHASES,
    SQL_FILE,
    SQL_LIMIT,
    Decision,
    DecisionType,
    Fault,
    FaultKind,
    Manifest,
    RootListing,
    SessionReading,
    Status,
)

__all__ = [
    "LEDGER_FILE",
    "LEDGER_LIMIT",
    "LINE_FAULTS_LIMIT",
    "LINE_LIMIT",
    "LOCK_FILE",
    "MANIFEST_FILE",
    "MANIFEST_LIMIT",
    "PHASES",
    "SQL_FILE",
    "SQL_LIMIT",
    "Decision",
    "DecisionType",
    "Entry",
    "Fault",
    "FaultKind",
    "LedgerWriter",
    "Manifest",
    "RootListing",
    "SessionReading",
    "Status",
    "excerpt",
    "finalize",
    "list_root",
    "list_sessions",
    "open_for_appending",
    "read_ended",
    "read_session",
    "session_id",
    "sessions_by_id",
    "signature",
]
