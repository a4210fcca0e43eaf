"""What the instance knows of runs by workspace: the ones in flight, and how the last ones ended."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from dagster import DagsterInstance, DagsterRun, DagsterRunStatus, RunsFilter
from dagster._core.execution.stats import StepEventStatus
from dagster._core.storage.tags import PRIORITY_TAG

from assets.common import PARTITIONS
from memory_pipeline.scheduling import PARTITION_TAG, PastRun
from sensors.jobs import INDEX_ASSETS, LAST, reproject

_UNDER_WAY = [
    DagsterRunStatus.NOT_STARTED,
    DagsterRunStatus.QUEUED,
    DagsterRunStatus.STARTING,
    DagsterRunStatus.STARTED,
    DagsterRunStatus.CANCELING,
]
_FINISHED = [DagsterRunStatus.SUCCESS, DagsterRunStatus.FAILURE]  # a run that a person cancelled says nothing
_PAST = 8  # runs that are looked back on: enough for the longest back-off
# How far and on how many runs of all workspaces together: one statement answers, however many there are. What runs over
# and over fills neither before the longest back-off of the others is over.
_LOOKED_BACK = timedelta(days=1)
_RECORDS = 1_000


def in_flight(instance: DagsterInstance) -> set[str]:
    """The workspaces that have a run queued or under way. Run monitoring sees to it that none is so for ever.

    A run in the queue that gives way to others does not count: the daily audits, queued all at once, would otherwise
    keep the edits of a workspace waiting until its turn has come.
    """
    runs = instance.get_runs(filters=RunsFilter(statuses=_UNDER_WAY))
    return {run.tags[PARTITION_TAG] for run in runs if PARTITION_TAG in run.tags and not _gives_way(run)}


def history(
    instance: DagsterInstance, workspaces: Iterable[str], *, of_archive: bool = False
) -> dict[str, list[PastRun]]:
    """The last finished runs of each workspace, latest first.

    Args:
        instance: whose runs.
        workspaces: of which workspaces.
        of_archive: whether only what they did to the archive counts: the index being away must keep neither sessions
            nor edits from it.
    """
    past: dict[str, list[PastRun]] = {name: [] for name in workspaces}
    since = datetime.now(UTC) - _LOOKED_BACK
    filters = RunsFilter(tags={PARTITION_TAG: list(past)}, statuses=_FINISHED, updated_after=since)
    for record in instance.get_run_records(filters=filters, limit=_RECORDS) if past else ():
        run = record.dagster_run
        runs = past[run.tags[PARTITION_TAG]]
        if len(runs) < _PAST and not (of_archive and run.job_name == reproject.name):
            ended = datetime.fromtimestamp(record.end_time or record.create_timestamp.timestamp(), UTC)
            failed = run.status is DagsterRunStatus.FAILURE
            # What came before a run that did not fail decides nothing, and need not be looked into.
            if failed and of_archive and all(each.failed for each in runs):
                failed = not _failed_in_the_index_alone(instance, run.run_id)
            runs.append(PastRun(ended, failed))
    return past


def missing_partitions(instance: DagsterInstance, workspaces: Iterable[str]) -> list[str]:
    """The workspaces that have no partition yet."""
    known = set(instance.get_dynamic_partitions(PARTITIONS))
    return [name for name in workspaces if name not in known]


def other_partitions(instance: DagsterInstance, workspaces: Iterable[str]) -> list[str]:
    """The partitions of none of these workspaces."""
    return sorted(set(instance.get_dynamic_partitions(PARTITIONS)) - set(workspaces))


def _failed_in_the_index_alone(instance: DagsterInstance, run_id: str) -> bool:
    failed = [step.step_key for step in instance.get_run_step_stats(run_id) if step.status is StepEventStatus.FAILURE]
    return bool(failed) and all(key.startswith(INDEX_ASSETS) for key in failed)


def _gives_way(run: DagsterRun) -> bool:
    waiting = run.status in (DagsterRunStatus.NOT_STARTED, DagsterRunStatus.QUEUED)
    return waiting and run.tags.get(PRIORITY_TAG) == LAST
