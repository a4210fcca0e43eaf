from __future__ import annotations

import shutil

import pytest

from memory_pipeline.cards import Collection
from memory_pipeline.index.base import Point, StoredPoint
from memory_pipeline.points import payload, point_id, target
from memory_pipeline.propagation import Difference, audit, project, repair
from memory_pipeline.propagation.audit import compare
from tests.doubles import HashEmbedder

W = "clinic"


def a_point(item: str, fingerprint: str, *, workspace: str = W, of: str | None = None) -> StoredPoint:
    return StoredPoint(point_id(W, of or item), payload(workspace, item, 1, fingerprint, {}))


@pytest.mark.parametrize(
    ("certified", "points", "found"),
    [
        ({"mem-0001": "f"}, [a_point("mem-0001", "f")], []),
        ({"mem-0001": "f"}, [], [Difference.MISSING]),
        ({"mem-0001": "f"}, [a_point("mem-0001", "old")], [Difference.STALE]),
        ({}, [a_point("mem-0001", "f")], [Difference.ORPHANED]),
        ({"mem-0001": "f"}, [a_point("mem-0001", "f", workspace="other")], [Difference.FOREIGN]),
        ({"mem-0001": "f"}, [a_point("mem-0001", "f", of="older-scheme-1")], [Difference.FOREIGN]),
        ({}, [StoredPoint(point_id(W, "x"), {})], [Difference.FOREIGN]),
    ],
)
def test_each_difference_is_found(certified, points, found):
    assert [finding.difference for finding in compare(W, certified, points)] == found


def write(world, item: str, fingerprint: str) -> None:
    into = target(W, Collection.MEMORY_CARDS, world.runtime.identity)
    vector = HashEmbedder().embed([item], None)[0]
    point = Point(
        point_id(W, item), payload(W, item, 99, fingerprint, {}), dense={"content": vector, "subject": vector}
    )
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
