"""A workspace at a glance: one call, one moment, for whoever may read it, whatever else is away."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta

import pytest

from memory_pipeline.archive import overview as module
from memory_pipeline.archive.grants import Role
from memory_pipeline.archive.ingest import ingest
from memory_pipeline.curation import Curation
from memory_pipeline.errors import InvalidInput, NotPermitted, UnknownWorkspace
from memory_pipeline.propagation import audit, project
from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import Settings
from tests.builders import a_session, clarified, promoted
from tests.curating import CLINIC, a_creation, a_runtime, a_workspace, all_away, granted


@pytest.fixture
def opened(settings: Settings) -> Iterator[Runtime]:
    with a_runtime(settings) as runtime:
        yield runtime


@pytest.fixture
def clinic(opened: Runtime) -> Curation:
    """A workspace with one projected card, and a session of which one clarification waits."""
    decisions = (clarified(1, "active patient"), promoted(2, 1), clarified(3, "ablation"))
    a_session(opened.settings.sessions, *decisions, session="waiting", workspace=CLINIC, question="How many?", sql=None)
    ingest(opened.database, CLINIC, opened.settings, opened.identity)
    project(opened, CLINIC)
    return Curation(opened)


def test_an_empty_workspace_has_nothing_to_show(opened):
    a_workspace(opened)
    found = Curation(opened).overview(CLINIC)
    assert (found.status.pending, found.last_audit, found.to_review) == (0, None, ())
    assert {(each.pending, each.lag_seconds) for each in found.history} == {(0, 0)}


def test_state_last_audit_history_and_what_waits_for_a_review_come_together(clinic, opened):
    audit(opened, CLINIC)
    clinic.save(CLINIC, a_creation(subject="ward"), propagate=False)
    found = clinic.overview(CLINIC)
    assert (found.status.cards["concept"], found.status.pending, found.status.candidates) == (2, 1, 1)
    assert (found.last_audit.checked, found.last_audit.differing) == (2, {})
    assert max(each.pending for each in found.history) == 2
    assert found.history[-1].pending >= 1
    assert [(each.session_id, each.candidates) for each in found.to_review] == [("waiting", 1)]


def test_the_history_covers_the_hours_asked_for(clinic):
    for hours in (1, 24, 720):
        moments = clinic.overview(CLINIC, hours=hours).history
        width = moments[1].at - moments[0].at
        assert width * len(moments) == timedelta(hours=hours)
        assert max(each.pending for each in moments) == 2


def test_it_is_ready_for_json(clinic, opened):
    audit(opened, CLINIC)
    found = clinic.overview(CLINIC).as_json()
    assert json.loads(json.dumps(found)) == found
    assert (found["last_audit"]["checked"], found["to_review"][0]["question"]) == (2, "How many?")
    assert set(found["history"][0]) == {"at", "pending", "lag_seconds"}


def test_index_and_model_may_be_away(clinic, opened):
    all_away(opened)
    assert clinic.overview(CLINIC).status.certified == 2


def test_all_of_it_is_of_one_moment(clinic, opened, monkeypatch):
    def meanwhile(tx):
        clinic.save(CLINIC, a_creation(subject="ward"), propagate=False)
        return real(tx)

    real = module.now
    monkeypatch.setattr(module, "now", meanwhile)
    found = clinic.overview(CLINIC)
    assert (found.status.pending, found.status.cards["concept"], found.history[-1].pending) == (0, 1, 2)
    monkeypatch.undo()
    assert clinic.overview(CLINIC).status.pending == 1


def test_a_reader_may_see_it_and_a_stranger_may_not(clinic, opened):
    assert granted(opened, CLINIC, Role.READER).overview(CLINIC).status.sessions == 1
    with pytest.raises(NotPermitted):
        Curation(opened, "stranger").overview(CLINIC)
    with pytest.raises(UnknownWorkspace):
        clinic.overview("nowhere")


@pytest.mark.parametrize("hours", [0, -1, 721, float("nan"), float("inf")])
def test_a_history_that_cannot_be_told_is_refused(clinic, hours):
    with pytest.raises(InvalidInput, match="up to 720"):
        clinic.overview(CLINIC, hours=hours)
