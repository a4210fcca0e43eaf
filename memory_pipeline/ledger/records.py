"""What is read: the records that a session becomes, the faults it can have, and how its files are named and bounded."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

MANIFEST_FILE = "manifest.yaml"
LEDGER_FILE = "review_decisions.jsonl"
SQL_FILE = "sql_final.sql"

MANIFEST_LIMIT = 1024**2
LEDGER_LIMIT = 64 * 1024**2
LINE_LIMIT = 1024**2
SQL_LIMIT = 4 * 1024**2
LINE_FAULTS_LIMIT = 10_000

PHASES = range(1, 9)
"""The phases of a session, in which its decisions are made."""

LARGEST_SEQ = 2**31 - 1

BOM = b"\xef\xbb\xbf"


class Status(StrEnum):
    """Where a session stands: its reviewer still works on it, or has ended it."""

    OPEN = "open"
    FINALIZED = "finalized"


class DecisionType(StrEnum):
    """The types of decisions that are known; any other is kept and has no effect."""

    QUESTION_REWRITTEN = "question_rewritten"
    CONCEPT_CLARIFIED = "concept_clarified"
    TABLE_PROMOTED = "table_promoted"
    TABLE_EXCLUDED = "table_excluded"
    COLUMN_PROMOTED = "column_promoted"
    SQL_APPROVED = "sql_approved"
    DATAMART_REQUESTED = "datamart_requested"
    DATAMART_DECLINED = "datamart_declined"
    MEMORY_PROMOTED = "memory_promoted"
    MEMORY_PROMOTION_DECLINED = "memory_promotion_declined"
    MEMORY_REJECTED = "memory_rejected"
    DECISION_RETRACTED = "decision_retracted"
    PHASE_REOPENED = "phase_reopened"


class FaultKind(StrEnum):
    """What can be wrong with a session."""

    # One line of the ledger, which is quarantined.
    NOT_UTF8 = "not_utf8"
    NUL_BYTE = "nul_byte"
    LONE_SURROGATE = "lone_surrogate"
    NOT_JSON = "not_json"
    NOT_AN_OBJECT = "not_an_object"
    FIELD_MISSING = "field_missing"
    FIELD_INVALID = "field_invalid"
    SEQ_NOT_RISING = "seq_not_rising"
    FURTHER_FAULTS = "further_faults"  # more lines than are listed one by one
    # One usable line, which has no effect.
    DANGLING_REFERENCE = "dangling_reference"
    REFUSED_PROMOTION = "refused_promotion"
    # A line or a file.
    TOO_LARGE = "too_large"
    # The session, or one of its files.
    NAME_INVALID = "name_invalid"
    MANIFEST_MISSING = "manifest_missing"
    MANIFEST_INVALID = "manifest_invalid"
    MANIFEST_FOREIGN = "manifest_foreign"
    LEDGER_MISSING = "ledger_missing"
    LANGUAGE_UNSUPPORTED = "language_unsupported"  # the session is used all the same
    SQL_MISSING = "sql_missing"
    SQL_INVALID = "sql_invalid"
    UNREADABLE = "unreadable"
    # What only the archive can tell, which remembers the last reading.
    LEDGER_SHORTER = "ledger_shorter"
    DECISION_CHANGED = "decision_changed"
    SESSION_MISSING = "session_missing"


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that could not be used. Several faults of a session may share their line and kind.

    Attributes:
        line: the line's number in the ledger, from 1; 0 for the session as a whole, its manifest or its SQL file.
        kind: what is wrong, for counting.
        reason: one sentence for the reader; it always can be stored.
    """

    line: int
    kind: FaultKind
    reason: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a session says about itself; `language` is None where the setting's default holds."""

    session_id: str
    workspace: str
    question: str
    database: str
    schema: str
    status: Status
    created_at: datetime
    updated_at: datetime
    updated_by: str
    dialect: str = "postgres"
    language: str | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """One usable line of a ledger, its text as it was written.

    `line` is where it stood (0 when unknown). It is no part of what was decided, and does not count in comparisons.
    """

    seq: int
    ts: datetime
    type: str
    subject: str
    detail: str = ""
    rationale: str = ""
    phase: int = 1
    concepts: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class SessionReading:
    """What one look at a session directory found.

    Attributes:
        session_id: the directory's name, shown with escapes where it is no text.
        manifest: None when it is absent or cannot be used; `faults` says why.
        decisions: the usable lines, by rising seq.
        sql: the approved SQL as written; None when absent, unreadable or blank.
        faults: everything that could not be used: the session as a whole first, then by line.
        waiting: whether a last line without its newline was left for later, because it may still be being written.
        signature: of the files just before they were read; None when they must be read again in any case.
        ledger_read: whether there was a ledger to read. False says nothing about what was decided.
    """

    session_id: str
    manifest: Manifest | None
    decisions: tuple[Decision, ...]
    sql: str | None
    faults: tuple[Fault, ...]
    waiting: bool
    signature: str | None
    ledger_read: bool = True


@dataclass(frozen=True, slots=True)
class RootListing:
    """The directories of a sessions root, sorted: those that are workspaces, and those whose name is refused."""

    workspaces: tuple[str, ...]
    refused: tuple[str, ...]
