"""How often somebody may ask: each for themselves, and in bounded memory whoever comes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from starlette.testclient import TestClient

from memory_pipeline.web import create_app, protection
from memory_pipeline.web.failures import TooManyRequests
from memory_pipeline.web.protection import Rate
from tests.curating import CLINIC
from tests.web.conftest import HOST, TOKEN

CARDS = f"/api/v1/workspaces/{CLINIC}/cards"


@pytest.fixture
def settings(settings):
    """Five requests a minute."""
    return settings.model_copy(update={"web_requests_per_minute": 5})


@pytest.fixture
def later(monkeypatch) -> Callable[[float], None]:
    """Lets seconds pass for whoever counts."""
    clock = SimpleNamespace(now=1_000.0)
    monkeypatch.setattr(protection, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return lambda seconds: setattr(clock, "now", clock.now + seconds)


def taken(rate: Rate, caller: str, number: int = 100) -> int:
    """How many of so many are not refused."""
    done = 0
    for _ in range(number):
        try:
            rate.count(caller)
            done += 1
        except TooManyRequests:
            pass
    return done


def test_of_one_more_than_is_allowed_the_last_is_refused_and_others_are_not(later):
    rate = Rate(5)

    assert taken(rate, "anna") == 5
    assert taken(rate, "bruno", 5) == 5


def test_what_is_refused_may_be_done_a_minute_later_and_no_more_than_that(later):
    rate = Rate(60)
    assert taken(rate, "anna") == 60
    later(59.0)
    assert taken(rate, "anna") == 0
    later(31.0)  # half a minute into the next one
    assert taken(rate, "anna") == 30
    later(120.0)
    assert taken(rate, "anna") == 60


def test_nobody_is_remembered_who_has_been_silent_for_two_minutes(later):
    rate = Rate(5, callers=10)
    assert [rate.tells_apart(f"{n}") for n in range(12) if taken(rate, f"{n}", 1)] == [True] * 10 + [False] * 2
    later(121.0)
    assert taken(rate, "11", 5) == 5
    assert rate.tells_apart("12")
    assert len(rate._before) + len(rate._now) == 1


def test_whoever_comes_when_there_is_no_room_counts_with_the_others_and_who_was_there_does_not(later):
    rate = Rate(5, callers=3)
    for caller in "abc":
        rate.count(caller)

    assert sum(taken(rate, f"made up {n}", 1) for n in range(1_000)) == 5
    assert taken(rate, "a") == 4
    assert len(rate._now) == 4


def test_names_are_kept_in_little_room_whatever_is_in_them(later):
    rate = Rate(5)
    rate.count("x" * 1_000_000)
    rate.count("\ud800")

    assert {len(name) for name in rate._now} == {32}


def test_threads_together_get_no_more_than_one_would():
    rate, done = Rate(1_000), []
    threads = [threading.Thread(target=lambda: done.append(taken(rate, "anna", 400))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sum(done) == 1_000


def test_a_program_that_asks_too_often_is_told_when_to_ask_again_and_another_is_not_held_up(program, client):
    assert [program.get(CARDS).status_code for _ in range(6)] == [200] * 5 + [429]
    refused = program.get(CARDS)

    assert 0 < int(refused.headers["Retry-After"]) <= 60
    assert refused.json()["error"]["kind"] == "TooManyRequests"
    assert client.get("/sign-in").status_code == 200


def test_a_person_who_asks_too_often_gets_a_page_that_says_so(client):
    answers = [client.get("/sign-in") for _ in range(6)]

    assert [answer.status_code for answer in answers] == [200] * 5 + [429]
    assert "Too many requests" in answers[-1].text
    assert "<html" in answers[-1].text
    assert answers[-1].headers["Retry-After"]


def test_whoever_holds_a_cookie_is_not_held_up_by_others_at_the_same_address(app_services):
    with TestClient(create_app(app_services), base_url=HOST, follow_redirects=False) as client:
        assert client.post("/sign-in", data={"token": TOKEN}).status_code == 303
        kept = dict(client.cookies)
        client.cookies.clear()
        while client.get("/sign-in").status_code != 429:
            pass
        client.cookies.update(kept)

        assert client.get(f"/w/{CLINIC}/cards").status_code == 200


def test_who_makes_up_credentials_is_counted_by_the_address_once_there_are_too_many(app_services, monkeypatch):
    monkeypatch.setattr(protection.Rate.__init__, "__kwdefaults__", {"callers": 10})
    with TestClient(create_app(app_services), base_url=HOST, follow_redirects=False) as client:
        answers = [client.get("/", headers={"Cookie": f"memory_session={number}"}).status_code for number in range(20)]
        assert answers == [303] * 15 + [429] * 5


def test_tokens_that_stand_for_nobody_count_by_address_whichever_they_are(client, app_services):
    object.__setattr__(app_services, "refusals", Rate(3))
    wrong = [client.get(CARDS, headers={"Authorization": f"Bearer {n}"}).status_code for n in range(5)]

    assert wrong == [401] * 3 + [429] * 2
    assert client.post("/sign-in", data={"token": "another"}).status_code == 429
    assert client.post("/sign-in", data={"token": TOKEN}).status_code == 303  # who has it may come in all the same
