"""What is seen of requests from the outside: the log, the figures, and whether the process is ready."""

from __future__ import annotations

import logging
import re
import shutil
import threading
from dataclasses import replace

import psycopg
import pytest
from sqlalchemy import make_url
from starlette.testclient import TestClient

from memory_pipeline.archive import identities
from memory_pipeline.archive.status import status
from memory_pipeline.cards import Collection
from memory_pipeline.curation import Curation
from memory_pipeline.errors import ArchiveUnavailable, IndexUnavailable
from memory_pipeline.points import target
from memory_pipeline.propagation import project
from memory_pipeline.propagation.distrust import distrust_collection
from memory_pipeline.propagation.losses import Presence, lost_points
from memory_pipeline.propagation.switch import record_live
from memory_pipeline.web import standing
from memory_pipeline.web.metrics import Metrics
from memory_pipeline.web.observing import Observed
from memory_pipeline.web.standing import Look, Standing
from tests.curating import CLINIC, Gone, a_creation, all_away
from tests.web.conftest import TOKEN, csrf

SECRET = "geheim"  # noqa: S105  # what must not be seen again
API = f"/api/v1/workspaces/{CLINIC}"


@pytest.fixture
def logged(caplog):
    """What was logged at the default level, but for the client's own lines."""
    caplog.set_level(logging.INFO)
    return lambda: "\n".join(
        caplog.handler.format(each) for each in caplog.records if not each.name.startswith("httpx")
    )


def figure(client, name: str, **labels: str) -> float:
    """The sum of a figure over whatever labels are not named."""
    rows = re.findall(rf"^{name}(?:\{{(.*)\}})? (\S+)$", client.get("/metrics").text, re.MULTILINE)
    wanted = [f'{label}="{value}"' for label, value in labels.items()]
    return sum(float(value) for said, value in rows if all(each in said for each in wanted))


def test_nothing_that_was_sent_is_logged(admin, program, curation, logged, monkeypatch, capsys):
    curation.save(CLINIC, a_creation(subject=SECRET, detail=SECRET))

    def broken(*_: object) -> None:
        raise RuntimeError(SECRET)

    for path in (f"{API}/cards?text={SECRET}", f"{API}/cards/{SECRET}", f"/{SECRET}", f"/w/{SECRET}/cards"):
        program.get(path)
    program.post(f"{API}/recall", json={"question": SECRET})
    program.post(f"{API}/recall", json={"question": [SECRET]})
    program.patch(f"{API}/cards/mem-0001", json={"version": 9, "detail": SECRET})
    program.get(f"{API}/cards", headers={"Authorization": f"Bearer {SECRET}", "X-Request-ID": SECRET})
    admin.post("/sign-in", data={"token": SECRET})
    admin.get(f"/w/{CLINIC}/cards", headers={"X-Note": SECRET})
    monkeypatch.setattr(Curation, "detail", broken)
    assert program.get(f"{API}/cards/mem-0001").status_code == 500
    assert admin.get(f"/w/{CLINIC}/cards/mem-0001").status_code == 500

    said = logged() + "".join(capsys.readouterr())
    assert "GET /api/v1/workspaces/{workspace}/cards/{card_id} 500 " in said
    assert [each for each in (SECRET, TOKEN, csrf(admin.get(f"/w/{CLINIC}/cards").text)) if each in said] == []


def test_an_unexpected_error_is_answered_with_the_number_that_the_log_has(program, admin, logged, monkeypatch):
    def broken(*_: object) -> None:
        raise RuntimeError(SECRET)

    monkeypatch.setattr(Curation, "detail", broken)
    answer = program.get(f"{API}/cards/mem-0001")

    number = answer.headers["x-request-id"]
    error = answer.json()["error"]
    assert (error["kind"], error["request_id"]) == ("Unexpected", number)
    assert f"unexpected error in request {number}\nbuiltins.RuntimeError\n" in logged()
    assert "in broken" in logged()
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    page = admin.get(f"/w/{CLINIC}/cards/mem-0001")
    assert page.headers["x-request-id"] in page.text
    assert SECRET not in answer.text + page.text


@pytest.mark.parametrize(
    ("given", "taken"),
    [("0af7651916cd43dd8448eb211c80319c", True), ("de305d54-75b4-431b-adb2-eb6b9e546014", True), ("a token", False)],
)
def test_the_number_of_a_request_is_the_callers_where_it_is_one(client, given, taken):
    answer = client.get("/health", headers={"X-Request-ID": given})
    assert (answer.headers["x-request-id"] == given) is taken


def test_an_answer_that_breaks_off_says_nothing_of_why(watched, logged):
    async def broken(scope, receive, send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise RuntimeError(SECRET)

    app = Observed(broken, metrics=Metrics(Standing(watched)))
    with pytest.raises(Exception, match=r"^$") as caught:
        TestClient(app).get("/")
    assert SECRET not in repr([caught.value, caught.value.__cause__])
    assert caught.value.__suppress_context__
    assert "RuntimeError" in logged()


def test_figures_name_routes_and_no_paths_however_many_are_asked_for(program):
    for number in range(40):
        program.get(f"/nothing/{number}")
        program.get(f"/static/nothing-{number}")
        program.get(f"/api/v1/workspaces/w-{number}/cards/mem-{number}")
        program.get(f"/w/w-{number}/cards")
        program.request(f"METHOD{number}", f"/nothing/{number}")

    assert figure(program, "memory_http_requests_total", route="unmatched", status="404", method="GET") == 40
    assert figure(program, "memory_http_requests_total", route="/static/", status="404") == 40
    assert figure(program, "memory_http_requests_total", route="/api/v1/workspaces/{workspace}/cards/{card_id}") == 40
    assert figure(program, "memory_http_requests_total", route="/w/{workspace}/cards") == 40
    assert figure(program, "memory_http_requests_total", method="other") == 40
    labels = set(re.findall(r"^memory_http_requests_total\{(.*)\}", program.get("/metrics").text, re.MULTILINE))
    assert len(labels) == 6  # the figures themselves are the sixth
    assert "w-1" not in program.get("/metrics").text


def test_figures_say_what_is_pending_and_how_long_recall_takes(program, curation):
    assert (figure(program, "memory_cards"), figure(program, "memory_recall_seconds_count")) == (0, 0)
    assert figure(program, "memory_up") == 3
    for name in ("one", "two"):
        curation.save(CLINIC, a_creation(subject=name), propagate=False)
    program.post(f"{API}/recall", json={"question": "one?"})
    seen = Metrics(Standing(curation._runtime)).exposition().decode()
    assert "memory_cards 2.0\nmemory_pending_points 2.0" in re.sub(r"^#.*\n", "", seen, flags=re.MULTILINE)
    assert float(re.search(r"^memory_oldest_pending_seconds (\S+)$", seen, re.MULTILINE)[1]) > 0
    assert figure(program, "memory_recall_seconds_count") == 1
    assert CLINIC not in program.get("/metrics").text


def test_ready_says_what_is_away_and_needs_no_token(client, watched):
    assert (client.get("/health").json(), client.get("/ready").json()) == (
        {"alive": True},
        {"ready": True, "wrong": {}, "degraded": {}},
    )


def test_without_index_and_model_it_is_ready_in_part(client, watched):
    all_away(watched)
    answer = client.get("/ready")
    assert (answer.status_code, answer.json()["ready"]) == (200, True)
    assert set(answer.json()["degraded"]) == {"index", "model"}
    assert (figure(client, "memory_up"), figure(client, "memory_up", service="archive")) == (1, 1)


def test_a_lost_collection_is_said_until_it_is_filled_again(watched, curation):
    curation.save(CLINIC, a_creation())
    assert Standing(watched).faults()["index"] is None
    shutil.rmtree(watched.settings.home / "index")

    lost = Standing(watched)
    assert lost.faults() == {
        "archive": None,
        "index": "it lacks what recall searches: the sensors, or `memory-pipeline project`, fill it",
        "model": None,
    }
    assert lost.figures()[1].pending == 1
    distrust_collection(watched, target(CLINIC, Collection.MEMORY_CARDS, watched.identity), "as a projection does")
    assert Standing(watched).faults()["index"]

    project(watched, CLINIC)
    assert Standing(watched).faults()["index"] is None
    assert Standing(watched).figures()[1].pending == 0


def test_without_the_archive_it_is_not_ready_and_lives(client, watched):
    watched.database = Gone(ArchiveUnavailable("no connection to db"))
    answer = client.get("/ready")
    assert answer.status_code == 503
    assert answer.json() == {"ready": False, "wrong": {"archive": "PostgreSQL cannot be reached"}, "degraded": {}}
    assert client.get("/health").status_code == 200
    assert "memory_cards" not in client.get("/metrics").text


def test_what_is_away_is_logged_once_and_so_is_that_it_is_back(watched, logged, monkeypatch):
    monkeypatch.setattr(standing, "_KEPT", 0.0)
    looking = Standing(watched)
    index, watched.index = watched.index, Gone(IndexUnavailable("no answer from db"))
    assert [bool(looking.faults()["index"]) for _ in range(3)] == [True] * 3
    watched.index = index
    assert looking.faults()["index"] is None
    assert logged().count("index: no answer from db") == 1
    assert logged().count("index: it answers again") == 1


def test_while_the_model_changes_the_one_that_recall_still_uses_counts_too(watched, curation):
    curation.save(CLINIC, a_creation())
    assert Standing(watched).faults()["model"] is None
    former = replace(watched.identity, provider="openai", model="former")
    with watched.database.transaction(CLINIC) as tx:
        identities.register(tx, former)
    watched.index.activate(CLINIC, former.hash, former.settings, [])
    record_live(watched, CLINIC)
    assert Standing(watched).faults()["model"] == "it cannot be used: the log says why"


def test_a_workspace_that_is_removed_during_a_look_makes_nothing_look_wrong(watched, curation, monkeypatch):
    curation.save(CLINIC, a_creation())
    monkeypatch.setattr("memory_pipeline.archive.workspaces.names", lambda _: ["removed", CLINIC])
    assert Standing(watched).faults() == {"archive": None, "index": None, "model": None}
    assert Standing(watched).figures()[1].cards == 1
    assert list(status(watched.database, watched.identity.hash)) == [CLINIC]
    assert lost_points(watched, "removed", Presence(watched.index)) == {}


def test_with_another_schema_it_is_not_ready_though_it_was(client, watched, monkeypatch):
    url = make_url(watched.settings.owner_url.get_secret_value()).set(drivername="postgresql")
    assert client.get("/ready").status_code == 200
    with psycopg.connect(url.render_as_string(hide_password=False)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0001'")
    fault = Standing(watched).faults()["archive"]
    assert fault == "its schema is missing or of another revision: run `memory-pipeline migrate`"


def test_what_does_not_answer_is_asked_once_and_waited_for_no_longer_than_it_may(client, watched, monkeypatch):
    monkeypatch.setattr(standing, "PATIENCE", 0.2)
    asked, release = [], threading.Event()

    class Silent:
        def identities(self, *_: object) -> None:
            asked.append(1)
            release.wait()

    watched.index = Silent()
    try:
        for _ in range(3):
            assert client.get("/ready").json()["degraded"] == {"index": "it did not answer within 3 s"}
        assert asked == [1]
    finally:
        release.set()


def test_while_a_look_takes_long_the_one_before_it_stands_in_for_a_while(monkeypatch):
    seen, go_on = iter(range(1, 4)), threading.Event()
    go_on.set()
    look = Look("index", lambda: go_on.wait() and next(seen), kept=0)
    assert look.answer(20) == 1
    go_on.clear()

    assert look.answer(0.01) == 1
    with monkeypatch.context() as patch:
        patch.setattr(standing, "_STANDS_IN", 0)
        with pytest.raises(TimeoutError):
            look.answer(0.01)

    go_on.set()
    look.begin().result(20)
    assert look.answer(20) in {2, 3}


def test_what_has_never_answered_is_not_said_to_be_well():
    never = threading.Event()
    with pytest.raises(TimeoutError):
        Look("index", never.wait, kept=0).answer(0.01)
    never.set()
