"""Asks for runs where the index is behind the archive, and keeps the check of it current without a run."""

from datetime import UTC, datetime

from dagster import (
    AssetCheckEvaluation,
    DagsterInstance,
    DefaultSensorStatus,
    SensorEvaluationContext,
    SensorResult,
    sensor,
)

from assets.checks import PROPAGATION_COMPLETE, propagation_outcome
from assets.common import WORKSPACES
from assets.outcomes import Outcome
from memory_pipeline.propagation.backlog import backlog
from memory_pipeline.propagation.losses import Presence
from memory_pipeline.resources import Memory
from memory_pipeline.scheduling import Candidate, Report, decide, report_due
from sensors import runs
from sensors.jobs import reproject, request
from sensors.looks import known_workspaces, look_at_each, why_none


@sensor(
    job=reproject,
    minimum_interval_seconds=15,
    default_status=DefaultSensorStatus.RUNNING,
    description="Compares the archive with what the index is known to hold, and asks for runs where it is behind.",
)
def reprojection_sensor(context: SensorEvaluationContext, memory: Memory) -> SensorResult:
    """Look for pending work and lost collections, workspace by workspace.

    It keeps no cursor, and reports `propagation_complete` without a run: when it changes, and every ten minutes.
    """
    now = datetime.now(UTC)
    identity, presence = memory.runtime.identity.hash, Presence(memory.runtime.index)
    found, broken = look_at_each(
        memory, known_workspaces(memory), lambda database, name: backlog(database, identity, name, presence)
    )
    due = {name: Candidate(f"{state.pending} pending") for name, state in found.items() if state.due}
    busy = runs.in_flight(context.instance)
    decided = decide(due, busy, runs.history(context.instance, due), now)
    new = runs.missing_partitions(context.instance, found)
    outcome = propagation_outcome(found, broken)
    waiting = {name: "waiting for its next try" for name, state in found.items() if state.pending and not state.due}
    return SensorResult(
        run_requests=[request(name) for name in decided.requested],
        skip_reason=why_none(
            context, decided.requested, {**decided.skipped, **waiting, **broken}, idle="nothing is pending"
        ),
        dynamic_partitions_requests=[WORKSPACES.build_add_request(new)] if new else [],
        asset_events=_report(context.instance, outcome, now, busy=bool(busy)),
    )


def _report(instance: DagsterInstance, outcome: Outcome, now: datetime, *, busy: bool) -> list[AssetCheckEvaluation]:
    current = Report(now, outcome.passed, outcome.metadata["counts"])
    due = report_due(_last_report(instance), current, busy=busy)
    return [outcome.evaluation(PROPAGATION_COMPLETE)] if due else []


def _last_report(instance: DagsterInstance) -> Report | None:
    latest = instance.event_log_storage.get_latest_asset_check_execution_by_key([PROPAGATION_COMPLETE])
    record = latest.get(PROPAGATION_COMPLETE)
    if record is None:
        return None
    at = datetime.fromtimestamp(record.create_timestamp, UTC)
    # Of a check that a run has still to make, the record holds the plan.
    if not isinstance(record.evaluation, AssetCheckEvaluation):
        return Report(at, None, None)
    counts = record.evaluation.metadata.get("counts")
    return Report(at, record.evaluation.passed, counts.value if counts else None)
