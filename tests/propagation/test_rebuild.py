"""The index is made anew from the archive alone, in place, while recall goes on answering."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest
from sqlalchemy import text

from memory_pipeline.archive import cards
from memory_pipeline.cards import Collection
from memory_pipeline.errors import EmbedderUnavailable, IndexUnavailable
from memory_pipeline.index.base import Point
from memory_pipeline.index.edge_files import ShardFiles
from memory_pipeline.points import payload, point_id, target
from memory_pipeline.propagation import Difference, audit, project, rebuild
from memory_pipeline.recall import Recall
from tests.doubles import HashEmbedder
from tests.processes import project_until_killed
from tests.propagation.pacing import batches_of

W = "clinic"
CARDS = Collection.MEMORY_CARDS


@pytest.fixture
def filled(world):
    """A workspace of six cards and six questions, projected."""
    world.sessions(W, 6)
    world.ingest(W)
    project(world.runtime, W)
    return world


def points(world) -> dict[str, dict]:
    targets = [target(W, collection, world.runtime.identity) for collection in Collection]
    return {point.id: dict(point.payload) for into in targets for point in world.index.scan(into)}


def plant(world, id_: str, item: str) -> None:
    point = Point(id_, payload(W, item, 9, "f", {}), dense={"content": HashEmbedder().embed(["any"], None)[0]})
    world.index._index.upsert(target(W, CARDS, world.runtime.identity), [point])


def delete(world, *card_ids: str) -> None:
    with world.runtime.database.transaction(W, writing=True) as tx:
        cards.delete(tx, list(card_ids))


def test_every_point_is_written_anew_from_vectors_that_are_kept(filled):
    before, embedded, upserted = points(filled), filled.embedder.embedded, filled.index.upserted
    report = rebuild(filled.runtime, W)
    assert (report.renewed, report.projection.written, report.projection.pending) == (12, 12, 0)
    assert filled.index.upserted == upserted + 12
    assert filled.embedder.embedded == embedded
    assert not report.mended
    assert points(filled) == before
    assert not audit(filled.runtime, W)


def test_a_rebuilt_index_answers_as_before(filled):
    with_before = Recall(filled.runtime).search(W, "subject 3")
    rebuild(filled.runtime, W)
    assert Recall(filled.runtime).search(W, "subject 3") == with_before


def test_recall_goes_on_while_the_index_is_rebuilt_and_says_how_much_is_pending(filled, monkeypatch):
    batches_of(monkeypatch, 2)
    recall, answers = Recall(filled.runtime), []
    whole = recall.search(W, "subject 3")
    filled.index.before_upsert = lambda: answers.append(recall.search(W, "subject 3"))
    rebuild(filled.runtime, W)
    assert [answer.pending for answer in answers] == [12, 10, 8, 6, 4, 2]
    assert all(answer.hits == whole.hits and not answer.dropped for answer in answers)


def test_only_the_collections_that_were_asked_for_are_rebuilt(filled):
    assert rebuild(filled.runtime, W, [CARDS]).projection.written == 6


def test_what_the_index_held_wrong_is_gone_and_what_it_lacked_is_there(filled):
    before = points(filled)
    plant(filled, point_id(W, "mem-0042"), "mem-0042")
    plant(filled, point_id("another scheme", "mem-0001"), "mem-0001")
    filled.index.delete(target(W, CARDS, filled.runtime.identity), [point_id(W, "mem-0002")])
    report = rebuild(filled.runtime, W)
    found = {difference: report.mended.count(difference) for difference in Difference}
    wrong = (Difference.ORPHANED, Difference.DUPLICATE, Difference.MISSING)
    assert found == {**dict.fromkeys(Difference, 0), **dict.fromkeys(wrong, 1)}
    assert (report.renewed, report.projection.written) == (11, 12)
    assert points(filled) == before


def test_of_deleted_cards_a_rebuilt_index_holds_nothing(filled):
    delete(filled, "mem-0002")
    rebuild(filled.runtime, W)
    assert "mem-0002" not in {payload["item"] for payload in points(filled).values()}
    assert not audit(filled.runtime, W)


def test_after_the_last_card_and_question_a_rebuilt_index_holds_nothing_at_all(filled):
    delete(filled, *(f"mem-000{n}" for n in range(1, 7)))
    with filled.runtime.database.transaction(W, writing=True) as tx:
        tx.run(text("DELETE FROM card_source WHERE workspace = :workspace"))
        tx.run(text("DELETE FROM question WHERE workspace = :workspace"))
    plant(filled, point_id(W, "mem-0042"), "mem-0042")
    assert rebuild(filled.runtime, W).projection.removed == 12
    assert points(filled) == {}


def test_a_wiped_index_is_filled_from_the_archive(filled):
    before, embedded = points(filled), filled.embedder.embedded
    shutil.rmtree(filled.runtime.settings.home / "index")
    report = rebuild(filled.runtime, W)
    assert (report.mended.count(Difference.MISSING), report.renewed, report.projection.written) == (12, 0, 12)
    assert points(filled) == before
    assert filled.embedder.embedded == embedded


@pytest.mark.parametrize("damage", ["of its files", "of its schema"])
def test_a_collection_that_cannot_be_used_is_made_anew(filled, damage):
    before = points(filled)
    files = ShardFiles.of(filled.runtime.settings.home / "index", target(W, CARDS, filled.runtime.identity))
    if damage == "of its files":
        for path in files.shard.rglob("segment.json"):
            path.write_bytes(b"")
    else:
        into = target(W, CARDS, filled.runtime.identity)
        filled.index.drop(into)
        filled.index.ensure(replace(into, schema=replace(into.schema, dimension=8)))
    report = rebuild(filled.runtime, W)
    assert (report.mended.count(Difference.DAMAGED), report.projection.written) == (1, 12)
    assert points(filled) == before


@pytest.mark.parametrize("moment", ["before_upsert", "after_upsert"])
def test_a_rebuild_that_is_killed_is_completed_by_the_next_projection(filled, moment):
    before = points(filled)
    project_until_killed(filled.runtime.settings, W, moment, work="rebuild")
    assert points(filled) == before
    assert project(filled.runtime, W).written == 12
    assert points(filled) == before
    assert not audit(filled.runtime, W)


def test_what_waits_for_its_next_try_is_tried_at_once(filled):
    filled.sessions(W, 1, start=6)
    filled.ingest(W)
    filled.embedder.away = True
    with pytest.raises(EmbedderUnavailable):
        project(filled.runtime, W, [CARDS])
    filled.embedder.away = False
    assert rebuild(filled.runtime, W).projection.written == 14


def test_an_index_that_goes_away_leaves_the_rest_pending(filled):
    filled.index.away = True
    with pytest.raises(IndexUnavailable):
        rebuild(filled.runtime, W)
    filled.index.away = False
    assert project(filled.runtime, W, retry_now=True).written == 12
