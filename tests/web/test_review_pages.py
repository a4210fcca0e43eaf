"""Reviews on pages: every candidate is shown and decided, and what is taken back is foreseen."""

from __future__ import annotations

import html
import re
import shutil
from dataclasses import replace

import pytest

from memory_pipeline.archive.grants import Role
from memory_pipeline.archive.ingest import ingest
from memory_pipeline.errors import ArchiveUnavailable
from memory_pipeline.ledger import LEDGER_FILE, read_session
from memory_pipeline.reviewing import Reviewing
from tests.builders import WORKSPACE, a_session, clarified, declined, promoted
from tests.curating import CLINIC, a_creation
from tests.web.conftest import csrf, let_in, signed_in_as

SESSIONS = f"/w/{CLINIC}/sessions"
REVIEW = f"{SESSIONS}/session-1/review"


def choices(page: str, **others: str) -> dict[str, str]:
    """What a browser would send of the checklist, as it was opened but for the others, by seq."""
    found = dict(re.findall(r'name="(decide\.\d+)" value="(\w+)" checked', page))
    return {"csrf": csrf(page), **found, **{f"decide.{seq[1:]}": choice for seq, choice in others.items()}}


def memories(admin) -> str:
    """What the page of the session shows from its first heading of memories on."""
    page = admin.get(f"{SESSIONS}/session-1").text
    return page[page.index("<h2") :]


def test_forty_candidates_are_all_shown_preselected_and_all_decided(admin, watched):
    directory = a_session(
        watched.settings.sessions, *(clarified(n, f"concept {n}", f"x = {n}") for n in range(1, 41)), status="open"
    )
    page = admin.get(REVIEW).text

    answer = admin.post(REVIEW, data=choices(page, s40="decline", s39="later"))

    assert page.count("<fieldset") == 40
    assert choices(page) == {"csrf": csrf(page)} | {f"decide.{n}": "promote" for n in range(1, 41)}
    assert answer.status_code == 200
    assert "Saved and recallable" in answer.text
    assert "1 candidate of the session still waits" in answer.text
    recorded = read_session(directory, WORKSPACE).decisions[40:]
    assert [decision.detail for decision in recorded] == [f"seq:{n}" for n in (*range(1, 39), 40)]
    assert admin.post(REVIEW, data=choices(page, s40="decline", s39="later")).text.count("Nothing was added") == 1
    assert read_session(directory, WORKSPACE).decisions[40:] == recorded


def test_what_could_not_be_used_is_named_where_the_overview_leads_to(admin, watched):
    a_session(watched.settings.sessions, clarified(1), promoted(7, 9))
    (watched.settings.sessions / CLINIC / "<broken>").mkdir()
    ingest(watched.database, CLINIC, watched.settings, watched.identity)

    overview = admin.get(f"/w/{CLINIC}/overview").text
    listed = html.unescape(admin.get(SESSIONS).text)

    assert re.search(rf'href="[^"]*{SESSIONS}#faults">2 things', overview)
    assert "<li><broken>, " in listed
    assert "<li>session-1, line 2, " in listed


def test_a_session_s_page_compares_no_candidate_with_the_cards(admin, watched, monkeypatch):
    a_session(watched.settings.sessions, clarified(1), clarified(2, "other", "y"), promoted(7, 9), status="open")
    monkeypatch.setattr("memory_pipeline.archive.duplicates.alike", lambda *_: pytest.fail("it compares"))
    page = admin.get(f"{SESSIONS}/session-1").text
    assert "Review 2 candidates" in page
    assert "1 thing of the session cannot be used" in page


def test_a_candidate_is_shown_with_all_that_there_is_to_know(admin, watched, curation):
    curation.save(CLINIC, a_creation(subject="Active patient.", detail="flag_attivo = TRUE"))
    curation.save(CLINIC, a_creation(family="pitfall", subject="active patient", detail="counted twice"))
    said = clarified(1, rationale="<script>alert(1)</script>", tables=("visite",), concepts=("patients",))
    a_session(watched.settings.sessions, said, clarified(2, "visite", "x"), status="open", ledger=None)

    page = admin.get(REVIEW).text

    assert "&lt;script&gt;" in page
    assert "<script>alert" not in page
    assert 'Confirms <a href="/w/clinic/cards/mem-0001">mem-0001</a>, as one more source' in page
    assert '/cards/mem-0002">mem-0002</a> (Pitfall) says something else of the same subject' in page
    assert "is a table of this session" in page
    assert "Concepts: patients" in page


def test_a_reviewer_sees_which_cards_say_the_same_but_no_way_to_them(client, app_services, curation, watched):
    curation.save(CLINIC, a_creation())
    a_session(watched.settings.sessions, clarified(1), status="open")
    signed_in_as(client, app_services, let_in(curation, "somebody", Role.REVIEWER))

    page = client.get(REVIEW).text

    assert "Confirms mem-0001, as one more source" in page
    assert "/cards" not in page


def test_what_somebody_else_decided_meanwhile_is_left_out_and_the_rest_recorded(admin, watched):
    a_session(watched.settings.sessions, clarified(1), clarified(2, "other", "x"), status="open")
    page = admin.get(REVIEW).text
    Reviewing(watched).record(CLINIC, "session-1", decline=[1])

    answer = admin.post(REVIEW, data=choices(page))

    assert "Left out" in answer.text
    assert "promoted other" in answer.text


def test_sessions_that_wait_are_listed_and_any_is_opened_by_its_id(admin, watched):
    a_session(watched.settings.sessions, clarified(1), status="open")
    ingest(watched.database, CLINIC, watched.settings, watched.identity)

    page = admin.get(SESSIONS).text
    opened = admin.get(SESSIONS, params={"open": "session-1"})

    assert "session-1" in page
    assert "1 clarification of 1 session waits" in page
    assert opened.headers["location"] == f"{SESSIONS}/session-1"
    assert admin.get(SESSIONS, params={"open": "../../etc"}).headers["location"].startswith(f"{SESSIONS}/")


def test_the_session_shows_what_was_approved_and_declined_and_takes_it_back_after_asking(admin, watched):
    said = (clarified(1), clarified(2, "report", "monday"), promoted(3, 1), declined(4, 2))
    a_session(watched.settings.sessions, *said, status="open")
    ingest(watched.database, CLINIC, watched.settings, watched.identity)

    view = memories(admin)
    asked = admin.get(f"{SESSIONS}/session-1/correct", params={"retract": "3"}).text
    sent = {"csrf": csrf(asked), "retract": "3", "phase": "", "reason": "wrong", "after": "4"}
    done = admin.post(f"{SESSIONS}/session-1/correct", data=sent)

    assert view.index("Approved") < view.index("active patient") < view.index("Declined") < view.index("report")
    assert "mem-0001" in asked
    assert "is deleted" in asked
    assert "retracted" in done.text
    assert "active patient" not in memories(admin)


def test_what_was_decided_since_it_was_shown_is_not_taken_away_unseen(admin, watched):
    a_session(watched.settings.sessions, clarified(1), clarified(2, "other", "x"), promoted(3, 1), status="open")
    address = f"{SESSIONS}/session-1/correct"
    asked = admin.get(address, params={"phase": "1"}).text
    Reviewing(watched).record(CLINIC, "session-1", promote=[2])

    sent = {"csrf": csrf(asked), "retract": "", "phase": "1", "reason": "why", "after": "3"}
    refused = admin.post(address, data=sent)
    done = admin.post(address, data={**sent, "after": re.search(r'name="after" value="(\d+)"', refused.text)[1]})

    assert refused.status_code == 409
    assert "Nothing was taken away" in refused.text
    assert "Decision 4, memory promoted: other" in refused.text
    assert 'value="why"' in refused.text
    assert done.status_code == 200
    assert "reopened" in done.text


@pytest.mark.parametrize("address", [SESSIONS, f"{SESSIONS}/session-1", REVIEW])
def test_a_sessions_root_that_is_away_is_no_empty_list(admin, watched, address):
    a_session(watched.settings.sessions, clarified(1))
    shutil.rmtree(watched.settings.sessions)

    answer = admin.get(address)

    assert answer.status_code == 503
    assert "candidate" not in answer.text
    assert "waits for a review" not in answer.text


def test_what_was_chosen_is_kept_while_nothing_can_be_recorded_and_is_sent_again(admin, watched):
    root = watched.settings.sessions
    directory = a_session(root, clarified(1), clarified(2, "other", "x"), clarified(3, "third", "y"), status="open")
    page = admin.get(REVIEW).text
    away = root.rename(root.with_name("away"))

    refused = admin.post(REVIEW, data=choices(page, s2="decline", s3="later"))
    away.rename(root)
    answer = admin.post(REVIEW, data=dict(re.findall(r'name="(csrf|decide\.\d+)" value="(\w+)"', refused.text)))

    assert refused.status_code == 503
    assert "Not recorded" in refused.text
    assert "1 candidate of the session still waits" in answer.text
    recorded = [(decision.type, decision.detail) for decision in read_session(directory, WORKSPACE).decisions[3:]]
    assert recorded == [("memory_promoted", "seq:1"), ("memory_promotion_declined", "seq:2")]


@pytest.mark.parametrize("name", ["50% of? #1", "più è", "a b+c&d", "<i>"])
def test_a_session_is_reached_whatever_it_is_called(admin, watched, name):
    a_session(watched.settings.sessions, clarified(1), session=name, status="open")
    ingest(watched.database, CLINIC, watched.settings, watched.identity)

    listed = html.unescape(re.search(r'href="([^"]*/review)"', admin.get(SESSIONS).text)[1])
    opened = admin.get(SESSIONS, params={"open": name}).headers["location"]

    assert html.escape(name) in admin.get(opened).text
    assert "Saved and recallable" in admin.post(listed, data=choices(admin.get(listed).text)).text


def test_a_seq_of_ten_digits_is_decided_like_any_other(admin, watched):
    a_session(watched.settings.sessions, clarified(1), replace(clarified(2, "other", "x"), seq=2_000_000_000))

    answer = admin.post(REVIEW, data=choices(admin.get(REVIEW).text))

    assert "Nothing of the session waits" in answer.text


def test_two_thousand_candidates_are_all_shown_and_decided_at_once(admin, watched):
    said = (clarified(n, f"concept {n}", f"x = {n}") for n in range(1, 2_001))
    a_session(watched.settings.sessions, *said, status="open")
    page = admin.get(REVIEW).text

    answer = admin.post(REVIEW, data=choices(page))

    assert page.count("<fieldset") == 2_000
    assert "Nothing of the session waits" in answer.text


@pytest.mark.parametrize("query", [{}, {"retract": "3,x"}, {"retract": "3", "phase": "2"}, {"phase": "9"}])
def test_what_is_to_be_taken_back_has_to_be_named(admin, watched, query):
    a_session(watched.settings.sessions, clarified(1), clarified(2, "other", "x"), promoted(3, 1), status="open")

    answer = admin.get(f"{SESSIONS}/session-1/correct", params=query)

    assert answer.status_code == 400
    assert "Take away" not in answer.text


@pytest.mark.parametrize(("role", "status"), [(Role.READER, 403), (Role.REVIEWER, 200), (Role.ADMINISTRATOR, 200)])
def test_a_review_takes_a_reviewer(client, app_services, curation, watched, role, status):
    directory = a_session(watched.settings.sessions, clarified(1), status="open")
    signed_in_as(client, app_services, let_in(curation, "somebody", role))

    shown = client.get(REVIEW)
    mark = csrf(client.get("/").text)
    decided = client.post(REVIEW, data={"csrf": mark, "decide.1": "promote"})

    assert shown.status_code == decided.status_code == status
    assert ((directory / LEDGER_FILE).read_bytes().count(b"\n") == 2) is (status == 200)


def test_with_the_archive_away_what_was_chosen_is_there_still(admin, watched, monkeypatch):
    a_session(watched.settings.sessions, clarified(1), clarified(2, "other", "x"), status="open")
    page = admin.get(REVIEW).text

    def away(*_, **__):
        raise ArchiveUnavailable("the archive is away")

    with monkeypatch.context() as patch:
        patch.setattr(watched.database, "transaction", away)
        answer = admin.post(REVIEW, data=choices(page, s2="decline"))

    assert answer.status_code == 503
    assert 'name="decide.2" value="decline"' in answer.text
    assert CLINIC in answer.text


def test_a_workspace_that_never_had_a_session_has_none_that_waits(admin):
    page = admin.get(SESSIONS)

    assert page.status_code == 200
    assert "No session that the archive has read waits" in page.text


def test_no_page_names_a_directory_of_the_server(admin, watched):
    a_session(watched.settings.sessions, clarified(1))
    missing = admin.get(f"{SESSIONS}/nothing")
    shutil.rmtree(watched.settings.sessions)
    away = admin.get(REVIEW)

    assert (missing.status_code, away.status_code) == (404, 503)
    assert str(watched.settings.sessions) not in missing.text + away.text
