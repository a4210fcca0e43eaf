"""A workspace out and in again: nothing is lost, nothing doubles, and a file with a fault changes nothing."""

from __future__ import annotations

import io
import json
from collections.abc import Callable

import pytest

from memory_pipeline.archive import cards, editing, grants, workspaces
from memory_pipeline.archive.grants import Role
from memory_pipeline.archive.records import FORMAT
from memory_pipeline.archive.status import workspace_status
from memory_pipeline.archive.transfer import Transferred, export, import_workspace
from memory_pipeline.cards import Dependency, Family
from memory_pipeline.edits import Change, Create, Delete, Link, Merge
from memory_pipeline.errors import InvalidInput, NotPermitted, UnknownWorkspace
from memory_pipeline.propagation import audit, project
from tests.archives import Archive
from tests.builders import approved, clarified, promoted
from tests.curating import CLINIC, a_card, a_creation, a_workspace
from tests.doubles import HashEmbedder

COPY = "copy"
MAKER = "tester"
ODD = 'ωσπερ 👩‍⚕️ e\u0301 é \u202bمرحبا\u202c \\ " \u2028'
TABLES = ("card", "card_dependency", "card_link", "card_literal", "card_number", "card_source", "question")


@pytest.fixture
def copy(archive: Archive) -> Archive:
    """The workspace that imports go to; it is not made yet."""
    return Archive(archive.runtime, COPY)


def exported(archive: Archive, principal: str = MAKER) -> bytes:
    stream = io.BytesIO()
    export(archive.database, archive.workspace, stream, principal=principal)
    return stream.getvalue()


def imported(archive: Archive, content: bytes, principal: str = MAKER) -> Transferred:
    identity = archive.runtime.identity
    return import_workspace(archive.database, archive.workspace, io.BytesIO(content), identity, principal=principal)


def edit(archive: Archive, *edits) -> None:
    for each in edits:
        with archive.database.transaction(archive.workspace, writing=True) as tx:
            editing.apply(tx, each, principal="anna")


def sessions(archive: Archive) -> None:
    """Three sessions: an equal clarification in two of them, one that nobody shares, and two solved questions."""
    archive.session(clarified(1, tables=("dim_patient",)), approved(2), promoted(3, 1), session="s1")
    archive.session(clarified(1, "Active patient."), promoted(2, 1), session="s2", question=ODD, sql=None)
    archive.session(clarified(1, "fever", "temp > 38"), approved(2), promoted(3, 1), session="s3", sql="SELEC !")


def curated(archive: Archive) -> None:
    """Cards of every family, origin and state, and what was deleted."""
    sessions(archive)
    archive.ingest()
    column = Dependency("dwh", "public", "dim_patient", "flag_attivo")
    edit(
        archive,
        Change("mem-0001", 1, {"rationale": ODD}),
        a_creation(subject="old rule", family=Family.SQL_RULE, concepts=("a", ODD), dependencies=(column,)),
        a_creation(subject="of case", family=Family.PITFALL),
        a_creation(subject="its twin", family=Family.PITFALL),
        Delete("mem-0002", 1),
        Delete("sq-0002", 1),
        Change("mem-0003", 1, {}, (Link("mem-0001", ODD), Link("mem-0005", "see", outgoing=False))),
        Merge("mem-0004", 1, "mem-0005", 2),
    )
    archive.session(clarified(1), approved(2), promoted(3, 1), session="s1", database="moved")
    archive.ingest()  # which flags the edited card


def content(archive: Archive) -> dict[str, list[tuple[object, ...]]]:
    """Everything that a table holds of the workspace, but for its name."""
    found = {}
    for table in TABLES:
        rows = [{k: v for k, v in row.items() if k != "workspace"} for row in archive.rows(f"SELECT * FROM {table}")]
        found[table] = sorted((tuple(row.items()) for row in rows), key=repr)
    return found


def of_copy(content: bytes) -> bytes:
    return content.replace(b'"workspace": "clinic"', b'"workspace": "copy"')


# ── There and back ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_round_trip_loses_nothing_and_a_second_export_is_the_same(archive: Archive, copy: Archive):
    curated(archive)
    first = exported(archive)
    done = imported(copy, first)
    assert (done.cards, done.questions, done.sources, done.links) == (4, 2, 5, 2)
    assert content(copy) == content(archive)
    assert exported(copy) == of_copy(first)
    kept = {row["card_id"]: row for row in copy.rows("SELECT * FROM card")}
    assert kept["mem-0001"]["rationale"] == ODD
    assert kept["mem-0001"]["flags"] == ["ledger_differs"]


def test_an_ingest_of_the_same_sessions_changes_nothing_and_deleted_cards_stay_away(archive: Archive, copy: Archive):
    curated(archive)
    imported(copy, exported(archive))
    before = content(copy)
    sessions(copy)
    copy.session(clarified(1), approved(2), promoted(3, 1), session="s1", database="moved")
    report = copy.ingest()
    assert report.sessions.read == 3
    assert not report.concepts
    assert not report.solved_questions
    assert content(copy) == before


def test_a_number_is_never_given_again(archive: Archive, copy: Archive):
    a_workspace(archive.runtime)
    edit(archive, a_creation(), a_creation(subject="fever"), Delete("mem-0002", 1))
    imported(copy, exported(archive))
    edit(copy, a_creation(subject="fever"))
    assert copy.card_ids() == ["mem-0001", "mem-0003"]


def test_a_card_above_the_header_s_numbers_moves_them_on(archive: Archive, copy: Archive):
    a_workspace(archive.runtime)
    edit(archive, a_creation())
    lines = exported(archive).replace(b'{"mem": 1}', b"{}").replace(b"mem-0001", b"mem-0041")
    imported(copy, lines)
    edit(copy, a_creation(subject="fever"))
    assert copy.card_ids() == ["mem-0041", "mem-0042"]


def test_the_largest_numbers_that_are_read_can_be_counted_on(copy: Archive):
    records = {**HEADER["records"], "card": 1}
    imported(copy, a_file({**HEADER, "numbers": {"mem": 2**30}, "records": records}, {**CARD, "version": 2**30}))
    edit(copy, Change("mem-0001", 2**30, {"detail": "newer"}), a_creation(subject="fever"))
    assert copy.card_ids() == ["mem-0001", f"mem-{2**30 + 1}"]
    assert copy.card()["version"] == 2**30 + 1


def test_the_language_is_kept(archive: Archive, copy: Archive):
    workspaces.make(archive.database, CLINIC, language="german", principal=MAKER)
    edit(archive, a_creation())
    imported(copy, exported(archive))
    with copy.database.transaction(COPY) as tx:
        assert tx.language == "german"
    assert content(copy) == content(archive)


def test_an_empty_workspace_is_exported_and_imported_too(archive: Archive, copy: Archive):
    a_workspace(archive.runtime)
    assert len(exported(archive).splitlines()) == 1
    assert imported(copy, exported(archive)) == Transferred()


def test_many_cards_go_in_batches(archive: Archive, copy: Archive, monkeypatch):
    monkeypatch.setattr("memory_pipeline.archive.transfer._BATCH", 7)
    monkeypatch.setattr("memory_pipeline.archive.database._FETCHED", 5)
    a_workspace(archive.runtime)
    with archive.database.transaction(CLINIC, writing=True) as tx:
        cards.create(tx, [a_card(subject=f"subject {n}") for n in range(30)], origin="hand", principal=MAKER)
    assert imported(copy, exported(archive)).cards == 30
    assert content(copy) == content(archive)


def test_what_the_index_should_hold_follows(archive: Archive, copy: Archive):
    archive.runtime.embedder = HashEmbedder()
    curated(archive)
    imported(copy, exported(archive))
    assert copy.pending() == set(copy.column("SELECT card_id FROM card UNION SELECT question_id FROM question"))
    copy.change("UPDATE projection SET wanted_at = wanted_at - interval '1 hour'")
    with copy.database.transaction(COPY) as tx:
        assert workspace_status(tx, copy.identity).lag_seconds > 3000  # and it does not begin anew with every look
    assert project(archive.runtime, COPY).pending == 0
    assert not audit(archive.runtime, COPY)


# ── Who may, and where to ────────────────────────────────────────────────────────────────────────────────────────────


def test_a_reader_exports_and_a_stranger_does_not(archive: Archive):
    a_workspace(archive.runtime)
    grants.give(archive.database, CLINIC, "rita", Role.READER, by=MAKER)
    assert exported(archive, "rita") == exported(archive)
    with pytest.raises(NotPermitted):
        exported(archive, "nobody")


def test_who_imports_into_a_new_workspace_is_its_administrator_and_into_another_has_to_be(
    archive: Archive, copy: Archive
):
    a_workspace(archive.runtime)
    edit(archive, a_creation())
    lines = exported(archive)
    a_workspace(archive.runtime, "ward")
    with pytest.raises(NotPermitted):
        imported(Archive(archive.runtime, "ward"), lines, principal="anna")
    imported(copy, lines, principal="anna")
    assert [(g.principal, g.role) for g in grants.of(copy.database, COPY)] == [("anna", Role.ADMINISTRATOR)]


@pytest.mark.parametrize("deleted", [False, True])
def test_a_workspace_that_has_or_had_cards_takes_no_import(archive: Archive, copy: Archive, deleted):
    a_workspace(archive.runtime)
    a_workspace(archive.runtime, COPY)
    edit(copy, a_creation(), *([Delete("mem-0001", 1)] if deleted else []))
    before = content(copy)
    with pytest.raises(InvalidInput, match="has cards, or had some"):
        imported(copy, exported(archive))
    assert content(copy) == before


def test_a_workspace_of_another_language_takes_no_import(archive: Archive, copy: Archive):
    a_workspace(archive.runtime)
    workspaces.make(copy.database, COPY, language="german", principal=MAKER)
    with pytest.raises(InvalidInput, match="analysed as german"):
        imported(copy, exported(archive))


def test_a_workspace_that_is_not_there_has_no_export(archive: Archive):
    with pytest.raises(UnknownWorkspace):
        exported(archive)
    with pytest.raises(UnknownWorkspace):
        imported(Archive(archive.runtime, "*"), b"")


# ── Files with faults ────────────────────────────────────────────────────────────────────────────────────────────────

RECORDS = {"card": 0, "question": 0, "source": 0, "link": 0}
HEADER = {
    "kind": "workspace",
    "format": FORMAT,
    "workspace": "clinic",
    "language": "italian",
    "numbers": {},
    "records": RECORDS,
}
CARD = {
    "kind": "card",
    "card_id": "mem-0001",
    "family": "concept",
    "version": 1,
    "origin": "hand",
    "edited": True,
    "flags": [],
    "subject": "fever",
    "detail": "temp > 38",
    "rationale": "",
    "question": "",
    "sql": "",
    "dialect": "",
    "context": "",
    "database": "",
    "schema": "",
    "concepts": [],
    "dependencies": [],
    "created_at": "2026-01-05T08:00:00+00:00",
    "updated_at": "2026-01-05T08:00:00+00:00",
    "updated_by": "anna",
}
SOURCE = {
    "kind": "source",
    "session_id": "s1",
    "seq": 1,
    "decision_type": "concept_clarified",
    "decided_by": 2,
    "text_key": "0" * 64,
    "card_id": "mem-0001",
    "question_id": None,
}
LINK = {"kind": "link", "source_id": "mem-0001", "target_id": "mem-0002", "meaning": "see"}
NAME = {"database": "", "schema": "", "table": "t" * 256, "column": ""}


def a_file(*lines: object) -> bytes:
    return b"".join((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n" for line in lines)


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        ([], "line 1: is not the first of an export"),
        ([CARD], "line 1: is not the first of an export"),
        ([b"nonsense"], "line 1: is not the first of an export: is not JSON"),
        ([{"kind": "workspace", "format": 1}], "format is 1"),
        ([{**HEADER, "format": 99}], "format is 99"),
        ([{**HEADER, "records": {"card": -1}}], "records.card: has to be 0 or more; records.question: is missing"),
        ([HEADER, CARD], "the file holds 1 of 0 card lines"),
        ([{**HEADER, "language": "klingon"}], "language: is not supported here"),
        ([HEADER, b"{"], "line 2: is not JSON"),
        ([HEADER, b"", HEADER], "line 3: kind: only the first line"),
        ([HEADER, {"kind": "thing"}], "line 2: kind: has to be one of 'workspace', 'card'"),
        ([HEADER, CARD, CARD], "line 3: this card stands above already"),
        ([HEADER, {**CARD, "version": 0}], "line 2: card.version: has to be 1 or more"),
        ([HEADER, {**CARD, "version": 2**30 + 1}], "line 2: card.version: has to be 1073741824 or less"),
        ([HEADER, {**CARD, "version": "1"}], "line 2: card.version: has to be a whole number"),
        ([HEADER, {**CARD, "colour": "red"}], "line 2: card.colour: is not a field of this: leave it out"),
        ([HEADER, {k: v for k, v in CARD.items() if k != "flags"}], "line 2: card.flags: is missing"),
        ([HEADER, {**CARD, "card_id": "sq-0001"}], "line 2: card_id: of a concept it begins with mem-"),
        ([HEADER, {**CARD, "card_id": "mem-00001"}], "line 2: card_id: there is no such number"),
        ([HEADER, {**CARD, "card_id": "mem-9999999999"}], "line 2: card_id: there is no such number"),
        ([HEADER, {**CARD, "subject": "a\0b"}], "line 2: card.subject: cannot be kept, since it holds a NUL byte"),
        ([HEADER, {**CARD, "dependencies": [NAME]}], "line 2: dependencies: no database has names"),
        (
            [HEADER, {**CARD, "updated_at": "2026-01-05T08:00:00"}],
            "line 2: card.updated_at: has to be a time with its zone",
        ),
        ([HEADER, {**CARD, "updated_at": "0001-01-01T00:00:00+14:00"}], "line 2: card.updated_at: is outside"),
        ([HEADER, SOURCE], "line 2: card_id: no card 'mem-0001' stands above"),
        ([HEADER, CARD, {**SOURCE, "question_id": "q-1"}], "line 3: question_id: no question 'q-1' stands above"),
        ([HEADER, CARD, SOURCE, SOURCE], "line 4: this source stands above already"),
        ([HEADER, CARD, LINK], "line 3: card_id: no card 'mem-0002' stands above"),
        ([HEADER, CARD, {**LINK, "target_id": "mem-0001"}], "line 3: target_id: a card has no link to itself"),
        ([HEADER, {"kind": "question", "question_id": "q-1", "text": "why?"}], "line 2: question_id: is not that"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_a_fault_is_named_with_its_line_and_nothing_is_imported(copy: Archive, lines, fault):
    with pytest.raises(InvalidInput) as caught:
        imported(copy, a_file(*lines))
    assert fault in str(caught.value)
    assert workspaces.names(copy.database) == []


def test_a_file_that_ends_too_early_is_refused_and_what_is_missing_is_said(archive: Archive, copy: Archive):
    curated(archive)
    lines = exported(archive).splitlines(keepends=True)
    for kept, missing in (
        (1, "0 of 4 card lines, 0 of 2 question lines, 0 of 5 source lines, 0 of 2 link lines"),
        (-1, "1 of 2 link lines"),
        (-3, "4 of 5 source lines, 0 of 2 link lines"),
    ):
        with pytest.raises(InvalidInput, match=f"the file holds {missing}: it is not the whole export"):
            imported(copy, b"".join(lines[:kept]))
    assert workspaces.names(copy.database) == [CLINIC]


def test_every_faulty_line_is_named_at_once(copy: Archive):
    with pytest.raises(InvalidInput) as caught:
        imported(copy, a_file(HEADER, {**CARD, "version": 0}, CARD, b"{", LINK))
    assert [f"line {number}" in str(caught.value) for number in (2, 3, 4, 5)] == [True, False, True, True]


def test_an_import_that_fails_in_the_middle_leaves_the_workspace_empty(copy: Archive, archive: Archive, monkeypatch):
    curated(archive)
    lines = exported(archive)
    a_workspace(archive.runtime, COPY)
    before = content(copy)
    reserve: Callable[..., None] = cards.reserve
    monkeypatch.setattr(cards, "reserve", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        imported(copy, lines)
    assert content(copy) == before
    monkeypatch.setattr(cards, "reserve", reserve)
    assert imported(copy, lines).cards == 4


def test_a_created_card_needs_no_source(archive: Archive, copy: Archive):
    a_workspace(archive.runtime)
    edit(archive, Create(a_card(family=Family.SOLVED_QUESTION, subject="", detail="", question="why?", sql="SELECT 1")))
    imported(copy, exported(archive))
    assert copy.card_ids("solved_question") == ["sq-0001"]
