"""Takes the promoted clarifications of a legacy registry in, on request: a `registry.jsonl` of `mem-XXXX` records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import IO, TYPE_CHECKING, Annotated, Any

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from memory_pipeline import jsonl
from memory_pipeline.archive import cards, grants, identities
from memory_pipeline.archive.queries import load
from memory_pipeline.archive.transfer import insert_questions, insert_sources
from memory_pipeline.cards import CardContent, Dependency, Family, Flag
from memory_pipeline.edits import checked
from memory_pipeline.errors import InvalidEdit
from memory_pipeline.jsonl import Text
from memory_pipeline.ledger import DecisionType
from memory_pipeline.points import question_id
from memory_pipeline.review import Outcome, names_table
from memory_pipeline.text import nfc

if TYPE_CHECKING:
    from memory_pipeline.archive.database import Database, Row, Tx
    from memory_pipeline.embedding.base import EmbeddingIdentity

_SQL = load("legacy")
_INTAKE = load("intake")

_CONCEPT = DecisionType.CONCEPT_CLARIFIED.value
_PREFIX = Family.CONCEPT.id_prefix
# Which line promoted a decision is not in a registry. Deleted before its session was read, a card does not come back
# from any promotion of that decision; once the session is read, its ledger says.
_EVERY_PROMOTION = 2**31 - 1

_OptionalText = Annotated[Text, BeforeValidator(lambda value: "" if value is None else value)]
_OptionalTexts = Annotated[tuple[Text, ...], BeforeValidator(lambda value: () if value is None else value)]


def _under(*names: str, **others: Any) -> Any:
    """A field that the record may have under any of these names."""
    return Field(validation_alias=AliasChoices(*names), **others)


class LegacyRecord(BaseModel):
    """A `concept_clarified` record of a registry. What it has besides is ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    id: str = _under("id", "memory_id", "card_id", pattern=r"^mem-([0-9]{4}|[1-9][0-9]{4,8})$")
    session: Annotated[Text, Field(min_length=1)] = _under("session", "session_id", "source_session")
    seq: int = _under("seq", "decision_seq", "source_seq", ge=1, le=2**31 - 1)
    subject: Text
    detail: Text
    rationale: _OptionalText = ""
    question: _OptionalText = _under("question_context", "question", default="")
    tables: _OptionalTexts = ()
    concepts: _OptionalTexts = ()
    database: _OptionalText = ""
    schema_: _OptionalText = _under("schema", default="")

    @property
    def decision(self) -> tuple[str, int]:
        """Which decision stands behind it."""
        return self.session, self.seq

    @property
    def number(self) -> int:
        """The number of its id."""
        return int(self.id.removeprefix(f"{_PREFIX}-"))

    def content(self, database: str = "", schema: str = "") -> CardContent:
        """What the card says, in a scope where the record itself names none."""
        scope = self.database or database, self.schema_ or schema
        tables = {Dependency(*scope, table) for table in self.tables if table}
        return CardContent(
            Family.CONCEPT,
            subject=self.subject,
            detail=self.detail,
            rationale=self.rationale,
            database=scope[0],
            schema=scope[1],
            concepts=self.concepts,
            dependencies=tuple(sorted(table for table in tables if table.plausible)),
        )


@dataclass(slots=True)
class LegacyReport:
    """What an import of a registry did.

    Attributes:
        created: cards made.
        joined: records that became a further source of a card of equal text.
        known: records whose decision stands behind a card already, or stood behind one that was deleted.
        renumbered: card → the id of its record, which was not free.
        refused: what for → how many records.
        refused_lines: what for → the numbers of their lines, of the first of them.
        malformed: how many lines could not be used.
        lines: `line N` → what is wrong with it, for the first of them.
    """

    created: int = 0
    joined: int = 0
    known: int = 0
    renumbered: dict[str, str] = field(default_factory=dict)
    refused: Counter[str] = field(default_factory=Counter)
    refused_lines: dict[str, list[int]] = field(default_factory=dict)
    malformed: int = 0
    lines: dict[str, str] = field(default_factory=dict)

    def refuse(self, number: int, what: str) -> None:
        """Count the record of a line as refused, and name the line unless too many are named already."""
        self.refused[what] += 1
        if sum(map(len, self.refused_lines.values())) < jsonl.FAULTS_LIMIT:
            self.refused_lines.setdefault(what, []).append(number)

    def as_json(self) -> dict[str, Any]:
        """The report as JSON-ready values."""
        return {**asdict(self), "refused": dict(self.refused)}


@dataclass(frozen=True, slots=True)
class _Entry:
    """A record that becomes a source, and perhaps a card."""

    record: LegacyRecord
    content: CardContent
    promoted_by: int

    @property
    def text_key(self) -> str:
        return cards.text_key(self.content)


def import_legacy(
    database: Database, workspace: str, stream: IO[bytes], identity: EmbeddingIdentity, *, principal: str
) -> LegacyReport:
    """Make cards of a registry's clarifications, in one transaction; a second time, nothing doubles.

    Each has the decision that it names as its source, so that an ingest of that session joins it. From then on the
    ledger has the last word: a decision that it does not promote is no source any more. Projections are kept for the
    embedding identity from then on.

    Raises:
        UnknownWorkspace: the archive has no such workspace.
        NotPermitted: the principal is no administrator of it.
        InvalidInput: a line is too long for any record.
    """
    report = LegacyReport()
    with database.transaction(workspace, writing=True) as tx:
        grants.require_in(tx, principal, grants.Role.ADMINISTRATOR)
        identities.register(tx, identity)
        entries = _new(tx, _usable(stream, report), report)
        keys = sorted({entry.text_key for entry in entries})
        known = {row["text_key"]: row["card_id"] for row in tx.rows(_INTAKE["cards_of_equal_text"], text_keys=keys)}
        fresh: dict[str, _Entry] = {}
        for entry in entries:
            if entry.text_key not in known:
                fresh.setdefault(entry.text_key, entry)
        ids = _ids(tx, [entry.record for entry in fresh.values()], report)
        made = {ids[entry.record.decision]: entry for entry in fresh.values()}
        cards.insert(tx, {i: entry.content for i, entry in made.items()}, origin="session", principal=principal)
        _keep_sources(tx, entries, known | {entry.text_key: card_id for card_id, entry in made.items()})
        cards.flag(tx, known.values(), Flag.SOURCES_WITHDRAWN, up=False)
    report.created, report.joined = len(made), len(entries) - len(made)
    return report


class _Refused(Exception):
    """What is wrong with a record that can be read, but not taken in."""


def _usable(stream: IO[bytes], report: LegacyReport) -> dict[LegacyRecord, int]:
    """The clarifications of the registry with their lines, the first of each decision; everything else is counted."""
    found: dict[tuple[str, int], tuple[LegacyRecord, int]] = {}
    faults = jsonl.Faults()
    for number, line in jsonl.lines(stream):
        try:
            record = _record(line)
        except _Refused as refused:
            report.refuse(number, str(refused))
        except ValidationError as error:
            faults.add(number, jsonl.described(error))
        except (ValueError, InvalidEdit) as error:
            faults.add(number, str(error))
        else:
            report.known += record.decision in found
            found.setdefault(record.decision, (record, number))
    report.malformed, report.lines = faults.total, faults.named()
    return dict(found.values())


def _record(line: bytes) -> LegacyRecord:
    value = jsonl.parsed(line)
    if not isinstance(value, dict):
        raise ValueError("is no JSON object")  # noqa: TRY004  # it is the line that is wrong, not a type
    kind = value.get("type", value.get("decision_type"))
    if not isinstance(kind, str):
        raise ValueError("type: is missing")  # noqa: TRY004  # likewise
    if kind != _CONCEPT:
        raise _Refused(kind)
    record = LegacyRecord.model_validate(value)
    checked(record.content())
    if names_table(record.subject):
        raise _Refused(f"{_CONCEPT} whose subject is the name of a table")
    return record


def _new(tx: Tx, records: Mapping[LegacyRecord, int], report: LegacyReport) -> list[_Entry]:
    """The records whose decision is no source yet, unless a ledger that was read says that it is no promotion."""
    named = {"sessions": [record.session for record in records], "seqs": [record.seq for record in records]}
    sources = {(row["session_id"], row["seq"]) for row in tx.rows(_SQL["sources"], **named)}
    read = {(row["session_id"], row["seq"]): row for row in tx.rows(_SQL["decisions"], **named)}
    entries = []
    for record, number in records.items():
        decision = read.get(record.decision)
        if record.decision in sources:
            report.known += 1
        elif decision is not None and decision["outcome"] != Outcome.PROMOTED:
            report.refuse(number, f"{_CONCEPT} that its session's ledger does not promote")
        else:
            entries.append(_entry(record, decision))
    return entries


def _entry(record: LegacyRecord, read: Row | None) -> _Entry:
    if read is None:
        return _Entry(record, record.content(), _EVERY_PROMOTION)
    return _Entry(record, record.content(read["database"], read["schema"]), read["promoted_by"])


def _ids(tx: Tx, records: Sequence[LegacyRecord], report: LegacyReport) -> dict[tuple[str, int], str]:
    """Decision → the id of its card: the record's own where no card ever had it, else the next number."""
    last = int(tx.row(_SQL["last_number"])["last"])
    numbers: dict[int, LegacyRecord] = {}
    others = []
    for record in records:
        if record.number > last and record.number not in numbers:
            numbers[record.number] = record
        else:
            others.append(record)
    after = max([last, *numbers])
    numbers |= dict(enumerate(others, after + 1))
    ids = {record.decision: f"{_PREFIX}-{number:04d}" for number, record in numbers.items()}
    report.renumbered = {ids[record.decision]: record.id for record in others}
    if numbers:
        cards.reserve(tx, _PREFIX, max(numbers))
    return ids


def _keep_sources(tx: Tx, entries: Iterable[_Entry], card_of: Mapping[str, str]) -> None:
    entries = list(entries)
    insert_questions(tx, sorted({nfc(entry.record.question) for entry in entries if entry.record.question.strip()}))
    insert_sources(tx, [_source(entry, card_of[entry.text_key]) for entry in entries])


def _source(entry: _Entry, card_id: str) -> dict[str, object]:
    record = entry.record
    return {
        "session_id": record.session,
        "seq": record.seq,
        "decision_type": _CONCEPT,
        "decided_by": entry.promoted_by,
        "text_key": entry.text_key,
        "card_id": card_id,
        "question_id": question_id(record.question) if record.question.strip() else None,
    }
