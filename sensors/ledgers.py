"""Asks for runs where session directories differ from what the archive has read."""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime

from dagster import (
    DefaultSensorStatus,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
    sensor,
)

from assets.common import WORKSPACES, translated
from memory_pipeline.archive import workspaces
from memory_pipeline.archive.waiting import unread
from memory_pipeline.errors import ArchiveUnavailable, MemoryPipelineError, SchemaOutOfDate, SessionsUnavailable
from memory_pipeline.ledger import list_root
from memory_pipeline.resources import Memory
from memory_pipeline.scheduling import REREAD_AFTER, Candidate, decide, explain, in_turn
from sensors import runs
from sensors.jobs import refresh, reproject, request


@sensor(job=refresh, minimum_interval_seconds=15, default_status=DefaultSensorStatus.RUNNING)
def ledger_sensor(context: SensorEvaluationContext, memory: Memory) -> SensorResult | SkipReason:
    """Compares the sessions root with the archive, and asks for a run of each workspace that is new or has changed.

    It keeps no cursor and gives no run keys (one deduplicates for ever, failed runs included): what a lost tick or a
    failed run left undone still differs at the next tick. Partitions of workspaces that were removed go.
    """
    try:
        on_disk = list_root(memory.runtime.settings.sessions).workspaces
    except SessionsUnavailable as error:
        return SkipReason(str(error))
    with translated():
        known = workspaces.names(memory.runtime.database)
        candidates, unusable = _candidates(memory, on_disk, known)
    now = datetime.now(UTC)
    # The index being away must not keep sessions from the archive.
    past = runs.history(context.instance, candidates, ignoring=reproject.name)
    busy = runs.in_flight(context.instance)
    decided = decide(candidates, busy, past, now)
    skipped = {**decided.skipped, **unusable}
    for name, why in skipped.items():
        context.log.info("%s: %s", name, why)
    new = runs.missing_partitions(context.instance, decided.requested)
    removed = runs.other_partitions(context.instance, {*known, *on_disk, *busy})
    return SensorResult(
        run_requests=[request(name) for name in decided.requested],
        skip_reason=None if decided.requested else explain(skipped, idle="nothing changed"),
        dynamic_partitions_requests=[
            *([WORKSPACES.build_add_request(new)] if new else []),
            *([WORKSPACES.build_delete_request(removed)] if removed else []),
        ],
    )


def _candidates(
    memory: Memory, on_disk: Sequence[str], known: Collection[str]
) -> tuple[dict[str, Candidate], Mapping[str, str]]:
    """The workspaces with something to read, and those that cannot be looked at, with the reason."""
    candidates, unusable = {}, {}
    for name in in_turn(on_disk):
        try:
            candidate = _candidate(memory, name) if name in known else Candidate("new")
        except (ArchiveUnavailable, SchemaOutOfDate):
            raise
        except MemoryPipelineError as error:
            unusable[name] = str(error)
            continue
        if candidate is not None:
            candidates[name] = candidate
    return candidates, unusable


def _candidate(memory: Memory, workspace: str) -> Candidate | None:
    found = unread(memory.runtime.database, memory.runtime.settings.sessions, workspace)
    if found.changed or found.gone:
        return Candidate(f"{found.changed} changed, {found.gone} gone")
    if found.unreadable:
        return Candidate(f"{found.unreadable} unreadable", rest=REREAD_AFTER)
    return None
