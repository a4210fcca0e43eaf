"""What the last audit of a workspace found is kept, whoever asked for it, and goes with its workspace."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from memory_pipeline.archive import audits
from memory_pipeline.archive.audits import LastAudit
from memory_pipeline.cards import Collection
from memory_pipeline.errors import SchemaOutOfDate
from memory_pipeline.points import point_id, target
from memory_pipeline.propagation import audit, project, rebuild, repair
from tests.archives import connected

W = "clinic"


@pytest.fixture
def filled(world):
    """Three cards and as many questions, projected for the first time."""
    world.sessions(W, 3)
    world.ingest(W)
    project(world.runtime, W)
    return world


def kept(world) -> LastAudit | None:
    with world.runtime.database.transaction(W, snapshot=True) as tx:
        return audits.last(tx)


def lose(world, *items: str) -> None:
    into = target(W, Collection.MEMORY_CARDS, world.runtime.identity)
    world.index.delete(into, [point_id(W, item) for item in items])


def test_a_workspace_that_was_never_audited_has_no_last_audit(filled):
    assert kept(filled) is None


def test_an_audit_is_kept_with_what_differs_and_what_it_looked_for(filled):
    lose(filled, "mem-0001", "mem-0003")
    audit(filled.runtime, W)
    last = kept(filled)
    assert (last.checked, last.differing, last.repaired) == (6, {"missing": 2}, False)
    assert abs(datetime.now(UTC) - last.at) < timedelta(minutes=5)
    assert last.as_json() == {"at": last.at.isoformat(), "checked": 6, "differing": {"missing": 2}, "repaired": False}


def test_a_repair_is_kept_as_one_with_what_it_found(filled):
    audit(filled.runtime, W)
    lose(filled, "mem-0001")
    repair(filled.runtime, W)
    assert (kept(filled).differing, kept(filled).repaired) == ({"missing": 1}, True)


def test_a_rebuild_repairs_and_a_later_audit_takes_its_place(filled):
    lose(filled, "mem-0001")
    rebuild(filled.runtime, W)
    repaired = kept(filled)
    audit(filled.runtime, W)
    assert (repaired.differing, repaired.repaired) == ({"missing": 1}, True)
    assert (kept(filled).differing, kept(filled).repaired) == ({}, False)
    assert kept(filled).at > repaired.at


@pytest.mark.parametrize("look", [audit, repair])
def test_an_audit_of_some_collections_says_nothing_of_the_workspace(filled, look):
    audit(filled.runtime, W)
    before = kept(filled)
    look(filled.runtime, W, [Collection.MEMORY_CARDS, Collection.QUESTIONS])
    assert kept(filled) == before


@pytest.mark.parametrize("look", [audit, repair])
def test_an_audit_that_cannot_be_kept_is_an_error(filled, look):
    with connected(filled.runtime.settings.owner_url) as owner:
        owner.execute("ALTER TABLE last_audit RENAME TO former_audit")
    with pytest.raises(SchemaOutOfDate):
        look(filled.runtime, W)
