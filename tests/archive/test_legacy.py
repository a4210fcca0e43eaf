"""A legacy registry: its clarifications become cards once, and the sessions behind them join."""

from __future__ import annotations

import io
import json

import pytest

from memory_pipeline.archive import editing, grants
from memory_pipeline.archive.grants import Role
from memory_pipeline.archive.legacy import LegacyReport, import_legacy
from memory_pipeline.edits import Delete
from memory_pipeline.errors import NotPermitted, UnknownWorkspace
from tests.archives import Archive
from tests.builders import QUESTION, clarified, declined, promoted
from tests.curating import CLINIC, a_creation, a_workspace


@pytest.fixture
def clinic(archive: Archive) -> Archive:
    a_workspace(archive.runtime, CLINIC)
    return archive


def a_record(number: int = 1, session: str = "session-1", seq: int = 1, **others) -> dict[str, object]:
    usual = {
        "id": f"mem-{number:04d}",
        "type": "concept_clarified",
        "subject": "active patient",
        "detail": "flag_attivo = TRUE",
        "rationale": "asked the ward",
        "question_context": QUESTION,
        "tables": ["dim_patient"],
        "concepts": ["patient"],
        "session": session,
        "seq": seq,
    }
    return {name: value for name, value in (usual | others).items() if value is not ...}


def imported(archive: Archive, *records: object, principal: str = "tester") -> LegacyReport:
    lines = (record if isinstance(record, bytes) else json.dumps(record).encode() for record in records)
    stream = io.BytesIO(b"\n".join(lines))
    return import_legacy(archive.database, archive.workspace, stream, archive.runtime.identity, principal=principal)


def test_a_clarification_becomes_a_card_of_its_id_with_its_source(clinic: Archive):
    report = imported(clinic, a_record(7))
    assert (report.created, report.joined, report.known, report.malformed) == (1, 0, 0, 0)
    card = clinic.card("mem-0007")
    assert (card["subject"], card["rationale"], card["concepts"]) == ("active patient", "asked the ward", ["patient"])
    assert (card["family"], card["origin"], card["edited"], card["version"]) == ("concept", "session", False, 1)
    assert clinic.sources("mem-0007") == [("session-1", 1)]
    assert clinic.questions() == [QUESTION]
    assert clinic.column('SELECT "table" FROM card_dependency') == ["dim_patient"]
    assert clinic.pending() == {"mem-0007", *clinic.column("SELECT question_id FROM question")}


def test_a_second_import_doubles_nothing(clinic: Archive):
    records = [a_record(1), a_record(2, seq=2, subject="fever"), a_record(2, seq=3, subject="pulse")]
    imported(clinic, *records)
    before = clinic.rows("SELECT * FROM card ORDER BY card_id")
    report = imported(clinic, *records)
    assert (report.created, report.joined, report.known) == (0, 0, 3)
    assert clinic.rows("SELECT * FROM card ORDER BY card_id") == before


def test_an_id_that_is_not_free_gives_way_to_the_next_number(clinic: Archive):
    with clinic.database.transaction(CLINIC, writing=True) as tx:
        editing.apply(tx, a_creation(subject="pulse"), principal="tester")
        editing.apply(tx, Delete("mem-0001", 1), principal="tester")
    report = imported(clinic, a_record(1), a_record(9, seq=2, subject="fever"), a_record(9, seq=3, subject="again"))
    assert report.renumbered == {"mem-0010": "mem-0001", "mem-0011": "mem-0009"}
    assert [clinic.card(card)["subject"] for card in ("mem-0010", "mem-0009", "mem-0011")] == [
        "active patient",
        "fever",
        "again",
    ]
    imported(clinic, a_record(3, seq=4, subject="late"))
    assert clinic.card("mem-0012")["subject"] == "late"


def test_equal_clarifications_are_one_card_with_several_sources(clinic: Archive):
    with clinic.database.transaction(CLINIC, writing=True) as tx:
        editing.apply(tx, a_creation(subject="fever", detail="temp > 38"), principal="tester")
    report = imported(
        clinic,
        a_record(5),
        a_record(6, session="session-2", subject="Active patient."),
        a_record(7, session="session-3", subject="fever", detail="temp > 38"),
    )
    assert (report.created, report.joined) == (1, 2)
    assert clinic.sources("mem-0005") == [("session-1", 1), ("session-2", 1)]
    assert clinic.sources("mem-0001") == [("session-3", 1)]


def test_a_later_ingest_of_the_session_joins(clinic: Archive):
    imported(clinic, a_record(7))
    clinic.given(clarified(1, tables=("dim_patient",), rationale="asked again"), promoted(2, 1))
    assert clinic.card_ids() == ["mem-0007"]
    assert clinic.sources("mem-0007") == [("session-1", 1)]
    card = clinic.card("mem-0007")
    assert (card["rationale"], card["database"]) == ("asked again", "clinic_dwh")
    report = clinic.ingest()
    assert not report.concepts


def test_an_import_after_the_ingest_finds_it_known(clinic: Archive):
    clinic.given(clarified(1), promoted(2, 1))
    report = imported(clinic, a_record(7))
    assert (report.created, report.known) == (0, 1)
    assert clinic.card_ids() == ["mem-0001"]


def test_what_a_ledger_that_was_read_does_not_promote_is_refused(clinic: Archive):
    clinic.given(clarified(1), clarified(2, "fever"), declined(3, 2))
    report = imported(clinic, a_record(1), a_record(2, seq=2, subject="fever"))
    assert report.refused == {"concept_clarified that its session's ledger does not promote": 2}
    assert list(report.refused_lines.values()) == [[1, 2]]
    assert clinic.card_ids() == []


def test_a_card_deleted_before_its_session_is_read_stays_away(clinic: Archive):
    imported(clinic, a_record(1))
    with clinic.database.transaction(CLINIC, writing=True) as tx:
        editing.apply(tx, Delete("mem-0001", 1), principal="tester")
    clinic.given(clarified(1), promoted(2, 1))
    assert clinic.card_ids() == []
    assert imported(clinic, a_record(1)).known == 1
    assert clinic.card_ids() == []


def test_other_types_and_names_of_tables_are_refused_and_counted(clinic: Archive):
    report = imported(
        clinic,
        a_record(1, type="table_promoted"),
        a_record(2, type="table_promoted", subject=...),
        a_record(3, type="datamart_requested"),
        a_record(4, subject="dim_patient"),
    )
    assert report.refused == {
        "table_promoted": 2,
        "datamart_requested": 1,
        "concept_clarified whose subject is the name of a table": 1,
    }
    assert report.refused_lines == {
        "table_promoted": [1, 2],
        "datamart_requested": [3],
        "concept_clarified whose subject is the name of a table": [4],
    }
    assert (report.created, report.malformed) == (0, 0)


def test_no_more_lines_than_can_be_looked_at_are_named(clinic: Archive, monkeypatch):
    monkeypatch.setattr("memory_pipeline.jsonl.FAULTS_LIMIT", 2)
    report = imported(clinic, *(a_record(1, type="table_promoted") for _ in range(3)))
    assert (report.refused, report.refused_lines) == ({"table_promoted": 3}, {"table_promoted": [1, 2]})


def test_malformed_lines_are_counted_with_their_numbers_and_stop_no_other(clinic: Archive):
    report = imported(
        clinic,
        b"nonsense",
        b"",
        b"[]",
        a_record(1, type=...),
        a_record(2, session=...),
        a_record(3, seq=0),
        a_record(4, subject="a\0b"),
        a_record(5, detail=" "),
        a_record(6, id="mem-1"),
        a_record(7, concepts="patient"),
        a_record(8),
    )
    assert report.created == 1
    assert report.malformed == 9
    assert list(report.lines) == [f"line {number}" for number in (1, 3, 4, 5, 6, 7, 8, 9, 10)]
    assert "session: is missing" in report.lines["line 5"]
    assert "NUL byte" in report.lines["line 7"]
    assert "detail" in report.lines["line 8"]
    assert json.dumps(report.as_json())


@pytest.mark.parametrize(
    "spelling",
    [
        {"memory_id": "mem-0001", "session_id": "s9", "decision_seq": 4, "question": "why?"},
        {"card_id": "mem-0001", "source_session": "s9", "source_seq": "4", "question_context": "why?"},
    ],
)
def test_keys_may_be_spelled_in_other_ways(clinic: Archive, spelling):
    record = a_record(id=..., session=..., seq=..., question_context=..., rationale=None, tables=None, owner="x")
    assert imported(clinic, {**record, **spelling}).created == 1
    assert clinic.sources("mem-0001") == [("s9", 4)]
    assert clinic.questions() == ["why?"]


def test_it_takes_an_administrator_and_a_workspace(clinic: Archive):
    grants.give(clinic.database, CLINIC, "rita", Role.REVIEWER, by="tester")
    for principal in ("rita", "nobody"):
        with pytest.raises(NotPermitted):
            imported(clinic, a_record(), principal=principal)
    with pytest.raises(UnknownWorkspace):
        imported(Archive(clinic.runtime, "nowhere"), a_record())
    assert clinic.card_ids() == []
