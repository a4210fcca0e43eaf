"""An audit reads index and archive in batches, finds all that differs however much it is, and is repaired as a whole."""

from __future__ import annotations

import math
from importlib import import_module

import pytest
from qdrant_client import QdrantClient

from memory_pipeline.archive import audits, cards, projections
from memory_pipeline.cards import CardContent, Collection, Family
from memory_pipeline.index.base import CollectionDamaged, Point, StoredPoint
from memory_pipeline.index.server import QdrantServerIndex
from memory_pipeline.points import payload, point_id, target
from memory_pipeline.propagation import Difference, audit, project, rebuild, repair
from memory_pipeline.propagation.differences import EXAMPLES
from tests.doubles import HashEmbedder, WatchedIndex
from tests.statements import counting

W = "clinic"
CARDS = Collection.MEMORY_CARDS
BATCH = 7


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch):
    for module in ("audit", "repair"):
        monkeypatch.setattr(import_module(f"memory_pipeline.propagation.{module}"), "BATCH", BATCH)


def filled(world, count: int):
    world.sessions(W, count)
    world.ingest(W)
    project(world.runtime, W)
    return world


@pytest.fixture
def thirty(world):
    """A workspace of thirty cards, mem-0001 to mem-0030, and as many questions, projected."""
    return filled(world, 30)


def into(world, collection: Collection = CARDS):
    return target(W, collection, world.runtime.identity)


def held(world) -> list[StoredPoint]:
    return list(world.index.scan(into(world)))


def write(world, points) -> None:
    """Points that somebody else wrote: id and payload of each."""
    vector = HashEmbedder().embed(["any"], None)[0]
    written = [Point(id_, content, dense={"content": vector}) for id_, content in points]
    assert len(world.runtime.index._index.upsert(into(world), written)) == len(written)


def of_another_id_scheme(points) -> list[tuple[str, dict]]:
    return [(point_id("of old", point.payload["item"]), dict(point.payload)) for point in points]


def lose(world, numbers) -> None:
    world.index.delete(into(world), [point_id(W, f"mem-{n:04}") for n in numbers])


def assert_whole(world, cards_held: int = 30) -> None:
    assert not audit(world.runtime, W)
    assert {point.payload["item"] for point in held(world)} == {f"mem-{n:04}" for n in range(1, cards_held + 1)}


def statements(work) -> int:
    with counting() as counted:
        work()
    return len(counted.archive)


class TestAllIsFoundAndMended:
    def test_a_point_with_a_number_for_an_id_goes_like_any_other(self, thirty):
        write(thirty, [("12345", dict(held(thirty)[0].payload))])
        assert audit(thirty.runtime, W).findings[CARDS].counts == {Difference.DUPLICATE: 1}
        repair(thirty.runtime, W)
        assert_whole(thirty)

    def test_points_doubled_under_the_ids_of_another_scheme_go_and_the_proper_ones_are_not_touched(self, thirty):
        write(thirty, of_another_id_scheme(held(thirty)))
        assert audit(thirty.runtime, W).findings[CARDS].counts == {Difference.DUPLICATE: 30}
        repair(thirty.runtime, W)
        assert project(thirty.runtime, W).written == 0
        assert_whole(thirty)

    def test_points_that_only_have_the_ids_of_another_scheme_go_and_are_written_anew(self, thirty):
        old = of_another_id_scheme(held(thirty))
        lose(thirty, range(1, 31))
        write(thirty, old)
        found = repair(thirty.runtime, W).findings[CARDS]
        assert found.counts == {Difference.DUPLICATE: 30, Difference.MISSING: 30}
        assert project(thirty.runtime, W).written == 30
        assert_whole(thirty)

    def test_a_point_that_has_taken_another_item_s_id_goes_and_that_item_s_is_written_anew(self, thirty):
        point = next(p for p in held(thirty) if p.payload["item"] == "mem-0001")
        write(thirty, [(point_id(W, "mem-0002"), dict(point.payload))])
        found = repair(thirty.runtime, W).findings[CARDS]
        assert found.counts == {Difference.DUPLICATE: 1, Difference.MISSING: 1}
        assert project(thirty.runtime, W).written == 1
        assert_whole(thirty)

    def test_more_orphans_than_a_batch(self, thirty):
        write(
            thirty, [(point_id(W, item), payload(W, item, 1, "f", {})) for item in map("mem-9{:03}".format, range(30))]
        )
        assert repair(thirty.runtime, W).findings[CARDS].counts == {Difference.ORPHANED: 30}
        assert project(thirty.runtime, W).written == 0
        assert_whole(thirty)

    def test_more_stale_points_than_a_batch(self, thirty):
        write(thirty, [(point.id, {**point.payload, "version": 99}) for point in held(thirty)])
        assert repair(thirty.runtime, W).findings[CARDS].counts == {Difference.STALE: 30}
        assert project(thirty.runtime, W).written == 30
        assert_whole(thirty)

    def test_of_many_deleted_points_as_many_are_written_again_and_then_none(self, world):
        filled(world, 100)
        lose(world, range(1, 91))
        assert audit(world.runtime, W).findings[CARDS].counts == {Difference.MISSING: 90}
        assert repair(world.runtime, W).count(Difference.MISSING) == 90
        assert [project(world.runtime, W).written for _ in range(2)] == [90, 0]
        assert_whole(world, 100)

    def test_all_kinds_at_once_and_the_points_between_them_stay(self, thirty):
        points = {point.payload["item"]: point for point in held(thirty)}
        lose(thirty, range(1, 6))
        stale = [points[f"mem-{n:04}"] for n in range(6, 16)]
        write(thirty, [(point.id, {**point.payload, "fingerprint": "old"}) for point in stale])
        write(thirty, of_another_id_scheme(points[f"mem-{n:04}"] for n in range(1, 31)))
        write(thirty, [(point_id(W, "mem-0099"), payload(W, "mem-0099", 1, "f", {}))])
        assert repair(thirty.runtime, W).findings[CARDS].counts == {
            Difference.MISSING: 5,
            Difference.STALE: 10,
            Difference.DUPLICATE: 30,
            Difference.ORPHANED: 1,
        }
        assert project(thirty.runtime, W).written == 15
        assert_whole(thirty)

    def test_a_dropped_collection_is_distrusted_in_one_statement(self, thirty, monkeypatch):
        thirty.index.drop(into(thirty))
        with monkeypatch.context() as patch:
            patch.setattr(projections, "distrust", lambda *_: pytest.fail("item by item"))
            assert repair(thirty.runtime, W).findings[CARDS].counts == {Difference.MISSING: 30}
        assert project(thirty.runtime, W).written == 30
        assert_whole(thirty)

    def test_damage_that_shows_half_way_counts_as_the_whole_collection_s(self, thirty):
        write(thirty, [(point_id(W, "mem-0000"), payload(W, "mem-0000", 1, "f", {}))])
        scan = thirty.index.scan

        def half(into, *, batch):
            points = list(scan(into, batch=batch))
            yield from points[:20]
            raise CollectionDamaged("the shard is damaged")

        thirty.index.scan = half
        counts = {Difference.DAMAGED: 1, Difference.MISSING: 30}
        assert audit(thirty.runtime, W, [CARDS]).findings[CARDS].counts == counts
        repair(thirty.runtime, W, [CARDS])
        thirty.index.scan = scan
        assert project(thirty.runtime, W).written == 30
        assert_whole(thirty)

    def test_a_repair_that_is_killed_between_two_batches_is_completed_by_the_next(self, thirty):
        write(thirty, [(point.id, {**point.payload, "version": 99}) for point in held(thirty)])
        delete, calls = thirty.index.delete, []

        def once(into, ids):
            calls.append(ids)
            if len(calls) > 1:
                raise KeyboardInterrupt
            delete(into, ids)

        thirty.index.delete = once
        with pytest.raises(KeyboardInterrupt):
            repair(thirty.runtime, W)
        thirty.index.delete = delete
        project(thirty.runtime, W)
        repair(thirty.runtime, W)
        project(thirty.runtime, W)
        assert_whole(thirty)


@pytest.mark.filterwarnings("ignore:Payload indexes have no effect in the local Qdrant")
def test_in_collections_that_workspaces_share_only_the_own_points_are_compared_and_mended(world):
    world.index = WatchedIndex(QdrantServerIndex(QdrantClient(":memory:")))
    world.runtime.index = world.index
    world.sessions("ward", 5)
    world.ingest("ward")
    project(world.runtime, "ward")
    filled(world, 30)
    points = {point.payload["item"]: point for point in held(world)}
    lose(world, range(1, 11))
    stale = [points[f"mem-{n:04}"] for n in range(11, 21)]
    write(world, [(point.id, {**point.payload, "version": 99}) for point in stale])
    write(world, of_another_id_scheme(points.values()))
    assert repair(world.runtime, W).findings[CARDS].counts == {
        Difference.MISSING: 10,
        Difference.STALE: 10,
        Difference.DUPLICATE: 30,
    }
    assert project(world.runtime, W).written == 20
    assert_whole(world)
    assert not audit(world.runtime, "ward")
    assert rebuild(world.runtime, W).projection.written == 60
    assert_whole(world)


class TestBounds:
    def test_the_archive_is_asked_once_for_each_batch_of_points(self, thirty):
        audit(thirty.runtime, W)
        counted = statements(lambda: audit(thirty.runtime, W, [CARDS]))
        # Each transaction is opened by one statement: certified before and after (twice), batches, identities.
        assert counted == 2 * (4 + math.ceil(30 / BATCH))

    def test_what_is_certified_is_not_looked_up_in_the_index_when_all_of_it_was_met(self, thirty):
        thirty.index.retrieve = lambda *_: pytest.fail("a second pass")
        assert not audit(thirty.runtime, W)

    def test_no_more_than_a_batch_is_asked_for_at_a_time_however_much_differs(self, thirty, monkeypatch):
        write(thirty, of_another_id_scheme(held(thirty)))
        lose(thirty, range(1, 31))
        sizes: list[int] = []
        expected, certified, retrieve = audits.expected, audits.certified, thirty.index.retrieve

        def measured_expected(tx, identity, collection, items):
            items = list(items)
            sizes.append(len(items))
            return expected(tx, identity, collection, items)

        def measured_certified(*arguments, **options):
            page = certified(*arguments, **options)
            sizes.append(len(page))
            return page

        def measured_retrieve(into, batches):
            return retrieve(into, (sizes.append(len(ids)) or ids for ids in batches))

        monkeypatch.setattr(audits, "expected", measured_expected)
        monkeypatch.setattr(audits, "certified", measured_certified)
        thirty.index.retrieve = measured_retrieve
        found = audit(thirty.runtime, W, [CARDS])
        assert found.count(Difference.DUPLICATE) == found.count(Difference.MISSING) == 30
        assert max(sizes) == BATCH

    def test_examples_are_few_and_counts_complete(self, thirty):
        many = [f"mem-9{n:03}" for n in range(EXAMPLES + 20)]
        write(thirty, [(point_id(W, item), payload(W, item, 1, "f", {})) for item in many])
        found = audit(thirty.runtime, W).findings[CARDS]
        assert (found.counts[Difference.ORPHANED], len(found.examples)) == (EXAMPLES + 20, EXAMPLES)


def meanwhile(world, change) -> None:
    """Has the change happen once, after the index was read and before what was read is compared."""
    scan = world.index.scan

    def read(into, *, batch):
        points = list(scan(into, batch=batch))
        world.index.scan = scan
        change()
        yield from points

    world.index.scan = read


class TestChangesMeanwhile:
    def edited_and_projected(self, world) -> None:
        with world.runtime.database.transaction(W, writing=True) as tx:
            content = CardContent(Family.CONCEPT, subject="subject 0", detail="changed")
            cards.update(tx, {"mem-0001": content}, principal="anna")
            cards.delete(tx, ["mem-0002"])
        world.sessions(W, 1, start=30)
        world.ingest(W)
        project(world.runtime, W)

    def test_what_is_projected_while_the_index_is_read_is_no_difference(self, thirty):
        meanwhile(thirty, lambda: self.edited_and_projected(thirty))
        assert not audit(thirty.runtime, W, [CARDS])
        assert not audit(thirty.runtime, W)

    def test_it_hides_no_point_that_was_lost_before(self, thirty):
        lose(thirty, [9])
        meanwhile(thirty, lambda: self.edited_and_projected(thirty))
        assert audit(thirty.runtime, W, [CARDS]).findings[CARDS].counts == {Difference.MISSING: 1}

    def test_a_collection_that_is_made_while_it_is_found_missing_is_no_difference(self, world):
        world.sessions(W, 3)
        world.ingest(W)
        check = world.index.check

        def checked(into):
            try:
                check(into)
            finally:
                world.index.check = check
                project(world.runtime, W)

        world.index.check = checked
        assert not audit(world.runtime, W, [CARDS])
