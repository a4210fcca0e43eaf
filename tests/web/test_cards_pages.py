"""The list and the detail of cards."""

from __future__ import annotations

import pytest

from memory_pipeline.edits import Link
from tests.curating import CLINIC, a_creation

CARDS = f"/w/{CLINIC}/cards"


def test_the_list_shows_what_fits_all_filters_and_how_many_there_are(admin, curation):
    for number in range(60):
        curation.save(CLINIC, a_creation(subject=f"concept {number}", detail="d"), propagate=False)
    curation.save(CLINIC, a_creation(family="pitfall", subject="concept of a pitfall"), propagate=False)

    page = admin.get(CARDS, params={"text": "concept", "family": "concept", "size": "25", "page": "3"}).text

    assert "60 cards, page 3 of 3" in page
    assert page.count("/cards/mem-") == 10
    assert "concept of a pitfall" not in page


def test_the_detail_shows_the_whole_card_and_links_both_ways(admin, curation):
    curation.save(CLINIC, a_creation(subject="patient"))
    curation.save(CLINIC, a_creation(Link("mem-0001", "is a"), subject="active", detail="see **this**"))

    page = admin.get(f"{CARDS}/mem-0002").text

    assert "<strong>this</strong>" in page
    assert "recallable" in page
    assert "<em>is a</em>" in page
    assert "<em>is a</em> this card" in admin.get(f"{CARDS}/mem-0001").text


def test_a_filter_that_cannot_be_used_is_said_and_is_no_empty_list(admin):
    answer = admin.get(CARDS, params={"after": "yesterday"})

    assert answer.status_code == 400
    assert "has to be a day" in answer.text
    assert "yesterday" in answer.text
    assert "no card" not in answer.text.lower()


@pytest.mark.parametrize(("asked", "shown"), [("0", "1"), ("7", "1"), ("007", "1")])
def test_a_page_beyond_the_last_leads_to_that(admin, curation, asked, shown):
    curation.save(CLINIC, a_creation(), propagate=False)

    answer = admin.get(CARDS, params={"page": asked}, follow_redirects=True)

    assert f"1 card, page {shown} of 1" in answer.text
