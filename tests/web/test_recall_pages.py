"""Trying recall on a page."""

from __future__ import annotations

import pytest

from memory_pipeline.archive.grants import Role
from memory_pipeline.edits import Change
from memory_pipeline.recall.fusion import TEXT_WEIGHTS, VERBATIM, WEIGHTS
from memory_pipeline.web.pages.signals import SIGNALS
from tests.curating import CLINIC, a_creation, all_away
from tests.web.conftest import csrf, let_in, signed_in_as

RECALL = f"/w/{CLINIC}/recall"


@pytest.fixture
def asked(admin, curation):
    """Ask a question, with other fields of the form."""
    curation.save(CLINIC, a_creation(subject="paziente attivo", detail="**flag** [x](javascript:alert(1))"))
    curation.save(CLINIC, a_creation(subject="paziente in carico", detail="visto di recente"))
    mark = csrf(admin.get(RECALL).text)
    return lambda question, **others: admin.post(RECALL, data={"csrf": mark, "question": question, **others})


def test_shows_what_a_session_would_see_why_and_what_was_left_out(asked):
    page = asked("quanti pazienti attivi?", limit="1").text

    assert "1 card comes back" in page
    assert "mem-0001" in page
    assert "how much of the card&#39;s subject the question uses" in page
    assert "As many as were asked for fit better: 1" in page
    assert "<strong>flag</strong>" in page
    assert 'href="javascript' not in page


def test_says_which_points_were_not_believed_and_that_the_answer_is_incomplete(asked, curation):
    curation.save(CLINIC, Change("mem-0001", 1, {"detail": "something else"}), propagate=False)

    page = asked("pazienti attivi").text

    assert "1 point: the archive has changed the item since the point was written." in page
    assert "Incomplete: 1 item of the workspace is still pending." in page


def test_a_question_stands_in_no_address(admin, asked):
    answer = asked("una domanda riservata")

    assert "riservata" in answer.text
    assert "riservata" not in str(answer.url)
    assert admin.get(RECALL, params={"question": "una domanda"}).text.count("una domanda") == 0


def test_with_the_index_away_the_question_stays_and_words_alone_may_answer(asked, watched):
    all_away(watched)

    refused = asked("paziente attivo")
    answered = asked("paziente attivo", degraded="yes")

    assert refused.status_code == 503
    assert 'value="paziente attivo"' in refused.text
    assert "By words alone" in refused.text
    assert answered.status_code == 200
    assert "By words alone: the index or the model is away" in answered.text


@pytest.mark.parametrize("others", [{"limit": "0"}, {"limit": "ten"}, {"family": "nothing"}, {"question": "  "}])
def test_what_cannot_be_asked_is_said(asked, others):
    answer = asked(**{"question": "paziente", **others})

    assert answer.status_code == 400
    assert 'role="alert"' in answer.text


def test_is_for_readers_who_see_no_way_to_what_is_not_theirs(client, app_services, curation):
    curation.save(CLINIC, a_creation(subject="paziente"))
    signed_in_as(client, app_services, let_in(curation, "somebody", Role.READER))

    page = client.post(RECALL, data={"csrf": csrf(client.get(RECALL).text), "question": "paziente"}).text

    assert "mem-0001" in page
    assert "/cards" not in page
    assert client.get(f"/w/{CLINIC}/cards").status_code == 403


def test_every_signal_has_words():
    known = {*TEXT_WEIGHTS, VERBATIM, *(name for weights in WEIGHTS.values() for name in weights)}
    assert known == set(SIGNALS)
