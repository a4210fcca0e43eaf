"""A workspace at a glance on a page."""

from __future__ import annotations

from memory_pipeline.archive.ingest import ingest
from memory_pipeline.propagation import audit
from tests.builders import a_session, approved, clarified, promoted
from tests.curating import CLINIC, a_creation, all_away

OVERVIEW = f"/w/{CLINIC}/overview"


def test_shows_cards_pending_candidates_and_the_last_audit(admin, watched, curation):
    a_session(watched.settings.sessions, clarified(1), clarified(2, "open", "x"), approved(3), promoted(4, 1))
    ingest(watched.database, CLINIC, watched.settings, watched.identity)
    curation.retry(CLINIC)
    audit(watched, CLINIC)
    all_away(watched)
    curation.save(CLINIC, a_creation(subject="by hand"))

    page = admin.get(OVERVIEW).text

    assert 'Concept</a></th><td class="number">2</td>' in page
    assert "the model is away" in page
    assert "session-1</a>: 1 since" in page
    assert "points compared with the archive" in page
    assert "Pending items: 3 at most, 1 now" in page


def test_of_an_empty_workspace_says_that_there_is_nothing(admin):
    page = admin.get(OVERVIEW, params={"hours": "nonsense"}).text

    assert "never" in page
    assert "Nothing was seen pending" in page
