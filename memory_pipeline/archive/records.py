"""The lines of an export, and how they have to go together: shapes alone, nothing is stored here."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import IO, Annotated, ClassVar, Literal

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from memory_pipeline import jsonl
from memory_pipeline.cards import CardContent, Dependency, Family
from memory_pipeline.errors import InvalidInput
from memory_pipeline.jsonl import Text
from memory_pipeline.lexical import is_supported
from memory_pipeline.points import question_id

FORMAT = 2
"""The version of the format; another one is refused."""

_LARGEST = 2**30  # half of PostgreSQL's integers, so that counting goes on


def _within_years(moment: datetime) -> datetime:
    if not 1 < moment.year < 9999:  # noqa: PLR2004  # whatever zone it is read in
        raise ValueError("is outside the years 2 to 9998")
    return moment


def _usable_language(name: str) -> str:
    if not is_supported(name):
        raise ValueError("is not supported here")
    return name


Number = Annotated[int, Field(ge=1, le=_LARGEST)]
Count = Annotated[int, Field(ge=0)]
CardId = Annotated[str, Field(pattern=r"^(mem|sq)-[0-9]{4,10}$")]
Moment = Annotated[AwareDatetime, AfterValidator(_within_years)]
Name = Annotated[Text, Field(max_length=255)]


class _Record(BaseModel):
    """One line. Fields are required, since what is left out would be lost."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    kind: str


class _Format(BaseModel):
    """What the first line of an export has in every format."""

    kind: Literal["workspace"]
    format: int


class Records(BaseModel):
    """How many lines of each kind a file has."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    card: Count
    question: Count
    source: Count
    link: Count


class Header(_Record):
    """The first line: what the file is. `numbers` are the last ones given to cards, by prefix."""

    kind: Literal["workspace"]
    format: int
    workspace: str
    language: Annotated[str, AfterValidator(_usable_language)]
    numbers: dict[Annotated[str, Field(pattern="^(mem|sq)$")], Number]
    records: Records


class DependencyRecord(BaseModel):
    """A database object that a card depends on."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    database: Text
    schema_: Text = Field(alias="schema")
    table: Text
    column: Text

    def dependency(self) -> Dependency:
        """The same as the library has it."""
        return Dependency(self.database, self.schema_, self.table, self.column)


class CardRecord(_Record):
    """A card with its dependencies."""

    kind: Literal["card"]
    card_id: CardId
    family: Family
    version: Number
    origin: Literal["session", "hand"]
    edited: bool
    flags: list[Text]
    subject: Text
    detail: Text
    rationale: Text
    question: Text
    sql: Text
    dialect: Text
    context: Text
    database: Text
    schema_: Text = Field(alias="schema")
    concepts: list[Text]
    dependencies: list[DependencyRecord]
    created_at: Moment
    updated_at: Moment
    updated_by: Text

    _TEXTS: ClassVar = ("subject", "detail", "rationale", "question", "sql", "dialect", "context", "database")

    def content(self) -> CardContent:
        """What the card says."""
        return CardContent(
            family=self.family,
            **{name: getattr(self, name) for name in self._TEXTS},
            schema=self.schema_,
            concepts=tuple(self.concepts),
            dependencies=tuple(sorted({each.dependency() for each in self.dependencies})),
        )


class QuestionRecord(_Record):
    """A question that sources came from."""

    kind: Literal["question"]
    question_id: Text
    text: Text


class SourceRecord(_Record):
    """A decision behind a card; without a card, one that a deletion has consumed."""

    kind: Literal["source"]
    session_id: Text
    seq: Number
    decision_type: Literal["concept_clarified", "sql_approved"]
    decided_by: Number
    text_key: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    card_id: CardId | None
    question_id: Text | None


class LinkRecord(_Record):
    """A link between two cards."""

    kind: Literal["link"]
    source_id: CardId
    target_id: CardId
    meaning: Annotated[Name, Field(min_length=1)]


Record = Header | CardRecord | QuestionRecord | SourceRecord | LinkRecord
RECORD: TypeAdapter[Record] = TypeAdapter(Annotated[Record, Field(discriminator="kind")])
"""Reads one line of any kind."""


class Checked:
    """What the records of a file say of each other; of all that is read, only ids are held."""

    def __init__(self, header: Header) -> None:
        self.header = header
        self.numbers: dict[str, int] = dict(header.numbers)
        self._ids: dict[str, set[object]] = {"card": set(), "question": set(), "source": set(), "link": set()}

    def add(self, record: Record) -> None:
        """Check a record against those before it.

        Raises:
            ValueError: it does not go with them, in words.
        """
        if record.kind == "workspace":
            raise ValueError("kind: only the first line says of which workspace the file is")
        if isinstance(record, CardRecord):
            self._add_card(record)
        elif isinstance(record, QuestionRecord):
            if record.question_id != question_id(record.text):
                raise ValueError("question_id: is not that of the text")
            self._once(record, record.question_id)
        elif isinstance(record, SourceRecord):
            self._known("card", record.card_id)
            self._known("question", record.question_id)
            self._once(record, (record.session_id, record.seq))
        elif isinstance(record, LinkRecord):
            self._known("card", record.source_id)
            self._known("card", record.target_id)
            if record.source_id == record.target_id:
                raise ValueError("target_id: a card has no link to itself")
            self._once(record, (record.source_id, record.target_id))

    def missing(self) -> list[str]:
        """How the lines differ in number from what the first one says, in words."""
        told = self.header.records.model_dump()
        found = {kind: len(ids) for kind, ids in self._ids.items()}
        return [f"{found[kind]} of {told[kind]} {kind} lines" for kind in told if found[kind] != told[kind]]

    def _add_card(self, card: CardRecord) -> None:
        prefix, _, number = card.card_id.partition("-")
        if prefix != card.family.id_prefix:
            raise ValueError(f"card_id: of a {card.family} it begins with {card.family.id_prefix}-")
        if not 1 <= int(number) <= _LARGEST or f"{int(number):04d}" != number:
            raise ValueError("card_id: there is no such number")
        if not all(dependency.plausible for dependency in card.content().dependencies):
            raise ValueError("dependencies: no database has names of more than 255 bytes")
        self._once(card, card.card_id)
        self.numbers[prefix] = max(self.numbers.get(prefix, 0), int(number))

    def _known(self, kind: str, item: str | None) -> None:
        if item is not None and item not in self._ids[kind]:
            raise ValueError(f"{kind}_id: no {kind} {item!r} stands above")

    def _once(self, record: Record, key: object) -> None:
        if key in self._ids[record.kind]:
            raise ValueError(f"this {record.kind} stands above already")
        self._ids[record.kind].add(key)


def checked(stream: IO[bytes]) -> Checked:
    """The file's records, looked at one by one.

    Raises:
        InvalidInput: with every faulty line; or there are fewer lines, or more, than the first one says.
    """
    lines = jsonl.lines(stream)
    found = Checked(_header(lines))
    faults = jsonl.Faults()
    for number, line in lines:
        try:
            found.add(RECORD.validate_json(line))
        except ValidationError as error:
            faults.add(number, jsonl.described(error))
        except ValueError as error:
            faults.add(number, str(error))
    if faults.total:
        raise InvalidInput("; ".join(f"{line}: {fault}" for line, fault in faults.named().items()))
    if differing := found.missing():
        raise InvalidInput(f"the file holds {', '.join(differing)}: it is not the whole export, so export anew")
    return found


def _header(lines: Iterator[tuple[int, bytes]]) -> Header:
    number, line = next(lines, (1, b""))
    try:
        _require_format(number, line)
        return Header.model_validate_json(line)
    except ValidationError as error:
        raise InvalidInput(f"line {number}: is not the first of an export: {jsonl.described(error)}") from None


def _require_format(number: int, line: bytes) -> None:
    """Before anything else, since the other fields of another format are others."""
    found = _Format.model_validate_json(line).format
    if found != FORMAT:
        raise InvalidInput(f"line {number}: the export's format is {found}, and this reads {FORMAT}")
