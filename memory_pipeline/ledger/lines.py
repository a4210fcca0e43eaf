"""Makes decisions of a ledger's bytes, and quarantines the lines that cannot be used; no file is touched here."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from memory_pipeline.ledger.fields import QuarantineError, excerpt, integer_field, text_field, texts_field, utc_moment
from memory_pipeline.ledger.records import (
    BOM,
    LARGEST_SEQ,
    LINE_FAULTS_LIMIT,
    LINE_LIMIT,
    PHASES,
    Decision,
    DecisionType,
    Fault,
    FaultKind,
)


@dataclass(slots=True)
class Ledger:
    """The usable lines of a ledger by rising seq, what was quarantined, and whether a last line waits."""

    decisions: list[Decision] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    further_faults: int = 0
    waiting: bool = False

    @property
    def last_seq(self) -> int:
        """The seq that the next line has to rise above."""
        return self.decisions[-1].seq if self.decisions else 0

    def add(self, number: int, line: bytes, *, growing: bool = False) -> None:
        """Take a line in as the next decision. One that cannot be used waits while it is growing, or is quarantined."""
        try:
            self.decisions.append(parse_decision(line, number, self.last_seq))
        except QuarantineError as problem:
            if growing:
                self.waiting = True
            else:
                self._quarantine(Fault(number, problem.kind, problem.reason))

    def _quarantine(self, fault: Fault) -> None:
        # A file of something else altogether would make millions.
        if len(self.faults) < LINE_FAULTS_LIMIT:
            self.faults.append(fault)
        else:
            self.further_faults += 1

    def all_faults(self) -> tuple[Fault, ...]:
        """The faults by line; those beyond the limit are summed up in one."""
        if not self.further_faults:
            return tuple(self.faults)
        reason = f"{self.further_faults} more lines after this one are quarantined"
        return (*self.faults, Fault(self.faults[-1].line, FaultKind.FURTHER_FAULTS, reason))


def parse_ledger(data: bytes, *, finalized: bool, at_rest: Callable[[], bool] = lambda: True) -> Ledger:
    """The ledger in a file's bytes.

    A last line without its newline may be the first part of a write that is under way. As long as the session is open
    it waits. In a finalized one it counts if it can be used; if not, it waits until the files are at rest, and is a
    fault from then on.

    Args:
        data: the file's bytes.
        finalized: whether the session is.
        at_rest: whether nobody is writing; asked of such a last line in a finalized session alone.
    """
    ledger = Ledger()
    for number, line in _lines(data.removeprefix(BOM)):
        if line.endswith(b"\n"):
            ledger.add(number, line)
        elif finalized:
            ledger.add(number, line, growing=not at_rest())
        else:
            ledger.waiting = True
    return ledger


def _lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, with their numbers. Bytes end lines at a line feed alone, which text does not."""
    return ((number, line) for number, line in enumerate(io.BytesIO(data), 1) if line.strip())


def parse_decision(line: bytes, number: int, last_seq: int) -> Decision:
    """The decision in a line's bytes.

    Raises:
        QuarantineError: the line cannot be used, or its seq does not rise above the last one.
    """
    fields = _object(line)
    decision = Decision(
        seq=integer_field(fields, "seq", LARGEST_SEQ),
        ts=utc_moment("ts", text_field(fields, "ts")),
        type=text_field(fields, "type"),
        subject=text_field(fields, "subject"),
        detail=text_field(fields, "detail", ""),
        rationale=text_field(fields, "rationale", ""),
        phase=integer_field(fields, "phase", PHASES[-1], PHASES[0]),
        concepts=texts_field(fields, "concepts"),
        tables=texts_field(fields, "tables"),
        line=number,
    )
    if not decision.type.strip():
        raise QuarantineError(FaultKind.FIELD_INVALID, "type is blank")
    if decision.type == DecisionType.CONCEPT_CLARIFIED and not decision.subject.strip():
        raise QuarantineError(FaultKind.FIELD_INVALID, "subject is blank in a clarification")
    if decision.seq <= last_seq:
        reason = f"seq {decision.seq} does not rise above {last_seq}, which stands before it"
        raise QuarantineError(FaultKind.SEQ_NOT_RISING, reason)
    return decision


def _object(line: bytes) -> dict[str, object]:
    if len(line.rstrip(b"\r\n")) > LINE_LIMIT:  # as long with its end as before somebody has written it
        raise QuarantineError(FaultKind.TOO_LARGE, f"the line is longer than {LINE_LIMIT // 1024**2} MiB")
    if b"\x00" in line:
        raise QuarantineError(FaultKind.NUL_BYTE, "the line holds a NUL byte")
    try:
        content = _JSON.decode(line.decode())
    except UnicodeDecodeError as error:
        raise QuarantineError(FaultKind.NOT_UTF8, f"byte {error.start + 1} of the line is not UTF-8") from error
    except json.JSONDecodeError as error:
        raise QuarantineError(FaultKind.NOT_JSON, f"the line is not JSON from character {error.colno} on") from error
    except RecursionError as error:
        raise QuarantineError(FaultKind.NOT_JSON, "the line is nested too deeply") from error
    except ValueError as error:
        raise QuarantineError(FaultKind.NOT_JSON, "the line holds a number that is too long") from error
    if not isinstance(content, dict):
        raise QuarantineError(FaultKind.NOT_AN_OBJECT, "the line is JSON, but no object")
    return content


def _once_each(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        twice = next(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
        raise QuarantineError(FaultKind.FIELD_INVALID, f"the key {excerpt(twice)} stands more than once")
    return fields


def _no_constant(name: str) -> object:
    raise QuarantineError(FaultKind.NOT_JSON, f"{name} is not JSON")


_JSON = json.JSONDecoder(object_pairs_hook=_once_each, parse_constant=_no_constant)
