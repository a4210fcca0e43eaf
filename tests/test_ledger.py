"""What is read from session directories, in every state that their files can be in, and what is quarantined."""

from __future__ import annotations

import json
import os
import re
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_pipeline import ledger
from memory_pipeline.errors import SessionsUnavailable, UnknownWorkspace
from memory_pipeline.ledger import (
    LEDGER_FILE,
    MANIFEST_FILE,
    SQL_FILE,
    Decision,
    Fault,
    FaultKind,
    Manifest,
    SessionReading,
    Status,
    list_root,
    list_sessions,
    read_session,
    signature,
)
from memory_pipeline.review import review
from tests.builders import (
    MORNING,
    QUESTION,
    SQL,
    WORKSPACE,
    a_decision,
    a_ledger,
    a_manifest,
    a_session,
    aged,
    approved,
    clarified,
)

NOT_UTF8_NAME = os.fsdecode(b"caf\xe9")


def read(directory: Path) -> SessionReading:
    return read_session(directory, WORKSPACE)


def reading_of(root: Path, lines: bytes, **manifest: str) -> SessionReading:
    return read(a_session(root, ledger=lines, sql=None, **manifest))


def a_line(**fields: object) -> bytes:
    """One line of a ledger; a field given as ... is left out."""
    usual = {"seq": 1, "ts": MORNING.isoformat(), "type": "concept_clarified", "subject": "active patient"}
    kept = {name: value for name, value in (usual | fields).items() if value is not ...}
    return json.dumps(kept).encode() + b"\n"


def kinds(reading: SessionReading) -> list[tuple[int, FaultKind]]:
    return [(fault.line, fault.kind) for fault in reading.faults]


def seqs(reading: SessionReading) -> list[int]:
    return [decision.seq for decision in reading.decisions]


def appended_before_it_is_opened(patched: pytest.MonkeyPatch, data: bytes) -> None:
    """Has somebody append to the ledger after a reader has looked at its signature, and before it reads."""
    really_open = os.open

    def append_first(path: str, flags: int) -> int:
        if path.endswith(LEDGER_FILE):
            with Path(path).open("ab") as file:
                file.write(data)
        return really_open(path, flags)

    patched.setattr(os, "open", append_first)


class TestAWholeSession:
    def test_is_read_as_it_was_written(self, tmp_path):
        decisions = (clarified(1, concepts=("patient",), tables=("patients", "visits"), rationale="asked"), approved(2))
        reading = read(a_session(tmp_path, *decisions, dialect="sqlite", language="english"))
        assert reading == SessionReading(
            session_id="session-1",
            manifest=Manifest(
                session_id="session-1",
                workspace=WORKSPACE,
                question=QUESTION,
                database="clinic_dwh",
                schema="public",
                status=Status.FINALIZED,
                created_at=MORNING,
                updated_at=MORNING + timedelta(hours=1),
                updated_by="reviewer",
                dialect="sqlite",
                language="english",
            ),
            decisions=decisions,
            sql=SQL,
            faults=(),
            waiting=False,
            signature=None,
        )

    def test_that_is_open_and_has_only_a_manifest_is_no_fault(self, tmp_path):
        directory = a_session(tmp_path, status="open", sql=None)
        (directory / LEDGER_FILE).unlink()
        reading = read(directory)
        assert reading.manifest is not None
        assert reading.faults == ()
        assert not reading.ledger_read

    def test_text_is_kept_as_written(self, tmp_path):
        text = "  perche\u0301\u2028 \x85\r\n \U0001f600 "
        reading = reading_of(tmp_path, a_line(subject=text, detail=text))
        assert reading.decisions[0].subject == reading.decisions[0].detail == text

    def test_where_a_decision_stood_is_no_part_of_it(self):
        assert replace(clarified(1), line=7) == clarified(1)


def test_the_documented_examples_are_read_without_a_fault(tmp_path):
    document = (Path(__file__).parents[1] / "docs" / "ledger-format.md").read_text()
    manifest, lines = (re.search(rf"```{kind}\n(.*?)```", document, re.DOTALL)[1] for kind in ("yaml", "jsonl"))
    directory = a_session(tmp_path, session="2026-01-05-ablations", ledger=lines.encode())
    (directory / MANIFEST_FILE).write_text(manifest)
    reading = read(directory)
    assert reading.manifest is not None
    assert seqs(reading) == [1, 2, 3, 4]
    assert reading.faults == review(reading.decisions).faults == ()


def test_every_kind_of_fault_is_documented():
    document = (Path(__file__).parents[1] / "docs" / "ledger-format.md").read_text()
    assert [kind for kind in FaultKind if f"`{kind}`" not in document] == []


class TestLines:
    def test_optional_fields_have_defaults_and_null_is_absent(self, tmp_path):
        nulls = dict.fromkeys(("detail", "rationale", "phase", "concepts", "tables"))
        reading = reading_of(tmp_path, a_line() + a_line(seq=2, **nulls))
        plain = Decision(1, MORNING, "concept_clarified", "active patient", phase=1)
        assert reading.decisions == (plain, replace(plain, seq=2))

    def test_unknown_types_are_kept_and_unknown_keys_ignored(self, tmp_path):
        reading = reading_of(tmp_path, a_line(type="column_renamed", colour={"deep": [1, None]}))
        assert [decision.type for decision in reading.decisions] == ["column_renamed"]
        assert reading.faults == ()

    def test_blank_lines_carriage_returns_and_a_byte_order_mark_are_tolerated_and_lines_numbered(self, tmp_path):
        lines = b"\xef\xbb\xbf" + a_line().replace(b"\n", b"\r\n") + b"\n \r\n" + a_line(seq=2)
        reading = reading_of(tmp_path, lines)
        assert [(decision.seq, decision.line) for decision in reading.decisions] == [(1, 1), (2, 4)]
        assert reading.faults == ()

    def test_end_at_a_line_feed_alone(self, tmp_path):
        raw = json.dumps(json.loads(a_line(detail="a\u2028b\x85c\u2029d")), ensure_ascii=False).encode() + b"\n"
        assert reading_of(tmp_path, raw).decisions[0].detail == "a\u2028b\x85c\u2029d"

    def test_gaps_in_seq_are_fine(self, tmp_path):
        assert seqs(reading_of(tmp_path, a_line(seq=2) + a_line(seq=40))) == [2, 40]

    def test_a_pair_of_escaped_surrogates_is_a_character(self, tmp_path):
        assert reading_of(tmp_path, a_line(detail="\U0001f600")).decisions[0].detail == "\U0001f600"

    def test_an_empty_ledger_is_read_and_holds_nothing(self, tmp_path):
        reading = reading_of(tmp_path, b"")
        assert reading.decisions == ()
        assert reading.faults == ()
        assert reading.ledger_read

    @pytest.mark.parametrize(
        ("written", "meant"),
        [
            ("2026-01-05T08:00:37+02:00", datetime(2026, 1, 5, 6, 0, 37, tzinfo=UTC)),
            ("2026-01-05T08:00:37Z", datetime(2026, 1, 5, 8, 0, 37, tzinfo=UTC)),
            ("2026-01-05 08:00:37.5", datetime(2026, 1, 5, 8, 0, 37, 500_000, tzinfo=UTC)),
            ("2026-01-05", datetime(2026, 1, 5, tzinfo=UTC)),
        ],
    )
    def test_times_are_moments_in_utc_and_naive_ones_are_taken_so(self, tmp_path, written, meant):
        moment = reading_of(tmp_path, a_line(ts=written)).decisions[0].ts
        assert moment == meant
        assert moment.utcoffset() == timedelta(0)


class TestQuarantine:
    @pytest.mark.parametrize(
        ("line", "kind"),
        [
            (b"{not json}\n", FaultKind.NOT_JSON),
            (a_line().strip() + a_line(seq=2), FaultKind.NOT_JSON),
            (b'{"seq": NaN}\n', FaultKind.NOT_JSON),
            (a_line(colour=float("inf")), FaultKind.NOT_JSON),
            (b"[" * 100_000 + b"\n", FaultKind.NOT_JSON),
            (b'{"a":' * 100_000 + b"\n", FaultKind.NOT_JSON),
            (b'{"seq": ' + b"9" * 5_000 + b"}\n", FaultKind.NOT_JSON),
            (b"[1]\n", FaultKind.NOT_AN_OBJECT),
            (b"null\n", FaultKind.NOT_AN_OBJECT),
            (b'"seq"\n', FaultKind.NOT_AN_OBJECT),
            (b"\x00" * 512 + b"\n", FaultKind.NUL_BYTE),
            (a_line(detail="a\x00b"), FaultKind.NUL_BYTE),
            (a_line(type="a\x00b"), FaultKind.NUL_BYTE),
            (a_line(tables=["a", "\x00"]), FaultKind.NUL_BYTE),
            (a_line(detail="a\ud800b"), FaultKind.LONE_SURROGATE),
            (a_line(subject="\udfff"), FaultKind.LONE_SURROGATE),
            (a_line(concepts=["\udc00"]), FaultKind.LONE_SURROGATE),
            (a_line(detail="cafe").replace(b"cafe", b"caf\xe9"), FaultKind.NOT_UTF8),
            (a_line(detail="cafe").replace(b"cafe", b"\xed\xa0\x80"), FaultKind.NOT_UTF8),
            (a_line(detail="x" * ledger.LINE_LIMIT), FaultKind.TOO_LARGE),
            (b'{"seq": 1, ' + a_line()[1:], FaultKind.FIELD_INVALID),
        ],
    )
    def test_of_a_line_that_cannot_be_read_stops_nothing_else(self, tmp_path, line, kind):
        reading = reading_of(tmp_path, a_line(seq=1) + line + a_line(seq=8))
        assert seqs(reading) == [1, 8]
        assert kinds(reading) == [(2, kind)]

    @pytest.mark.parametrize("name", ["seq", "ts", "type", "subject"])
    @pytest.mark.parametrize("value", [..., None])
    def test_of_a_line_without_a_required_field(self, tmp_path, name, value):
        reading = reading_of(tmp_path, a_line(**{name: value}))
        assert kinds(reading) == [(1, FaultKind.FIELD_MISSING)]
        assert name in reading.faults[0].reason

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            *(("seq", value) for value in (0, -1, True, 1.0, "1", 2**31, 2**80, [1], {})),
            *(("phase", value) for value in (0, 9, -1, True, 1.0, "1", 2**80)),
            *(
                ("ts", value)
                for value in (
                    1,
                    "",
                    "yesterday",
                    "2026-13-01",
                    "2026-02-30T00:00:00",
                    "0001-01-01",
                    "9999-12-31",
                    "x" * 999,
                )
            ),
            ("ts", "0001-01-01T00:00:00+14:00"),
            *(("type", value) for value in (1, "", "  ", ["sql_approved"])),
            *(("subject", value) for value in (1, "", "\u3000", [])),
            *(("detail", value) for value in (1, {}, False)),
            ("rationale", 0),
            *((name, value) for name in ("concepts", "tables") for value in ("a", {}, [1], [None], [["a"]], False, 0)),
        ],
    )
    def test_of_a_field_that_has_no_such_value(self, tmp_path, name, value):
        reading = reading_of(tmp_path, a_line(**{name: value}))
        assert kinds(reading) == [(1, FaultKind.FIELD_INVALID)]
        assert name in reading.faults[0].reason
        assert len(reading.faults[0].reason) < 160

    def test_spares_a_blank_subject_where_it_says_nothing_anyway(self, tmp_path):
        assert reading_of(tmp_path, a_line(type="question_rewritten", subject="")).faults == ()

    def test_of_a_seq_that_repeats_or_falls(self, tmp_path):
        lines = b"".join(a_line(seq=seq) for seq in (1, 3, 3, 2, 4))
        reading = reading_of(tmp_path, lines)
        assert seqs(reading) == [1, 3, 4]
        assert kinds(reading) == [(3, FaultKind.SEQ_NOT_RISING), (4, FaultKind.SEQ_NOT_RISING)]

    def test_of_a_line_leaves_its_seq_for_a_better_one(self, tmp_path):
        assert seqs(reading_of(tmp_path, a_line(seq=1, phase=99) + a_line(seq=1))) == [1]

    def test_of_millions_of_lines_is_listed_up_to_a_limit_and_summed_up_beyond(self, tmp_path, monkeypatch):
        monkeypatch.setattr("memory_pipeline.ledger.lines.LINE_FAULTS_LIMIT", 2)
        reading = reading_of(tmp_path, b"x\n" * 5 + a_line())
        assert seqs(reading) == [1]
        assert kinds(reading) == [(1, FaultKind.NOT_JSON), (2, FaultKind.NOT_JSON), (2, FaultKind.FURTHER_FAULTS)]
        assert "3 more lines" in reading.faults[-1].reason

    def test_of_an_object_of_many_keys_finds_the_one_that_stands_twice(self, tmp_path):
        keys = ", ".join(f'"k{number}": 0' for number in range(50_000))
        reading = reading_of(tmp_path, f'{{{keys}, "k49999": 1}}\n'.encode())
        assert reading.faults == (Fault(1, FaultKind.FIELD_INVALID, "the key 'k49999' stands more than once"),)


class TestALastLineWithoutItsNewline:
    def test_is_waiting_in_an_open_session(self, tmp_path):
        for torn in (a_line(seq=2).strip(), a_line(seq=2)[:20]):
            reading = reading_of(tmp_path, a_line() + torn, status="open")
            assert seqs(reading) == [1]
            assert reading.waiting
            assert reading.faults == ()

    def test_counts_in_a_finalized_session_if_it_parses(self, tmp_path):
        reading = reading_of(tmp_path, a_line() + a_line(seq=2).strip())
        assert seqs(reading) == [1, 2]
        assert not reading.waiting

    def test_is_quarantined_in_a_finalized_session_at_rest_if_it_does_not(self, tmp_path):
        reading = read(aged(a_session(tmp_path, ledger=a_line() + a_line(seq=2)[:20], sql=None)))
        assert seqs(reading) == [1]
        assert kinds(reading) == [(2, FaultKind.NOT_JSON)]
        assert not reading.waiting
        assert reading.signature is not None

    @pytest.mark.parametrize("fresh", [MANIFEST_FILE, LEDGER_FILE])
    def test_is_waiting_in_a_finalized_session_that_is_not_at_rest_if_it_does_not(self, tmp_path, fresh):
        directory = aged(a_session(tmp_path, ledger=a_line() + a_line(seq=2)[:20], sql=None))
        os.utime(directory / fresh)
        reading = read(directory)
        assert seqs(reading) == [1]
        assert reading.waiting
        assert reading.faults == ()
        assert reading.signature is None

    def test_is_waiting_in_a_finalized_session_when_its_write_began_after_the_signature_was_taken(
        self, tmp_path, monkeypatch
    ):
        directory = aged(a_session(tmp_path, ledger=a_line(), sql=None))
        with monkeypatch.context() as patched:
            appended_before_it_is_opened(patched, a_line(seq=2)[:20])
            reading = read(directory)
        assert reading.waiting
        assert reading.faults == ()
        assert reading.signature is None

    def test_excuses_no_line_before_it(self, tmp_path):
        reading = reading_of(tmp_path, a_line() + a_line(seq=2)[:20] + b"\n" + a_line(seq=3)[:20])
        assert kinds(reading) == [(2, FaultKind.NOT_JSON)]
        assert reading.waiting

    def test_is_waiting_where_the_manifest_does_not_say(self, tmp_path):
        assert reading_of(tmp_path, a_line() + a_line(seq=2).strip(), status="paused").waiting

    def test_of_white_space_is_nothing_to_wait_for(self, tmp_path):
        assert not reading_of(tmp_path, a_line() + b"  ", status="open").waiting

    @given(end=st.integers(0, 400))
    def test_makes_no_fault_wherever_an_open_ledger_is_cut(self, tmp_path_factory, end):
        whole = a_ledger(clarified(1, "età"), clarified(2), approved(3))[:400]
        reading = reading_of(tmp_path_factory.getbasetemp(), whole[:end], status="open")
        assert reading.faults == ()
        assert seqs(reading) == list(range(1, whole[:end].count(b"\n") + 1))

    @given(end=st.integers(0, 400))
    def test_makes_no_fault_wherever_a_finalized_ledger_is_cut_that_is_being_written(self, tmp_path_factory, end):
        whole = a_ledger(clarified(1, "età"), clarified(2), clarified(3))[:400]
        reading = reading_of(tmp_path_factory.getbasetemp(), whole[:end])
        assert reading.faults == ()
        assert len(reading.decisions) + reading.waiting == len(whole[:end].splitlines())


@given(st.lists(st.one_of(st.binary(max_size=40), st.just(a_line()), st.just(a_line(seq=2))), max_size=6))
def test_no_ledger_raises_and_every_line_is_a_decision_or_a_fault(tmp_path_factory, lines):
    reading = reading_of(tmp_path_factory.getbasetemp(), b"\n".join(lines) + b"\n")
    usable = [line for line in b"\n".join(lines).removeprefix(b"\xef\xbb\xbf").split(b"\n") if line.strip()]
    assert len(reading.decisions) + len(reading.faults) == len(usable)


class TestManifest:
    def read(self, root: Path, content: bytes) -> SessionReading:
        directory = a_session(root)
        (directory / MANIFEST_FILE).write_bytes(content)
        return read(directory)

    @pytest.mark.parametrize(
        "name",
        ["id", "workspace", "question", "database", "schema", "status", "created_at", "updated_at", "updated_by"],
    )
    def test_has_required_entries(self, tmp_path, name):
        reading = self.read(tmp_path, a_manifest(**{name: None}))
        assert reading.manifest is None
        assert kinds(reading) == [(0, FaultKind.MANIFEST_INVALID)]
        assert name in reading.faults[0].reason

    @pytest.mark.parametrize(
        "content",
        [
            b"",
            b"# nothing\n",
            b"- a list\n",
            b"just text\n",
            b"key: [unclosed\n",
            b"one: 1\n---\ntwo: 2\n",
            b"caf\xe9: 1\n",
            b"\x00\x00\x00",
            b"[" * 100_000,
            b"a: &a [*a]\n",
            b"? [a, b]\n: c\n",
            a_manifest(status="paused"),
            a_manifest(status="Finalized"),
            a_manifest(question="  "),
            a_manifest(created_at="yesterday"),
            a_manifest(updated_at="2026-02-30"),
            a_manifest(question="a\x00b"),
            a_manifest(question=None) + b"question: [a, list]\n",
            a_manifest(question=None) + b"question: null\n",
            a_manifest() + b"dialect: {}\n",
            a_manifest() + b"x: !!python/object/apply:os.getcwd []\nid: []\n",
        ],
    )
    def test_that_cannot_be_used_is_a_fault_and_the_ledger_is_still_read(self, tmp_path, content):
        reading = self.read(tmp_path, content)
        assert reading.manifest is None
        assert kinds(reading) == [(0, FaultKind.MANIFEST_INVALID)]
        assert len(reading.decisions) == 3

    def test_may_be_missing(self, tmp_path):
        directory = a_session(tmp_path)
        (directory / MANIFEST_FILE).unlink()
        assert kinds(read(directory)) == [(0, FaultKind.MANIFEST_MISSING)]

    @pytest.mark.parametrize("entry", [{"id": "session-2"}, {"workspace": "another"}])
    def test_of_another_directory_is_foreign(self, tmp_path, entry):
        reading = self.read(tmp_path, a_manifest(**entry))
        assert reading.manifest is None
        assert kinds(reading) == [(0, FaultKind.MANIFEST_FOREIGN)]

    def test_names_its_directory_in_either_unicode_form(self, tmp_path):
        directory = a_session(tmp_path, session="citta\u0300", id="citt\u00e0")
        assert read(directory).manifest is not None

    def test_may_be_written_with_yaml_timestamps_numbers_and_without_schema_or_quotes(self, tmp_path):
        entries = b"id: 0012\nworkspace: clinic\nquestion: 2023\ndatabase: yes\nschema:\nstatus: open\nupdated_by: ~x\n"
        times = b"created_at: 2026-01-05 08:00:00\nupdated_at: 2026-01-05T10:00:00+01:00\nlanguage: null\ndialect: ''\n"
        directory = a_session(tmp_path, session="0012")
        (directory / MANIFEST_FILE).write_bytes(entries + times)
        manifest = read(directory).manifest
        hour_later = MORNING + timedelta(hours=1)
        assert manifest == Manifest("0012", WORKSPACE, "2023", "yes", "", Status.OPEN, MORNING, hour_later, "~x")

    def test_of_aliases_upon_aliases_does_not_hang(self, tmp_path):
        levels = [b"a: &a [x, x, x, x, x, x, x, x, x]"]
        levels += [b"%c: &%c [%s]" % (c, c, b", ".join([b"*%c" % (c - 1)] * 9)) for c in range(ord("b"), ord("z") + 1)]
        assert self.read(tmp_path, a_manifest() + b"\n".join(levels)).manifest is not None

    def test_that_is_huge_is_not_read(self, tmp_path):
        reading = self.read(tmp_path, a_manifest() + b"#" * ledger.MANIFEST_LIMIT)
        assert kinds(reading) == [(0, FaultKind.TOO_LARGE)]


class TestSql:
    @pytest.mark.parametrize("sql", [None, "", " \n"])
    def test_approved_finalized_and_absent_is_a_fault(self, tmp_path, sql):
        reading = read(a_session(tmp_path, sql=sql))
        assert reading.sql is None
        assert kinds(reading) == [(0, FaultKind.SQL_MISSING)]

    @pytest.mark.parametrize("sql", [None, "", " \n"])
    def test_absent_is_no_fault_before_it_is_approved_or_the_session_finalized(self, tmp_path, sql):
        assert read(a_session(tmp_path, clarified(1), sql=sql)).faults == ()
        assert read(a_session(tmp_path, approved(1), sql=sql, status="open")).faults == ()

    @pytest.mark.parametrize("sql", [b"SELECT 1\x00", b"SELECT 'caf\xe9'"])
    def test_that_is_no_text_is_a_fault(self, tmp_path, sql):
        reading = read(a_session(tmp_path, sql=sql))
        assert reading.sql is None
        assert kinds(reading) == [(0, FaultKind.SQL_INVALID)]

    def test_is_kept_as_written_but_for_a_byte_order_mark(self, tmp_path):
        assert read(a_session(tmp_path, sql=b"\xef\xbb\xbfSELECT\r\n 1;\n")).sql == "SELECT\r\n 1;\n"

    def test_that_is_huge_is_not_read(self, tmp_path):
        assert kinds(read(a_session(tmp_path, sql="-" * (ledger.SQL_LIMIT + 1)))) == [(0, FaultKind.TOO_LARGE)]


class TestFiles:
    def test_a_missing_ledger_is_no_empty_one(self, tmp_path):
        directory = a_session(tmp_path)
        (directory / LEDGER_FILE).unlink()
        reading = read(directory)
        assert not reading.ledger_read
        assert kinds(reading) == [(0, FaultKind.LEDGER_MISSING)]

    def test_a_huge_ledger_is_not_read(self, tmp_path, monkeypatch):
        monkeypatch.setattr("memory_pipeline.ledger.reading.LEDGER_LIMIT", 100)
        reading = read(a_session(tmp_path, sql=None))
        assert not reading.ledger_read
        assert kinds(reading) == [(0, FaultKind.TOO_LARGE)]

    @pytest.mark.parametrize("name", [MANIFEST_FILE, LEDGER_FILE, SQL_FILE])
    @pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
    def test_what_is_no_file_is_unreadable_and_holds_nothing_up(self, tmp_path, name, make):
        directory = a_session(tmp_path)
        (directory / name).unlink()
        make(directory / name)
        reading = read(aged(directory))
        assert kinds(reading) == [(0, FaultKind.UNREADABLE)]
        assert reading.signature is None

    @pytest.mark.usefixtures("permissions")
    @pytest.mark.parametrize("name", [MANIFEST_FILE, LEDGER_FILE, SQL_FILE])
    def test_a_file_without_permission_is_unreadable_and_tried_again(self, tmp_path, name):
        directory = aged(a_session(tmp_path))
        (directory / name).chmod(0)
        reading = read(directory)
        assert kinds(reading) == [(0, FaultKind.UNREADABLE)]
        assert reading.signature is None

    @pytest.mark.usefixtures("permissions")
    def test_a_directory_without_permission_is_unreadable(self, tmp_path):
        directory = a_session(tmp_path)
        directory.chmod(0)
        try:
            reading = read(directory)
        finally:
            directory.chmod(0o700)
        assert {kind for _, kind in kinds(reading)} == {FaultKind.UNREADABLE}
        assert not reading.ledger_read

    def test_a_failing_disk_is_unreadable(self, tmp_path, monkeypatch):
        def fail(*_: object) -> int:
            raise OSError(5, "Input/output error")

        directory = a_session(tmp_path)
        monkeypatch.setattr(os, "open", fail)
        reading = read(directory)
        assert [kind for _, kind in kinds(reading)] == [FaultKind.UNREADABLE] * 3
        assert "input/output error" in reading.faults[0].reason

    def test_an_empty_directory_misses_its_manifest_alone(self, tmp_path):
        (tmp_path / WORKSPACE / "session-1").mkdir(parents=True)
        assert kinds(read(tmp_path / WORKSPACE / "session-1")) == [(0, FaultKind.MANIFEST_MISSING)]

    def test_a_directory_whose_name_is_no_text_is_counted_and_shown_with_escapes(self, tmp_path):
        reading = read(tmp_path / WORKSPACE / NOT_UTF8_NAME)
        assert reading.session_id == r"caf\xe9"
        assert kinds(reading) == [(0, FaultKind.NAME_INVALID)]
        assert not reading.ledger_read


class TestListing:
    def test_of_the_root_sorts_workspaces_and_counts_refused_names(self, tmp_path):
        for name in ("toxicology", "card_games", "Clinic", ".git", "-x", "a" * 64, "città", NOT_UTF8_NAME):
            (tmp_path / name).mkdir()
        (tmp_path / "notes.txt").touch()
        (tmp_path / "circle").symlink_to("circle")
        found = list_root(tmp_path)
        assert found.workspaces == ("card_games", "toxicology")
        assert sorted(found.refused) == sorted(("-x", ".git", "Clinic", "a" * 64, r"caf\xe9", "città"))

    def test_of_an_empty_root_is_empty(self, tmp_path):
        assert list_root(tmp_path).workspaces == ()

    def test_of_no_root_says_what_to_do(self, tmp_path):
        (tmp_path / "file").touch()
        for root in (tmp_path / "absent", tmp_path / "file"):
            with pytest.raises(SessionsUnavailable, match="MEMORY_SESSIONS_ROOT"):
                list_root(root)

    @pytest.mark.usefixtures("permissions")
    def test_of_a_root_without_permission_says_what_to_do(self, tmp_path):
        (tmp_path / "root").mkdir(0)
        with pytest.raises(SessionsUnavailable, match="MEMORY_SESSIONS_ROOT"):
            list_root(tmp_path / "root")

    def test_of_sessions_sorts_directories_and_leaves_hidden_ones_out(self, tmp_path):
        for name in ("b", "a", ".tmp-c", NOT_UTF8_NAME):
            (tmp_path / WORKSPACE / name).mkdir(parents=True)
        (tmp_path / WORKSPACE / "notes.txt").touch()
        assert [path.name for path in list_sessions(tmp_path, WORKSPACE)] == ["a", "b", NOT_UTF8_NAME]

    def test_of_a_workspace_that_is_gone_is_not_empty(self, tmp_path):
        with pytest.raises(SessionsUnavailable):
            list_sessions(tmp_path, WORKSPACE)

    def test_does_not_leave_the_root(self, tmp_path):
        with pytest.raises(UnknownWorkspace):
            list_sessions(tmp_path, "..")


class TestSignature:
    def test_is_that_of_the_reading_and_stays_while_nothing_changes(self, tmp_path):
        directory = aged(a_session(tmp_path))
        assert read(directory).signature == signature(directory) is not None

    @pytest.mark.parametrize("name", [MANIFEST_FILE, LEDGER_FILE, SQL_FILE])
    def test_changes_with_each_of_the_files(self, tmp_path, name):
        directory = aged(a_session(tmp_path))
        found = {signature(directory)}
        with (directory / name).open("ab") as file:
            file.write(b"\n")
        found.add(signature(aged(directory)))
        (directory / name).unlink()
        found.add(signature(directory))
        assert len(found) == 3
        assert None not in found

    def test_sees_a_file_replaced_by_one_of_equal_size_and_time(self, tmp_path):
        directory = aged(a_session(tmp_path, sql="SELECT 1"))
        before, moment = signature(directory), (directory / SQL_FILE).stat().st_mtime_ns
        (directory / "new").write_text("SELECT 2")
        os.utime(directory / "new", ns=(moment, moment))
        (directory / "new").replace(directory / SQL_FILE)
        assert signature(directory) not in (before, None)

    @pytest.mark.parametrize("name", [MANIFEST_FILE, LEDGER_FILE, SQL_FILE])
    @pytest.mark.parametrize("seconds", [-1, 0, 3600])
    def test_is_not_trusted_while_a_file_is_fresh_or_of_the_future(self, tmp_path, name, seconds):
        directory = aged(a_session(tmp_path))
        moment = time.time() + seconds
        os.utime(directory / name, (moment, moment))
        assert signature(directory) is None

    def test_of_an_empty_directory_changes_when_a_manifest_appears(self, tmp_path):
        directory = tmp_path / WORKSPACE / "session-1"
        directory.mkdir(parents=True)
        before = signature(directory)
        assert signature(aged(a_session(tmp_path))) not in (before, None)

    def test_of_what_is_no_directory_is_not_trusted(self, tmp_path):
        (tmp_path / "file").touch()
        assert signature(tmp_path / "file") is None

    def test_is_taken_before_the_files_are_read(self, tmp_path, monkeypatch):
        """A line appended while the session is read has it read again."""
        directory = aged(a_session(tmp_path, clarified(1), sql=None))
        with monkeypatch.context() as patched:
            appended_before_it_is_opened(patched, a_ledger(a_decision(2)))
            reading = read(directory)
        assert seqs(reading) == [1, 2]
        assert reading.signature is not None
        assert reading.signature != signature(aged(directory))
