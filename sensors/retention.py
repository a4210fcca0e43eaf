"""Trims what Dagster records, which it would keep for ever: runs with their events and logs, and events of no run.

What is shown of assets and checks as they are now stays, however old it is: the newest event of each kind about each
asset and partition, the newest outcomes of each check, and the runs that these came from. So do the runs that one which
is there executes anew, since it is shown beside them. A run that has not ended is never touched.

A run goes first, and what is left of it is then what belongs to no run any more: trimming that was interrupted, or that
two runs do at once, is therefore completed by the next.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import sqlalchemy as sa
from dagster import Config, DagsterInstance, Nothing, OpExecutionContext, Out, job, op
from dagster._core.storage.dagster_run import FINISHED_STATUSES
from dagster._core.storage.event_log import SqlEventLogStorage
from dagster._core.storage.event_log.schema import (
    AssetCheckExecutionsTable,
    AssetEventTagsTable,
    SqlEventLogStorageTable,
)
from dagster._core.storage.runs.schema import RunsTable, RunTagsTable
from dagster._core.storage.tags import PARENT_RUN_ID_TAG, PRIORITY_TAG, ROOT_RUN_ID_TAG
from pydantic import Field

from sensors.jobs import LAST

_RUNS, _EVENTS, _CHECKS = RunsTable.c, SqlEventLogStorageTable.c, AssetCheckExecutionsTable.c
_ROWS = 1_000  # of one statement, so that none holds anything locked for long


class Retention(Config):
    """How much of what Dagster recorded is kept, and how long trimming may take."""

    keep_days: int = Field(default=30, ge=2, description="what ended longer ago goes; sensors look back a day")
    seconds: float = Field(default=900.0, gt=0, description="what is not done by then is left to the next run")


@dataclass(frozen=True)
class Trimmed:
    """What trimming removed, by table, and whether it came to the end."""

    runs: int
    asset_check_executions: int
    event_logs: int
    complete: bool


@dataclass(frozen=True)
class _Shown:
    """What is shown of assets and checks as they are now: rows of either table, and the runs that these came from."""

    events: frozenset[int]
    checks: frozenset[int]
    runs: frozenset[str]


def trim(instance: DagsterInstance, before: datetime, in_time: Callable[[], bool] = lambda: True) -> Trimmed:
    """Remove what ended before a moment and is not shown any more, batch by batch.

    Args:
        instance: whose storage is one SQL database.
        before: the moment, with a time zone.
        in_time: asked before each batch whether there is time for it.
    """
    moment = before.astimezone(UTC).replace(tzinfo=None)  # as the storage writes moments
    storage = cast("SqlEventLogStorage", instance.event_log_storage)
    with storage.index_connection() as connection:
        shown = _shown(connection)
        runs = (
            _remove_runs(instance, connection, rows, shown) for rows in _batches(connection, _ended(moment), in_time)
        )
        checks = (
            _remove_checks(connection, rows, shown) for rows in _batches(connection, _old_checks(moment), in_time)
        )
        events = (
            _remove_events(connection, rows, shown) for rows in _batches(connection, _old_events(moment), in_time)
        )
        return Trimmed(sum(runs), sum(checks), sum(events), complete=in_time())


@op(out=Out(Nothing))
def trim_storage(context: OpExecutionContext, config: Retention) -> None:
    """Removes what is older than the days that are kept."""
    deadline = time.monotonic() + config.seconds
    before = datetime.now(UTC) - timedelta(days=config.keep_days)
    trimmed = trim(context.instance, before, lambda: time.monotonic() < deadline)
    context.log.info("trimmed what ended before %s: %s", f"{before:%Y-%m-%d %H:%M}", trimmed)
    context.add_output_metadata({**asdict(trimmed), **_oldest(context.instance)})


@job(tags={PRIORITY_TAG: LAST})
def trim_history() -> None:
    """Removes old runs with their events, and old events of no run; what is shown of assets and checks stays."""
    trim_storage()


def _shown(connection: sa.Connection) -> _Shown:
    newest_events = (
        sa.select(sa.func.max(_EVENTS.id))
        .where(_EVENTS.asset_key.is_not(None))
        .group_by(_EVENTS.asset_key, _EVENTS.dagster_event_type, _EVENTS.partition)
    )
    # By status too: beside one that is planned, the UI shows the last one that was completed.
    newest_checks = sa.select(sa.func.max(_CHECKS.id)).group_by(
        _CHECKS.asset_key, _CHECKS.check_name, _CHECKS.partition, _CHECKS.execution_status
    )
    events = connection.execute(sa.select(_EVENTS.id, _EVENTS.run_id).where(_EVENTS.id.in_(newest_events))).all()
    checks = connection.execute(
        # The event of a check names its asset within its text alone; the row of the check names the event.
        sa.select(_CHECKS.id, _CHECKS.run_id, _CHECKS.evaluation_event_storage_id).where(_CHECKS.id.in_(newest_checks))
    ).all()
    repeated = sa.select(RunTagsTable.c.value).where(RunTagsTable.c.key.in_([ROOT_RUN_ID_TAG, PARENT_RUN_ID_TAG]))
    return _Shown(
        frozenset(row.id for row in events) | {row.evaluation_event_storage_id for row in checks},
        frozenset(row.id for row in checks),
        frozenset(row.run_id for row in (*events, *checks)) | frozenset(connection.execute(repeated).scalars()),
    )


def _ended(before: datetime) -> sa.Select[Any]:
    finished = _RUNS.status.in_([status.value for status in FINISHED_STATUSES])
    return sa.select(_RUNS.id, _RUNS.run_id).where(finished, _RUNS.update_timestamp < before)


def _old_checks(before: datetime) -> sa.Select[Any]:
    ownerless = ~sa.exists().where(_RUNS.run_id == _CHECKS.run_id)
    return sa.select(_CHECKS.id).where(_CHECKS.evaluation_event_timestamp < before, ownerless)


def _old_events(before: datetime) -> sa.Select[Any]:
    ownerless = ~sa.exists().where(_RUNS.run_id == _EVENTS.run_id)
    return sa.select(_EVENTS.id).where(_EVENTS.timestamp < before, ownerless)


def _batches(
    connection: sa.Connection, query: sa.Select[Any], in_time: Callable[[], bool]
) -> Iterator[list[sa.Row[Any]]]:
    """The rows of a query in the order of `id`, its first column; what was passed is not come back to."""
    key = query.selected_columns[0]
    last = 0
    while in_time() and (rows := list(connection.execute(query.where(key > last).order_by(key).limit(_ROWS)))):
        yield rows
        last = rows[-1].id


def _remove_runs(instance: DagsterInstance, connection: sa.Connection, rows: list[sa.Row[Any]], shown: _Shown) -> int:
    ids = [row.run_id for row in rows if row.run_id not in shown.runs]
    for run_id in ids:
        _remove_logs(instance, run_id)  # nothing would name them later
    return _delete(connection, _RUNS.run_id, ids)


def _remove_logs(instance: DagsterInstance, run_id: str) -> None:
    """Remove the logs of a run, which another that trims may remove at the same moment.

    Each of the two may meet files that the other has taken away, and give up: what is left is gone through once more,
    until neither left anything.
    """
    while True:
        try:
            return instance.compute_log_manager.delete_logs(prefix=[run_id])
        except FileNotFoundError:
            continue


def _remove_checks(connection: sa.Connection, rows: list[sa.Row[Any]], shown: _Shown) -> int:
    return _delete(connection, _CHECKS.id, [row.id for row in rows if row.id not in shown.checks])


def _remove_events(connection: sa.Connection, rows: list[sa.Row[Any]], shown: _Shown) -> int:
    ids = [row.id for row in rows if row.id not in shown.events]
    _delete(connection, AssetEventTagsTable.c.event_id, ids)  # nothing would name them later
    return _delete(connection, _EVENTS.id, ids)


def _delete(connection: sa.Connection, column: sa.Column[Any], values: list[Any]) -> int:
    return connection.execute(sa.delete(column.table).where(column.in_(values))).rowcount if values else 0


def _oldest(instance: DagsterInstance) -> dict[str, str]:
    """Since when there are runs and events."""
    storage = cast("SqlEventLogStorage", instance.event_log_storage)
    with storage.index_connection() as connection:
        run = connection.execute(sa.select(sa.func.min(_RUNS.create_timestamp))).scalar_one()
        event = connection.execute(sa.select(sa.func.min(_EVENTS.timestamp))).scalar_one()
    return {"oldest_run": f"{run:%Y-%m-%d %H:%M}", "oldest_event": f"{event:%Y-%m-%d %H:%M}"}
