"""Archive or index put back to an older state: the audit finds every point that differs, and the archive's state is back.

Both are real copies: a database made from another one, and a directory put in the place of its successor.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator

import pytest
from sqlalchemy import make_url

from memory_pipeline.archive import cards, identities
from memory_pipeline.cards import CardContent, Collection, Family
from memory_pipeline.points import target
from memory_pipeline.propagation import Difference, audit, project, repair
from memory_pipeline.propagation.switch import drop_identity
from memory_pipeline.recall import Recall
from memory_pipeline.runtime import Runtime
from tests.conftest import drop_database, in_database, make_database
from tests.propagation.conftest import World

W = "clinic"
CARDS = Collection.MEMORY_CARDS


@pytest.fixture
def projected(world) -> World:
    """A workspace of five cards and their questions, in which archive and index agree."""
    world.sessions(W, 5)
    world.ingest(W)
    project(world.runtime, W)
    return world


def go_on(world: World) -> None:
    """One card is made, one edited twice, one deleted; the index follows."""
    world.sessions(W, 1, start=5)
    world.ingest(W)
    for detail in ("changed", "changed again"):
        with world.runtime.database.transaction(W, writing=True) as tx:
            cards.update(tx, {"mem-0001": CardContent(Family.CONCEPT, "subject 0", detail)}, principal="anna")
    with world.runtime.database.transaction(W, writing=True) as tx:
        cards.delete(tx, ["mem-0002"])
    project(world.runtime, W)


def held(world: World) -> dict[str, dict[str, object]]:
    """Item → payload of its point, over all collections."""
    targets = [target(W, collection, world.runtime.identity) for collection in Collection]
    return {str(p.payload["item"]): dict(p.payload) for into in targets for p in world.index.scan(into)}


@pytest.fixture
def before_the_switch(projected, postgres, superuser) -> Iterator[World]:
    """The archive of a backup beside an index that has switched to another model since, and dropped the former one."""
    settings, former = projected.runtime.settings, projected.runtime.identity
    projected.runtime.database.close()
    original = make_url(settings.database_url.get_secret_value()).database
    backup = make_database(superuser, owner="memory_owner", template=original)
    changed = settings.model_copy(
        update={"embedding_provider": "sentence-transformers", "embedding_model": "another", "embedding_dimension": 384}
    )
    with Runtime(changed) as after:
        World(after).embedder.salt = "another"
        project(after, W)
        drop_identity(after, former.hash)
    with Runtime(changed.model_copy(update={"database_url": in_database(postgres.archive, backup)})) as opened:
        world = World(opened)
        world.embedder.salt = "another"
        yield world
    drop_database(superuser, backup)


@pytest.fixture
def restored(projected, postgres, superuser) -> Iterator[World]:
    """The archive of a backup beside the index that has followed the archive since."""
    settings = projected.runtime.settings
    projected.runtime.database.close()  # a database that somebody is connected to cannot be copied
    original = make_url(settings.database_url.get_secret_value()).database
    backup = make_database(superuser, owner="memory_owner", template=original)
    go_on(projected)
    database_url = in_database(postgres.archive, backup)
    with Runtime(settings.model_copy(update={"database_url": database_url})) as opened:
        yield World(opened)
    drop_database(superuser, backup)


def test_an_archive_of_a_backup_finds_every_newer_point_and_is_indexed_as_it_was(restored):
    assert audit(restored.runtime, W).findings[CARDS].counts == {
        Difference.STALE: 1,  # of a version that this archive has not reached
        Difference.MISSING: 1,  # removed after the backup
        Difference.ORPHANED: 1,  # made after it
    }
    repair(restored.runtime, W)
    assert project(restored.runtime, W).pending == 0
    assert not audit(restored.runtime, W)
    found = held(restored)
    assert {item for item in found if item.startswith("mem")} == {f"mem-000{n}" for n in range(1, 6)}
    assert found["mem-0001"]["version"] == 1


def test_an_archive_of_a_backup_that_is_edited_before_its_audit_is_indexed_as_it_says(restored):
    """The version guard defends the newer point against the edit, until the audit has found it."""
    with restored.runtime.database.transaction(W, writing=True) as tx:
        cards.update(tx, {"mem-0001": CardContent(Family.CONCEPT, "subject 0", "otherwise")}, principal="anna")
    assert project(restored.runtime, W).deferred == 1
    repair(restored.runtime, W)
    assert project(restored.runtime, W).pending == 0
    assert not audit(restored.runtime, W)
    assert held(restored)["mem-0001"]["version"] == 2


def test_an_older_copy_of_the_index_lacks_points_holds_others_and_is_brought_to_the_archive(projected, tmp_path):
    index, aside = projected.runtime.settings.home / "index", tmp_path / "aside"
    before = held(projected)
    subprocess.run(["cp", "-a", index, aside], check=True)
    go_on(projected)
    wanted = held(projected)
    shutil.rmtree(index)
    subprocess.run(["cp", "-a", aside, index], check=True)
    assert held(projected) == before
    assert audit(projected.runtime, W).findings[CARDS].counts == {
        Difference.STALE: 1,  # edited since
        Difference.MISSING: 1,  # made since
        Difference.ORPHANED: 1,  # deleted since, and its removal certified
    }
    repair(projected.runtime, W)
    project(projected.runtime, W)
    assert held(projected) == wanted
    assert not audit(projected.runtime, W)


def test_an_archive_of_before_a_switch_is_indexed_for_the_model_that_the_settings_name(before_the_switch):
    """The index says another identity than the archive, which knows nothing of it."""
    world = before_the_switch
    repair(world.runtime, W)
    assert project(world.runtime, W).pending == 0
    assert not audit(world.runtime, W)
    assert world.runtime.live_identity(W) == world.runtime.identity
    with world.runtime.database.transaction(W) as tx:
        assert [(each.identity, each.live) for each in identities.registered(tx)] == [
            (world.runtime.identity.hash, True)
        ]
    found = Recall(world.runtime).search(W, "subject 1: detail 1")
    assert (found.hits[0].card_id, found.pending, found.dropped) == ("mem-0002", 0, {})
