"""Many edits in many workspaces at once, and what Dagster's daemon does about them, one step at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from dagster import DagsterRunStatus, RunRequest
from dagster._core.test_utils import create_run_for_test

from memory_pipeline.archive import cards, queue, workspaces
from memory_pipeline.cards import CardContent, Family
from memory_pipeline.definitions import defs
from memory_pipeline.edits import Change, Delete, Edit
from memory_pipeline.propagation import project
from memory_pipeline.runtime import Runtime
from tests.dagster.conftest import Evaluation, Pipeline
from tests.statements import Statements, counting

SENSORS = ("ledger_sensor", "edit_sensor", "reprojection_sensor")
AT_WORK = 4  # runs at once, as dagster.yaml says


@dataclass
class Tick:
    """One evaluation of one sensor, which workspaces had a run then, and what it asked PostgreSQL."""

    sensor: str
    found: Evaluation
    busy: tuple[str, ...]
    asked: Statements


class Daemon:
    """Evaluates sensors, queues what they ask for, and executes the queue in order, in this process."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._queue: deque[tuple[str, RunRequest, str]] = deque()
        self.executed = 0

    @property
    def in_flight(self) -> tuple[str, ...]:
        """The workspaces of the queue, in its order."""
        return tuple(str(request.partition_key) for _, request, _ in self._queue)

    def round(self) -> list[Tick]:
        """One tick of every sensor."""
        return [self.tick(sensor) for sensor in SENSORS]

    def tick(self, sensor: str) -> Tick:
        """One tick of a sensor; its runs are queued and its reports kept."""
        busy = self.in_flight
        with counting() as asked:
            found = self._pipeline.evaluate(sensor)
        instance = self._pipeline.instance
        instance.add_dynamic_partitions("workspace", found.partitions)
        job = defs.resolve_sensor_def(sensor).job_name
        for request in found.requests:
            tags = {"dagster/partition": request.partition_key}
            run = create_run_for_test(instance, job_name=job, status=DagsterRunStatus.NOT_STARTED, tags=tags)
            self._queue.append((job, request, run.run_id))
        for event in found.reports:
            instance.report_runless_asset_event(event)
        return Tick(sensor, found, busy, asked)

    def work(self, most: int = AT_WORK) -> None:
        """Execute the first runs of the queue."""
        for _ in range(min(most, len(self._queue))):
            job, request, queued = self._queue.popleft()
            self._pipeline.instance.delete_run(queued)  # executed, it is a run of its own
            assert self._pipeline.run(job, request.partition_key, request.run_config).success
            self.executed += 1


def empty_workspaces(runtime: Runtime, names: Sequence[str]) -> None:
    """Workspaces without cards, that are projected and have a directory of sessions."""
    for name in names:
        (runtime.settings.sessions / name).mkdir()
        workspaces.make(runtime.database, name, language="italian", principal=runtime.settings.acting_principal)
        project(runtime, name)  # makes the collections: of a missing one, a tick asks what went with it


def create_at_once(runtime: Runtime, workspace: str, count: int) -> None:
    """Make cards by hand, in one transaction."""
    contents = [CardContent(Family.CONCEPT, f"subject {n}", f"detail {n}") for n in range(count)]
    with runtime.database.transaction(workspace, writing=True) as tx:
        cards.create(tx, contents, origin="hand", principal=runtime.settings.acting_principal)


def submit(runtime: Runtime, workspace: str, *, changes: int, deletions: int) -> None:
    """Let changes of the first cards wait to be applied, and deletions of those after them."""
    ids = [f"mem-{n:04d}" for n in range(1, changes + deletions + 1)]
    edits: list[Edit] = [Change(card_id, 1, {"detail": f"changed {card_id}"}) for card_id in ids[:changes]]
    edits += [Delete(card_id, 1) for card_id in ids[changes:]]
    with runtime.database.transaction(workspace) as tx:
        queue.submit(tx, runtime.settings.acting_principal, edits)
