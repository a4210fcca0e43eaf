"""Reads session directories: a manifest, a ledger and an SQL file become one reading, with every fault counted.

Content never raises: a line that cannot be used is quarantined with its number and the reason, and stops nothing else.
A file that cannot be read is a fault too, and is told apart from an empty one, because it withdraws nothing.
"""

from __future__ import annotations

import io
import json
import os
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TypeVar

import yaml

from memory_pipeline.cards import is_workspace_name, workspace_name
from memory_pipeline.errors import SessionsUnavailable
from memory_pipeline.lexical import is_supported
from memory_pipeline.text import nfc, storable_fault

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

_LARGEST_SEQ = 2**31 - 1
_RACY_NS = 2_000_000_000
_SHOWN = 60

# Moments that PostgreSQL returns in any time zone without leaving the years that Python knows.
_EARLIEST = datetime(1, 1, 3, tzinfo=UTC)
_LATEST = datetime(9999, 12, 29, tzinfo=UTC)

_BOM = b"\xef\xbb\xbf"
_YAML_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
# Scalars stay text: read as YAML types, an unquoted id of 0012 would be ten and one of 2026-01-05 a date.
_YAML_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
# Without O_NONBLOCK, opening a named pipe would wait for a writer for ever.
_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)

T = TypeVar("T")


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
        waiting: whether a last line without its newline was left for later, because the session is open.
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


def list_root(root: Path) -> RootListing:
    """The workspaces under a sessions root.

    Raises:
        SessionsUnavailable: the root does not exist, is no directory, or cannot be read. An empty one is fine.
    """
    names = _directories(root, "set MEMORY_SESSIONS_ROOT to the directory that holds <workspace>/<session>/")
    return RootListing(
        workspaces=tuple(name for name in names if is_workspace_name(name)),
        refused=tuple(_shown_name(name) for name in names if not is_workspace_name(name)),
    )


def list_sessions(root: Path, workspace: str) -> tuple[Path, ...]:
    """The session directories of a workspace by name, without hidden ones.

    Raises:
        UnknownWorkspace: no workspace may be called so.
        SessionsUnavailable: the workspace's directory is missing or cannot be read, which is not to have no sessions.
    """
    home = root / workspace_name(workspace)
    names = _directories(home, "make it readable, or check MEMORY_SESSIONS_ROOT")
    return tuple(home / name for name in names if not name.startswith("."))


def session_id(directory: Path) -> str:
    """The id of the session in a directory: its name, with escapes for bytes that are no UTF-8."""
    return _shown_name(directory.name)


def signature(directory: Path) -> str | None:
    """A cheap fingerprint of a session's three files: equal as long as none of them needs reading again.

    None when it cannot be trusted: a file changed less than two seconds ago may change once more within the same tick
    of the file system's clock, unnoticed. This is what git calls racily clean.
    """
    newest_trusted = time.time_ns() - _RACY_NS
    parts = []
    for name in (MANIFEST_FILE, LEDGER_FILE, SQL_FILE):
        try:
            found = os.stat(f"{directory}/{name}")  # noqa: PTH116  # thirty thousand of these on each look
        except FileNotFoundError:
            parts.append("-")
            continue
        except OSError:
            return None
        # By either time: one that was set to the future would have the session read again and again until it has come.
        if min(found.st_mtime_ns, found.st_ctime_ns) > newest_trusted:
            return None
        # The change time sees an edit that put the modification time back.
        parts.append(f"{found.st_size}.{found.st_mtime_ns}.{found.st_ctime_ns}.{found.st_ino}")
    return " ".join(parts)


def read_session(directory: Path, workspace: str) -> SessionReading:
    """Reads a session directory as it stands. Bad content never raises: it is counted in the reading's faults.

    The manifest is read first and the SQL last: a session that is finalized meanwhile is then seen as still open, and
    its new signature has it read again, whereas a half-written line is never taken for a finalized session's last.
    """
    before = signature(directory)
    if storable_fault(directory.name):
        return _unnameable(directory, before)
    faults: list[Fault] = []
    manifest = _kept(faults, partial(_read_manifest, directory, workspace))
    finalized = manifest is not None and manifest.status is Status.FINALIZED
    if manifest is not None:
        _kept(faults, partial(_check_language, manifest))
    found = _kept(faults, partial(_read_ledger, directory, finalized=finalized))
    ledger = found or _Ledger()
    sql = _kept(faults, partial(_read_sql, directory, wanted=finalized and _approved(ledger.decisions)))
    return SessionReading(
        session_id=session_id(directory),
        manifest=manifest,
        decisions=tuple(ledger.decisions),
        sql=sql,
        faults=(*faults, *ledger.all_faults()),
        waiting=ledger.waiting,
        # What could not be read may become readable without any of its files changing.
        signature=None if any(fault.kind is FaultKind.UNREADABLE for fault in faults) else before,
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


def excerpt(text: str) -> str:
    """The beginning of a text, quoted and escaped for a fault's reason."""
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


class _QuarantineError(Exception):
    """A line or a file cannot be used."""

    def __init__(self, kind: FaultKind, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason


def _kept(faults: list[Fault], read: Callable[[], T]) -> T | None:
    try:
        return read()
    except _QuarantineError as problem:
        faults.append(Fault(0, problem.kind, problem.reason))
        return None


# ── Files ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _directories(home: Path, advice: str) -> list[str]:
    try:
        with os.scandir(home) as entries:
            return sorted(entry.name for entry in entries if _is_directory(entry))
    except OSError as error:
        raise SessionsUnavailable(f"{_shown_name(str(home))}: {_why(error)}: {advice}") from error


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        # A link that leads round in a circle is nothing to read.
        return False


def _shown_name(name: str) -> str:
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _why(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()


def _read_bytes(directory: Path, name: str, limit: int) -> bytes | None:
    """The file's bytes, or None when there is no such file."""
    try:
        with open(f"{directory}/{name}", "rb", opener=_opener) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise _QuarantineError(FaultKind.UNREADABLE, f"{name} is no regular file")
            data = file.read(limit + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _QuarantineError(FaultKind.UNREADABLE, f"{name} cannot be read: {_why(error)}") from error
    if len(data) > limit:
        raise _QuarantineError(FaultKind.TOO_LARGE, f"{name} is larger than {limit // 1024**2} MiB")
    return data


def _opener(path: str, _flags: int) -> int:
    return os.open(path, _OPEN_FLAGS)


# ── Manifest ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _read_manifest(directory: Path, workspace: str) -> Manifest:
    data = _read_bytes(directory, MANIFEST_FILE, MANIFEST_LIMIT)
    if data is None:
        raise _QuarantineError(FaultKind.MANIFEST_MISSING, f"there is no {MANIFEST_FILE}")
    try:
        manifest = _manifest(_mapping(data))
    except _QuarantineError as problem:
        raise _QuarantineError(FaultKind.MANIFEST_INVALID, f"{MANIFEST_FILE}: {problem.reason}") from problem
    _check_owner(manifest, directory.name, workspace)
    return manifest


def _mapping(data: bytes) -> dict[object, object]:
    try:
        content = yaml.load(data, Loader=_YAML_LOADER)  # noqa: S506  # it makes nothing but text, lists and mappings
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" from line {mark.line + 1} on" if mark else ""
        raise _QuarantineError(FaultKind.MANIFEST_INVALID, f"it is not YAML{where}") from error
    except (ValueError, RecursionError) as error:
        raise _QuarantineError(FaultKind.MANIFEST_INVALID, "it is not YAML") from error
    if not isinstance(content, dict):
        raise _QuarantineError(FaultKind.MANIFEST_INVALID, "it is empty, or no mapping")
    return content


def _manifest(content: dict[object, object]) -> Manifest:
    return Manifest(
        session_id=_filled_entry(content, "id"),
        workspace=_filled_entry(content, "workspace"),
        question=_filled_entry(content, "question"),
        database=_filled_entry(content, "database"),
        # SQLite and MySQL have no schemas: the key is asked for, a value is not.
        schema=_entry(content, "schema"),
        status=_status(_filled_entry(content, "status")),
        created_at=_moment("created_at", _filled_entry(content, "created_at")),
        updated_at=_moment("updated_at", _filled_entry(content, "updated_at")),
        updated_by=_filled_entry(content, "updated_by"),
        dialect=_optional_entry(content, "dialect") or "postgres",
        language=_optional_entry(content, "language") or None,
    )


def _entry(content: dict[object, object], name: str) -> str:
    """The text under a key that has to be there; a null counts as no text."""
    if name not in content:
        raise _QuarantineError(FaultKind.FIELD_MISSING, f"{name} is missing")
    value = content[name]
    if not isinstance(value, str):
        raise _QuarantineError(FaultKind.FIELD_INVALID, f"{name} is no text")
    return "" if value.strip() in _YAML_NULLS else _storable(name, value)


def _filled_entry(content: dict[object, object], name: str) -> str:
    text = _entry(content, name)
    if not text:
        raise _QuarantineError(FaultKind.FIELD_MISSING, f"{name} is empty")
    return text


def _optional_entry(content: dict[object, object], name: str) -> str:
    return _entry(content, name) if name in content else ""


def _status(text: str) -> Status:
    try:
        return Status(text)
    except ValueError as error:
        reason = f"status is {excerpt(text)}, which is neither open nor finalized"
        raise _QuarantineError(FaultKind.FIELD_INVALID, reason) from error


def _check_owner(manifest: Manifest, name: str, workspace: str) -> None:
    # A file system may hand names back decomposed (NFD) that were written composed.
    if nfc(manifest.session_id) != nfc(name):
        reason = f"the manifest's id is {excerpt(manifest.session_id)}, not the directory's name"
        raise _QuarantineError(FaultKind.MANIFEST_FOREIGN, reason)
    if manifest.workspace != workspace:
        reason = f"the manifest's workspace is {excerpt(manifest.workspace)}, not the directory's"
        raise _QuarantineError(FaultKind.MANIFEST_FOREIGN, reason)


def _check_language(manifest: Manifest) -> None:
    if manifest.language and not is_supported(manifest.language):
        reason = f"language is {excerpt(manifest.language)}, which is not supported: the setting's counts in its place"
        raise _QuarantineError(FaultKind.LANGUAGE_UNSUPPORTED, reason)


# ── Ledger ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class _Ledger:
    decisions: list[Decision] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    further_faults: int = 0
    waiting: bool = False

    @property
    def last_seq(self) -> int:
        return self.decisions[-1].seq if self.decisions else 0

    def add(self, number: int, line: bytes) -> None:
        try:
            self.decisions.append(_decision(line, number, self.last_seq))
        except _QuarantineError as problem:
            self._quarantine(Fault(number, problem.kind, problem.reason))

    def _quarantine(self, fault: Fault) -> None:
        # A file of something else altogether would make millions.
        if len(self.faults) < LINE_FAULTS_LIMIT:
            self.faults.append(fault)
        else:
            self.further_faults += 1

    def all_faults(self) -> tuple[Fault, ...]:
        if not self.further_faults:
            return tuple(self.faults)
        reason = f"{self.further_faults} more lines after this one are quarantined"
        return (*self.faults, Fault(self.faults[-1].line, FaultKind.FURTHER_FAULTS, reason))


def _read_ledger(directory: Path, *, finalized: bool) -> _Ledger | None:
    data = _read_bytes(directory, LEDGER_FILE, LEDGER_LIMIT)
    if data is not None:
        return _ledger(data.removeprefix(_BOM), finalized=finalized)
    if finalized:
        raise _QuarantineError(FaultKind.LEDGER_MISSING, f"the session is finalized, but there is no {LEDGER_FILE}")
    return None


def _ledger(data: bytes, *, finalized: bool) -> _Ledger:
    ledger = _Ledger()
    for number, line in _lines(data):
        if finalized or line.endswith(b"\n"):
            ledger.add(number, line)
        else:
            ledger.waiting = True
    return ledger


def _lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, with their numbers. Bytes end lines at a line feed alone, which text does not."""
    return ((number, line) for number, line in enumerate(io.BytesIO(data), 1) if line.strip())


def _decision(line: bytes, number: int, last_seq: int) -> Decision:
    fields = _object(line)
    decision = Decision(
        seq=_integer(fields, "seq", _LARGEST_SEQ),
        ts=_moment("ts", _text(fields, "ts")),
        type=_text(fields, "type"),
        subject=_text(fields, "subject"),
        detail=_text(fields, "detail", ""),
        rationale=_text(fields, "rationale", ""),
        phase=_integer(fields, "phase", PHASES[-1], PHASES[0]),
        concepts=_texts(fields, "concepts"),
        tables=_texts(fields, "tables"),
        line=number,
    )
    if not decision.type.strip():
        raise _QuarantineError(FaultKind.FIELD_INVALID, "type is blank")
    if decision.type == DecisionType.CONCEPT_CLARIFIED and not decision.subject.strip():
        raise _QuarantineError(FaultKind.FIELD_INVALID, "subject is blank in a clarification")
    if decision.seq <= last_seq:
        reason = f"seq {decision.seq} does not rise above {last_seq}, which stands before it"
        raise _QuarantineError(FaultKind.SEQ_NOT_RISING, reason)
    return decision


def _object(line: bytes) -> dict[str, object]:
    if len(line) > LINE_LIMIT:
        raise _QuarantineError(FaultKind.TOO_LARGE, f"the line is longer than {LINE_LIMIT // 1024**2} MiB")
    if b"\x00" in line:
        raise _QuarantineError(FaultKind.NUL_BYTE, "the line holds a NUL byte")
    try:
        content = _JSON.decode(line.decode())
    except UnicodeDecodeError as error:
        raise _QuarantineError(FaultKind.NOT_UTF8, f"byte {error.start + 1} of the line is not UTF-8") from error
    except json.JSONDecodeError as error:
        raise _QuarantineError(FaultKind.NOT_JSON, f"the line is not JSON from character {error.colno} on") from error
    except RecursionError as error:
        raise _QuarantineError(FaultKind.NOT_JSON, "the line is nested too deeply") from error
    except ValueError as error:
        raise _QuarantineError(FaultKind.NOT_JSON, "the line holds a number that is too long") from error
    if not isinstance(content, dict):
        raise _QuarantineError(FaultKind.NOT_AN_OBJECT, "the line is JSON, but no object")
    return content


def _once_each(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        twice = next(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
        raise _QuarantineError(FaultKind.FIELD_INVALID, f"the key {excerpt(twice)} stands more than once")
    return fields


def _no_constant(name: str) -> object:
    raise _QuarantineError(FaultKind.NOT_JSON, f"{name} is not JSON")


_JSON = json.JSONDecoder(object_pairs_hook=_once_each, parse_constant=_no_constant)


# ── SQL ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _approved(decisions: list[Decision]) -> bool:
    return any(decision.type == DecisionType.SQL_APPROVED for decision in decisions)


def _read_sql(directory: Path, *, wanted: bool) -> str | None:
    """The SQL as written, or None. It is `wanted` when a finalized session approved some."""
    data = _read_bytes(directory, SQL_FILE, SQL_LIMIT)
    sql = _sql(data) if data is not None else ""
    if sql.strip():
        return sql
    if wanted:
        state = "missing" if data is None else "blank"
        reason = f"SQL was approved and the session finalized, but {SQL_FILE} is {state}"
        raise _QuarantineError(FaultKind.SQL_MISSING, reason)
    return None


def _sql(data: bytes) -> str:
    if b"\x00" in data:
        raise _QuarantineError(FaultKind.SQL_INVALID, f"{SQL_FILE} holds a NUL byte")
    try:
        return data.removeprefix(_BOM).decode()
    except UnicodeDecodeError as error:
        raise _QuarantineError(FaultKind.SQL_INVALID, f"byte {error.start + 1} of {SQL_FILE} is not UTF-8") from error


# ── Fields ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _value(fields: dict[str, object], name: str, default: object) -> object:
    """What stands under a name; null counts as absent, and nothing replaces a field without a default."""
    value = fields.get(name)
    if value is None:
        value = default
    if value is None:
        raise _QuarantineError(FaultKind.FIELD_MISSING, f"{name} is missing")
    return value


def _text(fields: dict[str, object], name: str, default: str | None = None) -> str:
    value = _value(fields, name, default)
    if not isinstance(value, str):
        raise _QuarantineError(FaultKind.FIELD_INVALID, f"{name} is no text")
    return _storable(name, value)


def _texts(fields: dict[str, object], name: str) -> tuple[str, ...]:
    value = _value(fields, name, ())
    if value == ():
        return ()
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise _QuarantineError(FaultKind.FIELD_INVALID, f"{name} is no list of texts")
    return tuple(_storable(name, item) for item in value)


def _integer(fields: dict[str, object], name: str, largest: int, default: int | None = None) -> int:
    value = _value(fields, name, default)
    # A boolean is an int in Python; 1.0 and "1" are no integers either.
    if type(value) is not int:
        raise _QuarantineError(FaultKind.FIELD_INVALID, f"{name} is no integer")
    if not 1 <= value <= largest:
        raise _QuarantineError(FaultKind.FIELD_INVALID, f"{name} is not within 1 and {largest}")
    return value


def _storable(name: str, text: str) -> str:
    fault = storable_fault(text)
    if fault is None:
        return text
    kind = FaultKind.NUL_BYTE if "\x00" in text else FaultKind.LONE_SURROGATE
    raise _QuarantineError(kind, f"{name} cannot be stored: {fault}")


def _moment(name: str, text: str) -> datetime:
    """ISO 8601, as a moment in UTC; a time without an offset is taken as UTC."""
    try:
        moment = datetime.fromisoformat(text)
        moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise _QuarantineError(FaultKind.FIELD_INVALID, f"{name} is no ISO 8601 time: {excerpt(text)}") from error
    if not _EARLIEST < moment < _LATEST:
        raise _QuarantineError(FaultKind.FIELD_INVALID, f"{name} is outside the years 1 to 9999")
    return moment
