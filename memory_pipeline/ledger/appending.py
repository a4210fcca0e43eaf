"""Appends decisions to a ledger: whole lines in one write, under a lock that writers share; no line is ever touched."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout

from memory_pipeline.errors import LedgerUnavailable
from memory_pipeline.files import sync_directory
from memory_pipeline.ledger.fields import QuarantineError
from memory_pipeline.ledger.files import read_bytes
from memory_pipeline.ledger.lines import parse_decision, parse_ledger
from memory_pipeline.ledger.reading import read_session
from memory_pipeline.ledger.records import (
    LARGEST_SEQ,
    LEDGER_FILE,
    LEDGER_LIMIT,
    Decision,
    DecisionType,
    SessionReading,
)

LOCK_FILE = f"{LEDGER_FILE}.lock"
"""Beside the ledger, and locked as a whole (`flock`) by whoever appends to it. It is empty, and stays."""

_WAIT = 30.0  # seconds; a writer holds the lock for as long as it takes to read and write one file
# Never truncated. Without O_NONBLOCK, opening a named pipe would wait for a reader for ever.
_FLAGS = os.O_RDWR | os.O_APPEND | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_FLAGS |= getattr(os, "O_BINARY", 0)
_MODE = 0o666  # what the process's umask leaves of it


@dataclass(frozen=True, slots=True)
class Entry:
    """What is to be decided; `seq` and `ts` are given to it when it is written."""

    type: DecisionType
    subject: str
    detail: str = ""
    rationale: str = ""
    phase: int = 1
    concepts: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()


class LedgerWriter:
    """A session's ledger, while its lock is held."""

    def __init__(self, directory: Path, workspace: str) -> None:
        self._directory = directory
        self._workspace = workspace
        self._path = directory / LEDGER_FILE
        self._seen: tuple[Decision, ...] = ()

    def read(self) -> SessionReading:
        """The session as it counts once a further line is written. What is appended builds on it."""
        reading = read_ended(self._directory, self._workspace)
        self._seen = reading.decisions
        return reading

    def append(self, entries: Sequence[Entry], *, after: int) -> tuple[Decision, ...]:
        """Write decisions, all of them or none, and see to it that they survive a crash of the machine.

        Args:
            entries: what is decided, in this order. Of none nothing is written.
            after: the largest seq that is taken, in the ledger or in what was read of it before.

        Returns:
            the decisions as they count now.

        Raises:
            LedgerUnavailable: the ledger cannot be written, or would become too large to be read, and is as it was; or
                another program wrote into it without its lock, so that some of what was written may not count.
        """
        if not entries:
            return ()
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        lines = [_line(seq, now, entry) for seq, entry in enumerate(entries, after + 1)]
        self._require(self._seen, "nothing was recorded; do it again")
        with _translated(self._path):
            self._write(b"".join(line for line, _ in lines))
        written = [decision for _, decision in lines]
        found = self._require([*self._seen, *written], "look at its last lines, and decide again what does not count")
        return tuple(found[decision.seq] for decision in written)

    def _write(self, data: bytes) -> None:
        descriptor, made = self._opened()
        try:
            size = _regular_size(descriptor)
            if size and os.pread(descriptor, 1, size - 1) != b"\n":
                data = b"\n" + data  # ends what somebody did not: nothing is glued onto it
            _require_room(size + len(data))
            _write_once(descriptor, data, size)
        except BaseException:
            if made and not os.fstat(descriptor).st_size:
                with suppress(OSError):
                    self._path.unlink()
            raise
        finally:
            os.close(descriptor)
        if made:
            self._keep_name()

    def _opened(self) -> tuple[int, bool]:
        """A descriptor of the ledger, and whether it was made for it."""
        try:
            return os.open(self._path, _FLAGS), False
        except FileNotFoundError:
            return os.open(self._path, _FLAGS | os.O_CREAT | os.O_EXCL, _MODE), True

    def _keep_name(self) -> None:
        """A new file's name is in its directory, which is written by itself, where that can be done."""
        with suppress(OSError):  # the line stands already
            sync_directory(self._directory)

    def _require(self, wanted: Sequence[Decision], advice: str) -> dict[int, Decision]:
        """See to it that these decisions count, each under its seq; what counts, with the lines that it stands in."""
        found = {decision.seq: decision for decision in _counting(self._directory, advice)}
        if any(found.get(decision.seq) != decision for decision in wanted):
            raise LedgerUnavailable(
                f"another program wrote {self._path} at the same time, without taking {LOCK_FILE}: {advice}"
            )
        return found


def read_ended(directory: Path, workspace: str) -> SessionReading:
    """A session as it counts once a further line is written, which ends a last line that has no newline yet.

    Raises:
        LedgerUnavailable: the ledger cannot be read.
    """
    reading = read_session(directory, workspace)
    return replace(reading, decisions=tuple(_counting(directory, "nothing was recorded")), waiting=False)


def _counting(directory: Path, advice: str) -> list[Decision]:
    try:
        data = read_bytes(directory, LEDGER_FILE, LEDGER_LIMIT)
    except QuarantineError as problem:
        raise LedgerUnavailable(f"{directory}: {problem.reason}: {advice}") from None
    return parse_ledger(data or b"", finalized=True).decisions


@contextmanager
def open_for_appending(directory: Path, workspace: str) -> Iterator[LedgerWriter]:
    """Hold the lock that everybody who appends to this session's ledger takes.

    Raises:
        LedgerUnavailable: the lock cannot be taken: the directory is read-only, or somebody kept it for 30 seconds.
    """
    lock = FileLock(directory / LOCK_FILE, timeout=_WAIT, thread_local=False)
    try:
        with _translated(directory / LOCK_FILE):
            lock.acquire()
    except Timeout:
        raise LedgerUnavailable(
            f"{directory / LOCK_FILE} stayed locked for {_WAIT:g} s: another program is writing; try again"
        ) from None
    try:
        yield LedgerWriter(directory, workspace)
    finally:
        lock.release()


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except Timeout:  # which is an OSError too
        raise
    except OSError as error:
        why = (error.strerror or type(error).__name__).lower()
        raise LedgerUnavailable(
            f"{path} cannot be written ({why}): nothing was recorded; make it writable and do it again"
        ) from error


def _line(seq: int, ts: str, entry: Entry) -> tuple[bytes, Decision]:
    """A line of the ledger, and what readers make of it."""
    if seq > LARGEST_SEQ:
        raise LedgerUnavailable(f"the ledger has used its seqs up, to {LARGEST_SEQ}: go on in a new session")
    fields = {
        "seq": seq,
        "ts": ts,
        "phase": entry.phase,
        "type": entry.type.value,
        "subject": entry.subject,
        "detail": entry.detail,
        "rationale": entry.rationale,
        **({"concepts": entry.concepts} if entry.concepts else {}),
        **({"tables": entry.tables} if entry.tables else {}),
    }
    line = json.dumps(fields, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"
    try:
        decision = parse_decision(line, 0, seq - 1)
    except QuarantineError as problem:  # it would be quarantined, and so have no effect
        raise LedgerUnavailable(f"this cannot stand in a ledger ({problem.reason}): nothing was recorded") from None
    return line, decision


def _regular_size(descriptor: int) -> int:
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        raise LedgerUnavailable(f"{LEDGER_FILE} is no regular file")
    return found.st_size


def _require_room(size: int) -> None:
    if size > LEDGER_LIMIT:  # nobody would read it any more
        raise LedgerUnavailable(
            f"{LEDGER_FILE} would be larger than {LEDGER_LIMIT // 1024**2} MiB: go on in a new session"
        )


def _write_once(descriptor: int, data: bytes, size: int) -> None:
    """Append data in one write, or leave the file at the size that it had.

    What a full disk leaves of a write is cut off again, so that no half line stays. Whoever reads in that instant may
    have seen whole lines of it: they are then kept where they were read, and their seqs are not given again.
    """
    written = 0
    try:
        written = os.write(descriptor, data)
        _require_whole(written, len(data))
        os.fsync(descriptor)
    except BaseException:
        if os.fstat(descriptor).st_size == size + written:  # nobody else has written behind it
            os.ftruncate(descriptor, size)
        raise


def _require_whole(written: int, wanted: int) -> None:
    if written < wanted:
        raise OSError(errno.ENOSPC, f"only {written} of {wanted} bytes fit on the disk, or in its quota")
