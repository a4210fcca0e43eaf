"""How much and how often may be asked, whoever asks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from memory_pipeline.web import create_app
from memory_pipeline.web.failures import TooManyRequests
from memory_pipeline.web.identity import LocalToken
from memory_pipeline.web.protection import Rate
from memory_pipeline.web.services import Services
from tests.web.conftest import HOST, TOKEN

BEARER = {"Authorization": f"Bearer {TOKEN}"}
PATH = "/api/v1/workspaces"


@pytest.fixture
def narrow(watched) -> Iterator[TestClient]:
    """The web of somebody who lets callers ask little."""
    watched.settings = watched.settings.model_copy(update={"web_requests_per_minute": 5, "web_largest_body": 1_000})
    services = Services.of(watched, LocalToken(TOKEN, watched.settings.acting_principal))
    with TestClient(create_app(services), base_url=HOST, follow_redirects=False) as client:
        yield client


def at(client: TestClient, address: str) -> TestClient:
    return TestClient(client.app, base_url=HOST, client=(address, 1), follow_redirects=False)


class TestHowOften:
    def test_one_request_too_many_is_told_when_to_ask_again_and_others_are_not_concerned(self, narrow):
        assert {narrow.get(PATH, headers=BEARER).status_code for _ in range(5)} == {200}

        answer = narrow.get(PATH, headers=BEARER)

        assert (answer.status_code, answer.json()["error"]["kind"]) == (429, "TooManyRequests")
        assert 1 <= int(answer.headers["retry-after"]) <= 60
        assert "Content-Security-Policy" in answer.headers
        assert narrow.get("/sign-in").status_code == 200
        assert narrow.get(PATH, headers={"Authorization": "Bearer other"}).status_code == 401

    def test_whoever_has_no_credential_is_counted_by_address(self, narrow):
        assert [narrow.get("/sign-in").status_code for _ in range(6)] == [200] * 5 + [429]
        assert at(narrow, "192.0.2.1").get("/sign-in").status_code == 200

    def test_guessed_tokens_are_counted_by_address_however_they_are_sent(self, client):
        for number in range(15):
            assert client.get(PATH, headers={"Authorization": f"Bearer {number}"}).status_code == 401
            assert client.post("/sign-in", data={"token": str(number)}).status_code == 401

        assert client.get(PATH, headers={"Authorization": "Bearer 30"}).status_code == 429
        assert client.post("/sign-in", data={"token": "31"}).status_code == 429
        assert at(client, "192.0.2.1").post("/sign-in", data={"token": "0"}).status_code == 401
        assert client.get(PATH, headers=BEARER).status_code == 200

    def test_made_up_credentials_take_no_more_memory_and_are_counted_by_address_in_the_end(self):
        rate = Rate(5, callers=100)
        rate.count("somebody", "192.0.2.9")

        refused = 0
        for number in range(1_000):
            try:
                rate.count(f"made up {number}", "192.0.2.1")
            except TooManyRequests:
                refused += 1

        assert refused == 1_000 - 99 - 5
        assert len(rate) == 101
        rate.count("somebody else", "192.0.2.2")
        for _ in range(4):
            rate.count("somebody", "192.0.2.9")
        with pytest.raises(TooManyRequests):
            rate.count("somebody", "192.0.2.9")


class TestHowMuch:
    def test_a_body_may_have_as_much_as_is_taken_and_no_more(self, narrow):
        path = f"{PATH}/clinic/recall"
        for length, status in ((1_000, 200), (1_001, 413)):
            body = b'{"question": "q"}'.ljust(length)
            answer = narrow.post(path, content=body, headers={**BEARER, "Content-Type": "application/json"})
            assert answer.status_code == status

        assert answer.json()["error"]["kind"] == "RequestTooLarge"

    def test_a_body_that_does_not_say_its_length_has_no_more_either(self, narrow):
        sent = []

        def without_end() -> Iterator[bytes]:
            for number in range(100):
                sent.append(number)
                yield b"x" * 500

        assert narrow.post(f"{PATH}/clinic/recall", content=without_end(), headers=BEARER).status_code == 413

    @pytest.mark.parametrize("said", ["1001", "9" * 5_000])
    def test_what_says_that_it_is_larger_is_not_read(self, narrow, said):
        answer = narrow.post(f"{PATH}/clinic/recall", content=b"", headers={**BEARER, "Content-Length": said})

        assert answer.status_code == 413

    @pytest.mark.parametrize("said", ["\xb2", "-1", "a lot", "1e3", ""])
    def test_a_length_that_is_none_says_nothing(self, narrow, said):
        headers = {"Authorization": BEARER["Authorization"].encode(), "Content-Length": said.encode("latin-1")}

        assert narrow.post(f"{PATH}/clinic/recall", content=b"", headers=headers).status_code == 400
