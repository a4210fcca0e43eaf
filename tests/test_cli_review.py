"""The commands of a reviewer: what they print for people and for programs, what they refuse, and a real terminal."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from memory_pipeline.archive.grants import Role
from memory_pipeline.curation import Curation
from memory_pipeline.errors import IndexUnavailable
from memory_pipeline.ledger import LEDGER_FILE, read_session
from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import Settings
from tests.archives import Archive
from tests.builders import a_ledger, approved, clarified, promoted, rewritten
from tests.command_line import Run, runner
from tests.curating import CLINIC, a_workspace
from tests.terminals import CHECKOUT, Terminal, in_a_terminal

SESSION = "session-1"
THIS = (SESSION, "--workspace", CLINIC)
Json = Callable[..., Any]


@pytest.fixture
def archive(runtime: Runtime) -> Archive:
    a_workspace(runtime)
    return Archive(runtime)


@pytest.fixture
def run(archive, settings: Settings, monkeypatch, capsys) -> Run:
    return runner(settings, monkeypatch, capsys)


@pytest.fixture
def done(run: Run) -> Json:
    """Runs a command that has to succeed; what it prints as JSON, which is all that it prints."""

    def done(*arguments: str) -> Any:
        code, out, err = run(*arguments, "--json")
        told = [line for line in err.splitlines() if not line.startswith("projecting of ")]  # by a slow machine
        assert (code, told) == (0, [])
        return json.loads(out)

    return done


def away(*_: object, **__: object) -> None:
    raise IndexUnavailable("the index is away")


def markers(archive: Archive) -> list[tuple[str, str]]:
    decisions = read_session(archive.root / CLINIC / SESSION, CLINIC).decisions
    return [(d.type, d.detail) for d in decisions if d.type.startswith("memory_") or d.type == "decision_retracted"]


class TestReview:
    def test_previews_for_people_and_programs(self, archive, run, done):
        archive.session(
            clarified(1, rationale="asked the ward"), clarified(2), clarified(3, "[bold]x", "y"), status="open"
        )
        [first, second] = done("review", *THIS, "--preview")["candidates"]
        assert (first["seq"], first["seqs"], first["rationale"]) == (1, [1, 2], "asked the ward")
        assert (second["subject"], second["question"]) == ("[bold]x", "How many active patients are there?")
        _, out, _ = run("review", *THIS, "--preview")
        for said in (
            "1. active patient",
            "Why: asked the ward",
            "Said 2 times: seq 1, 2",
            "3. [bold]x",
            "--promote 1,3",
        ):
            assert said in out

    def test_previews_what_becomes_of_concepts_and_tables_and_turns_no_word_into_a_sign(self, archive, run):
        archive.session(clarified(1, "at 12:100:00", ":star:", concepts=["dose"], tables=["visite"]), status="open")
        _, out, _ = run("review", *THIS, "--preview")
        for said in ("1. at 12:100:00", "   :star:", "Concepts: dose", "Tables: visite"):
            assert said in out

    def test_decides_by_seq_and_says_what_became_of_it(self, archive, run):
        archive.session(clarified(1), clarified(3, "other"), clarified(5, "third"), clarified(7, "no"), status="open")
        code, out, err = run("review", *THIS, "--promote", "1, 3", "--promote", "5", "--decline", "7")
        assert (code, err) == (0, "")
        assert "Recorded as seq 8: promoted active patient (seq:1)" in out
        assert "mem-0003 (concept) «third» is made; 1 source(s) behind it." in out
        assert "Saved and recallable." in out
        assert markers(archive) == [
            *(("memory_promoted", f"seq:{seq}") for seq in (1, 3, 5)),
            ("memory_promotion_declined", "seq:7"),
        ]

    def test_answers_programs_in_json(self, archive, done):
        archive.session(clarified(1), clarified(2, "other"), status="open")
        first = done("review", *THIS, "--promote", "1")
        assert first == {
            "session_id": SESSION,
            "recorded": [{"seq": 3, "type": "memory_promoted", "subject": "active patient", "detail": "seq:1"}],
            "unchanged": [],
            "refused": {},
            "candidates_left": 1,
            "saved": True,
            "cards": [
                {
                    "card_id": "mem-0001",
                    "family": "concept",
                    "title": "active patient",
                    "change": "created",
                    "sources": 1,
                    "rewritten": False,
                    "flags": [],
                }
            ],
            "recallable": True,
            "reason": None,
        }
        again = done("review", *THIS, "--promote", "1")
        assert (again["recorded"], again["unchanged"], again["cards"]) == ([], ["seq 1"], [])

    def test_refuses_what_is_no_candidate_with_every_fault(self, archive, run):
        archive.session(clarified(1), approved(2), status="open")
        code, out, err = run("review", *THIS, "--promote", "1,2,9", "--json")
        assert code == 19
        error = json.loads(out)["error"]
        assert (error["kind"], sorted(error["faults"])) == ("InvalidReview", ["seq 2", "seq 9"])
        assert "nothing was recorded" in err
        assert markers(archive) == []

    def test_says_that_an_index_that_is_away_is_no_reason_to_decide_again(self, archive, run, monkeypatch):
        archive.session(clarified(1), status="open")
        monkeypatch.setattr("memory_pipeline.runtime.open_index", away)
        code, out, _ = run("review", *THIS, "--promote", "1")
        assert code == 0
        assert "Saved, but not recallable yet: the index is away." in out
        assert "memory-pipeline project --retry" in out

    def test_takes_a_grant_that_no_option_gives(self, archive, run, runtime, monkeypatch):
        archive.session(clarified(1), status="open")
        Curation(runtime).give(CLINIC, "assistant", Role.READER)
        monkeypatch.setenv("MEMORY_PRINCIPAL", "assistant")
        assert run("review", *THIS, "--preview")[0] == 0
        code, _, err = run("review", *THIS, "--promote", "1")
        assert (code, markers(archive)) == (7, [])
        assert "grant of reviewer" in err
        assert run("review", *THIS, "--retract", "1", answer="y")[0] == 7

    def test_lists_the_sessions_that_wait(self, archive, run, done):
        archive.given(clarified(1), clarified(2, "other"), session="b")
        archive.given(clarified(1), promoted(2, 1), session="c")
        archive.session(session="d")
        found = done("review", "--workspace", CLINIC)
        assert [(s["session_id"], s["candidates"]) for s in found["sessions"]] == [("b", 2)]
        assert (found["candidates"], found["unread"]) == (2, 1)
        _, out, _ = run("review", "--workspace", CLINIC)
        assert "2 candidate(s) in 1 session(s)" in out
        assert "1 session(s) are still to be read" in out

    @pytest.mark.parametrize(
        "arguments",
        [
            ("--promote", "x"),
            ("--promote", "1,,2"),
            ("--promote", ""),
            ("--promote", "1", "--preview"),
            ("--promote", "1", "--retract", "2"),
            ("--retract", "1", "--reopen", "2"),
            ("--promote", "1", "--reason", "x"),
            ("--preview", "--yes"),
            (),
        ],
    )
    def test_a_command_that_says_nothing_clear_does_nothing(self, archive, run, arguments):
        archive.session(clarified(1), status="open")
        code, out, err = run("review", *THIS, *arguments)
        assert (code, out, markers(archive)) == (2, "", [])
        assert err.startswith("error: ")

    def test_of_no_session_names_one(self, run):
        for option in (["--promote", "1"], ["--preview"], ["--retract", "1"], ["--yes"]):
            assert run("review", "--workspace", CLINIC, *option)[0] == 2
        assert run("review", "unknown", "--workspace", CLINIC, "--preview")[0] == 5  # it has no directory yet

    @pytest.mark.parametrize("session", ["a b; touch PWNED", "$(id)", "-x", "it's"])
    def test_shows_a_command_that_can_be_pasted(self, archive, run, session):
        archive.session(clarified(1), session=session, status="open")
        _, out, _ = run("review", "--workspace", CLINIC, "--preview", "--", session)
        [shown] = re.findall(r"To decide: memory-pipeline (.*) \(or", out)
        assert run(*shlex.split(shown))[0] == 0
        assert len(archive.card_ids()) == 1

    @pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
    def test_with_a_standard_stream_closed_is_no_other_fault(self, archive, settings, closed):
        archive.session(clarified(1), clarified(2, "other"), status="open")
        environment = {**os.environ, "MEMORY_DATABASE_URL": settings.database_url.get_secret_value()}
        environment |= {"MEMORY_SESSIONS_ROOT": str(settings.sessions), "MEMORY_HOME": str(settings.home)}
        environment |= {"MEMORY_PRINCIPAL": "tester", "PROGRAM": f"{sys.executable} -m memory_pipeline.cli"}
        for arguments, code in (("", 2), ("--retract 2", 4), ("--promote 1", 0)):
            command = f"$PROGRAM review {SESSION} -w {CLINIC} {arguments} {closed}"
            done = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True, check=False)
            assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
        assert markers(archive) == [("memory_promoted", "seq:1")]

    def test_of_an_unknown_session_says_so(self, archive, run):
        archive.session()
        assert run("review", "unknown", "--workspace", CLINIC, "--preview")[0] == 18


class TestCorrecting:
    def test_shows_what_it_does_before_it_is_confirmed(self, archive, run):
        archive.given(clarified(1), promoted(2, 1))
        for arguments in (["--preview"], []):
            code, out, _ = run("review", *THIS, "--retract", "1", *arguments)
            assert "mem-0001 (concept) «active patient» is deleted" in out
            assert code == (0 if arguments else 4)  # there is nobody to ask
        assert run("review", *THIS, "--retract", "1", answer="n")[0] == 1
        assert len(markers(archive)) == 1
        code, out, _ = run("review", *THIS, "--retract", "1", "--reason", "wrong", answer="y")
        assert code == 0
        assert "Recorded as seq 3: retracted active patient (seq:1)" in out
        assert archive.card_ids() == []

    def test_by_a_program_takes_a_yes(self, archive, done, run):
        archive.given(clarified(1), approved(2), promoted(3, 1))
        foreseen = done("review", *THIS, "--reopen", "4", "--preview")
        assert [d["seq"] for d in foreseen["taken_away"]] == [2, 3]
        assert [(c["card_id"], c["change"]) for c in foreseen["cards"]] == [
            ("mem-0001", "deleted"),
            ("sq-0001", "deleted"),
        ]
        code, out, _ = run("review", *THIS, "--reopen", "4", "--json")
        assert (code, json.loads(out)["error"]["kind"]) == (4, "InvalidInput")
        outcome = done("review", *THIS, "--reopen", "4", "--yes")
        assert [(d["type"], d["detail"]) for d in outcome["recorded"]] == [("phase_reopened", "phase:4")]
        assert done("review", *THIS, "--reopen", "4", "--yes")["unchanged"] == ["phase 4"]

    def test_asks_nothing_where_nothing_is_left_to_be_taken_away(self, archive, run):
        archive.session(clarified(1), status="open")
        code, out, _ = run("review", *THIS, "--reopen", "2")
        assert (code, out) == (0, "phase 2: nothing is left to be taken away.\n")


class TestTheNextSession:
    def test_is_proposed_a_card_and_takes_it(self, archive, run, done):
        archive.given(clarified(1), promoted(2, 1), session="earlier")
        archive.session(rewritten(1), status="open")
        run("project")
        found = done("propose", *THIS)
        assert [hit["card_id"] for hit in found["cards"]] == ["mem-0001"]
        code, out, _ = run("propose", *THIS)
        assert (code, "--take mem-0001" in out) == (0, True)
        taken = done("propose", *THIS, "--take", "mem-0001")
        assert [(d["type"], d["subject"]) for d in taken["recorded"]] == [("concept_clarified", "active patient")]
        assert done("propose", *THIS)["cards"] == []
        assert run("propose", *THIS, "--take", "mem-0077")[0] == 19

    @pytest.mark.parametrize("limit", ["0", "-5", "1001", "99999999999999999"])
    def test_is_proposed_no_number_of_cards_that_there_is_not(self, archive, run, limit):
        archive.session(clarified(1), status="open")
        code, _, err = run("propose", *THIS, "--limit", limit)
        assert (code, f"the limit is {limit}: ask for 1 to 1000 cards" in err) == (4, True)

    def test_shows_its_memories_as_markdown(self, archive, run, done):
        archive.session(clarified(1, "*a*", "b\nc"), promoted(2, 1), status="open")
        assert run("session", *THIS)[1].startswith("# Memories of session-1\n\n## Approved\n\n- **\\*a\\***: b")
        found = done("session", *THIS)
        assert [(m["seq"], m["subject"], m["outcome"]) for m in found["memories"]] == [(1, "*a*", "promoted")]
        assert found["markdown"].startswith("# Memories")

    def test_is_finalized_and_the_answer_names_what_completes_it(self, archive, run, done, monkeypatch):
        archive.session(approved(1), status="open")
        with monkeypatch.context() as patched:
            patched.setattr("memory_pipeline.runtime.open_index", away)
            outcome = done("finalize", *THIS)
            assert (outcome["finalized"], outcome["solved_question"], outcome["recallable"]) == (True, "sq-0001", False)
            _, out, _ = run("finalize", *THIS)
        assert "session-1 is finalized already." in out
        assert f"at once with: {outcome['recover']}" in out
        assert run(*outcome["recover"].split()[1:])[0] == 0
        assert done("finalize", *THIS)["recover"] is None


@pytest.fixture
def terminal(archive, settings):
    """Runs the program under a pseudo-terminal."""
    started = []

    def start(*arguments: str) -> Terminal:
        environment = {
            "MEMORY_HOME": str(settings.home),
            "MEMORY_SESSIONS_ROOT": str(settings.sessions),
            "MEMORY_DATABASE_URL": settings.database_url.get_secret_value(),
            "MEMORY_PRINCIPAL": settings.acting_principal,
        }
        started.append(Terminal("-m", "memory_pipeline.cli", *arguments, **environment))
        return started[-1]

    yield start
    for each in started:
        each.program.close(force=True)


@in_a_terminal
class TestInATerminal:
    def test_a_checklist_of_forty_is_decided_by_keys_alone(self, archive, terminal):
        archive.session(*(clarified(n, f"concept {n}", f"c{n} = 1") for n in range(1, 41)), status="open")
        run = terminal("review", *THIS)
        assert "promote 40" in run.until("> [x]")
        run.program.send(" ")
        run.until("decline 1")
        run.program.send("\x1b[Fl\r")
        run.until("Promote 38, decline 1, leave 1 for later.")
        run.program.send("\r")
        assert run.wait() == 0
        assert "1 candidate(s) of the session still wait." in run.output.decode()
        outcomes = markers(archive)
        assert len(outcomes) == 39
        assert outcomes[0] == ("memory_promotion_declined", "seq:1")
        assert ("memory_promoted", "seq:40") not in outcomes
        assert len(archive.card_ids()) == 38

    def test_leaving_it_records_nothing(self, archive, terminal):
        session = archive.session(clarified(1), status="open")
        before = (session / LEDGER_FILE).read_bytes()
        run = terminal("review", *THIS)
        run.until("> [x]")
        run.program.send("\x1b")
        assert run.wait() == 1
        assert b"Nothing was recorded." in run.output
        assert (session / LEDGER_FILE).read_bytes() == before

    def test_records_the_rest_of_what_somebody_else_decided_meanwhile(self, archive, terminal):
        decisions = [clarified(1), clarified(2, "other")]
        archive.session(*decisions, status="open")
        run = terminal("review", *THIS)
        run.until("> [x]")
        archive.session(*decisions, promoted(3, 1), status="open")
        run.program.send(" \r")
        run.until("Promote 1, decline 1")
        run.program.send("\r")
        assert run.wait() == 19
        assert "Left out: seq 1: it is promoted already: retract decision 3 first." in run.output.decode()
        assert markers(archive) == [("memory_promoted", "seq:1"), ("memory_promoted", "seq:2")]

    def test_with_nothing_to_decide_says_so(self, archive, terminal):
        archive.session(clarified(1), promoted(2, 1), status="open")
        run = terminal("review", *THIS)
        assert run.wait() == 0
        assert b"nothing to decide" in run.output

    def test_says_beside_it_what_cannot_be_used(self, archive, terminal):
        archive.session(ledger=a_ledger(clarified(1, "fact_x")) + b"{broken\n", status="open")
        run = terminal("review", *THIS)
        assert run.wait() == 0
        said = run.output.decode()
        assert "Not usable: line 2, not_json" in said
        assert "only a table's name: seq 1 (fact_x)" in said


def test_the_json_that_is_documented_is_what_is_printed(archive, done):
    documented = (
        (CHECKOUT / "docs/operations.md").read_text(encoding="utf-8").split("With `--json` the commands print")[1]
    )
    names = set(re.findall(r'"(\w+)"', documented.split("What a session remembers is also")[0]))
    values = {"form", "near", "subject", "created", "joined", "changed", "withdrawn", "deleted"}
    archive.given(clarified(1, "Active", "flag_attivo = TRUE"), approved(2), promoted(3, 1), session="earlier")
    archive.given(clarified(1, "(Active)", "flag_attivo = TRUE"), clarified(2, "fact_x"), promoted(3, 9), status="open")
    done("project")
    proposed = done("propose", *THIS)
    assert {len(proposed["cards"]), len(proposed["solved_questions"])} == {0, 1}
    printed = [
        done("review", "-w", CLINIC),
        done("review", *THIS, "--preview"),
        {**proposed, "solved_questions": []},  # hits are those of `recall`
        done("review", *THIS, "--retract", "1", "--preview"),
        done("review", *THIS, "--promote", "1"),
        done("session", *THIS),
        done("finalize", *THIS),
    ]
    found = {key for key in keys(printed) if not key.isdigit()}
    assert {name for name in names if name not in values or name in found} == found


def keys(value: object) -> Iterator[str]:
    """The keys of all objects in a JSON value."""
    for key, each in value.items() if isinstance(value, dict) else ():
        yield key
        yield from keys(each)
    for each in value if isinstance(value, list) else ():
        yield from keys(each)
