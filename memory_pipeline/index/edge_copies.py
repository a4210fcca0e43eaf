"""Private copies of embedded shards, so that somebody can read for long, or often, without holding the lock."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import threading
import time
import uuid
import weakref
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from filelock import FileLock, Timeout
from qdrant_edge import EdgeShard

from memory_pipeline.errors import IndexUnavailable
from memory_pipeline.index.base import CollectionMissing
from memory_pipeline.index.edge_files import ShardFiles, engine_errors, remove

_PREFIX = "memory-pipeline-index-"
_OWNER = "owner.lock"
# A directory is made a moment before its lock is taken: younger ones are left alone.
_SECONDS_BEFORE_ABANDONED = 60.0


@dataclass(slots=True)
class _Copy:
    directory: Path
    shard: EdgeShard
    generation: bytes
    readers: int = 0
    retired: bool = False


@dataclass(slots=True)
class _Slot:
    """The newest copy of one shard, and the lock that lets one thread at a time renew it."""

    renewing: threading.Lock = field(default_factory=threading.Lock)
    copy: _Copy | None = None


class Copies:
    """The copies of one index object. Safe to use from several threads, which share them.

    Args:
        lock_timeout: seconds to wait for a shard's lock before copying it.
    """

    def __init__(self, lock_timeout: float) -> None:
        self._lock_timeout = lock_timeout
        self._slots: defaultdict[ShardFiles, _Slot] = defaultdict(_Slot)
        self._home: _Home | None = None
        self._discarding: set[threading.Thread] = set()
        self._guard = threading.Lock()  # of the three above, and of every copy's readers

    @contextlib.contextmanager
    def newest(self, files: ShardFiles) -> Iterator[EdgeShard]:
        """A shared copy of the shard's newest flushed state; made again only when the generation has moved.

        Raises:
            CollectionMissing: there is no shard.
            IndexUnavailable: a copy is needed, and the shard stayed locked or will not load.
        """
        copy = self._borrow(files)
        try:
            with engine_errors(files.directory):
                yield copy.shard
        finally:
            self._give_back(copy)

    @contextlib.contextmanager
    def once(self, files: ShardFiles) -> Iterator[EdgeShard]:
        """A copy for one reader, removed afterwards. Raises like `newest`."""
        copy = self._made(files)
        try:
            with engine_errors(files.directory):
                yield copy.shard
        finally:
            _discard(copy)

    def close(self) -> None:
        """Close and remove every copy, once nobody reads it any more."""
        with self._guard:
            slots = list(self._slots.values())
            self._slots.clear()
        for slot in slots:
            self._retire(slot)
        self._finish_discarding()
        with self._guard:
            home, self._home = self._home, None
        if home is not None:
            home.close()

    def _borrow(self, files: ShardFiles) -> _Copy:
        with self._guard:
            slot = self._slots[files]
        with self._renewing(slot, files):
            try:
                generation = files.generation()
            except CollectionMissing:
                self._retire(slot)
                raise
            if slot.copy is None or slot.copy.generation != generation:
                self._finish_discarding()  # or copies would pile up where somebody writes all the time
                fresh = self._made(files)
                self._retire(slot)
                slot.copy = fresh
            with self._guard:
                slot.copy.readers += 1
            return slot.copy

    @contextlib.contextmanager
    def _renewing(self, slot: _Slot, files: ShardFiles) -> Iterator[None]:
        """Alone with a slot, once whoever renews its copy is done; for no longer than a lock is waited for.

        Raises:
            IndexUnavailable: they are not done in time, as where another process keeps the shard locked. Whoever waits
                gives up then too, and does not begin to wait for the same lock one after the other.
        """
        if not slot.renewing.acquire(timeout=self._lock_timeout):
            raise IndexUnavailable(
                f"the shard stayed locked for {self._lock_timeout:g} s: another process works with {files.lock_file}"
            )
        try:
            yield
        finally:
            slot.renewing.release()

    def _give_back(self, copy: _Copy) -> None:
        with self._guard:
            copy.readers -= 1
            unused = copy.retired and copy.readers == 0
        if unused:
            self._discard_aside(copy)

    def _retire(self, slot: _Slot) -> None:
        copy, slot.copy = slot.copy, None
        if copy is None:
            return
        with self._guard:
            copy.retired = True
            unused = copy.readers == 0
        if unused:
            self._discard_aside(copy)

    def _discard_aside(self, copy: _Copy) -> None:
        """Let a thread of its own discard a copy, which the engine writes to the disk as a whole before it closes it.

        Whoever is served by the next copy would wait longer for that than for the copy: at 10,000 cards 0.6 s, not 0.2.
        """

        def discard() -> None:
            try:
                _discard(copy)
            finally:
                with self._guard:
                    self._discarding.discard(thread)

        thread = threading.Thread(target=discard, name="memory-pipeline-discard")
        with self._guard:  # in which it is started too: whoever finds it there waits for its end
            self._discarding.add(thread)
            thread.start()

    def _finish_discarding(self) -> None:
        with self._guard:
            discarding = list(self._discarding)
        for thread in discarding:
            thread.join()

    def _made(self, files: ShardFiles) -> _Copy:
        files.generation()  # a reader makes no directory and no lock where there is nothing to read
        directory = self._directory() / uuid.uuid4().hex
        try:
            with files.locked(self._lock_timeout):
                generation = files.copy_to(directory)
            with engine_errors(files.directory):
                return _Copy(directory, EdgeShard.load(str(directory)), generation)
        except BaseException:
            shutil.rmtree(directory, ignore_errors=True)
            raise

    def _directory(self) -> Path:
        with self._guard:
            if self._home is None:
                remove_abandoned()
                self._home = _Home()
            return self._home.directory


class _Home:
    """A temporary directory whose lock tells others that its owner lives."""

    def __init__(self) -> None:
        try:
            self.directory = Path(tempfile.mkdtemp(prefix=_PREFIX))
            self._owner = FileLock(self.directory / _OWNER, thread_local=False)
            self._owner.acquire(timeout=0)
        except (OSError, Timeout) as error:
            raise IndexUnavailable(f"no temporary directory for a copy of the index: {error}") from error
        # Also at the end of a process that did not close.
        self._remove = weakref.finalize(self, _remove_own, self.directory, os.getpid())

    def close(self) -> None:
        self._remove()
        self._owner.release()


def remove_abandoned(older_than: float = _SECONDS_BEFORE_ABANDONED) -> None:
    """Remove the copies of killed processes, as far as they may be removed.

    Args:
        older_than: seconds that a directory must have existed for.
    """
    for directory in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError, Timeout, IndexUnavailable):
            if time.time() - directory.stat().st_mtime > older_than:
                with FileLock(directory / _OWNER, thread_local=False).acquire(timeout=0):
                    remove(directory)


def _remove_own(directory: Path, owner: int) -> None:
    if os.getpid() == owner:  # a forked child ends too, and its parent still reads
        shutil.rmtree(directory, ignore_errors=True)


def _discard(copy: _Copy) -> None:
    with contextlib.suppress(IndexUnavailable), engine_errors(copy.directory):
        copy.shard.close()
    shutil.rmtree(copy.directory, ignore_errors=True)
