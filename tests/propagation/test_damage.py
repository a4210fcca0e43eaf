"""An index whose files were damaged is found by the audit and made anew from the archive, without anybody's hand."""

from __future__ import annotations

import shutil

import pytest

from memory_pipeline.archive import cards, projections
from memory_pipeline.cards import CardContent, Collection, Family
from memory_pipeline.errors import IndexUnavailable
from memory_pipeline.index import CollectionDamaged
from memory_pipeline.index.edge_files import ShardFiles
from memory_pipeline.index.validation import trials
from memory_pipeline.points import target
from memory_pipeline.propagation import Difference, audit, project, repair
from memory_pipeline.recall import Recall

W = "clinic"


@pytest.fixture
def filled(world):
    """A workspace of three cards and three questions, projected; its collection of solved questions is empty."""
    world.sessions(W, 3)
    world.ingest(W)
    project(world.runtime, W)
    assert not audit(world.runtime, W)
    return world


def into(world, collection: Collection = Collection.MEMORY_CARDS):
    return target(W, collection, world.runtime.identity)


def files(world, collection: Collection = Collection.MEMORY_CARDS) -> ShardFiles:
    return ShardFiles.of(world.runtime.settings.home / "index", into(world, collection))


def pending(world) -> int:
    with world.runtime.database.transaction(W) as tx:
        return projections.waiting(tx, world.runtime.identity.hash).pending


def assert_whole(world) -> None:
    assert not audit(world.runtime, W)
    assert pending(world) == 0
    for collection in Collection:
        world.index.search(into(world, collection), trials(into(world, collection).schema))
    assert len(list(world.index.scan(into(world)))) == 3


def break_segment(world, collection: Collection = Collection.MEMORY_CARDS) -> None:
    for path in files(world, collection).shard.rglob("segment.json"):
        path.write_bytes(b"")


def break_vectors(world, collection: Collection = Collection.MEMORY_CARDS) -> None:
    for path in files(world, collection).shard.rglob("chunk_0.mmap"):
        path.unlink()


def break_ids(world, collection: Collection = Collection.MEMORY_CARDS) -> None:
    for path in files(world, collection).shard.rglob("mutable_id_tracker.mappings"):
        path.unlink()
        path.mkdir()


def break_log(world, collection: Collection = Collection.MEMORY_CARDS) -> None:
    files(world, collection).shard.joinpath("wal", "first-index").write_bytes(b"")


def falsify_schema(world, collection: Collection = Collection.MEMORY_CARDS) -> None:
    schema = files(world, collection).directory / "schema.json"
    schema.write_text(schema.read_text().replace("384", "8"))


def forget_schema(world, collection: Collection = Collection.MEMORY_CARDS) -> None:
    files(world, collection).directory.joinpath("schema.json").unlink()


def forget_generation(world, collection: Collection = Collection.MEMORY_CARDS) -> None:
    files(world, collection).directory.joinpath("generation").unlink()


def forget_shard(world, collection: Collection = Collection.MEMORY_CARDS) -> None:
    shutil.rmtree(files(world, collection).shard)


DAMAGES = (break_segment, break_vectors, break_ids, break_log, falsify_schema, forget_shard)
LOSSES = (forget_schema, forget_generation)


@pytest.mark.parametrize("damage", [*DAMAGES, *LOSSES])
def test_a_damaged_shard_holds_nothing_for_the_audit_and_is_made_anew_after_a_repair(filled, damage):
    damage(filled)
    assert audit(filled.runtime, W).count(Difference.MISSING) == 3
    assert repair(filled.runtime, W).count(Difference.MISSING) == 3
    embedded = filled.embedder.embedded
    assert project(filled.runtime, W).written == 3
    assert filled.embedder.embedded == embedded
    assert_whole(filled)


@pytest.mark.parametrize("damage", [break_segment, break_vectors, falsify_schema, forget_schema])
def test_a_damaged_shard_that_should_hold_nothing_is_found_all_the_same(filled, damage):
    """Recall asks it too, and would fail for ever."""
    damage(filled, Collection.SOLVED_QUESTIONS)
    repair(filled.runtime, W)
    project(filled.runtime, W)
    with_shards = [c for c in Collection if filled.index.identities(W, c.value)]
    for collection in with_shards:
        filled.index.search(into(filled, collection), trials(into(filled, collection).schema))
    assert not audit(filled.runtime, W)


def test_damage_is_a_difference_that_says_where(filled):
    break_segment(filled, Collection.QUESTIONS)
    found = audit(filled.runtime, W)
    assert {c: of.examples[0].difference for c, of in found.findings.items() if of} == {
        Collection.QUESTIONS: Difference.DAMAGED
    }
    assert (found.count(Difference.DAMAGED), found.count(Difference.MISSING)) == (1, 3)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_projection_with_nothing_pending_fills_a_collection_that_was_lost(filled, loss):
    loss(filled)
    assert project(filled.runtime, W).written == 3
    assert_whole(filled)


def edit(world) -> None:
    with world.runtime.database.transaction(W) as tx:
        cards.delete(tx, ["mem-0003"])
    world.sessions(W, 1, start=3)
    world.ingest(W)


def test_a_projection_of_one_collection_does_not_make_another_that_was_lost_pass_for_complete(filled):
    shutil.rmtree(filled.runtime.settings.home / "index")
    project(filled.runtime, W, [Collection.QUESTIONS])
    assert pending(filled) == 3
    assert project(filled.runtime, W).written == 3
    assert_whole(filled)


def test_a_projection_of_one_item_leaves_the_others_of_a_lost_collection_pending(filled):
    edit(filled)
    shutil.rmtree(filled.runtime.settings.home / "index")
    project(filled.runtime, W, items=["mem-0004"])
    assert pending(filled) > 0
    project(filled.runtime, W)
    assert_whole(filled)


@pytest.mark.parametrize("damage", [break_segment, break_ids, break_log, forget_shard])
def test_a_projection_that_meets_a_damaged_shard_makes_it_anew(filled, damage):
    edit(filled)
    damage(filled)
    report = project(filled.runtime, W)
    assert (report.deferred, report.pending) == (0, 0)
    assert_whole(filled)


@pytest.mark.parametrize(("edited", "given_up"), [(1, 1), (3, 3)])
def test_a_shard_that_can_be_read_is_made_anew_once_if_nothing_can_be_written_and_then_given_up(
    filled, monkeypatch, edited, given_up
):
    changed = {f"mem-000{n}": CardContent(Family.CONCEPT, subject=f"s {n}", detail="new") for n in range(1, edited + 1)}
    with filled.runtime.database.transaction(W) as tx:
        cards.update(tx, changed, principal="anna")
    drop, dropped = filled.index.drop, []

    def refuse(*_):
        raise CollectionDamaged("the shard is damaged")

    monkeypatch.setattr(filled.index, "upsert", refuse)
    monkeypatch.setattr(filled.index, "drop", lambda into: (dropped.append(into.collection), drop(into)))
    with pytest.raises(CollectionDamaged):
        project(filled.runtime, W, [Collection.MEMORY_CARDS])
    with filled.runtime.database.transaction(W) as tx:
        assert projections.reasons(tx, filled.runtime.identity.hash) == {"the shard is damaged": given_up}
    assert len(dropped) == (edited > 1)  # of a single one it cannot be told
    monkeypatch.undo()
    project(filled.runtime, W, retry_now=True)
    assert_whole(filled)


def test_a_repair_whose_removals_a_damaged_shard_refuses_starts_over(filled):
    with filled.runtime.database.transaction(W) as tx:
        tx.connection.exec_driver_sql("DELETE FROM projection WHERE item_id = 'mem-0002'")  # its point is an orphan
    filled.index.delete = lambda *_: (_ for _ in ()).throw(CollectionDamaged("the shard is damaged"))
    repair(filled.runtime, W, [Collection.MEMORY_CARDS])
    assert pending(filled) == 2
    assert filled.index.identities(W, Collection.MEMORY_CARDS.value) == set()


def test_a_file_in_the_place_of_the_index_makes_nothing_pending(filled):
    index = filled.runtime.settings.home / "index"
    index.rename(index.with_name("aside"))
    index.touch()
    with pytest.raises(IndexUnavailable, match="is no directory"):
        project(filled.runtime, W)
    assert pending(filled) == 0
    index.unlink()
    index.with_name("aside").rename(index)
    assert project(filled.runtime, W).written == 0
    assert_whole(filled)


@pytest.mark.parametrize("content", [b"", b"null", b"5", b"[1]", b"{}", b"\xff"])
def test_a_live_identity_that_says_nothing_is_written_anew_with_nothing_pending(filled, content):
    file = files(filled).workspace_directory / "identity.json"
    file.write_bytes(content)
    assert project(filled.runtime, W).written == 0
    assert filled.index.live_identity(W)["hash"] == filled.runtime.identity.hash


@pytest.mark.parametrize("degraded", [False, True])
def test_damage_that_recall_meets_is_pending_from_then_on_and_mended_by_the_next_projection(filled, degraded):
    break_segment(filled)
    recall = Recall(filled.runtime)
    assert pending(filled) == 0
    for _ in range(2):
        if degraded:
            assert recall.search(W, "subject 1", degraded=True).degraded
        else:
            with pytest.raises(CollectionDamaged):
                recall.search(W, "subject 1")
        assert pending(filled) == 3
    project(filled.runtime, W)
    assert_whole(filled)
    assert recall.search(W, "subject 1").hits[0].subject == "subject 1"


def test_a_private_copy_that_recall_cannot_read_says_nothing_of_the_index(filled):
    class Torn:
        def __getattr__(self, name: str) -> object:
            return getattr(filled.index, name)

        def search(self, *_: object) -> None:
            raise CollectionDamaged("the copy is damaged")

    filled.runtime.index = Torn()
    with pytest.raises(CollectionDamaged):
        Recall(filled.runtime).search(W, "subject 1")
    assert pending(filled) == 0
