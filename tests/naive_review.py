"""The rules of a session's ledger read aloud, in the plainest and slowest way: what the real review is compared with.

Nothing of the library is used: each rule is written down once more, from what is documented for those who write ledgers.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

CLARIFIED, PROMOTED, DECLINED = "concept_clarified", "memory_promoted", "memory_promotion_declined"
POINTING = (PROMOTED, DECLINED, "decision_retracted")
PHASES = range(1, 9)


@dataclass(frozen=True)
class Line:
    """A line that counts."""

    number: int
    seq: int
    type: str
    subject: str
    detail: str
    phase: int
    tables: tuple[str, ...]


@dataclass(frozen=True)
class Lines:
    """What a ledger's bytes are: the lines that count, the numbers of those that do not, and whether the last waits."""

    usable: tuple[Line, ...]
    quarantined: tuple[int, ...]
    waiting: bool


# ── From bytes to lines ──────────────────────────────────────────────────────────────────────────────────────────────


def lines_of(ledger: bytes, *, finalized: bool) -> Lines:
    """Every line is tried; one without its newline only where the session is finalized."""
    *ended, rest = ledger.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    usable: list[Line] = []
    quarantined = []
    for number, raw in enumerate([*ended, *([rest] if finalized else [])], 1):
        line = line_of(raw, number)
        if line and all(line.seq > earlier.seq for earlier in usable):
            usable.append(line)
        elif raw.strip():
            quarantined.append(number)
    return Lines(tuple(usable), tuple(quarantined), waiting=not finalized and bool(rest.strip()))


def line_of(raw: bytes, number: int) -> Line | None:
    try:
        fields = json.loads(raw.decode(), object_pairs_hook=each_once, parse_constant=refused)
    except ValueError:
        return None
    if not isinstance(fields, dict):
        return None
    given = {name: value for name, value in fields.items() if value is not None}
    found = {"detail": "", "rationale": "", "phase": 1, "concepts": [], "tables": []} | given
    return as_line(found, number) if is_usable(found) else None


def each_once(pairs):
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key stands twice")
    return dict(pairs)


def refused(name):
    raise ValueError(f"{name} is not JSON")


def is_usable(fields) -> bool:
    texts = [fields.get(name) for name in ("ts", "type", "subject", "detail", "rationale")]
    lists = [fields[name] for name in ("concepts", "tables")]
    return (
        all(is_text(text) for text in texts)
        and all(isinstance(items, list) and all(is_text(item) for item in items) for items in lists)
        and is_integer(fields.get("seq"), 2147483647)
        and is_integer(fields["phase"], 8)
        and is_moment(fields["ts"])
        and fields["type"].strip() != ""
        and not (fields["type"] == CLARIFIED and fields["subject"].strip() == "")
    )


def is_text(value) -> bool:
    return isinstance(value, str) and not any(sign == "\0" or "\ud800" <= sign <= "\udfff" for sign in value)


def is_integer(value, largest: int) -> bool:
    return type(value) is int and 1 <= value <= largest


def is_moment(text: str) -> bool:
    try:
        return bool(datetime.fromisoformat(text))
    except ValueError:
        return False


def as_line(fields, number: int) -> Line:
    kept = {name: fields[name] for name in ("seq", "type", "subject", "detail", "phase")}
    return Line(number, tables=tuple(fields["tables"]), **kept)


# ── What stands ──────────────────────────────────────────────────────────────────────────────────────────────────────


def effective(lines: Sequence[Line]) -> list[Line]:
    """For each line, strike out what it takes away from all the lines before it; nothing is ever written in again."""
    struck = {
        earlier.seq for line in lines for earlier in lines if earlier.seq < line.seq and takes_away(line, earlier)
    }
    return [line for line in lines if line.seq not in struck]


def takes_away(line: Line, earlier: Line) -> bool:
    if line.type == "decision_retracted":
        return line.detail == f"seq:{earlier.seq}"
    if line.type == "phase_reopened":
        return any(line.detail == f"phase:{phase}" and earlier.phase > phase for phase in PHASES)
    return False


def decider(target: Line, standing: Sequence[Line]) -> Line | None:
    """The last of what stands that promotes or declines a line before it."""
    deciding = [
        line
        for line in standing
        if line.type in {PROMOTED, DECLINED} and line.seq > target.seq and line.detail == f"seq:{target.seq}"
    ]
    return deciding[-1] if deciding else None


def outcomes(lines: Sequence[Line]) -> dict[int, str]:
    """What became of each clarification that stands, by seq."""
    standing = effective(lines)
    return {line.seq: outcome(line, decider(line, standing)) for line in standing if line.type == CLARIFIED}


def outcome(clarification: Line, verdict: Line | None) -> str:
    if verdict and verdict.type == DECLINED:
        return "declined"
    if is_fact_or_dim(clarification.subject):
        return "refused"
    return "promoted" if verdict else "candidate"


def candidates(lines: Sequence[Line]) -> list[tuple[int, ...]]:
    """The seqs of the clarifications that nobody decided about, equal ones together, in seq order of the first."""
    found = outcomes(lines)
    left = [line for line in lines if found.get(line.seq) == "candidate"]
    groups = [tuple(other.seq for other in left if is_same(line, other)) for line in left]
    return sorted(set(groups))


def last_question(lines: Sequence[Line]) -> str | None:
    asked = [line.detail for line in effective(lines) if line.type == "question_rewritten" and line.detail.strip()]
    return asked[-1] if asked else None


def last_approval(lines: Sequence[Line]) -> int | None:
    approvals = [line.seq for line in effective(lines) if line.type == "sql_approved"]
    return approvals[-1] if approvals else None


def rejected_cards(lines: Sequence[Line]) -> set[str]:
    named = [named_card(line) for line in effective(lines) if line.type == "memory_rejected"]
    return {card_id for card_id in named if card_id}


def named_card(line: Line) -> str | None:
    return next((text for text in (line.detail, line.subject) if is_card_id(text)), None)


def is_card_id(text: str) -> bool:
    prefix, _, number = text.partition("-")
    return prefix in {"mem", "sq"} and number.isdigit()


def faulty(lines: Sequence[Line]) -> list[int]:
    """The numbers of the lines that stand, and name nothing that they could mean."""
    standing = effective(lines)
    return [line.number for line in standing if points_nowhere(line, lines) or is_refused(line, standing)]


def points_nowhere(line: Line, lines: Sequence[Line]) -> bool:
    if line.type in POINTING:
        return all(line.detail != f"seq:{earlier.seq}" for earlier in lines if earlier.seq < line.seq)
    if line.type == "phase_reopened":
        return all(line.detail != f"phase:{phase}" for phase in PHASES)
    return line.type == "memory_rejected" and named_card(line) is None


def is_refused(line: Line, standing: Sequence[Line]) -> bool:
    """Whether it is the promotion that decides about what never becomes a card."""
    return line.type == PROMOTED and any(
        decider(target, standing) == line and (target.type != CLARIFIED or is_fact_or_dim(target.subject))
        for target in standing
    )


# ── What a session remembers ─────────────────────────────────────────────────────────────────────────────────────────


def memories(lines: Sequence[Line]) -> list[tuple[int, str, int]]:
    """Seq, outcome and deciding seq: the promoted first, then the declined; no table, and of equal ones the first."""
    standing, found = effective(lines), outcomes(lines)
    shown: list[tuple[int, str, int]] = []
    for wanted in ("promoted", "declined"):
        told: list[Line] = []
        for line in (each for each in standing if found.get(each.seq) == wanted):
            verdict = decider(line, standing)
            if verdict and not is_table(line.subject, lines) and not any(is_same(line, other) for other in told):
                told.append(line)
                shown.append((line.seq, wanted, verdict.seq))
    return shown


def is_table(subject: str, lines: Sequence[Line]) -> bool:
    """Whether a subject is a table's name, by its form or because the session names such a table anywhere.

    A table is known by its whole name and by the last part of it. `visite.reparto` is a column of `visite` if there is
    such a table, whether or not there is a table `reparto`.
    """
    name, tables = plain_name(subject), tables_of(lines)
    owner, dot, last = name.rpartition(".")
    is_known_elsewhere = bool(owner and dot) and last in tables and owner.rpartition(".")[2] not in tables
    return is_fact_or_dim(name) or name in tables or is_known_elsewhere


def tables_of(lines: Sequence[Line]) -> set[str]:
    names = {plain_name(table) for line in lines for table in line.tables}
    names |= {plain_name(line.subject) for line in lines if line.type in {"table_promoted", "table_excluded"}}
    names |= {plain_name(line.subject).rpartition(".")[0] for line in lines if line.type == "column_promoted"}
    return {part for name in names for part in (name, name.rpartition(".")[2]) if part}


# ── Which texts are equal ────────────────────────────────────────────────────────────────────────────────────────────


def is_same(one: Line, other: Line) -> bool:
    return (folded(one.subject), folded(one.detail)) == (folded(other.subject), folded(other.detail))


def folded(text: str) -> str:
    """In NFC, without case, with single spaces, and without spaces, quotes and punctuation at both ends."""
    composed = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
    return " ".join(composed.split()).strip(" .,;:!?\"'`´‘’‚‛“”„‟«»‹›")


def is_fact_or_dim(subject: str) -> bool:
    name = folded(subject).removeprefix("[").removesuffix("]")
    return name.startswith(("fact_", "dim_")) and name.replace("_", "x").isalnum()


def plain_name(text: str) -> str:
    """A table's name without quotes and brackets around any part of it."""
    return ".".join(folded(part.strip(" []\"'`«»")) for part in folded(text).split("."))
