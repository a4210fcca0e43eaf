"""Whatever becomes of a shard's files, the index answers or says so in the library's words, and is made anew."""

from __future__ import annotations

import errno
import os
import random
import shutil
from collections import namedtuple
from contextlib import suppress

import pytest

from memory_pipeline.errors import IndexIncompatible, IndexUnavailable
from memory_pipeline.index import CollectionDamaged, CollectionMissing, Schema, Target
from memory_pipeline.index.edge import EdgeIndex, _reclaim
from memory_pipeline.index.edge_files import ROOM, ShardFiles, _copy_sparsely
from tests.index.conftest import SCHEMA, make_point

TARGET = Target("psd", "cards", "e5", SCHEMA)
FILES = (
    *("generation", "schema.json", "open-1", "open-2", "first-index", "edge_config.json"),
    *("segment.json", "version.info", "mutable_id_tracker.mappings", "mutable_id_tracker.versions"),
    *("status.dat", "flags_a.dat", "chunk_0.mmap", "config.json"),
    *("tracker.dat", "tracker_journal.dat", "bitmask.dat", "page_0.dat", "gaps.dat"),
)


def remove(path):
    path.unlink()


def empty(path):
    path.write_bytes(b"")


def halve(path):
    os.truncate(path, path.stat().st_size // 2)


def zero(path):
    size = path.stat().st_size
    os.truncate(path, 0)
    os.truncate(path, size)


def scramble(path):
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.write(random.Random(1).randbytes(min(size, 1 << 16)))  # noqa: S311  # the same noise each time


def replace_by_directory(path):
    path.unlink()
    path.mkdir()


DAMAGES = (remove, empty, halve, zero, scramble, replace_by_directory)


def copy(source, destination):
    """With the log, which `copy_tree` leaves out."""
    for path in sorted(source.rglob("*")):
        to = destination / path.relative_to(source)
        if path.is_dir():
            to.mkdir(parents=True)
        else:
            with path.open("rb") as read, to.open("wb") as write:
                _copy_sparsely(read, write)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The files of an index with a shard of 60 points, from which some were deleted."""
    root = tmp_path_factory.mktemp("whole") / "index"
    index = EdgeIndex(root, warm=False)
    index.ensure(TARGET)
    points = [make_point(f"mem-{n:04}", words={n % 5: 1.0}, family="concept", tables=("visit",)) for n in range(60)]
    index.upsert(TARGET, points)
    index.delete(TARGET, [point.id for point in points[:3]])
    return root


@pytest.fixture
def root(whole, room, tmp_path, request):
    # In memory, files that the engine has mapped have no holes: whoever counts the room of a copy needs a disk.
    place = tmp_path if "full" in request.fixturenames else room
    copy(whole, place / "index")
    yield place / "index"
    shutil.rmtree(place / "index")


@pytest.fixture
def index(root):
    made = EdgeIndex(root, warm=False)
    yield made
    made.close()


def test_a_file_in_the_place_of_a_shard_is_dropped_and_the_shard_made_again(index, root):
    shard = root / TARGET.workspace / TARGET.physical_name
    shutil.rmtree(shard)
    shard.write_text("no shard")
    index.drop(TARGET)
    index.drop(TARGET)
    index.ensure(TARGET)
    assert list(index.scan(TARGET)) == []


def fails(use):
    """Whether it is refused in the library's own words; any other exception is the test's."""
    try:
        use()
    except (IndexUnavailable, IndexIncompatible):
        return True
    return False


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_raises_nothing_else_and_what_cannot_be_searched_is_found(
    index, root, nearest, containing, name, damage
):
    damaged = [path for path in root.rglob(name) if path.is_file()]
    assert damaged
    for path in damaged:
        damage(path)
    found = fails(lambda: index.check(TARGET))
    searches = [nearest(), containing(1, 3, family=("concept",))]
    assert fails(lambda: index.search(TARGET, searches)) <= found
    for use in (
        lambda: list(index.scan(TARGET)),
        lambda: index.upsert(TARGET, [make_point("mem-0099"), make_point("mem-0005", 2)]),
        lambda: index.delete(TARGET, [make_point("mem-0007").id]),
        lambda: index.identities("psd", "cards"),
        lambda: index.live_identity("psd"),
        lambda: index.ensure(TARGET),
    ):
        fails(use)
    index.drop(TARGET)
    index.ensure(TARGET)
    assert index.upsert(TARGET, [make_point("mem-0001")])
    index.check(TARGET)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"null", b"5", b"[1]", b"{}", b"\xff\xfe", b"[" * 100_000, b'{"dense": 1, "dimension": 1e999}'],
)
def test_a_shard_without_a_schema_is_no_whole_one_and_is_made_again(index, root, nearest, content):
    ShardFiles.of(root, TARGET).directory.joinpath("schema.json").write_bytes(content)
    for use in (
        lambda: index.search(TARGET, [nearest()]),
        lambda: index.upsert(TARGET, [make_point("mem-0001")]),
        lambda: index.check(TARGET),
    ):
        with pytest.raises(CollectionMissing, match="memory-pipeline project"):
            use()
    assert index.identities("psd", "cards") == set()
    index.ensure(TARGET)
    assert index.search(TARGET, [nearest()]) == [[]]


def test_a_shard_that_says_to_be_of_other_vectors_is_damaged_to_the_check(index, root, nearest):
    schema = ShardFiles.of(root, TARGET).directory / "schema.json"
    schema.write_text(schema.read_text().replace('"dimension": 4', '"dimension": 8'))
    with pytest.raises(IndexIncompatible, match="of 8"):
        index.search(TARGET, [nearest()])
    with pytest.raises(CollectionDamaged, match="of 8"):
        index.check(TARGET)


def test_a_shard_that_is_of_other_vectors_than_it_says_is_damaged_to_the_check(index, root):
    wider = Schema(SCHEMA.dense, SCHEMA.sparse, 8, SCHEMA.keywords)
    schema = ShardFiles.of(root, TARGET).directory / "schema.json"
    schema.write_text(schema.read_text().replace('"dimension": 4', '"dimension": 8'))
    with pytest.raises(CollectionDamaged, match="dimension"):
        index.check(Target("psd", "cards", "e5", wider))


def test_a_lock_of_the_engine_s_own_is_no_damage(index, root, nearest):
    with ShardFiles.of(root, TARGET).opened(), pytest.raises(IndexUnavailable) as refused:
        index.search(TARGET, [nearest()])
    assert not isinstance(refused.value, CollectionDamaged)


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO, errno.EMFILE, errno.ENOSPC])
def test_what_the_system_refuses_is_neither_missing_nor_damaged(index, nearest, monkeypatch, number):
    """Else a file that cannot be read for a moment would have the whole shard made anew."""

    def refuse(self, *_, **__):
        raise OSError(number, os.strerror(number), str(self))

    with monkeypatch.context() as patch:
        for method in ("read_bytes", "read_text", "iterdir"):
            patch.setattr(f"pathlib.Path.{method}", refuse)
        for use in (
            lambda: index.search(TARGET, [nearest()]),
            lambda: list(index.scan(TARGET)),
            lambda: index.upsert(TARGET, [make_point("mem-0001")]),
            lambda: index.delete(TARGET, [make_point("mem-0001").id]),
            lambda: index.ensure(TARGET),
            lambda: index.check(TARGET),
            lambda: index.identities("psd", "cards"),
            lambda: index.live_identity("psd"),
        ):
            with pytest.raises(IndexUnavailable, match=f"{os.strerror(number)}; try again") as refused:
                use()
            assert type(refused.value) is IndexUnavailable
    assert len(list(index.scan(TARGET))) == 57


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{", b"null", b"5", b"[1]", b"{}", b"\xff\xfe", None),
        *(
            b'{"hash": 1234567890123456}',
            b'{"hash": ""}',
            b'{"hash": "../../../../../.."}',
            b'{"hash": "0123456789ABCDEF"}',
        ),
        b'{"hash": "0123456789abcdef0"}',
    ],
)
def test_an_identity_file_that_says_nothing_is_no_live_identity_and_is_written_anew(index, root, content):
    index.activate("psd", "0" * 16, {"model": "a"}, ["cards"])
    file = root / "psd" / "identity.json"
    replace_by_directory(file) if content is None else file.write_bytes(content)
    assert index.live_identity("psd") is None
    index.activate("psd", "f" * 16, {"model": "a"}, ["cards"])
    assert index.live_identity("psd")["hash"] == "f" * 16


@pytest.fixture
def full(monkeypatch):
    """Makes a disk that has less room than a shard needs, or so much, by one byte."""
    usage = namedtuple("usage", "total used free")  # noqa: PYI024  # as shutil has it
    return lambda room=ROOM: monkeypatch.setattr("shutil.disk_usage", lambda _: usage(room, 1, room - 1))


def test_without_room_nothing_is_made_written_or_copied_and_what_is_there_is_still_searched(
    index, root, nearest, full, monkeypatch
):
    warm, other = EdgeIndex(root, warm=True), Target("psd", "other", "e5", SCHEMA)
    full()
    for use in (
        lambda: index.ensure(other),
        lambda: index.upsert(TARGET, [make_point("mem-0001")]),
        lambda: index.delete(TARGET, [make_point("mem-0004").id]),
        lambda: list(index.scan(TARGET)),
        lambda: warm.search(TARGET, [nearest()]),
    ):
        with pytest.raises(IndexUnavailable, match=r"has 127 MiB of room.* needs 12[89] MiB there") as refused:
            use()
        assert not isinstance(refused.value, CollectionMissing | CollectionDamaged)
    assert index.identities("psd", "other") == set()
    assert len(index.search(TARGET, [nearest(limit=99)])[0]) == 57
    full(48 << 20)  # of nearly none the engine would be killed, though it only reads
    with pytest.raises(IndexUnavailable, match="has 47 MiB of room"):
        index.search(TARGET, [nearest()])
    monkeypatch.undo()
    assert len(warm.search(TARGET, [nearest(limit=99)])[0]) == 57
    warm.close()


def test_points_are_deleted_also_where_there_is_no_room_to_tidy_up():
    class Shard:
        def __init__(self, says) -> None:
            self.says = says

        def optimize(self):
            raise Exception(self.says)  # noqa: TRY002  # as the engine does

    _reclaim(Shard("Service runtime error: Not enough space available for optimization, needed: 9 MiB"))
    with pytest.raises(Exception, match="torn"), suppress(IndexUnavailable):
        _reclaim(Shard("torn"))
