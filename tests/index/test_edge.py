"""What only shards in a directory can suffer: other processes, kills, damage, wiping, and copies left behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock

from memory_pipeline.errors import IndexUnavailable
from memory_pipeline.index import CollectionDamaged, CollectionMissing, Schema, Search, Target, edge, edge_copies
from memory_pipeline.index.edge import EdgeIndex
from memory_pipeline.index.edge_copies import remove_abandoned
from memory_pipeline.index.edge_files import ShardFiles, copy_tree, open_shard

PREAMBLE = """
import os, signal, sys
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5
import numpy as np
from memory_pipeline.index import Point, Schema, Search, Target
from memory_pipeline.index import edge_copies, edge_files
from memory_pipeline.index.edge import EdgeIndex

root, who = Path(sys.argv[1]), sys.argv[2]
target = Target("psd", "cards", "e5", Schema(("content", "subject"), ("words",), 4, ("family", "tables")))
query = Search("content", np.float32([1, 0, 0, 0]), 1)

def point(item, version=1):
    payload = {"workspace": "psd", "item": item, "version": version, "fingerprint": f"{item}-{version}"}
    return Point(str(uuid5(NAMESPACE_URL, f"psd/{item}")), payload, {"content": np.float32([1, 0, 0, 0])})

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

index = EdgeIndex(root, warm=False)
"""


@pytest.fixture
def target(a_target):
    made = a_target()
    return Target(made.workspace, "cards", made.identity, made.schema)


@pytest.fixture
def root(tmp_path):
    return tmp_path / "index"


@pytest.fixture(autouse=True)
def temporary_directory(tmp_path, monkeypatch):
    # Copies of other runs are none of these tests' business.
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


@pytest.fixture
def opened(root):
    made = []

    def build(*, warm=False, lock_timeout=30.0):
        made.append(EdgeIndex(root, warm=warm, lock_timeout=lock_timeout))
        return made[-1]

    yield build
    for index in made:
        index.close()


def process(root, body, who="a"):
    script = PREAMBLE + textwrap.dedent(body)
    environment = os.environ | {"TMPDIR": tempfile.gettempdir()}
    return subprocess.Popen(
        [sys.executable, "-c", script, str(root), who], stdout=subprocess.PIPE, text=True, env=environment
    )


def finish(started):
    output, _ = started.communicate(timeout=120)
    return output, started.returncode


def items(index, target):
    return {point.payload["item"] for point in index.scan(target)}


def files_of(root, target):
    return ShardFiles.of(root, target)


def test_two_processes_write_into_one_shard_at_once(opened, root, target):
    body = """
        index.ensure(target)
        for batch in range(8):
            points = [point(f"{who}-{batch}-{n}") for n in range(5)]
            assert index.upsert(target, points) == {p.id for p in points}
    """
    started = [process(root, body, who) for who in "ab"]
    assert [finish(one)[1] for one in started] == [0, 0]
    assert items(opened(), target) == {f"{who}-{batch}-{n}" for who in "ab" for batch in range(8) for n in range(5)}


def test_of_two_processes_the_higher_version_stays(opened, root, target):
    body = """
        index.ensure(target)
        for version in range(1 + (who == "b"), 41, 2):
            index.upsert(target, [point("mem-0001", version)])
    """
    started = [process(root, body, who) for who in "ab"]
    assert [finish(one)[1] for one in started] == [0, 0]
    assert [point.payload["version"] for point in opened().scan(target)] == [40]


@pytest.mark.parametrize("warm", [False, True])
def test_a_lock_that_stays_taken_is_named(opened, root, target, a_point, nearest, warm):
    opened().ensure(target)
    index = opened(warm=warm, lock_timeout=0.05)
    with FileLock(files_of(root, target).lock_file):
        for use in (
            lambda: index.search(target, [nearest()]),
            lambda: index.upsert(target, [a_point("mem-0001")]),
            lambda: list(index.scan(target)),
            lambda: index.ensure(target),
            lambda: index.drop(target),
        ):
            with pytest.raises(IndexUnavailable, match=r"cards__e5\.lock"):
                use()
    assert index.search(target, [nearest()]) == [[]]


@pytest.mark.parametrize("batches", [1, 2, 5])
def test_a_killed_writer_loses_nothing_that_was_confirmed(opened, root, target, a_point, batches):
    writer = process(
        root,
        """
        index.ensure(target)
        for batch in range(10_000):
            index.upsert(target, [point(f"{batch}-{n}") for n in range(50)])
            print(batch, flush=True)
        """,
    )
    confirmed = [int(writer.stdout.readline()) for _ in range(batches)]
    writer.send_signal(signal.SIGKILL)
    confirmed += [int(line) for line in finish(writer)[0].split()]
    expected = {f"{batch}-{n}" for batch in confirmed for n in range(50)}
    assert expected <= items(opened(warm=True), target)
    assert expected <= items(opened(), target)
    assert opened().upsert(target, [a_point("mem-0001")])


@pytest.mark.parametrize("warm", [False, True])
def test_a_writer_killed_before_its_flush_leaves_a_shard_that_mends_itself(opened, root, target, a_point, warm):
    _, code = finish(
        process(
            root,
            """
            index.ensure(target)
            index.upsert(target, [point("confirmed")])
            edge_files.ShardFiles._bump = die
            index.upsert(target, [point("unconfirmed"), point("confirmed", 2)])
            """,
        )
    )
    assert code == -signal.SIGKILL
    reader = opened(warm=warm)
    assert "confirmed" in items(reader, target)
    assert len(reader.search(target, [Search("content", np.float32([1, 0, 0, 0]), 9)])[0]) == len(items(reader, target))
    assert opened().upsert(target, [a_point("mem-0001")])
    assert {"confirmed", "mem-0001"} <= items(reader, target)


@pytest.mark.parametrize(
    "step",
    [
        "_create_shard",
        "_index_keywords",
        "_write_schema",
        "sync_directory",
        "replace_file.__globals__['sync_directory']",
    ],
)
def test_a_shard_whose_creator_was_killed_is_made_again(opened, root, target, a_point, nearest, step):
    _, code = finish(process(root, f"edge_files.{step} = die\nindex.ensure(target)"))
    assert code == -signal.SIGKILL
    index = opened()
    if step != "sync_directory":  # then it was in its place already
        with pytest.raises(CollectionMissing):
            index.search(target, [nearest()])
    index.ensure(target)
    assert index.upsert(target, [a_point("mem-0001")])
    assert [path.name for path in root.rglob("*.building")] == []


def test_a_directory_that_is_no_whole_shard_is_replaced(opened, root, target, a_point, nearest):
    files = files_of(root, target)
    files.shard.mkdir(parents=True)
    index = opened()
    with pytest.raises(CollectionMissing):
        index.search(target, [nearest()])
    index.ensure(target)
    assert index.upsert(target, [a_point("mem-0001")])


def test_a_killed_drop_is_finished_by_the_next(opened, root, target, a_point):
    body = """
        index.ensure(target)
        index.upsert(target, [point("mem-0001")])
        seen = []
        remove = edge_files.remove
        edge_files.remove = lambda directory: die() if seen else seen.append(remove(directory))
        index.drop(target)
    """
    assert finish(process(root, body))[1] == -signal.SIGKILL
    index = opened()
    index.ensure(target)
    assert items(index, target) == set()
    index.drop(target)
    assert [path for path in root.rglob("*") if path.is_dir()] == [root / "psd"]


def test_a_vacuum_that_is_killed_loses_nothing(opened, root, target):
    body = """
        index.ensure(target)
        index.upsert(target, [point(str(n)) for n in range(3000)])
        import threading
        print("go", flush=True)
        index.delete(target, [point(str(n)).id for n in range(2000)])
    """
    vacuuming = process(root, body)
    vacuuming.stdout.readline()
    threading.Event().wait(0.12)
    vacuuming.send_signal(signal.SIGKILL)
    finish(vacuuming)
    assert {str(n) for n in range(2000, 3000)} <= items(opened(), target)


def test_most_points_may_be_deleted(opened, target, a_point, nearest):
    index = opened()
    index.ensure(target)
    points = [a_point(f"mem-{n:04}") for n in range(2000)]
    index.upsert(target, points)
    index.delete(target, [point.id for point in points[5:]])
    assert len(index.search(target, [nearest(limit=50)])[0]) == 5
    assert index.upsert(target, points[:9]) == {point.id for point in points[:9]}
    assert len(items(index, target)) == 9


def test_a_warm_reader_sees_a_write_of_another_as_soon_as_it_was_flushed(opened, target, a_point, nearest):
    writer, reader = opened(), opened(warm=True)
    writer.ensure(target)
    assert reader.search(target, [nearest()]) == [[]]
    for n in range(1, 4):
        writer.upsert(target, [a_point(f"mem-{n:04}")])
        assert len(reader.search(target, [nearest()])[0]) == n
    writer.delete(target, [a_point("mem-0001").id])
    assert len(reader.search(target, [nearest()])[0]) == 2


def test_a_warm_reader_with_a_copy_waits_for_no_writer(opened, root, target, a_point, nearest):
    reader = opened(warm=True, lock_timeout=0.05)
    reader.ensure(target)
    reader.upsert(target, [a_point("mem-0001")])
    reader.search(target, [nearest()])
    with FileLock(files_of(root, target).lock_file):
        assert len(reader.search(target, [nearest()])[0]) == 1
        assert items(reader, target) == {"mem-0001"}


def test_a_warm_reader_notices_that_a_shard_was_made_again(opened, target, a_point):
    writer, reader = opened(), opened(warm=True)
    for n in range(3):
        writer.ensure(target)
        writer.upsert(target, [a_point(f"mem-{n:04}")])
        assert items(reader, target) == {f"mem-{n:04}"}
        writer.drop(target)


@pytest.mark.parametrize("warm", [False, True])
def test_a_wiped_directory_is_a_missing_collection(opened, root, target, a_point, nearest, warm):
    index = opened(warm=warm)
    index.ensure(target)
    index.upsert(target, [a_point("mem-0001")])
    index.search(target, [nearest()])
    shutil.rmtree(root)
    with pytest.raises(CollectionMissing, match="fill it from the archive"):
        index.search(target, [nearest()])
    with pytest.raises(CollectionMissing):
        index.upsert(target, [a_point("mem-0001")])
    with pytest.raises(CollectionMissing):
        list(index.scan(target))
    assert not root.exists()
    index.ensure(target)
    assert index.search(target, [nearest()]) == [[]]


@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize(
    "victim", ["segment.json", "deleted/status.dat", "payload_storage/bitmask.dat", "edge_config.json"]
)
def test_a_damaged_shard_is_unavailable_until_it_is_dropped(opened, root, target, a_point, nearest, victim, warm):
    opened().ensure(target)
    opened().upsert(target, [a_point("mem-0001")])
    for path in files_of(root, target).shard.rglob(Path(victim).name):
        if str(path).endswith(victim):
            path.write_bytes(b"\xff" * (path.stat().st_size // 2))
    index = opened(warm=warm)
    for use in (lambda: index.search(target, [nearest()]), lambda: index.upsert(target, [a_point("mem-0002")])):
        with pytest.raises(CollectionDamaged, match="memory-pipeline audit --repair"):
            use()
    index.drop(target)
    index.ensure(target)
    assert index.upsert(target, [a_point("mem-0001")])


def test_each_workspace_has_a_live_identity_of_its_own(opened):
    index = opened()
    index.activate("psd", "0" * 16, {"model": "a"}, ["cards"])
    index.activate("other", "f" * 16, {"model": "b"}, ["cards"])
    assert index.live_identity("psd")["hash"] == "0" * 16
    assert index.live_identity("other")["hash"] == "f" * 16


@pytest.mark.parametrize("warm", [False, True])
def test_a_point_that_lies_about_its_workspace_is_not_served_but_seen_and_deleted(
    opened, root, target, a_point, nearest, warm
):
    other = Target("other", target.collection, target.identity, target.schema)
    index = opened(warm=warm)
    index.ensure(target)
    index.ensure(other)
    liar = a_point("mem-0001", workspace="other")
    index.upsert(other, [liar])
    shutil.rmtree(files_of(root, target).shard)
    shutil.copytree(files_of(root, other).shard, files_of(root, target).shard)
    assert index.search(target, [nearest()]) == [[]]
    assert [point.payload["workspace"] for point in index.scan(target)] == ["other"]
    index.delete(target, [liar.id])
    assert list(index.scan(target)) == []


def test_what_is_left_of_a_shard_is_no_collection_of_its_identity(opened, root, target):
    index = opened()
    index.ensure(target)
    files = files_of(root, target)
    shutil.copytree(files.directory, files.aside("dropped"))
    files.workspace_directory.joinpath("cards__half").mkdir()
    assert index.identities("psd", "cards") == {"e5"}
    index.drop(target)
    assert index.identities("psd", "cards") == set()


@pytest.mark.parametrize("warm", [False, True])
def test_a_scan_shows_one_moment_and_keeps_no_writer_out(opened, target, a_point, warm):
    index = opened(warm=warm, lock_timeout=5)
    index.ensure(target)
    points = [a_point(f"mem-{n:04}") for n in range(6)]
    index.upsert(target, points)
    scan = index.scan(target, batch=2)
    first = next(scan)
    index.upsert(target, [a_point("mem-0099")])
    index.delete(target, [point.id for point in points])
    items(index, target)
    assert {first.id, *(point.id for point in scan)} == {point.id for point in points}
    assert items(index, target) == {"mem-0099"}


@pytest.mark.parametrize("warm", [False, True])
def test_threads_share_one_index(opened, target, a_point, nearest, warm):
    index = opened(warm=warm)
    index.ensure(target)

    def write(n):
        point = a_point(f"mem-{n:04}")
        return index.upsert(target, [point]) == {point.id}

    def read(_):
        return [hit.score for hit in index.search(target, [nearest(limit=50)])[0]]

    with ThreadPoolExecutor(6) as threads:
        written = [threads.submit(write, n) for n in range(12)]
        seen = [threads.submit(read, n) for n in range(24)]
        assert all(future.result() for future in written)
        assert all(set(future.result()) <= {1.0} for future in seen)
    assert len(index.search(target, [nearest(limit=50)])[0]) == 12


def test_copies_are_shared_and_removed(opened, target, a_point, nearest, temporary_directory):
    index = opened(warm=True)
    index.ensure(target)
    for n in range(4):
        index.upsert(target, [a_point(f"mem-{n:04}")])
        index.search(target, [nearest()])
        items(index, target)
        (home,) = temporary_directory.iterdir()
        assert len([path for path in home.iterdir() if path.is_dir()]) <= 2  # the newest, and the one before it
    index.close()
    assert list(temporary_directory.iterdir()) == []


def test_a_search_does_not_wait_until_the_copy_before_is_removed(
    opened, target, a_point, nearest, temporary_directory, monkeypatch
):
    searched, discard = threading.Event(), edge_copies._discard
    monkeypatch.setattr(edge_copies, "_discard", lambda copy: (searched.wait(30), discard(copy)))
    index = opened(warm=True)
    index.ensure(target)
    for n in range(2):
        index.upsert(target, [a_point(f"mem-{n:04}")])
        assert len(index.search(target, [nearest()])[0]) == n + 1
    (home,) = temporary_directory.iterdir()
    assert len([path for path in home.iterdir() if path.is_dir()]) == 2
    searched.set()
    index.close()
    assert list(temporary_directory.iterdir()) == []


def test_a_cold_scan_leaves_no_copy(opened, target, a_point, temporary_directory):
    index = opened()
    index.ensure(target)
    index.upsert(target, [a_point(f"mem-{n:04}") for n in range(4)])
    list(index.scan(target))
    scan = index.scan(target, batch=1)
    next(scan)
    scan.close()
    (home,) = temporary_directory.iterdir()
    assert [path for path in home.iterdir() if path.is_dir()] == []


def test_copies_of_a_killed_process_are_removed_and_those_of_a_living_one_are_not(
    opened, root, target, nearest, temporary_directory
):
    index = opened(warm=True)
    index.ensure(target)
    index.search(target, [nearest()])
    (alive,) = temporary_directory.iterdir()
    assert (
        finish(process(root, "warm = EdgeIndex(root, warm=True)\nwarm.search(target, [query])\ndie()"))[1]
        == -signal.SIGKILL
    )
    remove_abandoned()
    assert len(list(temporary_directory.iterdir())) == 2
    remove_abandoned(older_than=-1)
    assert list(temporary_directory.iterdir()) == [alive]
    assert index.search(target, [nearest()]) == [[]]


def test_a_process_that_does_not_close_leaves_no_copy(opened, root, target, temporary_directory):
    opened().ensure(target)
    assert finish(process(root, "warm = EdgeIndex(root, warm=True)\nwarm.search(target, [query])"))[1] == 0
    assert list(temporary_directory.iterdir()) == []


def test_a_copy_has_the_same_bytes_and_holes_and_no_log(opened, root, target, a_point, tmp_path):
    index = opened()
    index.ensure(target)
    index.upsert(target, [a_point(f"mem-{n:04}", tables=("visit",)) for n in range(300)])
    source, copy = files_of(root, target).shard, tmp_path / "copy"
    copy_tree(source, copy)
    assert not (copy / "wal").exists()
    copied = [path for path in copy.rglob("*") if path.is_file()]
    assert all(path.read_bytes() == (source / path.relative_to(copy)).read_bytes() for path in copied)
    assert sum(path.stat().st_blocks * 512 for path in copied) < sum(path.stat().st_size for path in copied) / 4
    with open_shard(copy) as shard:
        assert shard.info().points_count == 300


def test_small_shards_and_large_ones_are_compared_exactly_in_one_segment(opened, root, target, a_point):
    index = opened()
    index.ensure(target)
    random = np.random.default_rng(3)
    for start in range(0, 3000, 1000):
        vectors = random.standard_normal((1000, 4)).astype(np.float32)
        index.upsert(target, [a_point(f"mem-{start + n:04}", content=v) for n, v in enumerate(vectors)])
    with open_shard(files_of(root, target).shard) as shard:
        assert shard.optimize() is False
        assert shard.info().segments_count == 1


def test_the_payload_of_a_point_is_read_once_however_many_searches_find_it(
    opened, target, a_point, nearest, monkeypatch
):
    index = opened()
    index.ensure(target)
    points = [a_point(f"mem-{n:04}", tables=("visit",)) for n in range(9)]
    index.upsert(target, points)
    asked, payloads = [], edge._payloads
    monkeypatch.setattr(edge, "_payloads", lambda shard, ids: (asked.append(sorted(ids)), payloads(shard, ids))[1])
    first, second = index.search(target, [nearest(limit=5), nearest(limit=3)])
    assert asked == [sorted(point.id for point in sorted(points, key=lambda point: point.id)[:5])]
    assert second == first[:3]
    assert all(hit.payload["tables"] == ["visit"] for hit in first)


def test_a_name_that_is_no_path_is_refused(opened):
    with pytest.raises(ValueError, match="cannot name"):
        opened().ensure(Target("psd", "../cards", "e5", Schema(("content",), (), 4)))


def test_an_index_that_cannot_be_written_is_unavailable(opened, root, target):
    root.write_text("not a directory")
    with pytest.raises(IndexUnavailable, match="index"):
        opened().ensure(target)


def test_the_embedded_backend_does_not_import_the_server_client(root):
    body = """
        from memory_pipeline.index import open_index
        from memory_pipeline.settings import Settings
        open_index(Settings(_env_file=None, home=root, qdrant_url=None), warm=False).close()
        sys.exit("qdrant_client" in sys.modules)
    """
    assert finish(process(root, body))[1] == 0


@pytest.mark.parametrize(
    "use",
    [
        lambda index, target: index.delete(target, ["5f0c3c5e-0000-5000-8000-000000000001"]),
        lambda index, target: index.drop(target),
        lambda index, target: index.forget("psd"),
        lambda index, target: index.identities("psd", "cards"),
        lambda index, target: index.live_identity("psd"),
        lambda index, target: index.activate("psd", "0" * 16, {}, ["cards"]),
    ],
    ids=["delete", "drop", "forget", "identities", "live_identity", "activate"],
)
def test_a_file_in_the_place_of_the_index_is_no_index_from_which_everything_was_removed(opened, root, target, use):
    root.touch()
    with pytest.raises(IndexUnavailable, match="is no directory"):
        use(opened(), target)


def test_a_copy_whose_discarding_has_not_begun_yet_is_waited_for(monkeypatch):
    begin = threading.Thread.start

    def slowly(thread):
        time.sleep(0.2 if thread.name == "memory-pipeline-discard" else 0)
        begin(thread)

    monkeypatch.setattr(threading.Thread, "start", slowly)
    monkeypatch.setattr(edge_copies, "_discard", lambda _: None)
    copies = edge_copies.Copies(1.0)
    aside = threading.Thread(target=copies._discard_aside, args=(None,))
    aside.start()
    while not copies._discarding:
        time.sleep(0.001)

    copies._finish_discarding()

    aside.join()
    assert not copies._discarding
