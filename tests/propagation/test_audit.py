from __future__ import annotations

import shutil
from dataclasses import replace

import pytest
from qdrant_edge import Point as EdgePoint
from qdrant_edge import UpdateOperation
from sqlalchemy import text

from memory_pipeline.archive import cards, projections
from memory_pipeline.archive.projections import Expected
from memory_pipeline.cards import CardContent, Collection, Family
from memory_pipeline.errors import IndexUnavailable
from memory_pipeline.index.base import Point, StoredPoint
from memory_pipeline.index.edge_files import ShardFiles
from memory_pipeline.points import payload, point_id, target
from memory_pipeline.propagation import Difference, audit, project, repair
from memory_pipeline.propagation.audit import compare
from memory_pipeline.propagation.projector import alone
from tests.doubles import HashEmbedder

W = "clinic"


def a_point(item: str, fingerprint: str, *, workspace: str = W, of: str | None = None, version: int = 1) -> StoredPoint:
    return StoredPoint(point_id(W, of or item), payload(workspace, item, version, fingerprint, {}))


CERTIFIED = {"mem-0001": Expected("f", 2, pending=False)}
PENDING = {"mem-0001": Expected("f", 2, pending=True)}
TO_REMOVE = {"mem-0001": Expected(None, None, pending=True)}


@pytest.mark.parametrize(
    ("expected", "points", "found"),
    [
        (CERTIFIED, [a_point("mem-0001", "f")], []),
        (CERTIFIED, [], [Difference.MISSING]),
        (CERTIFIED, [a_point("mem-0001", "old")], [Difference.STALE]),
        (CERTIFIED, [a_point("mem-0001", "f", version=3)], [Difference.STALE]),
        (PENDING, [], []),
        (PENDING, [a_point("mem-0001", "old")], []),
        (PENDING, [a_point("mem-0001", "new", version=3)], [Difference.STALE]),
        (TO_REMOVE, [a_point("mem-0001", "f", version=3)], []),
        ({}, [a_point("mem-0001", "f")], [Difference.ORPHANED]),
        (CERTIFIED, [a_point("mem-0001", "f", workspace="other")], [Difference.FOREIGN, Difference.MISSING]),
        (CERTIFIED, [a_point("mem-0001", "f"), a_point("mem-0001", "f", of="other-scheme")], [Difference.FOREIGN]),
        (CERTIFIED, [a_point("mem-0001", "f", of="other-scheme")], [Difference.FOREIGN, Difference.MISSING]),
        (PENDING, [StoredPoint(point_id(W, "x"), {})], [Difference.FOREIGN]),
    ],
)
def test_each_difference_is_found(expected, points, found):
    assert [finding.difference for finding in compare(W, expected, points)] == found


def write(world, item: str, fingerprint: str) -> None:
    into = target(W, Collection.MEMORY_CARDS, world.runtime.identity)
    vector = HashEmbedder().embed([item], None)[0]
    point = Point(point_id(W, item), payload(W, item, 99, fingerprint, {}), dense={"content": vector})
    world.runtime.index.upsert(into, [point])


def test_points_deleted_behind_its_back_are_found_and_written_again(world):
    world.sessions(W, 10)
    world.ingest(W)
    project(world.runtime, W)
    into = target(W, Collection.MEMORY_CARDS, world.runtime.identity)
    world.runtime.index.delete(into, [point_id(W, f"mem-{n:04d}") for n in range(1, 10)])
    assert audit(world.runtime, W).count(Difference.MISSING) == 9
    repair(world.runtime, W)
    assert project(world.runtime, W).written == 9
    assert project(world.runtime, W).written == 0
    assert not audit(world.runtime, W)


def test_stale_newer_and_orphaned_points_are_mended_from_the_archive(world):
    world.sessions(W, 2)
    world.ingest(W)
    project(world.runtime, W)
    write(world, "mem-0001", "of-a-newer-version")
    write(world, "mem-0042", "of-no-card")
    found = audit(world.runtime, W)
    assert (found.count(Difference.STALE), found.count(Difference.ORPHANED)) == (1, 1)
    repair(world.runtime, W)
    assert project(world.runtime, W).pending == 0
    assert not audit(world.runtime, W)


def test_a_wiped_index_directory_is_found_and_filled_from_the_archive(world):
    world.sessions(W, 3)
    world.ingest(W)
    project(world.runtime, W)
    shutil.rmtree(world.runtime.settings.home / "index")
    assert repair(world.runtime, W).count(Difference.MISSING) == 6
    assert project(world.runtime, W).written == 6


def test_pending_work_is_no_difference(world):
    world.sessions(W, 3)
    world.ingest(W)
    assert not audit(world.runtime, W)


def edit(world, detail: str) -> None:
    content = CardContent(Family.CONCEPT, subject="subject 0", detail=detail)
    with world.runtime.database.transaction(W, writing=True) as tx:
        cards.update(tx, {"mem-0001": content}, principal="anna")


def restore_version(world, version: int) -> None:
    """As a backup does: the card is the one of an earlier version."""
    with world.runtime.database.transaction(W, writing=True) as tx:
        tx.run(text("UPDATE card SET version = :version WHERE card_id = 'mem-0001'"), version=version)


def cards_held(world) -> list[tuple[str, int]]:
    into = target(W, Collection.MEMORY_CARDS, world.runtime.identity)
    return [(point.payload["item"], point.payload["version"]) for point in world.runtime.index.scan(into)]


def test_what_an_archive_restored_from_a_backup_wants_is_written_after_a_repair(world):
    """The version guard defends the newer point: without the audit it would stay, and the card pending, for ever."""
    world.sessions(W, 1)
    world.ingest(W)
    for detail in ("changed", "changed again"):
        edit(world, detail)
    project(world.runtime, W)
    edit(world, "detail 0")
    restore_version(world, 1)
    refused = project(world.runtime, W)
    assert (refused.deferred, refused.pending) == (1, 1)
    assert audit(world.runtime, W).count(Difference.STALE) == 1
    assert repair(world.runtime, W).count(Difference.STALE) == 1
    assert project(world.runtime, W).pending == 0
    assert cards_held(world) == [("mem-0001", 1)]
    assert not audit(world.runtime, W)


def test_a_removal_that_is_pending_explains_a_point_of_any_version(world):
    world.sessions(W, 1)
    world.ingest(W)
    project(world.runtime, W)
    with world.runtime.database.transaction(W, writing=True) as tx:
        cards.delete(tx, ["mem-0001"])
    assert not audit(world.runtime, W)


def plant(world, item: str, content: dict) -> None:
    """A point in the workspace's own shard that the library would not have written."""
    into = target(W, Collection.MEMORY_CARDS, world.runtime.identity)
    files = ShardFiles.of(world.runtime.settings.home / "index", into)
    with files.locked(5), files.writing() as shard:
        shard.update(UpdateOperation.upsert_points([EdgePoint(point_id(W, item), {"content": [1.0] * 384}, content)]))


@pytest.mark.parametrize("content", [{}, payload("other", "mem-0002", 99, "f", {})], ids=["empty", "another's"])
def test_points_in_a_shard_that_are_not_its_workspace_s_are_found_and_taken_out(world, content):
    world.sessions(W, 2)
    world.ingest(W)
    project(world.runtime, W)
    plant(world, "mem-0002", content)
    plant(world, "mem-0077", content)
    found = repair(world.runtime, W)
    assert (found.count(Difference.FOREIGN), found.count(Difference.MISSING)) == (2, 1)
    assert project(world.runtime, W).written == 1
    assert sorted(cards_held(world)) == [("mem-0001", 1), ("mem-0002", 1)]
    assert not audit(world.runtime, W)


def test_points_of_an_identity_that_is_not_registered_are_reported_and_left_alone(world):
    world.sessions(W, 2)
    world.ingest(W)
    configured = world.runtime.identity
    world.runtime.identity = replace(configured, revision="another")
    project(world.runtime, W)
    world.runtime.identity = configured
    project(world.runtime, W)
    found = repair(world.runtime, W)
    assert (found.count(Difference.OTHER_IDENTITY), len(found.findings[Collection.QUESTIONS])) == (4, 2)
    assert audit(world.runtime, W).findings == found.findings
    assert project(world.runtime, W).written == 0


def test_a_repair_that_a_projector_keeps_out_says_so_and_mends_nothing(world, monkeypatch):
    monkeypatch.setattr("memory_pipeline.propagation.locks._WAIT", 0)
    world.sessions(W, 1)
    world.ingest(W)
    project(world.runtime, W)
    write(world, "mem-0042", "of-no-card")
    with alone(world.runtime, W, Collection.MEMORY_CARDS):
        with pytest.raises(IndexUnavailable, match="nothing of it was mended"):
            repair(world.runtime, W)
        assert audit(world.runtime, W).count(Difference.ORPHANED) == 1
    assert repair(world.runtime, W).count(Difference.ORPHANED) == 1
    assert not audit(world.runtime, W)


def test_a_repair_that_finds_nothing_waits_for_no_projector(world, monkeypatch):
    monkeypatch.setattr("memory_pipeline.propagation.locks._WAIT", 0)
    world.sessions(W, 1)
    world.ingest(W)
    project(world.runtime, W)
    with alone(world.runtime, W, Collection.MEMORY_CARDS):
        assert not repair(world.runtime, W)


def test_a_repair_that_is_killed_half_way_leaves_its_work_pending(world):
    world.sessions(W, 1)
    world.ingest(W)
    project(world.runtime, W)
    write(world, "mem-0001", "of-a-newer-version")
    world.index.away = True
    with pytest.raises(IndexUnavailable):
        repair(world.runtime, W)
    world.index.away = False
    with world.runtime.database.transaction(W) as tx:
        assert projections.waiting(tx, world.runtime.identity.hash).pending == 1
