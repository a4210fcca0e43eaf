"""How what the web needs is standing: whether archive, index and model answer, and what is pending, in bounded time."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Generic, TypeVar

from memory_pipeline import answering
from memory_pipeline.archive import identities, projections, workspaces
from memory_pipeline.archive.database import check_schema
from memory_pipeline.archive.status import card_counts
from memory_pipeline.errors import ArchiveUnavailable, MemoryPipelineError, SchemaOutOfDate, UnknownWorkspace
from memory_pipeline.index import CollectionMissing
from memory_pipeline.propagation.losses import Presence, lacking, lost
from memory_pipeline.web.discretion import without_messages

if TYPE_CHECKING:
    from memory_pipeline.archive.database import Database
    from memory_pipeline.runtime import Runtime

_logger = logging.getLogger(__name__)

PATIENCE = 3.0  # seconds for an answer; whoever asks for readiness gives up soon after
_KEPT = 5.0  # seconds for which an answer counts
_STANDS_IN = 30.0  # seconds for which it counts still while the next one takes long, as over many workspaces
_MODEL_KEPT = 60.0  # a model that cannot be loaded is not to be loaded all the time

_Answer = TypeVar("_Answer")

# What is wrong, for anybody who asks: an error's own words may name hosts and roles, and stand in the log.
_WORDS: Mapping[type[BaseException], str] = {
    SchemaOutOfDate: "its schema is missing or of another revision: run `memory-pipeline migrate`",
    ArchiveUnavailable: "PostgreSQL cannot be reached",
    CollectionMissing: "it lacks what recall searches: the sensors, or `memory-pipeline project`, fill it",
    TimeoutError: f"it did not answer within {PATIENCE:g} s",
    MemoryPipelineError: "it cannot be used: the log says why",
    Exception: "it failed: the log says where",
}


@dataclass(frozen=True, slots=True)
class Backlog:
    """What the archive holds, and what of it the index does not, over all workspaces.

    Attributes:
        cards: how many cards there are.
        pending: how many points do not hold what the archive wants.
        oldest_seconds: for how long the oldest of them waits; 0 when there is none.
    """

    cards: int
    pending: int
    oldest_seconds: float


class Look(Generic[_Answer]):
    """A look at something that may never answer: one at a time, in a thread of its own, kept for a while.

    Args:
        what: what is looked at, for the log.
        look: how.
        kept: seconds for which an answer counts.
    """

    def __init__(self, what: str, look: Callable[[], _Answer], *, kept: float) -> None:
        self._what, self._look, self._kept = what, look, kept
        self._lock = threading.Lock()
        self._latest: Future[_Answer] | None = None
        self._former: tuple[Future[_Answer], float] | None = None
        self._ended = 0.0
        self._wrong: str | None = None

    def begin(self) -> Future[_Answer]:
        """The look that is under way, or that ended a short while ago, or a new one."""
        with self._lock:
            if self._latest is None or (self._latest.done() and time.monotonic() - self._ended > self._kept):
                self._former = (self._latest, self._ended) if self._latest else None
                self._latest = Future()
                # A daemon, since nobody who is to stop can wait for what does not answer.
                threading.Thread(target=self._run, args=(self._latest,), name=self._what, daemon=True).start()
            return self._latest

    def answer(self, patience: float) -> _Answer:
        """What was seen; where the look takes long, what the one before it saw, for as long as that stands in.

        Args:
            patience: seconds.

        Raises:
            TimeoutError: there is no answer in time.
            Exception: whatever the look itself failed with.
        """
        latest = self.begin()
        with suppress(TimeoutError):
            latest.exception(max(patience, 0.0))
        if not latest.done() and self._former and time.monotonic() - self._former[1] <= _STANDS_IN:
            return self._former[0].result(0)
        return latest.result(0)

    def _run(self, future: Future[_Answer]) -> None:
        try:
            found = self._look()
        except Exception as error:  # noqa: BLE001  # it is handed to whoever asks
            self._log(str(error) if isinstance(error, MemoryPipelineError) else without_messages(error))
            self._ended = time.monotonic()
            future.set_exception(error)
        else:
            self._log(None)
            self._ended = time.monotonic()
            future.set_result(found)

    def _log(self, wrong: str | None) -> None:
        """Log what changed, and not at each look that it is still so."""
        if wrong != self._wrong:
            level = logging.INFO if wrong is None else logging.WARNING
            _logger.log(level, "%s: %s", self._what, wrong or "it answers again")
        self._wrong = wrong


class Standing:
    """Archive, index and model as they answer now, or did some seconds ago. Threads may share it."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._looks: Mapping[str, Look[None]] = {
            "archive": Look("archive", self._archive, kept=_KEPT),
            "index": Look("index", self._index, kept=_KEPT),
            "model": Look("model", self._model, kept=_MODEL_KEPT),
        }
        self._backlog = Look("backlog", self._counted, kept=_KEPT)

    def begin(self) -> None:
        """Begin to look, so that answers are there when somebody asks, and the model is loaded."""
        for look in self._looks.values():
            look.begin()

    def faults(self) -> dict[str, str | None]:
        """Service → what is wrong with it, in words for anybody, or None. Takes no longer than `PATIENCE`."""
        self.begin()
        deadline = time.monotonic() + PATIENCE
        return {name: _fault(look, deadline - time.monotonic()) for name, look in self._looks.items()}

    def figures(self) -> tuple[dict[str, str | None], Backlog | None]:
        """`faults`, and what is pending, or None when the archive does not say so in the same time."""
        deadline = time.monotonic() + PATIENCE
        self._backlog.begin()
        faults = self.faults()
        try:
            return faults, self._backlog.answer(deadline - time.monotonic())
        except Exception:  # noqa: BLE001  # it is logged, and readiness says it too
            return faults, None

    def _archive(self) -> None:
        with self._database.registry() as connection:
            check_schema(connection)

    def _index(self) -> None:
        answering.index_answers(self._runtime)
        presence = Presence(self._runtime.index)
        with suppress(ArchiveUnavailable, SchemaOutOfDate):  # which is said of the archive
            if names := [name for name in self._workspaces() if self._lacking(name, presence)]:
                raise CollectionMissing(f"the index lacks collections of {', '.join(names)}")

    def _lacking(self, workspace: str, presence: Presence) -> bool:
        held = presence.of(workspace)
        with suppress(UnknownWorkspace), self._database.transaction(workspace) as tx:
            return bool(lacking(tx, identities.serving(tx, self._runtime.identity.hash), held))
        return False  # it was removed meanwhile

    def _model(self) -> None:
        """Ask the configured model, and while recall still uses others, those too."""
        used = {self._runtime.identity}
        with suppress(ArchiveUnavailable, SchemaOutOfDate):  # which is said of the archive
            used |= answering.live_identities(self._runtime, self._database)
        for identity in used:
            answering.model_answers(self._runtime, identity)

    def _counted(self) -> Backlog:
        configured, presence = self._runtime.identity.hash, Presence(self._runtime.index)
        cards, pending, oldest = 0, 0, None
        for name in self._workspaces():
            held = presence.of(name)
            with suppress(UnknownWorkspace), self._database.transaction(name) as tx:  # it may be removed meanwhile
                cards += sum(card_counts(tx).values())
                serving = identities.serving(tx, configured)
                waiting = projections.waiting(tx, serving)
                pending += waiting.pending + sum(lost(tx, serving, held).values())
                oldest = min(filter(None, (oldest, waiting.oldest)), default=None)
        return Backlog(cards, pending, (datetime.now(UTC) - oldest).total_seconds() if oldest else 0.0)

    @property
    def _database(self) -> Database:
        return self._runtime.database.within(PATIENCE)

    def _workspaces(self) -> list[str]:
        return workspaces.names(self._database)


def _fault(look: Look[None], patience: float) -> str | None:
    try:
        look.answer(patience)
    except Exception as error:  # noqa: BLE001  # each has its words
        return next(_WORDS[kind] for kind in type(error).__mro__ if kind in _WORDS)
    return None
