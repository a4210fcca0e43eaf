"""The commands for many cards at once: edits in bulk, and workspaces out and in."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memory_pipeline.archive import editing
from memory_pipeline.archive.records import FORMAT
from memory_pipeline.errors import ArchiveUnavailable
from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import Settings
from tests.archives import Archive
from tests.command_line import Run, runner
from tests.curating import CLINIC, a_creation, a_workspace

IN_CLINIC = ("-w", CLINIC)
CREATION = {"operation": "create", "family": "concept", "subject": "fever", "detail": "temp > 38"}
RECORD = {
    "id": "mem-0007",
    "type": "concept_clarified",
    "subject": "fever",
    "detail": "temp > 38",
    "session": "s1",
    "seq": 1,
}


@pytest.fixture
def clinic(runtime: Runtime) -> Archive:
    a_workspace(runtime)
    return Archive(runtime, CLINIC)


@pytest.fixture
def run(settings: Settings, clinic: Archive, monkeypatch, capsys) -> Run:
    return runner(settings, monkeypatch, capsys)


@pytest.fixture
def done(run: Run) -> Callable[..., Any]:
    """Runs a command that has to succeed; what it prints as JSON."""

    def done(*arguments: str, stdin: str = "") -> Any:
        code, out, err = run(*arguments, "--json", stdin=stdin)
        assert (code, err) == (0, "")
        return json.loads(out)

    return done


def a_file(directory: Path, *lines: object) -> str:
    file = directory / "lines.jsonl"
    file.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return str(file)


# ── Edits ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_edits_are_submitted_listed_and_applied(done, tmp_path, clinic):
    file = a_file(tmp_path, CREATION, {"operation": "delete", "card_id": "mem-0404", "version": 1})
    assert done("edits", "submit", file, *IN_CLINIC) == {"submitted": 2}
    waiting = done("edits", "list", *IN_CLINIC)
    assert waiting["counts"] == {"waiting": 2, "applied": 0, "refused": 0}
    assert waiting["edits"][0]["content"]["subject"] == "fever"

    report = done("edits", "apply", *IN_CLINIC)["workspaces"][CLINIC]
    assert (report["applied"], report["waiting"]) == (1, 0)
    assert "no card 'mem-0404'" in report["refused"][0]["reason"]

    refused = done("edits", "list", *IN_CLINIC, "--state", "refused")["edits"]
    assert [(e["operation"], e["card_id"], e["principal"]) for e in refused] == [("delete", "mem-0404", "tester")]
    applied = done("edits", "list", *IN_CLINIC, "--state", "applied", "--limit", "1")["edits"]
    assert [(e["card_id"], e["content"]) for e in applied] == [("mem-0001", None)]
    assert clinic.card_ids() == ["mem-0001"]


def test_edits_come_from_standard_input_and_people_see_tables(run, clinic):
    code, out, _ = run("edits", "submit", "-", *IN_CLINIC, stdin=json.dumps(CREATION))
    assert (code, "1 edit(s) wait" in out) == (0, True)
    assert "waiting edits" in run("status")[1]
    assert json.loads(run("status", "--json")[1])["workspaces"][CLINIC]["waiting_edits"] == 1
    assert "create" in run("edits", "list", *IN_CLINIC)[1]
    bad = json.dumps({"operation": "delete", "card_id": "mem-0404", "version": 1})
    run("edits", "submit", "-", *IN_CLINIC, stdin=bad)
    _, out, _ = run("edits", "apply")
    assert "no card 'mem-0404'" in " ".join(out.split())
    assert clinic.card_ids() == ["mem-0001"]


def test_an_edit_is_discarded(run, done, tmp_path):
    done("edits", "submit", a_file(tmp_path, CREATION), *IN_CLINIC)
    [edit] = done("edits", "list", *IN_CLINIC)["edits"]
    assert done("edits", "discard", str(edit["edit_id"]), *IN_CLINIC) == {"discarded": 1}
    [edit] = done("edits", "list", *IN_CLINIC)["edits"]
    assert (edit["state"], edit["content"], edit["reason"]) == ("refused", None, "discarded by tester")


def test_a_faulty_line_refuses_the_whole_file_in_one_line(run, done, tmp_path):
    file = a_file(tmp_path, CREATION, "nonsense", {"operation": "explode"})
    code, out, err = run("edits", "submit", file, *IN_CLINIC)
    assert (code, out, len(err.strip().splitlines())) == (9, "", 1)
    assert "line 2:" in err
    assert "line 3:" in err
    assert done("edits", "list", *IN_CLINIC)["edits"] == []


@pytest.mark.parametrize(
    "command",
    [
        ("edits", "submit", "FILE"),
        ("edits", "list"),
        ("edits", "discard", "1"),
        ("export",),
        ("import", "FILE"),
        ("import-legacy", "FILE"),
    ],
    ids=" ".join,
)
def test_without_a_grant_each_is_refused(run, monkeypatch, tmp_path, command):
    records = dict.fromkeys(("card", "question", "source", "link"), 0)
    header = {"kind": "workspace", "format": FORMAT, "workspace": "x", "language": "italian", "numbers": {}}
    header["records"] = records
    file = a_file(tmp_path, header if command[0] == "import" else CREATION)
    monkeypatch.setenv("MEMORY_PRINCIPAL", "nobody")
    code, out, err = run(*(file if word == "FILE" else word for word in command), *IN_CLINIC)
    assert (code, out) == (7, "")
    assert "nobody" in err


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("edits", "submit", "/nowhere/at/all", *IN_CLINIC), 2),
        (("edits", "submit", "-"), 2),
        (("edits", "submit", "-", *IN_CLINIC), 4),
        (("edits", "list", "-w", "nowhere"), 6),
        (("edits", "list", *IN_CLINIC, "--state", "lost"), 2),
        (("edits", "list", *IN_CLINIC, "-n", "0"), 2),
        (("edits", "apply", "-w", "nowhere"), 6),
        (("edits", "discard", *IN_CLINIC), 2),
        (("edits", "discard", "0", *IN_CLINIC), 2),
        (("edits", "discard", "404", *IN_CLINIC), 4),
        (("export", "-w", "nowhere"), 6),
        (("export", "/nowhere/at/all", *IN_CLINIC), 1),
        (("import", "-", *IN_CLINIC), 4),
        (("import-legacy", "-", "-w", "nowhere"), 6),
    ],
)
def test_bad_input_gives_one_line_and_a_distinct_exit_code(run, arguments, code):
    exit_code, out, err = run(*arguments)
    assert (exit_code, out) == (code, "")
    assert "Traceback" not in err


# ── Out and in ───────────────────────────────────────────────────────────────────────────────────────────────────────


def a_card_by_hand(archive: Archive) -> None:
    with archive.database.transaction(CLINIC, writing=True) as tx:
        editing.apply(tx, a_creation(), principal="tester")


def test_a_workspace_goes_to_a_file_and_into_another(run, done, clinic, tmp_path):
    a_card_by_hand(clinic)
    file = tmp_path / "clinic.jsonl"
    assert done("export", str(file), *IN_CLINIC) == {"cards": 1, "questions": 0, "sources": 0, "links": 0}
    assert done("import", str(file), "-w", "copy")["cards"] == 1
    assert Archive(clinic.runtime, "copy").card()["subject"] == "active patient"
    code, _, err = run("import", str(file), "-w", "copy")
    assert (code, "has cards" in err) == (4, True)


def test_an_export_goes_to_standard_output_and_an_import_comes_from_it(run, clinic):
    a_card_by_hand(clinic)
    code, out, err = run("export", *IN_CLINIC)
    assert (code, err, len(out.splitlines())) == (0, "", 2)
    code, said, _ = run("import", "-", "-w", "copy", stdin=out)
    assert (code, "1 cards" in said) == (0, True)
    assert run("export", "-w", "copy")[1].splitlines()[1:] == out.splitlines()[1:]


def test_an_export_that_fails_leaves_the_file_as_it_was(run, clinic, tmp_path, monkeypatch):
    file = tmp_path / "exports" / "clinic.jsonl"
    file.parent.mkdir()
    file.write_text("the last one\n")

    def away(*_, **__):
        raise ArchiveUnavailable("PostgreSQL went away")

    monkeypatch.setattr("memory_pipeline.archive.transfer._write_all", away)
    assert run("export", str(file), *IN_CLINIC)[0] == 11
    assert [path.read_text() for path in file.parent.iterdir()] == ["the last one\n"]


def test_an_export_to_standard_output_is_no_json_of_a_command(run):
    code, out, _ = run("export", *IN_CLINIC, "--json")
    assert (code, json.loads(out)["error"]["kind"]) == (2, "UsageError")


def test_an_export_that_cannot_be_written_names_the_file_that_was_asked_for(run):
    assert run("export", "/nowhere/at/all", *IN_CLINIC)[2] == "error: No such file or directory: /nowhere/at/all\n"


def test_an_export_goes_to_a_device_too(run):
    assert run("export", "/dev/null", *IN_CLINIC)[0] == 0
    assert not Path("/dev/null").is_file()


def test_a_legacy_registry_is_taken_in_and_counted(run, done, tmp_path, clinic):
    file = a_file(tmp_path, RECORD, {**RECORD, "type": "table_promoted"}, "nonsense")
    report = done("import-legacy", file, *IN_CLINIC)
    assert (report["created"], report["refused"], report["malformed"]) == (1, {"table_promoted": 1}, 1)
    assert clinic.card_ids() == ["mem-0007"]
    _, out, _ = run("import-legacy", file, *IN_CLINIC)
    assert "0 card(s) made, 0 record(s) joined, 1 known already." in out
    assert "line 3" in out
    assert "refused: 1 × table_promoted (line 2)" in out
