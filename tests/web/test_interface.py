"""What programs are told: every kind of failure apart, in one shape, which is the command line's too."""

from __future__ import annotations

import json

import pytest

from memory_pipeline.archive.grants import Role
from memory_pipeline.errors import ArchiveUnavailable
from tests.command_line import runner
from tests.curating import CLINIC, WARD, Gone, a_creation, a_workspace, all_away
from tests.web.conftest import TOKEN, let_in

PATH = f"/api/v1/workspaces/{CLINIC}"
CARD = {"family": "concept", "subject": "active patient", "detail": "flag_attivo = TRUE"}
JSON = {"Content-Type": "application/json"}


def error(answer, status):
    assert answer.status_code == status, answer.text
    assert set(answer.json()) == {"error"}
    return answer.json()["error"]


class TestFailures:
    def test_an_edit_that_is_none_is_told_field_by_field(self, program):
        said = error(program.post(f"{PATH}/cards", json={**CARD, "detail": " ", "sql": "SELECT 1"}), 400)

        assert (said["kind"], set(said["faults"])) == ("InvalidEdit", {"detail", "sql"})

    def test_a_request_of_another_shape_is_told_field_by_field(self, program):
        said = error(program.post(f"{PATH}/recall", json={"question": "q", "limit": 0, "colour": "red"}), 400)

        assert (said["kind"], set(said["faults"])) == ("InvalidInput", {"limit", "colour"})

    def test_no_token_and_a_wrong_one_are_no_ones(self, client):
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic d3Jvbmc6"}):
            answer = client.get(f"{PATH}/cards", headers=headers)
            assert error(answer, 401)["kind"] == "InvalidToken"
            assert answer.headers["www-authenticate"] == "Bearer"

    def test_who_has_no_role_for_it_is_told_so_and_nothing_is_changed(self, program, curation):
        let_in(curation, "somebody else", Role.ADMINISTRATOR)
        let_in(curation, "tester", Role.READER)

        assert error(program.post(f"{PATH}/cards", json=CARD), 403)["kind"] == "NotPermitted"
        assert program.post(f"{PATH}/recall", json={"question": "active"}).json()["hits"] == []

    def test_a_card_of_another_workspace_is_none_of_this_one(self, program, watched, curation):
        curation.save(a_workspace(watched, WARD), a_creation())

        assert error(program.get(f"{PATH}/cards/mem-0001"), 404)["kind"] == "CardNotFound"
        assert error(program.get("/api/v1/workspaces/nowhere/cards"), 404)["kind"] == "UnknownWorkspace"
        assert error(program.get("/api/v1/nothing"), 404)["kind"] == "NotFound"

    def test_a_conflict_says_what_the_card_says_now(self, program, curation):
        curation.save(CLINIC, a_creation())
        program.patch(f"{PATH}/cards/mem-0001", json={"version": 1, "detail": "the first one's"})

        said = error(program.patch(f"{PATH}/cards/mem-0001", json={"version": 1, "detail": "the other one's"}), 409)

        assert said["kind"] == "VersionConflict"
        assert (said["based_on"], said["version"], said["now"]) == (1, 2, {"detail": "the first one's"})

    def test_with_the_archive_away_nothing_is_known(self, program, watched):
        watched.database = Gone(ArchiveUnavailable("no connection to PostgreSQL"))

        answer = program.get(f"{PATH}/cards")

        assert error(answer, 503)["kind"] == "ArchiveUnavailable"
        assert int(answer.headers["retry-after"]) > 0

    def test_with_index_and_model_away_an_edit_is_saved_and_says_that_it_is_incomplete(
        self, program, watched, curation
    ):
        all_away(watched)

        outcome = program.post(f"{PATH}/cards", json=CARD)

        assert outcome.status_code == 200
        assert (outcome.json()["saved"], outcome.json()["recallable"]) == (True, False)
        assert outcome.json()["reason"] == "the model is away"
        assert [each["item_id"] for each in program.get(f"{PATH}/pending").json()["items"]] == ["mem-0001"]
        assert error(program.post(f"{PATH}/recall", json={"question": "active"}), 503)["kind"] == "IndexUnavailable"
        degraded = program.post(f"{PATH}/recall", json={"question": "active patient", "degraded": True}).json()
        assert ([hit["card_id"] for hit in degraded["hits"]], degraded["degraded"]) == (["mem-0001"], True)

    @pytest.mark.parametrize(
        ("command", "method", "path", "body"),
        [
            (["card", "show", "mem-0009"], "GET", "/cards/mem-0009", None),
            (["card", "list", "--flag", "\x00"], "GET", "/cards?flag=%00", None),
            (
                ["card", "create", "--family", "pitfall", "--subject", "s"],
                "POST",
                "/cards",
                {"family": "pitfall", "subject": "s"},
            ),
            (
                ["card", "change", "mem-0001", "--version", "7", "--subject", "other"],
                "PATCH",
                "/cards/mem-0001",
                {"version": 7, "subject": "other"},
            ),
        ],
        ids=["card not found", "invalid input", "invalid edit", "version conflict"],
    )
    def test_errors_are_those_of_the_command_line(
        self, program, curation, settings, monkeypatch, capsys, command, method, path, body
    ):
        curation.save(CLINIC, a_creation())

        _, out, _ = runner(settings, monkeypatch, capsys)(*command, "--workspace", CLINIC, "--json")

        assert program.request(method, f"{PATH}{path}", json=body).json() == json.loads(out)


class TestBodies:
    @pytest.mark.parametrize(
        ("body", "said"),
        [
            (b'{"family": "concept"', "not JSON"),
            (b"[" * 100_000 + b"]" * 100_000, "recursion"),
            (b'{"family": "concept", "family": "pitfall"}', "'family' twice"),
            (b'{"question": NaN}', "not JSON"),
            (b'{"question": "\\ud800"}', "not JSON"),
            (b'{"\\ud800": 1}', "not JSON"),
            (b'{"question": "\xe9"}', "not JSON"),
            ('{"question": "é"}'.encode("utf-16"), "not JSON"),
            (b'{"limit": ' + b"9" * 5_000 + b"}", "not JSON"),
            (b"null", "object"),
            (b"", "required"),
        ],
        ids=[
            *("cut off", "deep", "one field twice", "not a number", "half a character", "half a character's name"),
            *("Latin-1", "UTF-16", "a number without an end", "no object", "empty"),
        ],
    )
    def test_what_says_no_one_thing_is_refused(self, program, body, said):
        told = error(program.post(f"{PATH}/recall", content=body, headers=JSON), 400)

        assert told["kind"] == "InvalidInput"
        assert said in told["message"]

    @pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded", "application/jsonp"])
    def test_what_does_not_say_that_it_is_json_is_refused(self, program, kind):
        headers = {"Content-Type": kind} if kind else {}

        said = error(program.post(f"{PATH}/recall", content=b'{"question": "q"}', headers=headers), 400)

        assert "Content-Type: application/json" in said["message"]

    @pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "APPLICATION/JSON", "application/what+json"])
    def test_json_may_be_called_so_in_several_ways(self, program, kind):
        sent = program.post(f"{PATH}/recall", content=b'{"question": "q"}', headers={"Content-Type": kind})

        assert sent.status_code == 200

    def test_faults_without_an_end_are_told_with_one(self, program):
        many = {f"field {number}": 1 for number in range(20_000)}

        answer = program.post(f"{PATH}/recall", json={"question": "q", "x" * 1_000_000: 1, **many})

        assert "and 19951 more" in error(answer, 400)["message"]
        assert len(answer.content) < 10_000


class TestMethods:
    def test_what_an_address_cannot_be_asked_says_how_it_can(self, program):
        for method in ("PUT", "OPTIONS", "TRACE"):
            answer = program.request(method, f"{PATH}/cards/mem-0001")
            assert error(answer, 405)["kind"] == "MethodNotAllowed"
            assert answer.headers["allow"] == "HEAD, GET, PATCH, DELETE"

    @pytest.mark.parametrize("path", [f"{PATH}/cards", "/sign-in", "/static/style.css", "/health", f"{PATH}/merges"])
    def test_head_is_get_without_the_body(self, program, path):
        full, head = program.get(path), program.head(path)

        assert head.content == b""
        assert (head.status_code, head.headers["content-type"]) == (full.status_code, full.headers["content-type"])
        assert head.headers["content-length"] == full.headers["content-length"]


def fields(description):
    """Every parameter and every field of a body that is sent, by its name in words."""
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            for each in operation.get("parameters", ()):
                yield f"{method} {path} {each['name']}", each
    for name, shape in description["components"]["schemas"].items():
        if shape.get("additionalProperties") is False:  # bodies alone refuse what they do not know
            yield from ((f"{name}.{field}", said) for field, said in shape["properties"].items())


def test_the_description_tells_what_every_field_is_for_and_no_secret(client):
    answer = client.get("/api/v1/openapi.json")
    found = dict(fields(answer.json()))

    assert len(found) > 80
    assert [name for name, said in found.items() if not said.get("description")] == []
    assert TOKEN not in answer.text


@pytest.mark.parametrize(
    ("address", "body"),
    [
        ("recall", {"question": "x", "families": [1] * 200_000}),
        ("cards", {"family": "concept", "subject": "s", "detail": "d", "links": [{}] * 200_000}),
        ("cards", {"family": "concept", "subject": "s", "detail": "d", "concepts": [7] * 200_000}),
    ],
)
def test_what_is_wrong_a_hundred_thousand_times_is_said_a_few_times(program, address, body):
    answer = program.post(f"{PATH}/{address}", json=body)

    assert answer.status_code == 400
    assert len(answer.content) < 50_000
