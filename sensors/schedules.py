"""What runs by the clock."""

from collections.abc import Iterator

from dagster import DefaultScheduleStatus, RunRequest, ScheduleDefinition, ScheduleEvaluationContext, schedule

from assets.common import PARTITIONS
from assets.outcomes import workspace_names
from memory_pipeline.resources import Memory
from sensors import runs
from sensors.jobs import audit
from sensors.retention import trim_history


@schedule(
    job=audit,
    cron_schedule="30 3 * * *",
    default_status=DefaultScheduleStatus.RUNNING,
    description="Compares every workspace's index with the archive once a day, since bookkeeping alone is not trusted.",
)
def daily_audit(context: ScheduleEvaluationContext, memory: Memory) -> Iterator[RunRequest]:
    """Ask for an audit of each workspace, with one run key for each day."""
    names = workspace_names(memory)
    # A schedule cannot ask for partitions as a sensor can.
    context.instance.add_dynamic_partitions(PARTITIONS, runs.missing_partitions(context.instance, names))
    for name in names:
        yield RunRequest(run_key=f"{name} {context.scheduled_execution_time:%Y-%m-%d}", partition_key=name)


daily_trim = ScheduleDefinition(
    name="daily_trim",
    job=trim_history,
    cron_schedule="30 4 * * *",
    default_status=DefaultScheduleStatus.RUNNING,
    description="Trims what Dagster records once a day: of a workspace's changes and checks it would keep everything.",
)
