"""Asks for runs where session directories differ from what the archive has read."""

from collections.abc import Collection
from datetime import UTC, datetime

from dagster import (
    DefaultSensorStatus,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
    sensor,
)

from assets.common import WORKSPACES
from memory_pipeline.archive.database import Database
from memory_pipeline.archive.waiting import unread
from memory_pipeline.errors import SessionsUnavailable
from memory_pipeline.ledger import list_root
from memory_pipeline.resources import Memory
from memory_pipeline.scheduling import REREAD_AFTER, Candidate, decide
from sensors import runs
from sensors.jobs import refresh, request
from sensors.looks import known_workspaces, look_at_each, why_none


@sensor(
    job=refresh,
    minimum_interval_seconds=15,
    default_status=DefaultSensorStatus.RUNNING,
    description="Compares the sessions root with the archive, and asks for a run of each workspace that differs.",
)
def ledger_sensor(context: SensorEvaluationContext, memory: Memory) -> SensorResult | SkipReason:
    """Compare session directories with what the archive has read, workspace by workspace.

    It keeps no cursor and gives no run keys (one deduplicates for ever, failed runs included): what a lost tick or a
    failed run left undone still differs at the next tick. Partitions of workspaces that were removed go.
    """
    try:
        on_disk = list_root(memory.runtime.settings.sessions).workspaces
    except SessionsUnavailable as error:
        return SkipReason(str(error))
    known = known_workspaces(memory)
    found, unusable = look_at_each(memory, on_disk, lambda database, name: _candidate(memory, database, name, known))
    candidates = {name: candidate for name, candidate in found.items() if candidate}
    now = datetime.now(UTC)
    past = runs.history(context.instance, candidates, of_archive=True)
    busy = runs.in_flight(context.instance)
    decided = decide(candidates, busy, past, now)
    new = runs.missing_partitions(context.instance, decided.requested)
    removed = runs.other_partitions(context.instance, {*known, *on_disk, *busy})
    return SensorResult(
        run_requests=[request(name) for name in decided.requested],
        skip_reason=why_none(context, decided.requested, {**decided.skipped, **unusable}, idle="nothing changed"),
        dynamic_partitions_requests=[
            *([WORKSPACES.build_add_request(new)] if new else []),
            *([WORKSPACES.build_delete_request(removed)] if removed else []),
        ],
    )


def _candidate(memory: Memory, database: Database, workspace: str, known: Collection[str]) -> Candidate | None:
    if workspace not in known:
        return Candidate("new")
    found = unread(database, memory.runtime.settings.sessions, workspace)
    if found.changed or found.gone:
        return Candidate(f"{found.changed} changed, {found.gone} gone")
    if found.unreadable:
        return Candidate(f"{found.unreadable} unreadable", rest=REREAD_AFTER)
    return None
