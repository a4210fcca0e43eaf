"""What the document of the HTTP interface shows is what the interface does."""

from __future__ import annotations

import argparse
import json
import re
import shlex
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

from memory_pipeline.errors import MemoryPipelineError
from memory_pipeline.web.failures import status_of
from tests.web.conftest import HOST, TOKEN

DOCUMENT = (Path(__file__).parents[2] / "docs" / "http.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^    (curl .*)$", DOCUMENT, re.MULTILINE)
SHELL = {"$API": f"{HOST}/api/v1", "$TOKEN": f"Authorization: Bearer {TOKEN}"}
# Those that the interface never answers: of pages, reviews, the check of dependencies and the removal of a workspace,
# and the one that recall takes for having found nothing.
ELSEWHERE = {
    *("SignInNeeded", "ForeignRequest", "InvalidReview", "SessionNotFound", "LedgerUnavailable"),
    *("CatalogUnavailable", "SessionsUnavailable", "WorkspaceInUse", "CollectionMissing"),
}


def run(program, command: str):
    """What curl would do with as many of its options as are used."""
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("-sS", action="store_true")
    parser.add_argument("-H", dest="headers", action="append")
    parser.add_argument("-X", dest="method")
    parser.add_argument("-G", dest="query", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("--data-urlencode", dest="pairs", action="append", default=[])
    for name, value in SHELL.items():
        command = command.replace(name, value)
    given = parser.parse_args(shlex.split(command)[1:])
    assert bool(given.pairs) is given.query
    headers = dict(header.split(": ", 1) for header in given.headers)
    if given.json:
        headers["Content-Type"] = "application/json"
    return program.request(
        given.method or ("POST" if given.json else "GET"),
        given.url,
        headers=headers,
        content=given.json,
        params=[pair.split("=", 1) for pair in given.pairs] or None,
    )


def test_every_command_works_in_turn_and_every_address_has_one(client):
    asked = set()
    for command in COMMANDS:
        answer = run(client, command)
        assert answer.status_code == 200, (command, answer.text)
        asked.add(f"{answer.request.method} {answer.request.url.path}")

    described = client.get("/api/v1/openapi.json").json()["paths"]
    names = {"{workspace}": "clinic", "{card_id}": r"mem-\d{4}"}
    for path, methods in described.items():
        for method in methods:
            wanted = f"{method.upper()} {path}"
            for name, value in names.items():
                wanted = wanted.replace(name, value)
            assert any(re.fullmatch(wanted, each) for each in asked), wanted


def test_what_is_shown_is_what_is_answered(client):
    shown = [json.loads(line) for line in re.findall(r"^    (\{.*\})$", DOCUMENT, re.MULTILINE)]
    [made] = [command for command in COMMANDS if '"active patient"' in command]

    answers = [
        run(client, made).json(),
        run(client, 'curl -H "$TOKEN" "$API/workspaces/clinic/cards/mem-0009"').json(),
    ]

    assert answers == shown


def test_what_was_found_of_the_cards_is_what_the_document_tells(client):
    found = {command: run(client, command).json() for command in COMMANDS}

    [duplicates] = [answer for command, answer in found.items() if "/duplicates" in command]
    assert [(pair["keep"]["card_id"], pair["other"]["card_id"]) for pair in duplicates["pairs"]] == [
        ("mem-0001", "mem-0002")
    ]
    [listed] = [answer for command, answer in found.items() if "text=active" in command]
    assert listed["total"] == 2
    [recalled] = [answer for command, answer in found.items() if "/recall" in command]
    assert [hit["card_id"] for hit in recalled["hits"]] == ["mem-0001"]


def kinds(above: type[MemoryPipelineError]) -> Iterator[type[MemoryPipelineError]]:
    for kind in above.__subclasses__():
        if kind.__module__.startswith("memory_pipeline."):
            yield kind
            yield from kinds(kind)


def test_every_error_has_its_status_in_the_table():
    rows = re.findall(r"^\| `(\w+)` \| (\d{3}) \|", DOCUMENT, re.MULTILINE)
    statuses = {kind.__name__: status_of(kind.__new__(kind)) for kind in kinds(MemoryPipelineError)}
    others = {"NotFound": 404, "MethodNotAllowed": 405, "Unexpected": HTTPStatus.INTERNAL_SERVER_ERROR}

    assert {kind: int(status) for kind, status in rows} == {
        **{kind: status for kind, status in statuses.items() if kind not in ELSEWHERE},
        **others,
    }
    assert set(statuses) >= ELSEWHERE
