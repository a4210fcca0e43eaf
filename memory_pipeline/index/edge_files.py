"""Where an embedded shard lives, who may open it, and which state of it is the newest: files and locks, no points.

Below the index directory each workspace has a directory of its own, and in it

- `identity.json`: the embedding identity that recall uses; one that says nothing counts as none;
- `<physical name>.lock`: held around every access to the shard;
- `<physical name>/`: made under another name and renamed, so that it is whole or absent. In it
    - `shard/`: the engine's own files;
    - `schema.json`: the vectors and keywords that the shard was made with; without it the shard is no whole one;
    - `generation`: a token that changes with every write; likewise;
    - `unflushed`: there while a writer is at work, and left behind by a killed one.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

from filelock import FileLock, Timeout
from pydantic import TypeAdapter
from qdrant_edge import (
    Distance,
    EdgeConfig,
    EdgeOptimizersConfig,
    EdgeShard,
    EdgeSparseVectorParams,
    EdgeVectorParams,
    Memory,
    Modifier,
    PayloadSchemaType,
    UpdateOperation,
)

from memory_pipeline.cards import workspace_name
from memory_pipeline.errors import IndexIncompatible, IndexUnavailable
from memory_pipeline.files import replace_file, sync_directory
from memory_pipeline.index.base import CollectionDamaged, CollectionMissing, Schema, Target
from memory_pipeline.index.validation import StoredVectors, check_schema

_PHYSICAL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,200}")
_INCOMPATIBLE = ("Vector dimension error", "Not existing vector name", "Wrong usage of sparse vectors")
# What a system says of files that are not what they should be. It says other things (no room, no permission, too many
# open files, a log that somebody else holds) of files that are as they should be.
_OF_DAMAGED_FILES = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENODEV, errno.EINVAL}
_SYSTEM_ERROR = re.compile(r"\(os error (\d+)\)")
_NO_ROOM = "Not enough space"
_LOCKED = "WouldBlock"
_LOG = "wal"
_POLL_SECONDS = 0.01
# The engine maps files of 32 MiB that are nothing but holes, and writing into a hole for which there is no room kills
# the process. From opening a shard to closing it, 256 points took 2 to 6 MB of a disk. A file system in memory fills
# holes also when they are read: making a shard took 17 MB there, using it for the first time 37, growing it by two
# segments of its log 68.
ROOM = 128 << 20  # bytes that have to be free where a shard is made, written, or copied to
_ROOM_TO_READ = 48 << 20  # likewise where one is opened in place, which writes too

_SCHEMA = TypeAdapter(Schema)


@dataclass(frozen=True, slots=True)
class ShardFiles:
    """The files of one shard. Whoever opens the shard holds `locked()`."""

    workspace_directory: Path
    physical_name: str

    @classmethod
    def of(cls, root: Path, target: Target) -> ShardFiles:
        """The files of a target below the index directory.

        Raises:
            UnknownWorkspace: the workspace's name cannot be one, and so makes no path.
            ValueError: the collection's or identity's name makes no path.
        """
        if not _PHYSICAL_NAME.fullmatch(target.physical_name):
            raise ValueError(f"{target.physical_name!r} cannot name a collection")
        return cls(root / workspace_name(target.workspace), target.physical_name)

    @property
    def directory(self) -> Path:
        """The directory that is whole or absent."""
        return self.workspace_directory / self.physical_name

    @property
    def shard(self) -> Path:
        """The directory that belongs to the engine."""
        return self.directory / "shard"

    @property
    def lock_file(self) -> Path:
        """The file that is locked; it stays in place, since a removed one would be locked twice."""
        return self.workspace_directory / f"{self.physical_name}.lock"

    @property
    def _unflushed(self) -> Path:
        return self.directory / "unflushed"

    def aside(self, purpose: str) -> Path:
        """A sibling of the directory, for what is being made or removed."""
        return self.workspace_directory / f"{self.physical_name}.{purpose}"

    @contextlib.contextmanager
    def locked(self, timeout: float) -> Iterator[None]:
        """Keep every other process and thread from the shard.

        Args:
            timeout: how many seconds to wait at most.

        Raises:
            IndexUnavailable: the lock stayed taken.
        """
        # An instance of its own for each use: two of them exclude each other in one process too.
        lock = FileLock(self.lock_file, thread_local=False)
        try:
            lock.acquire(timeout=timeout, poll_interval=_POLL_SECONDS)
        except Timeout:
            raise IndexUnavailable(
                f"the shard stayed locked for {timeout:g} s: another process works with {self.lock_file}"
            ) from None
        except OSError as error:
            raise IndexUnavailable(f"cannot lock {self.lock_file}: {error.strerror}") from error
        try:
            yield
        finally:
            lock.release()

    def exists(self) -> bool:
        """Whether there is a whole shard."""
        try:
            self.stored_schema()
        except CollectionMissing:
            return False
        return True

    def generation(self) -> bytes:
        """The token of the newest state. It is replaced at once, so it may be read without the lock.

        Raises:
            CollectionMissing: there is no whole shard.
        """
        token = read_file(self.directory / "generation")
        if token is None:
            raise self._missing()
        return token

    def check(self, schema: Schema) -> None:
        """Check that the shard is of this schema.

        Raises:
            CollectionMissing: there is no whole shard.
            IndexIncompatible: it has other vectors.
        """
        check_schema(self.physical_name, StoredVectors.of(self.stored_schema()), schema)

    def stored_schema(self) -> Schema:
        """What the shard was made with.

        Raises:
            CollectionMissing: there is no whole shard.
        """
        self.generation()
        try:
            return _SCHEMA.validate_json(read_file(self.directory / "schema.json") or b"")
        except ValueError:
            raise self._missing() from None

    @contextlib.contextmanager
    def opened(self) -> Iterator[EdgeShard]:
        """The shard, open in place, for somebody who holds the lock.

        Raises:
            CollectionMissing: there is no whole shard.
            IndexUnavailable: it will not load, or there is no room for what the engine writes also when it reads.
        """
        if not self.exists():
            raise self._missing()
        check_room(self.workspace_directory, needed=_ROOM_TO_READ)
        with open_shard(self.shard) as shard:
            yield shard

    @contextlib.contextmanager
    def writing(self) -> Iterator[EdgeShard]:
        """The shard, open for one batch: when the block ends well, it is flushed and the generation has moved.

        Raises:
            CollectionMissing: there is no whole shard.
            IndexUnavailable: it will not load, or there is no room to write.
        """
        check_room(self.workspace_directory)
        with self.opened() as shard:
            self._unflushed.touch()
            yield shard
            shard.flush()
            self._bump()
            # Last: as long as it stands, what lies in the files may not be all that the log holds.
            self._unflushed.unlink(missing_ok=True)

    def create(self, schema: Schema) -> None:
        """Make the shard and its payload indexes, for somebody who holds the lock."""
        building = self.aside("building")
        remove(building)
        check_room(self.workspace_directory)
        with engine_errors(building):
            building.mkdir()
            _create_shard(building / "shard", schema)
            _write_schema(building, schema)
            (building / "generation").write_text(uuid.uuid4().hex)
            remove(self.directory)  # what is there is no whole shard
            building.replace(self.directory)
            sync_directory(self.workspace_directory)

    def add_keywords(self, schema: Schema) -> None:
        """Make the payload indexes that a newer schema asks for, for somebody who holds the lock."""
        known = self.stored_schema().keywords
        missing = [keyword for keyword in schema.keywords if keyword not in known]
        if not missing:
            return
        with self.writing() as shard:
            _index_keywords(shard, missing)
        with engine_errors(self.directory):
            _write_schema(self.directory, schema)

    def copy_to(self, destination: Path) -> bytes:
        """Copy the shard without its log, for somebody who holds the lock.

        Returns:
            the generation of the copy.

        Raises:
            CollectionMissing: there is no whole shard.
            IndexUnavailable: there is no room for the copy, or a killed writer's shard will not load.
        """
        if self._unflushed.exists():
            # A writer was killed. Its files alone may be torn; loading them with their log mends them.
            with self.writing():
                pass
        generation = self.generation()
        check_room(destination.parent, more=_taken(self.shard))
        with engine_errors(self.directory):
            copy_tree(self.shard, destination)
        return generation

    def drop(self) -> None:
        """Remove the shard, for somebody who holds the lock. It is renamed first: whole or absent."""
        doomed = self.aside("dropped")
        remove(doomed)
        if self.directory.exists():
            with engine_errors(self.directory):
                self.directory.replace(doomed)
        remove(doomed)
        remove(self.aside("building"))

    def _bump(self) -> None:
        # A token, not a counter: a shard that was dropped and made again must not count up to a number used before.
        write_text(self.directory / "generation", uuid.uuid4().hex)

    def _missing(self) -> CollectionMissing:
        return CollectionMissing(
            f"the index has no collection {self.physical_name} for {self.workspace_directory.name!r}: "
            "run `memory-pipeline project` to fill it from the archive"
        )


def shards_in(workspace_directory: Path) -> list[str]:
    """The physical names of a workspace's whole shards."""
    try:
        names = [path.name for path in workspace_directory.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [n for n in names if _PHYSICAL_NAME.fullmatch(n) and ShardFiles(workspace_directory, n).exists()]


def forget_workspace(directory: Path) -> None:
    """Remove a workspace's directory. It is renamed first, so that a killed removal leaves nothing to be found by name.

    Whoever waits for a lock in it opens the lock file anew with each try, and so sees that it is gone.
    """
    doomed = directory.with_name(f".{directory.name}.forgotten")  # no workspace may be called so
    remove(doomed)
    with engine_errors(doomed), contextlib.suppress(FileNotFoundError):
        directory.replace(doomed)
    remove(doomed)


@contextlib.contextmanager
def open_shard(directory: Path) -> Iterator[EdgeShard]:
    """Load a shard from its directory and close it afterwards; the engine's errors inside are translated."""
    with engine_errors(directory):
        shard = EdgeShard.load(str(directory))
        try:
            yield shard
        finally:
            shard.close()


@contextlib.contextmanager
def engine_errors(directory: Path) -> Iterator[None]:
    """Translate what the engine and the file system raise.

    The engine raises bare `Exception`, and panics on damaged files with an exception that is none and has no importable
    name. Errors of any other class are somebody's mistake, and pass.

    Args:
        directory: what the message names when the error does not name a file itself.
    """
    try:
        yield
    except OSError as error:
        raise _unusable(error.filename or directory, error.strerror or str(error)) from error
    except BaseException as error:
        if type(error).__name__ == "PanicException":
            raise damaged(directory, f"the engine gave up: {error}") from error
        if type(error) is not Exception:
            raise
        raise _translated(directory, str(error)) from error


def damaged(directory: Path, reason: str) -> CollectionDamaged:
    """The error for a shard whose files cannot be used; nothing in it is lost for good."""
    return CollectionDamaged(
        f"the shard in {directory} is damaged ({reason}): `memory-pipeline audit --repair` drops it, and "
        "`memory-pipeline project` then makes it anew from the archive"
    )


def _unusable(path: str | Path, reason: str) -> IndexUnavailable:
    return IndexUnavailable(f"cannot use {path}: {reason}; try again once that is mended, nothing is lost")


def _translated(directory: Path, message: str) -> Exception:
    if any(sign in message for sign in _INCOMPATIBLE):
        return IndexIncompatible(f"{directory.parent.name}: {message}")
    said = _SYSTEM_ERROR.search(message)
    blameless = int(said[1]) not in _OF_DAMAGED_FILES if said else _NO_ROOM in message or _LOCKED in message
    return _unusable(directory, message) if blameless else damaged(directory, message)


def is_want_of_room(error: Exception) -> bool:
    """Whether the engine refused to begin something for which it found no room."""
    return _NO_ROOM in str(error)


def check_room(directory: Path, *, more: int = 0, needed: int = ROOM) -> None:
    """Check that the engine's files can grow, since it would be no error if they could not, but the process's end.

    Args:
        directory: where.
        more: bytes to be written there, apart from what the engine needs.
        needed: bytes that the engine needs.

    Raises:
        IndexUnavailable: naming how much is needed, and where.
    """
    with engine_errors(directory):
        free = shutil.disk_usage(directory).free
    needed += more
    if free < needed:
        raise IndexUnavailable(
            f"{directory} has {free >> 20} MiB of room, and a shard of the index needs {needed >> 20} MiB there: "
            "make room, and try again"
        )


def _taken(directory: Path) -> int:
    """The bytes on disk of everything below, holes left out."""
    return sum(path.stat().st_blocks * 512 for path in directory.rglob("*") if path.is_file())


def read_file(path: Path) -> bytes | None:
    """What a small file holds; None where there is no file."""
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None


def copy_tree(source: Path, destination: Path) -> None:
    """Copy a shard's files but for its log, leaving out the holes.

    The engine allocates its files in advance: an empty shard is 200 MB long and 2 MB large.
    """
    destination.mkdir()
    for entry in sorted(source.iterdir()):
        if entry.is_dir() and entry.name != _LOG:
            copy_tree(entry, destination / entry.name)
        elif entry.is_file():
            with entry.open("rb") as read, (destination / entry.name).open("wb") as write:
                _copy_sparsely(read, write)


def _copy_sparsely(read: BinaryIO, write: BinaryIO) -> None:
    if not hasattr(os, "SEEK_DATA"):
        shutil.copyfileobj(read, write)
        return
    end = os.fstat(read.fileno()).st_size
    position = 0
    while position < end:
        try:
            position = os.lseek(read.fileno(), position, os.SEEK_DATA)
        except OSError:  # nothing but a hole up to the end
            break
        hole = os.lseek(read.fileno(), position, os.SEEK_HOLE)
        os.lseek(read.fileno(), position, os.SEEK_SET)
        os.lseek(write.fileno(), position, os.SEEK_SET)
        position += _copy_range(read.fileno(), write.fileno(), hole - position)
    write.truncate(end)


def _copy_range(read: int, write: int, length: int) -> int:
    left = length
    while left and (block := os.read(read, min(left, 1 << 20))):
        os.write(write, block)
        left -= len(block)
    return length


def write_text(path: Path, text: str, *, sync: bool = False) -> None:
    """Replace a file at once; a directory in its place is removed. See `replace_file`."""

    def make_room() -> None:
        if path.is_dir():
            remove(path)

    replace_file(path, text.encode(), sync=sync, before=make_room)


def remove(directory: Path) -> None:
    """Remove a directory and everything in it, if it is there, or whatever else is there in its place."""
    with engine_errors(directory), contextlib.suppress(FileNotFoundError):
        if directory.is_dir() and not directory.is_symlink():
            shutil.rmtree(directory)
        else:
            directory.unlink()


def _write_schema(directory: Path, schema: Schema) -> None:
    write_text(directory / "schema.json", json.dumps(asdict(schema)), sync=True)


def _create_shard(directory: Path, schema: Schema) -> None:
    directory.mkdir()
    shard = EdgeShard.create(str(directory), _config(schema))
    try:
        _index_keywords(shard, ["workspace", *schema.keywords])
        shard.flush()
    finally:
        shard.close()


def _index_keywords(shard: EdgeShard, keywords: list[str]) -> None:
    for keyword in keywords:
        shard.update(UpdateOperation.create_field_index(keyword, PayloadSchemaType.Keyword))


def _config(schema: Schema) -> EdgeConfig:
    # A threshold of zero turns the graph index off: 100,000 vectors of 384 are compared in 7 ms, exactly, whereas the
    # graph took 5 s to build inside a write, and found 3 of 10 neighbours, among 20,000 random ones. What remains of
    # optimize() is reclaiming the room of deleted points.
    # Cold vectors are read when they are first searched, and not whenever a writer or an audit loads the shard.
    return EdgeConfig(
        vectors={
            name: EdgeVectorParams(schema.dimension, Distance.Cosine, memory=Memory.Cold) for name in schema.dense
        },
        sparse_vectors={name: EdgeSparseVectorParams(modifier=Modifier.Idf) for name in schema.sparse},
        optimizers=EdgeOptimizersConfig(indexing_threshold=0),
    )
