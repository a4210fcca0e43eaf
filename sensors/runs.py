"""What the instance knows of runs by workspace: the ones in flight, and how the last ones ended."""

from collections.abc import Iterable
from datetime import UTC, datetime

from dagster import DagsterInstance, DagsterRunStatus, RunsFilter

from assets.common import PARTITIONS
from memory_pipeline.scheduling import PARTITION_TAG, PastRun

_UNDER_WAY = [
    DagsterRunStatus.NOT_STARTED,
    DagsterRunStatus.QUEUED,
    DagsterRunStatus.STARTING,
    DagsterRunStatus.STARTED,
    DagsterRunStatus.CANCELING,
]
_PAST = 8  # runs that are looked back on: enough for the longest back-off


def in_flight(instance: DagsterInstance) -> set[str]:
    """The workspaces that have a run queued or under way. Run monitoring sees to it that none is so for ever."""
    runs = instance.get_runs(filters=RunsFilter(statuses=_UNDER_WAY))
    return {run.tags[PARTITION_TAG] for run in runs if PARTITION_TAG in run.tags}


def history(
    instance: DagsterInstance, workspaces: Iterable[str], *, ignoring: str | None = None
) -> dict[str, list[PastRun]]:
    """The last finished runs of each workspace, latest first; those of one job may be left out."""
    return {name: _finished(instance, name, ignoring) for name in workspaces}


def missing_partitions(instance: DagsterInstance, workspaces: Iterable[str]) -> list[str]:
    """The workspaces that have no partition yet."""
    known = set(instance.get_dynamic_partitions(PARTITIONS))
    return [name for name in workspaces if name not in known]


def other_partitions(instance: DagsterInstance, workspaces: Iterable[str]) -> list[str]:
    """The partitions of none of these workspaces."""
    return sorted(set(instance.get_dynamic_partitions(PARTITIONS)) - set(workspaces))


def _finished(instance: DagsterInstance, workspace: str, ignoring: str | None) -> list[PastRun]:
    statuses = [DagsterRunStatus.SUCCESS, DagsterRunStatus.FAILURE]  # a run that a person cancelled says nothing
    filters = RunsFilter(tags={PARTITION_TAG: workspace}, statuses=statuses)
    records = instance.get_run_records(filters=filters, limit=2 * _PAST)
    return [
        PastRun(
            ended=datetime.fromtimestamp(record.end_time or record.create_timestamp.timestamp(), UTC),
            failed=record.dagster_run.status is DagsterRunStatus.FAILURE,
        )
        for record in records
        if record.dagster_run.job_name != ignoring
    ][:_PAST]
