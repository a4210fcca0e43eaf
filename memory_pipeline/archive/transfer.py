"""A workspace's cards as JSON lines and back: lossless, one record at a time, and nothing of a file with a fault.

What the archive keeps of session directories is not part of it: they are read again. The sources, which say what of
them became which card, are, those of deleted cards included, so that the ingest which follows changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby, islice
from typing import IO, TYPE_CHECKING, Any

from memory_pipeline import jsonl
from memory_pipeline.archive import cards, grants, identities, workspaces
from memory_pipeline.archive.queries import load
from memory_pipeline.archive.records import (
    FORMAT,
    RECORD,
    CardRecord,
    Header,
    LinkRecord,
    QuestionRecord,
    Record,
    SourceRecord,
    checked,
)
from memory_pipeline.cards import Dependency, workspace_name
from memory_pipeline.errors import InvalidInput
from memory_pipeline.points import question_fingerprint, question_id
from memory_pipeline.text import equality_key

if TYPE_CHECKING:
    from memory_pipeline.archive.database import Database, Tx
    from memory_pipeline.embedding.base import EmbeddingIdentity

_SQL = load("transfer")

_BATCH = 500  # records in one round trip


@dataclass(slots=True)
class Transferred:
    """How many records of each kind were written."""

    cards: int = 0
    questions: int = 0
    sources: int = 0
    links: int = 0


# ── Out ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def export(database: Database, workspace: str, stream: IO[bytes], *, principal: str) -> Transferred:
    """Write a workspace's cards, sources, questions, links and dependencies as JSON lines, all of one moment.

    Raises:
        UnknownWorkspace: the archive has no such workspace.
        NotPermitted: the principal may not read it.
    """
    with database.transaction(workspace, snapshot=True) as tx:
        grants.require_in(tx, principal, grants.Role.READER)
        header = dict(tx.row(_SQL["header"]))
        _write(stream, {"kind": "workspace", "format": FORMAT, "workspace": workspace, **header})
        return Transferred(
            cards=_write_all(tx, stream, "cards", _card_line),
            questions=_write_all(tx, stream, "questions", lambda row: {"kind": "question", **row}),
            sources=_write_all(tx, stream, "sources", lambda row: {"kind": "source", **row}),
            links=_write_all(tx, stream, "links", lambda row: {"kind": "link", **row}),
        )


def _write_all(tx: Tx, stream: IO[bytes], query: str, line: Callable[[dict[str, Any]], dict[str, Any]]) -> int:
    count = 0
    for row in tx.stream(_SQL[query]):
        _write(stream, line(dict(row)))
        count += 1
    return count


def _card_line(row: dict[str, Any]) -> dict[str, Any]:
    dependencies = [asdict(Dependency(*names)) for names in sorted(row["dependencies"])]
    moments = {name: row[name].isoformat() for name in ("created_at", "updated_at")}
    return {"kind": "card", **row, "dependencies": dependencies, **moments}


def _write(stream: IO[bytes], record: dict[str, Any]) -> None:
    stream.write(json.dumps(record, ensure_ascii=False).encode() + b"\n")


# ── In ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


def import_workspace(
    database: Database, workspace: str, stream: IO[bytes], identity: EmbeddingIdentity, *, principal: str
) -> Transferred:
    """Read into an empty workspace what `export` wrote, in one transaction; the workspace is made where there is none.

    Ids and versions are kept, and no number that was ever given is given again. What the index should hold follows by
    itself.

    Args:
        database: the archive.
        workspace: the name that it gets here.
        stream: the file, which is read twice: nothing is written before all of it was checked.
        identity: the embedding identity that projections are kept for from then on.
        principal: an administrator; of a workspace that is made here, its first.

    Raises:
        InvalidInput: the file has faults, all named with their lines, or is incomplete; or the workspace is not empty.
        UnknownWorkspace: no workspace may be called so.
        NotPermitted: the principal is no administrator of the workspace.
    """
    workspace_name(workspace)
    found = checked(stream)
    stream.seek(0)
    if workspace not in workspaces.names(database):
        workspaces.make(database, workspace, language=found.header.language, principal=principal)
    with database.transaction(workspace, writing=True) as tx:
        grants.require_in(tx, principal, grants.Role.ADMINISTRATOR)
        _require_empty(tx, found.header)
        identities.register(tx, identity)
        done = Transferred()
        for batch in _batches(RECORD.validate_json(line) for _, line in jsonl.lines(stream)):
            _INSERT[type(batch[0])](tx, batch, done)
        for prefix, last in found.numbers.items():
            cards.reserve(tx, prefix, last)
        return done


def _require_empty(tx: Tx, header: Header) -> None:
    if tx.row(_SQL["filled"])["filled"]:
        raise InvalidInput(f"workspace {tx.workspace!r} has cards, or had some: import into a new one")
    if (language := tx.language) != header.language:
        raise InvalidInput(
            f"workspace {tx.workspace!r} is analysed as {language}, and the file's as {header.language}: "
            "import into a new workspace, which takes the file's language"
        )


def _batches(records: Iterator[Record]) -> Iterator[Sequence[Any]]:
    """The records in lists of one kind, as they follow each other."""
    for _, group in groupby(records, key=type):
        while batch := list(islice(group, _BATCH)):
            yield batch


def _insert_cards(tx: Tx, batch: Sequence[CardRecord], done: Transferred) -> None:
    language = tx.language
    contents = {record.card_id: record.content() for record in batch}
    kept = ("version", "origin", "edited", "flags", "created_at", "updated_at", "updated_by")
    rows = [
        {**cards.columns(r.card_id, contents[r.card_id], language), **{name: getattr(r, name) for name in kept}}
        for r in batch
    ]
    tx.run_many(_SQL["insert_card"], rows)
    cards.insert_parts(tx, contents)
    done.cards += len(batch)


def _insert_questions(tx: Tx, batch: Sequence[QuestionRecord], done: Transferred) -> None:
    insert_questions(tx, [record.text for record in batch])
    done.questions += len(batch)


def _insert_sources(tx: Tx, batch: Sequence[SourceRecord], done: Transferred) -> None:
    insert_sources(tx, [record.model_dump(exclude={"kind"}) for record in batch])
    done.sources += len(batch)


def _insert_links(tx: Tx, batch: Sequence[LinkRecord], done: Transferred) -> None:
    tx.run_many(_SQL["insert_link"], [record.model_dump(exclude={"kind"}) for record in batch])
    done.links += len(batch)


def _insert_nothing(_tx: Tx, _batch: Sequence[Header], _done: Transferred) -> None:
    """The header was used before."""


_INSERT: dict[type, Callable[[Tx, Any, Transferred], None]] = {
    Header: _insert_nothing,
    CardRecord: _insert_cards,
    QuestionRecord: _insert_questions,
    SourceRecord: _insert_sources,
    LinkRecord: _insert_links,
}


def insert_questions(tx: Tx, texts: Sequence[str]) -> None:
    """Keep questions, as they are spelled; those that are there stay as they are."""
    language = tx.language
    rows = [
        {
            "question_id": question_id(text),
            "text": text,
            "text_key": equality_key(text),
            "fingerprint": question_fingerprint(text, language),
        }
        for text in texts
    ]
    tx.run_many(_SQL["insert_question"], rows)


def insert_sources(tx: Tx, rows: Sequence[Mapping[str, object]]) -> None:
    """Keep sources, each with the columns of `card_source`."""
    tx.run_many(_SQL["insert_source"], rows)
