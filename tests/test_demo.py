from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from memory_pipeline.archive.ingest import ingest
from memory_pipeline.archive.status import faults, workspace_status
from memory_pipeline.archive.waiting import waiting_sessions
from memory_pipeline.demo.run import SAMPLES, WORKSPACE, copy_samples
from memory_pipeline.ledger import DecisionType, FaultKind, list_sessions, read_session

CHECKOUT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def readings():
    return [read_session(directory, WORKSPACE) for directory in list_sessions(SAMPLES, WORKSPACE)]


def documented() -> dict[str, int]:
    """The totals that the samples' README states."""
    rows = re.findall(r"^\| ([a-z ]+?) \| (\d+)", (SAMPLES.parent / "README.md").read_text(), re.MULTILINE)
    return {name: int(number) for name, number in rows}


def test_the_samples_hold_every_type_of_decision(readings):
    assert {decision.type for reading in readings for decision in reading.decisions} == set(DecisionType)


def test_the_samples_hold_an_open_session_a_torn_line_and_one_quarantined_line(readings):
    assert any(reading.manifest.status == "open" for reading in readings)
    assert sum(reading.waiting for reading in readings) == 1
    assert [fault.kind for reading in readings for fault in reading.faults] == [FaultKind.NOT_JSON]


def test_an_ingest_of_the_samples_gives_the_totals_that_are_documented(settings, runtime):
    copy_samples(settings.sessions)
    ingest(runtime.database, WORKSPACE, settings, runtime.identity)
    with runtime.database.transaction(WORKSPACE) as tx:
        state = workspace_status(tx, runtime.identity.hash)
        kinds = [fault.kind for fault in faults(tx)]
        waiting = len(waiting_sessions(tx))
    found = {
        "sessions": state.sessions,
        "decisions kept": state.decisions,
        "effective": state.effective,
        "promoted": state.promoted,
        "declined": state.declined,
        "candidates": state.candidates,
        "concept cards": state.cards["concept"],
        "solved question cards": state.cards["solved_question"],
        "cards with several sources": state.cards_with_several_sources,
        "quarantined lines": kinds.count(FaultKind.NOT_JSON),
        "waiting lines": waiting,
        "refused promotions": kinds.count(FaultKind.REFUSED_PROMOTION),
    }
    assert found == {name: documented()[name] for name in found}


def run_demo(directory: Path, **environment: str) -> dict:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_")}
    command = [sys.executable, "-m", "memory_pipeline.cli", "demo", "--json"]
    done = subprocess.run(
        command, env={**kept, **environment}, cwd=directory, capture_output=True, text=True, check=True, timeout=240
    )
    return json.loads(done.stdout)


def test_the_demo_makes_checks_and_recalls_and_a_second_one_changes_nothing(scratch):
    # What the environment names is not for the demo: it has a home of its own, and no server.
    elsewhere = {"MEMORY_HOME": "/nowhere", "MEMORY_DATABASE_URL": "postgresql+psycopg://nobody@127.0.0.1:1/none"}
    directory = scratch / "demo"
    directory.mkdir()
    first = run_demo(directory, **elsewhere, MEMORY_OWNER_URL="postgresql+psycopg://owner@127.0.0.1:1/none")
    state = first["workspaces"][WORKSPACE]
    assert (state["cards"]["concept"], state["cards"]["solved_question"]) == (32, 19)
    assert (state["pending"], state["certified"]) == (0, first["workspaces"][WORKSPACE]["certified"])
    outcomes = {check["name"]: check["passed"] for check in first["checks"]}
    assert outcomes["propagation_complete"]
    assert outcomes["index_matches_archive"]
    assert not outcomes["ledgers_readable"]  # one line of the samples is quarantined, and shown
    concept, solved, unknown = (recall["hits"] for recall in first["recalls"])
    assert concept[0]["subject"] == "Periodo di blanking"
    assert solved[0]["question"] == first["recalls"][1]["question"]
    assert "fact_procedure" in solved[0]["sql"]
    assert [hit["signals"].get("verbatim", 0) > 0 for hit in (solved[0], *unknown)] == [True, False, False, False]
    assert max(hit["score"] for hit in unknown) < 1 < solved[0]["score"]

    second = run_demo(directory, **elsewhere, MEMORY_OWNER_URL="postgresql+psycopg://owner@127.0.0.1:1/none")
    assert second["workspaces"] == first["workspaces"]
    assert second["recalls"] == first["recalls"]
    assert not (directory / ".memory-demo" / "postgres" / "postmaster.pid").exists()
