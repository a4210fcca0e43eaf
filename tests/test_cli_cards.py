"""The commands for cards and grants: every field as an option or in JSON, outcomes and refusals for people and programs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any, get_args

import pytest

from memory_pipeline.archive.listing import Sort
from memory_pipeline.cards import Collection, Flag
from memory_pipeline.console import moment_text
from memory_pipeline.errors import EmbedderUnavailable, VersionConflict
from memory_pipeline.propagation import project
from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import Settings
from tests.command_line import Run, runner
from tests.curating import CLINIC, Gone, a_runtime, a_workspace, points

Json = Callable[..., Any]
CONCEPT = ("card", "create", "-w", CLINIC, "--family", "concept")
IN_CLINIC = ("-w", CLINIC)


@pytest.fixture
def run(settings: Settings, runtime: Runtime, monkeypatch, capsys) -> Run:
    a_workspace(runtime)
    return runner(settings, monkeypatch, capsys)


@pytest.fixture
def done(run: Run) -> Json:
    """Runs a command that has to succeed, without propagation where it edits; what it prints as JSON."""

    def done(*arguments: str, stdin: str = "") -> Any:
        edits = arguments[:1] == ("card",) and arguments[1] in ("create", "change", "delete", "merge", "link")
        code, out, err = run(*arguments, *(["--no-propagate"] if edits else []), "--json", stdin=stdin)
        assert (code, err) == (0, "")
        return json.loads(out)

    return done


def a_concept(done: Json, subject: str = "active patient") -> str:
    return done(*CONCEPT, "--subject", subject, "--detail", "flag_attivo = TRUE")["card_id"]


def test_a_saved_edit_is_recallable_by_the_next_command(run):
    code, out, _ = run(*CONCEPT, "--subject", "active patient", "--detail", "flag_attivo", "--json")
    assert code == 0
    assert json.loads(out) == {
        "card_id": "mem-0001",
        "version": 1,
        "saved": True,
        "recallable": True,
        "reason": None,
        "changed": True,
        "flags": [],
        "under_way": False,
    }
    hits = json.loads(run("recall", "active patient", *IN_CLINIC, "--json")[1])["hits"]
    assert [hit["card_id"] for hit in hits] == ["mem-0001"]


def test_every_field_is_an_option(done, tmp_path):
    other = a_concept(done, "other")
    detail = tmp_path / "detail.txt"
    detail.write_bytes("flag_attivo = TRUE\r\nperché\n".encode())
    made = done(
        *CONCEPT,
        *("--subject", "active patient", "--detail-file", str(detail), "--rationale", "agreed"),
        *("--database", "dwh", "--schema", "public", "--concept", "patient", "--concept", "activity"),
        *("--table", "visits", "--table", "public.patients", "--column", "dwh.public.patients.flag_attivo"),
        *("--link", f"{other}=explains = better", "--link-from", f"{other}=needs"),
    )
    shown = done("card", "show", made["card_id"], *IN_CLINIC)
    content = shown["content"]
    assert content["detail"] == "flag_attivo = TRUE\r\nperché\n"
    assert (content["rationale"], content["database"], content["schema"]) == ("agreed", "dwh", "public")
    assert content["concepts"] == ["patient", "activity"]
    assert [list(each.values()) for each in content["dependencies"]] == [
        ["", "", "visits", ""],
        ["", "public", "patients", ""],
        ["dwh", "public", "patients", "flag_attivo"],
    ]
    links = {(link["other"], link["meaning"], link["outgoing"]) for link in shown["links"]}
    assert links == {(other, "explains = better", True), (other, "needs", False)}


def test_a_solved_question_keeps_its_sql_from_a_file(done, tmp_path):
    sql = tmp_path / "query.sql"
    sql.write_text("SELECT count(*)\nFROM patients")
    family = ("card", "create", *IN_CLINIC, "--family", "solved_question")
    made = done(
        *family, "--question", "how many?", "--sql-file", str(sql), "--context", "by year", "--dialect", "mysql"
    )
    content = done("card", "show", made["card_id"], *IN_CLINIC)["content"]
    assert (content["sql"], content["context"], content["dialect"]) == (sql.read_text(), "by year", "mysql")
    assert [each["table"] for each in content["dependencies"]] == ["patients"]


def test_a_change_leaves_what_it_does_not_name(done):
    card, other = a_concept(done), a_concept(done, "other")
    done("card", "change", card, *IN_CLINIC, "--version", "1", "--link", f"{other}=see", "--concept", "a")
    changed = done("card", "change", card, *IN_CLINIC, "--version", "2", "--detail", "new", "--unlink", other)
    assert changed["version"] == 3
    shown = done("card", "show", card, *IN_CLINIC)
    assert (shown["content"]["subject"], shown["content"]["detail"]) == ("active patient", "new")
    assert (shown["content"]["concepts"], shown["links"]) == (["a"], [])


@pytest.mark.parametrize("source", ["file", "-"])
def test_a_json_edit_is_taken_from_a_file_or_standard_input(done, tmp_path, source):
    create = json.dumps({"operation": "create", "family": "pitfall", "subject": "dates", "detail": "are local"})
    change = json.dumps({"card_id": "mem-0001", "version": 1, "concepts": ["time"]})
    for operation, edit in (("create", create), ("change", change)):
        file = tmp_path / "edit.json"
        file.write_text(edit)
        taken = str(file) if source == "file" else source
        saved = done("card", operation, *IN_CLINIC, "--from", taken, stdin=edit)
    assert (saved["card_id"], saved["version"]) == ("mem-0001", 2)
    assert done("card", "show", "mem-0001", *IN_CLINIC)["content"]["concepts"] == ["time"]


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        ('{"operation": "delete", "card_id": "mem-0001", "version": 1}', "operation: is 'delete' in the file"),
        ('{"version": 2, "detail": "new"}', "version: is 2 in the file and 1 on the command line"),
        ("[1]", "has to be a JSON object"),
        ("no json", "edit: is not JSON"),
        ('{"nonsense": 1}', "nonsense: is not a field"),
    ],
)
def test_a_json_edit_that_says_something_else_is_refused(run, done, edit, said):
    card = a_concept(done)
    code, out, err = run("card", "change", card, *IN_CLINIC, "--version", "1", "--from", "-", stdin=edit)
    assert (code, out) == (9, "")
    assert said in err
    assert done("card", "show", card, *IN_CLINIC)["version"] == 1


def test_an_invalid_edit_names_every_fault_in_one_line(run):
    code, out, err = run(*CONCEPT, "--sql", "SELECT 1", "--column", "lonely")
    assert (code, out) == (9, "")
    assert len(err.splitlines()) == 1
    for field in ("subject:", "detail:", "sql:", "dependencies.0:"):
        assert field in err


def test_a_conflict_says_what_the_card_says_now_and_by_whom(run, done):
    card = a_concept(done)
    done("card", "change", card, *IN_CLINIC, "--version", "1", "--detail", "newer\nvalue")
    late = ("card", "change", card, *IN_CLINIC, "--version", "1", "--detail", "late")
    code, out, err = run(*late)
    assert (code, out) == (10, "")
    assert len(err.splitlines()) == 1
    assert run(*late, "--json")[2] == err
    error = json.loads(run(*late, "--json")[1])["error"]
    assert (error["kind"], error["based_on"], error["version"], error["updated_by"], error["now"]) == (
        "VersionConflict",
        1,
        2,
        "tester",
        {"detail": "newer\nvalue"},
    )
    for said in ("version 2", "tester", "based on version 1", "the card says detail", "newer"):
        assert said in err


def test_programs_are_given_the_faults_of_an_edit_field_by_field(run):
    code, out, _ = run(
        "card",
        "create",
        *IN_CLINIC,
        "--family",
        "solved_question",
        "--dialect",
        "klingon",
        "--question",
        "q",
        "--link",
        "mem-0404=see",
        "--json",
    )
    faults = json.loads(out)["error"]["faults"]
    assert (code, faults.keys()) == (9, {"sql", "dialect", "links.0"})
    assert "duckdb" in faults["dialect"]


def test_cards_are_merged_linked_and_deleted(done):
    first, second, third = (a_concept(done, subject) for subject in ("one", "two", "three"))
    linked = done("card", "link", second, third, *IN_CLINIC, "--version", "1", "--meaning", "needs")
    assert linked["version"] == 2
    merged = done("card", "merge", first, second, *IN_CLINIC, "--version", "1", "--other-version", "2")
    assert (merged["card_id"], merged["version"]) == (first, 2)
    (link,) = done("card", "show", first, *IN_CLINIC)["links"]
    assert (link["other"], link["meaning"]) == (third, "needs")
    assert done("card", "link", first, third, *IN_CLINIC, "--version", "2", "--remove")["version"] == 3
    assert done("card", "show", first, *IN_CLINIC)["links"] == []
    gone = done("card", "delete", third, *IN_CLINIC, "--version", "4")  # each link and its removal counted
    assert (gone["version"], gone["saved"]) == (None, True)
    assert [card["card_id"] for card in done("card", "list", *IN_CLINIC)["cards"]] == [first]


def test_a_list_is_filtered_counted_and_paged(done):
    for number in range(5):
        a_concept(done, f"active patient {number}")
    done("card", "create", *IN_CLINIC, "--family", "pitfall", "--subject", "dates", "--detail", "local")
    page = done("card", "list", "PATIENT", *IN_CLINIC, "-f", "concept", "--sort", "card_id", "--ascending", "-n", "2")
    assert page["total"] == 5
    assert [card["card_id"] for card in page["cards"]] == ["mem-0001", "mem-0002"]
    assert page["cards"][0]["updated_at"].startswith("20")
    assert done("card", "list", *IN_CLINIC, "--state", "pending", "--origin", "hand")["total"] == 6
    assert done("card", "list", *IN_CLINIC, "--updated-before", "2020-01-01")["total"] == 0
    assert done("card", "list", *IN_CLINIC, "--updated-after", "2020-01-01T12:00")["total"] == 6
    assert done("card", "list", *IN_CLINIC, "--table", "nowhere") == {"cards": [], "total": 0}


def test_a_table_is_found_by_the_name_that_a_card_was_given(run, done):
    names = ("--table", "dm.fact_visite", "--column", "dwh.dm.dim_paziente.comune")
    done(*CONCEPT, "--subject", "residence", "--detail", "comune", *names)
    a_concept(done)
    shown = run("card", "show", "mem-0001", *IN_CLINIC)[1]
    for option, name in (
        ("--table", "dm.fact_visite"),
        ("--table", "FACT_VISITE"),
        ("--column", "dwh.dm.dim_paziente.comune"),
        ("--column", "dm.dim_paziente.comune"),
        ("--column", "comune"),
    ):
        assert name.lower() in shown
        assert [c["card_id"] for c in done("card", "list", *IN_CLINIC, option, name)["cards"]] == ["mem-0001"], name
    for asked in (("--table", "other.fact_visite"), ("--column", "fact_visite.comune")):
        assert done("card", "list", *IN_CLINIC, *asked)["total"] == 0
    both = ("--table", "dm.dim_paziente", "--column", "comune")
    assert done("card", "list", *IN_CLINIC, *both)["total"] == 1
    assert done("card", "list", *IN_CLINIC, "--table", "fact_visite", "--column", "comune")["total"] == 0


def test_every_order_and_flag_is_named_in_the_help(run):
    _, out, _ = run("card", "list", "--help")
    for name in (*get_args(Sort), *Flag):
        assert name in out
    for order in get_args(Sort):
        assert run("card", "list", *IN_CLINIC, "--sort", order)[0] == 0


def test_times_are_shown_in_utc_whatever_zone_postgres_gives_them_in():
    there = datetime(2026, 1, 31, 3, tzinfo=timezone(timedelta(hours=9)))
    assert moment_text(there) == "2026-01-30 18:00:00"
    assert "at 2026-01-30 18:00:00 UTC" in str(
        VersionConflict("mem-0001", based_on=1, version=2, updated_by="anna", updated_at=there, now={})
    )


def test_duplicates_are_proposed_with_why_and_the_command_that_merges_them(run, done):
    for detail in ("flag = 'A'", "attivo significa flag = 'A'", "Attivo: (flag = A)", "flag = 'A' and fine IS NULL"):
        done(*CONCEPT, "--subject", "attivo", "--detail", detail)
    found = done("card", "duplicates", *IN_CLINIC)
    assert [(p["keep"]["card_id"], p["other"]["card_id"], p["kind"], p["likeness"]) for p in found["pairs"]] == [
        ("mem-0001", "mem-0003", "form", 1.0),
        ("mem-0001", "mem-0002", "near", 1.0),
    ]
    assert (found["form"], found["near"], found["total"], found["cards"], found["complete"]) == (1, 1, 2, 4, True)
    assert found["pairs"][0]["other"] == {
        "card_id": "mem-0003",
        "version": 1,
        "subject": "attivo",
        "detail": "Attivo: (flag = A)",
    }
    code, out, _ = run("card", "duplicates", *IN_CLINIC, "--limit", "1")
    assert code == 0
    assert "mem-0001 and mem-0003 (concept), the same but for form" in out
    assert "1 of 2 pair(s) among 4 card(s): 1 the same but for form, 1 near." in out
    [command] = [line.split("memory-pipeline ")[1] for line in out.splitlines() if "card merge" in line]
    assert command == f"card merge mem-0001 mem-0003 -w {CLINIC} --version 1 --other-version 1"
    done(*command.split())
    assert done("card", "duplicates", *IN_CLINIC)["form"] == 0
    done("card", "link", "mem-0002", "mem-0001", *IN_CLINIC, "--version", "1", "--meaning", "is said of beds")
    assert (
        run("card", "duplicates", *IN_CLINIC)[1] == "0 of 0 pair(s) among 3 card(s): 0 the same but for form, 0 near.\n"
    )


def test_what_is_pending_is_listed_and_retried_deleted_cards_included(run, done, settings):
    kept, gone = a_concept(done), a_concept(done, "gone")
    assert done("card", "retry", kept, *IN_CLINIC)["written"] == 1
    done("card", "retry", *IN_CLINIC)
    done("card", "delete", gone, *IN_CLINIC, "--version", "1")
    (waiting,) = done("card", "pending", *IN_CLINIC)["items"]
    assert (waiting["item_id"], waiting["collection"], waiting["removal"]) == (gone, "memory_cards", True)
    assert {"reason", "attempts", "next_try", "since"} < waiting.keys()
    assert "remove" in run("card", "pending", *IN_CLINIC)[1]
    report = done("card", "retry", *IN_CLINIC)
    assert (report["removed"], report["pending"]) == (1, 0)
    with a_runtime(settings) as runtime:
        assert points(runtime) == {kept: 1}


def test_an_edit_that_changes_nothing_says_so(run, done):
    card, other = a_concept(done), a_concept(done, "other")
    for nothing in ((), ("--unlink", other), ("--subject", "active patient")):
        edit = ("card", "change", card, *IN_CLINIC, "--version", "1", *nothing)
        assert done(*edit)["changed"] is False
        _, out, _ = run(*edit)
        assert "mem-0001 stays at version 1, since nothing changed" in out
        assert "saved" not in out
    assert done("card", "change", card, *IN_CLINIC, "--version", "1", "--subject", "another")["changed"] is True


def test_sql_that_does_not_parse_is_saved_and_flagged(run, done):
    create = ("card", "create", *IN_CLINIC, "--family", "solved_question", "--question", "q", "--sql", "SELEC (")
    assert done(*create)["flags"] == ["sql_unparsed"]
    said = "is flagged sql_unparsed: its dependencies are unknown."
    assert f"sq-0002 {said}" in run(*create, "--no-propagate")[1]
    change = ("card", "change", "sq-0001", *IN_CLINIC, "--version", "1", "--context", "c")
    assert f"sq-0001 {said}" in run(*change, "--no-propagate")[1]
    assert "sql_unparsed: its dependencies are unknown" in run("card", "show", "sq-0001", *IN_CLINIC)[1]
    mended = done("card", "change", "sq-0001", *IN_CLINIC, "--version", "2", "--sql", "SELECT 1")
    assert (mended["changed"], mended["flags"]) == (True, [])


def test_people_are_told_what_is_saved_and_what_is_not_recallable_yet(run):
    code, out, err = run(*CONCEPT, "--subject", "[bold]", "--detail", "x", "--no-propagate")
    assert (code, err) == (0, "")
    assert "mem-0001 is saved, at version 1" in out
    assert "does not follow yet" in out
    code, out, _ = run("card", "show", "mem-0001", *IN_CLINIC)
    assert code == 0
    assert "[bold]" in out
    assert "pending since" in out
    assert "1 of 1 card(s)" in run("card", "list", *IN_CLINIC)[1]
    assert "1 point(s) written" in run("card", "retry", *IN_CLINIC)[1]
    assert "follows" in run("card", "show", "mem-0001", *IN_CLINIC)[1]
    assert "is deleted" in run("card", "delete", "mem-0001", *IN_CLINIC, "--version", "1")[1]


def test_the_commands_that_are_named_for_what_is_not_recallable_yet_work_as_they_stand(run):
    _, out, _ = run(*CONCEPT, "--subject", "active patient", "--detail", "x", "--no-propagate")
    listing, completing = re.findall(r"`memory-pipeline ([^`]*)`", out)
    assert "mem-0001" in run(*listing.split())[1]
    assert "1 point(s) written" in run(*completing.split())[1]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("card", "show", "mem-0009", *IN_CLINIC), 8),
        (("card", "retry", "mem-0009", *IN_CLINIC), 8),
        (("card", "show", "mem-0001", "-w", "nowhere"), 6),
        (("card", "list"), 2),
        (("card", "list", *IN_CLINIC, "--sort", "nonsense"), 2),
        (("card", "list", *IN_CLINIC, "--table", "a.b.c.d"), 2),
        (("card", "list", *IN_CLINIC, "--table", "dm.visits", "--column", "patients.id"), 2),
        (("card", "list", *IN_CLINIC, "--limit", "0"), 4),
        (("card", "list", *IN_CLINIC, "--updated-after", "yesterday"), 2),
        (("card", "create", *IN_CLINIC), 9),
        (("card", "create", *IN_CLINIC, "--family", "nonsense"), 9),
        ((*CONCEPT, "--subject", "x", "--from", "-"), 2),
        ((*CONCEPT, "--subject", "x", "--detail", "x", "--link", "mem-0001"), 2),
        ((*CONCEPT, "--subject", "x", "--detail", "x", "--table", "a.b.c.d"), 2),
        (("card", "change", *IN_CLINIC, "--detail", "x"), 2),
        (("card", "change", "mem-0001", *IN_CLINIC, "--detail", "x"), 2),
        (("card", "delete", "mem-0001", *IN_CLINIC), 2),
        (("card", "merge", "mem-0001", "mem-0002", *IN_CLINIC, "--version", "1"), 2),
        (("card", "link", "mem-0001", "mem-0002", *IN_CLINIC, "--version", "1"), 2),
        (("grants", "give", "anna", "owner", *IN_CLINIC), 2),
        (("grants", "give", " ", "reader", *IN_CLINIC), 4),
        (("grants", "list", "-w", "nowhere"), 6),
        (("workspace", "make", "Not One"), 6),
        (("workspace", "make", "new", "--language", "klingon"), 3),
        (("workspace", "remove", "nowhere", "--yes"), 6),
    ],
)
def test_what_cannot_be_done_gives_one_line_and_a_distinct_exit_code(run, arguments, code):
    exit_code, out, err = run(*arguments)
    assert (exit_code, out) == (code, "")
    assert len(err.strip().splitlines()) == 1
    exit_code, out, also = run(*arguments, "--json")
    assert (exit_code, also) == (code, err)
    assert " ".join(json.loads(out)["error"]["message"].split()) == err.strip().removeprefix("error: ")
    assert "Traceback" not in err


def test_grants_are_given_listed_and_taken(run, done, monkeypatch):
    assert done("grants", "give", "anna", "reader", *IN_CLINIC) == {
        "principal": "anna",
        "role": "reader",
        "changed": True,
    }
    assert "already reader" in run("grants", "give", "anna", "reader", *IN_CLINIC)[1]
    found = done("grants", "list", *IN_CLINIC)["grants"]
    assert [(g["principal"], g["role"], g["granted_by"]) for g in found] == [
        ("anna", "reader", "tester"),
        ("tester", "administrator", "tester"),
    ]
    monkeypatch.setenv("MEMORY_PRINCIPAL", "anna")
    assert done("workspace", "list") == {"workspaces": [{"workspace": CLINIC, "role": "reader"}]}
    assert run("card", "list", *IN_CLINIC)[0] == 0
    assert run(*CONCEPT, "--subject", "x", "--detail", "x")[0] == 7
    assert run("grants", "take", "tester", *IN_CLINIC)[0] == 7
    monkeypatch.setenv("MEMORY_PRINCIPAL", "tester")
    assert done("grants", "take", "anna", *IN_CLINIC)["taken"]
    assert run("grants", "take", "tester", *IN_CLINIC)[0] == 7
    monkeypatch.setenv("MEMORY_PRINCIPAL", "anna")
    assert done("workspace", "list") == {"workspaces": []}
    for command in (
        ("card", "list"),
        ("card", "duplicates"),
        ("card", "pending"),
        ("card", "show", "mem-0001"),
        ("grants", "list"),
    ):
        code, out, err = run(*command, *IN_CLINIC)
        assert (code, out) == (7, "")
        assert "anna" in err


def test_a_workspace_is_made_once_by_its_first_administrator(done, monkeypatch):
    assert done("workspace", "make", "ward", "--language", "english") == {"workspace": "ward", "made": True}
    monkeypatch.setenv("MEMORY_PRINCIPAL", "anna")
    assert done("workspace", "make", "ward") == {"workspace": "ward", "made": False}
    assert done("workspace", "list") == {"workspaces": []}


def test_a_workspace_keeps_its_language_and_says_so_to_who_wants_another(run, done):
    for language in ("english", "English", "english"):
        done("workspace", "make", "ward", "--language", language)
    code, _, err = run("workspace", "make", "ward", "--language", "italian")
    assert code == 4
    assert "analysed as english" in err


def test_a_text_that_is_longer_than_what_the_model_reads_is_said_with_its_card(run, done, runtime):
    a_concept(done)
    project(runtime, CLINIC)
    assert "longer than" not in run("card", "show", "mem-0001", *IN_CLINIC)[1]
    assert "longer than" not in run("status")[1]
    with runtime.database.transaction(CLINIC, writing=True) as tx:
        tx.connection.exec_driver_sql("UPDATE projection SET truncated = true")
    assert (
        "follows (a text is longer than what the model reads at once)" in run("card", "show", "mem-0001", *IN_CLINIC)[1]
    )
    assert done("card", "show", "mem-0001", *IN_CLINIC)["projection"]["truncated"]
    assert f"{CLINIC}: of 1 projected point(s) the text is longer than what the model reads" in run("status")[1]
    assert done("status")["workspaces"][CLINIC]["truncated"] == 1


def test_what_is_put_off_is_shown_in_status_listing_and_card_with_reason_attempts_and_next_try(run, done, runtime):
    a_concept(done)
    runtime.embedder = Gone(EmbedderUnavailable("the model is away"))
    for _ in range(2):
        with pytest.raises(EmbedderUnavailable):
            project(runtime, CLINIC, [Collection.MEMORY_CARDS], retry_now=True)
    [listed] = done("card", "list", *IN_CLINIC)["cards"]
    assert (listed["reason"], listed["attempts"]) == ("the model is away", 2)
    held_up = f"the model is away (attempts: 2; next try: {listed['next_try'][:19].replace('T', ' ')})"
    assert f"pending: {held_up}" in run("card", "list", *IN_CLINIC)[1]
    assert held_up in run("card", "show", "mem-0001", *IN_CLINIC)[1]
    assert f"pending in {CLINIC}: 1 × {held_up}" in run("status")[1]
    state = done("status")["workspaces"][CLINIC]
    assert (state["pending"], state["deferred"], state["reasons"]) == (1, 1, {"the model is away": 1})
    assert [(each["attempts"], each["next_try"]) for each in state["put_off"]] == [(2, listed["next_try"])]
