"""Asks for runs where submitted edits wait to be applied."""

from datetime import UTC, datetime

from dagster import DefaultSensorStatus, SensorEvaluationContext, SensorResult, sensor

from assets.common import WORKSPACES
from memory_pipeline.archive.waiting import waiting_edits
from memory_pipeline.resources import Memory
from memory_pipeline.scheduling import Candidate, decide
from sensors import runs
from sensors.jobs import apply_edits, request
from sensors.looks import known_workspaces, look_at_each, why_none


@sensor(
    job=apply_edits,
    minimum_interval_seconds=15,
    default_status=DefaultSensorStatus.RUNNING,
    description="Looks for waiting edits, and asks for a run of each workspace that has some.",
)
def edit_sensor(context: SensorEvaluationContext, memory: Memory) -> SensorResult:
    """Count the edits that wait, workspace by workspace. It keeps no cursor."""
    found, broken = look_at_each(memory, known_workspaces(memory), waiting_edits)
    candidates = {name: Candidate(f"{count} waiting") for name, count in found.items() if count}
    past = runs.history(context.instance, candidates, of_archive=True)
    decided = decide(candidates, runs.in_flight(context.instance), past, datetime.now(UTC))
    new = runs.missing_partitions(context.instance, decided.requested)
    return SensorResult(
        run_requests=[request(name) for name in decided.requested],
        skip_reason=why_none(context, decided.requested, {**decided.skipped, **broken}, idle="no edit waits"),
        dynamic_partitions_requests=[WORKSPACES.build_add_request(new)] if new else [],
    )
