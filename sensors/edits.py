"""Asks for runs where submitted edits wait to be applied."""

from datetime import UTC, datetime

from dagster import DefaultSensorStatus, SensorEvaluationContext, SensorResult, SkipReason, sensor

from assets.common import WORKSPACES
from assets.outcomes import of_each_workspace, workspace_names
from memory_pipeline.archive.waiting import waiting_edits
from memory_pipeline.resources import Memory
from memory_pipeline.scheduling import Candidate, decide, explain, in_turn
from sensors import runs
from sensors.jobs import apply_edits, reproject, request


@sensor(job=apply_edits, minimum_interval_seconds=15, default_status=DefaultSensorStatus.RUNNING)
def edit_sensor(context: SensorEvaluationContext, memory: Memory) -> SensorResult | SkipReason:
    """Looks for waiting edits, and asks for a run of each workspace that has some. It keeps no cursor."""
    names = in_turn(workspace_names(memory))
    found, broken = of_each_workspace(names, lambda name: waiting_edits(memory.runtime.database, name))
    candidates = {name: Candidate(f"{count} waiting") for name, count in found.items() if count}
    # The index being away must not keep edits from the archive.
    past = runs.history(context.instance, candidates, ignoring=reproject.name)
    decided = decide(candidates, runs.in_flight(context.instance), past, datetime.now(UTC))
    if not decided.requested:
        return SkipReason(explain({**decided.skipped, **broken}, idle="no edit waits"))
    new = runs.missing_partitions(context.instance, decided.requested)
    return SensorResult(
        run_requests=[request(name) for name in decided.requested],
        dynamic_partitions_requests=[WORKSPACES.build_add_request(new)] if new else [],
    )
