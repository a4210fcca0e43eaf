from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from memory_pipeline.archive import audits, cards, projections
from memory_pipeline.archive.status import workspace_status
from memory_pipeline.cards import CardContent, Collection, Family
from memory_pipeline.errors import EmbedderUnavailable, IndexIncompatible, IndexUnavailable
from memory_pipeline.points import point_id, target
from memory_pipeline.propagation import audit, project
from tests.builders import a_session, clarified, promoted, retracted
from tests.propagation.pacing import batches_of

W = "clinic"


def a_concept(subject: str, detail: str = "flag_attivo = TRUE") -> CardContent:
    return CardContent(Family.CONCEPT, subject=subject, detail=detail)


def points(world, collection: Collection, workspace: str = W) -> dict[str, dict]:
    into = target(workspace, collection, world.runtime.identity)
    return {point.id: dict(point.payload) for point in world.runtime.index.scan(into)}


def status(world, workspace: str = W):
    with world.runtime.database.transaction(workspace) as tx:
        return workspace_status(tx, world.runtime.identity.hash)


def reasons(world) -> dict[str, int]:
    with world.runtime.database.transaction(W) as tx:
        return projections.reasons(tx, world.runtime.identity.hash)


def change(world, card_id: str, content: CardContent) -> None:
    with world.runtime.database.transaction(W) as tx:
        cards.update(tx, {card_id: content}, principal="anna")


def delete(world, card_id: str) -> None:
    with world.runtime.database.transaction(W) as tx:
        cards.delete(tx, [card_id])


def test_every_card_and_question_gets_one_certified_point_without_its_text(world):
    world.sessions(W, 3)
    world.ingest(W)
    report = project(world.runtime, W)
    assert (report.written, report.pending) == (6, 0)
    held = points(world, Collection.MEMORY_CARDS)
    assert set(held) == {point_id(W, f"mem-000{n}") for n in (1, 2, 3)}
    assert not any("subject" in str(payload) or "detail" in str(payload) for payload in held.values())
    assert len(points(world, Collection.QUESTIONS)) == 3
    assert status(world).certified == 6
    assert not audit(world.runtime, W)


def test_a_second_projection_embeds_and_writes_nothing(world):
    world.sessions(W, 3)
    world.ingest(W)
    project(world.runtime, W)
    embedded, upserted = world.embedder.embedded, world.index.upserted
    assert project(world.runtime, W).written == 0
    assert (world.embedder.embedded, world.index.upserted) == (embedded, upserted)


def test_more_items_than_a_batch_are_all_projected_and_one_removal_deletes_one_point(world, monkeypatch):
    batches_of(monkeypatch, 10)
    world.sessions(W, 21)
    world.ingest(W)
    assert project(world.runtime, W).written == 42
    delete(world, "mem-0007")
    report = project(world.runtime, W, [Collection.MEMORY_CARDS])
    assert (report.written, report.removed, world.index.deleted) == (0, 1, 1)
    assert point_id(W, "mem-0007") not in points(world, Collection.MEMORY_CARDS)


def test_a_further_confirmation_adds_a_question_and_touches_no_card(world):
    world.sessions(W, 1)
    world.ingest(W)
    project(world.runtime, W)
    a_session(
        world.runtime.settings.sessions,
        clarified(1, "Subject 0", "detail 0."),
        promoted(2, 1),
        session="t-later",
        workspace=W,
        question="another question?",
        sql=None,
    )
    world.ingest(W)
    with world.runtime.database.transaction(W) as tx:
        states = {s.collection: s for s in projections.states(tx, world.runtime.identity.hash)}
    assert states[Collection.MEMORY_CARDS].pending == 0
    assert states[Collection.QUESTIONS].pending == 1
    assert project(world.runtime, W).written == 1


def test_a_withdrawn_card_and_the_question_that_nobody_uses_leave_the_index(world):
    world.sessions(W, 2)
    world.ingest(W)
    project(world.runtime, W)
    a_session(
        world.runtime.settings.sessions,
        clarified(1, "subject 1", "detail 1"),
        promoted(2, 1),
        retracted(3, 1),
        session="s0001",
        workspace=W,
        question="question 1?",
        sql=None,
    )
    world.ingest(W)
    report = project(world.runtime, W)
    assert (report.removed, report.pending) == (2, 0)
    assert set(points(world, Collection.MEMORY_CARDS)) == {point_id(W, "mem-0001")}
    assert len(points(world, Collection.QUESTIONS)) == 1


def test_an_edit_that_commits_while_its_older_version_is_written_is_never_overtaken(world):
    world.sessions(W, 1)
    world.ingest(W)
    newer = a_concept("subject 0", "changed meanwhile")

    def edit_once():
        world.index.before_upsert = lambda: None
        change(world, "mem-0001", newer)

    world.index.before_upsert = edit_once
    report = project(world.runtime, W)
    with world.runtime.database.transaction(W) as tx:
        [row] = cards.full_rows(tx, ["mem-0001"])
    assert points(world, Collection.MEMORY_CARDS)[point_id(W, "mem-0001")]["fingerprint"] == row["fingerprint"]
    assert (report.overtaken, report.pending) == (1, 0)
    assert not audit(world.runtime, W)


def test_a_deletion_that_commits_while_the_card_is_written_leaves_no_point(world):
    world.sessions(W, 1)
    world.ingest(W)

    def delete_once():
        world.index.before_upsert = lambda: None
        delete(world, "mem-0001")

    world.index.before_upsert = delete_once
    report = project(world.runtime, W)
    assert points(world, Collection.MEMORY_CARDS) == {}
    assert report.pending == 0
    assert not audit(world.runtime, W)


def test_when_the_index_is_away_everything_stays_pending_with_the_reason(world):
    world.sessions(W, 2)
    world.ingest(W)
    world.index.away = True
    with pytest.raises(IndexUnavailable):
        project(world.runtime, W)
    assert (status(world).certified, status(world).pending) == (0, 4)
    assert reasons(world) == {"the index is away": 4}
    world.index.away = False
    assert project(world.runtime, W, retry_now=True).written == 4


def test_when_the_index_is_of_other_vectors_everything_stays_pending_with_the_reason(world):
    world.sessions(W, 2)
    world.ingest(W)
    into = target(W, Collection.MEMORY_CARDS, world.runtime.identity)
    world.index.ensure(replace(into, schema=replace(into.schema, dimension=8)))
    with pytest.raises(IndexIncompatible, match="of 8"):
        project(world.runtime, W)
    assert status(world).pending == 2  # the questions are in a collection of their own
    assert [(count, "of 8" in reason) for reason, count in reasons(world).items()] == [(2, True)]


def test_an_error_that_nobody_foresaw_puts_off_the_item_that_it_comes_from_and_no_other(world, monkeypatch):
    world.sessions(W, 9)
    world.ingest(W)
    embed = world.embedder.embed

    def fails_on_one(texts, role):
        if "subject 5: detail 5" in texts:
            raise ValueError("no such token")
        return embed(texts, role)

    monkeypatch.setattr(world.embedder, "embed", fails_on_one)
    report = project(world.runtime, W)
    assert (report.written, report.deferred, report.pending) == (17, 1, 1)
    assert reasons(world) == {"ValueError: no such token": 1}
    assert point_id(W, "mem-0006") not in points(world, Collection.MEMORY_CARDS)


def test_when_the_model_is_away_nothing_is_kept_and_the_next_projection_completes(world):
    world.sessions(W, 2)
    world.ingest(W)
    world.embedder.away = True
    with pytest.raises(EmbedderUnavailable):
        project(world.runtime, W)
    assert status(world).certified == 0
    world.embedder.away = False
    assert project(world.runtime, W, retry_now=True).pending == 0


def test_what_failed_waits_before_it_is_tried_again_unless_asked(world):
    world.sessions(W, 1)
    world.ingest(W)
    world.index.away = True
    with pytest.raises(IndexUnavailable):
        project(world.runtime, W, [Collection.MEMORY_CARDS])
    world.index.away = False
    waiting = project(world.runtime, W, [Collection.MEMORY_CARDS])
    assert (waiting.written, waiting.pending) == (0, 1)
    assert project(world.runtime, W, [Collection.MEMORY_CARDS], retry_now=True).written == 1


def test_texts_that_were_embedded_once_are_not_embedded_again(world):
    world.sessions(W, 2)
    world.ingest(W)
    project(world.runtime, W)
    embedded = world.embedder.embedded
    for collection in Collection:
        world.runtime.index.drop(target(W, collection, world.runtime.identity))
    with world.runtime.database.transaction(W) as tx:
        for collection in Collection:
            audits.distrust_collection(tx, world.runtime.identity.hash, collection, "dropped")
    assert project(world.runtime, W).written == 4
    assert world.embedder.embedded == embedded


def test_a_run_that_ends_while_it_embeds_keeps_what_was_embedded(world, monkeypatch):
    batch = world.runtime.settings.embedding_batch_size
    world.sessions(W, batch + 5)
    world.ingest(W)
    embed = world.embedder.embed

    def ends_after_one_batch(texts, role):
        if world.embedder.embedded >= batch:
            raise KeyboardInterrupt
        return embed(texts, role)

    monkeypatch.setattr(world.embedder, "embed", ends_after_one_batch)
    with pytest.raises(KeyboardInterrupt):
        project(world.runtime, W, [Collection.MEMORY_CARDS])
    monkeypatch.undo()
    world.embedder.away = False
    assert project(world.runtime, W, [Collection.MEMORY_CARDS], retry_now=True).written == batch + 5
    assert world.embedder.embedded == batch + 5


def test_progress_begins_at_nothing_and_moves_while_a_batch_is_embedded(world):
    world.sessions(W, 40)
    world.ingest(W)
    told = []
    world.index.before_upsert = lambda: told.append("written")
    project(world.runtime, W, progress=lambda done, total: told.append((done, total)))
    before_the_first_write = told[: told.index("written")]
    assert before_the_first_write == [(0, 80), (32, 80), (40, 80)]
    steps = [step for step in told if step != "written"]
    assert steps == sorted(steps)
    assert steps[-1] == (80, 80)


def test_a_collection_is_ensured_once_in_a_run(world, monkeypatch):
    batches_of(monkeypatch, 5)
    world.sessions(W, 12)
    world.ingest(W)
    ensured = []
    ensure = world.index.ensure
    world.index.ensure = lambda into: ensured.append(into.collection) or ensure(into)
    project(world.runtime, W, [Collection.MEMORY_CARDS])
    assert ensured == ["memory_cards"]


def test_a_new_identity_and_a_writer_do_not_wait_for_each_other(world):
    """A run first registers its identity, which keeps new cards out, and then waits until no card is being made."""
    world.sessions(W, 1)
    world.ingest(W)
    world.runtime.identity = replace(world.runtime.identity, revision="another")
    reports = []
    run = threading.Thread(target=lambda: reports.append(project(world.runtime, W, retry_now=True)))
    with world.runtime.database.transaction(W, writing=True) as tx:
        run.start()
        run.join(0.5)
        cards.create(tx, [a_concept("another")], origin="hand", principal="anna")
    run.join()
    assert [report.pending for report in reports] == [0]


def test_a_text_longer_than_the_models_window_is_recorded(world):
    a_session(world.runtime.settings.sessions, clarified(1, "long", "x " * 2000), promoted(2, 1), workspace=W, sql=None)
    world.ingest(W)
    project(world.runtime, W)
    with world.runtime.database.transaction(W) as tx:
        rows = tx.connection.exec_driver_sql("SELECT item_id FROM projection WHERE truncated").scalars().all()
    assert rows == ["mem-0001"]


def test_of_a_very_long_text_the_model_is_given_the_beginning_and_the_rest_counts_in_everything_else(
    world, monkeypatch
):
    a_session(
        world.runtime.settings.sessions, clarified(1, "long", "x " * 400_000), promoted(2, 1), workspace=W, sql=None
    )
    world.ingest(W)
    embed, given = world.embedder.embed, []
    monkeypatch.setattr(world.embedder, "embed", lambda texts, role: given.extend(texts) or embed(texts, role))
    monkeypatch.setattr(world.embedder, "truncates", lambda texts, role: [False] * len(texts))
    project(world.runtime, W)
    assert max(map(len, given)) == 4000
    with world.runtime.database.transaction(W) as tx:
        assert tx.connection.exec_driver_sql("SELECT item_id FROM projection WHERE truncated").scalars().all() == [
            "mem-0001"
        ]
        [row] = cards.full_rows(tx, ["mem-0001"])
    assert len(row["detail"]) > 700_000
    assert points(world, Collection.MEMORY_CARDS)[point_id(W, "mem-0001")]["fingerprint"] == row["fingerprint"]
    change(world, "mem-0001", a_concept("long", row["detail"] + " and its end"))
    assert project(world.runtime, W).written == 1


def test_the_other_workspace_is_not_touched(world):
    for workspace in ("a", "b"):
        world.sessions(workspace, 2)
        world.ingest(workspace)
    project(world.runtime, "a")
    assert (status(world, "a").pending, status(world, "b").pending) == (0, 4)
    assert len(points(world, Collection.MEMORY_CARDS, "a")) == 2


def test_collections_that_a_run_made_and_filled_are_not_audited_before_recall_uses_them(world, monkeypatch):
    audited = []
    monkeypatch.setattr(world.index, "check", lambda into: audited.append(into.collection), raising=False)
    world.sessions(W, 2)
    world.ingest(W)
    project(world.runtime, W)
    assert (audited, world.runtime.live_identity(W)) == ([], world.runtime.identity)
