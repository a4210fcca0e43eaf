"""What Dagster recorded goes after a while, and what is shown of assets and checks as they are now stays."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from dagster import (
    AssetKey,
    AssetObservation,
    AssetRecordsFilter,
    DagsterInstance,
    DagsterRunStatus,
    build_schedule_context,
)
from dagster._core.storage.compute_log_manager import ComputeIOType
from dagster._core.storage.dagster_run import FINISHED_STATUSES
from dagster._core.storage.partition_status_cache import (
    AssetPartitionStatus,
    get_and_update_asset_status_cache_value,
)
from dagster._core.storage.tags import PARENT_RUN_ID_TAG, ROOT_RUN_ID_TAG
from dagster._core.test_utils import create_run_for_test

from assets.common import WORKSPACES
from memory_pipeline.archive import workspaces
from memory_pipeline.definitions import defs
from sensors import retention
from sensors.retention import Trimmed, trim
from tests.builders import clarified, promoted
from tests.dagster.conftest import Pipeline

INDEX = AssetKey("memory_index")
ASSETS = [spec.key for spec in defs.resolve_all_asset_specs()]
CHECKS = list(defs.resolve_asset_graph().asset_check_keys)
COPIES = 300


@contextmanager
def storage(pipeline: Pipeline) -> Iterator[sa.Connection]:
    with pipeline.instance.event_log_storage.index_connection() as connection:
        yield connection


def counts(pipeline: Pipeline) -> dict[str, int]:
    tables = ("runs", "run_tags", "event_logs", "asset_check_executions", "asset_event_tags")
    with storage(pipeline) as connection:
        return {table: connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one() for table in tables}


def grown_old(pipeline: Pipeline, days: int = 100) -> None:
    """Have all of it be that much older."""
    moments = {
        "event_logs": ["timestamp"],
        "asset_check_executions": ["evaluation_event_timestamp", "create_timestamp"],
        "runs": ["create_timestamp", "update_timestamp"],
    }
    with storage(pipeline) as connection:
        for table, columns in moments.items():
            older = ", ".join(f"{column} = {column} - interval '{days} days'" for column in columns)
            connection.exec_driver_sql(f"UPDATE {table} SET {older}")


def copied(pipeline: Pipeline, run_id: str, copies: int = COPIES) -> None:
    """A history of such runs, with their tags, events and outcomes of checks."""
    tables = {
        "runs": "snapshot_id, pipeline_name, status, run_body, create_timestamp, update_timestamp, start_time, end_time",
        "run_tags": "key, value",
        "event_logs": "event, dagster_event_type, timestamp, step_key, asset_key, partition",
        "asset_check_executions": "asset_key, check_name, partition, execution_status, evaluation_event, "
        "evaluation_event_timestamp, evaluation_event_storage_id, create_timestamp",
    }
    with storage(pipeline) as connection:
        for table, columns in tables.items():
            connection.exec_driver_sql(
                f"INSERT INTO {table} (run_id, {columns}) SELECT run_id || '-' || n, {columns} "
                f"FROM {table}, generate_series(1, {copies}) AS n WHERE run_id = %(run_id)s ORDER BY id, n",
                {"run_id": run_id},
            )


def reported(pipeline: Pipeline, times: int) -> None:
    """What the sensor reports without a run, every ten minutes."""
    grown_old(pipeline, days=1)  # or what the last run reported would still be new enough
    (report,) = pipeline.evaluate("reprojection_sensor").reports
    for _ in range(times):
        pipeline.instance.report_runless_asset_event(report)


def shown(pipeline: Pipeline) -> dict[str, Any]:
    """What the UI shows of assets and checks."""
    instance, events = pipeline.instance, pipeline.instance.event_log_storage
    latest = instance.get_latest_materialization_events(ASSETS)
    status = {}
    for key in ASSETS:
        events.wipe_asset_cached_status(key)  # told anew from the events, and not remembered
        status[key] = (
            get_and_update_asset_status_cache_value(instance, key, WORKSPACES),
            instance.get_materialized_partitions(key),
            instance.get_status_by_partition(key, ["clinic", "ward"], WORKSPACES),
            {name: _latest(pipeline, key, name) for name in ("clinic", "ward")},
        )
    runs = {event.run_id for event in latest.values() if event}
    return {
        "latest": latest,
        "partitions": status,
        "checks": events.get_latest_asset_check_execution_by_key(CHECKS),
        "summaries": events.get_asset_check_summary_records(CHECKS),
        "runs": {run.run_id: run for run in instance.get_runs() if run.run_id in runs},
        "steps": {run_id: instance.get_run_step_stats(run_id) for run_id in runs},
    }


def _latest(pipeline: Pipeline, key: AssetKey, partition: str) -> list[Any]:
    wanted = AssetRecordsFilter(asset_key=key, asset_partitions=[partition])
    return [record.event_log_entry for record in pipeline.instance.fetch_materializations(wanted, limit=1).records]


def made(pipeline: Pipeline, workspace: str = "clinic") -> Pipeline:
    """A workspace that has nothing in it, so that its runs are quick."""
    workspaces.make(pipeline.runtime.database, workspace, language="english", principal="tester")
    return pipeline


def long_ago(pipeline: Pipeline) -> Pipeline:
    """Two workspaces with a long history, all of it from long ago."""
    for workspace in ("clinic", "ward"):
        pipeline.session(workspace, clarified(1), promoted(2, 1))
        copied(pipeline, pipeline.run("refresh", workspace).run_id)
        assert pipeline.run("refresh", workspace).success
    reported(pipeline, times=40)
    grown_old(pipeline)
    return pipeline


def observed(instance: DagsterInstance, times: int) -> None:
    """Observations of an asset without a run, with a tag each."""
    for n in range(times):
        tags = {"dagster/data_version": str(n)}
        instance.report_runless_asset_event(AssetObservation("memory_index", partition="clinic", tags=tags))


def cutoff(days: int = 30) -> datetime:
    return datetime.now(UTC) - timedelta(days=days)


def test_old_runs_go_with_their_events_and_what_is_shown_stays(pipeline: Pipeline):
    long_ago(pipeline)
    before, rows = shown(pipeline), counts(pipeline)

    result = defs.resolve_job_def("trim_history").execute_in_process(instance=pipeline.instance)

    assert result.success
    left = counts(pipeline)
    assert rows["runs"] == 2 * (COPIES + 2)
    assert left["runs"] == 2 + 1  # of each workspace the last one, and the trimming itself
    for table in ("run_tags", "event_logs", "asset_check_executions"):
        assert left[table] < rows[table] / 20
    assert shown(pipeline) == before
    (event,) = [e for e in result.all_events if e.event_type_value == "STEP_OUTPUT"]
    told = {name: value.value for name, value in event.event_specific_data.metadata.items()}
    assert told["runs"] == rows["runs"] - 2
    assert told["complete"]
    assert told["oldest_run"] < f"{cutoff(90):%Y-%m-%d}"

    again = trim(pipeline.instance, cutoff())
    assert again == Trimmed(runs=0, asset_check_executions=0, event_logs=0, complete=True)


def test_what_is_reported_without_a_run_goes_but_for_the_newest(pipeline: Pipeline):
    assert made(pipeline).run("reproject", "clinic").success
    reported(pipeline, times=30)
    observed(pipeline.instance, times=30)
    grown_old(pipeline)
    before = shown(pipeline)

    trimmed = trim(pipeline.instance, cutoff())

    assert trimmed == Trimmed(runs=0, asset_check_executions=29, event_logs=29 + 29, complete=True)
    assert shown(pipeline) == before
    (tags,) = pipeline.instance.get_event_tags_for_asset(INDEX, {"dagster/data_version": "29"})
    assert tags == {"dagster/data_version": "29"}
    assert not pipeline.instance.get_event_tags_for_asset(INDEX, {"dagster/data_version": "28"})


def test_nothing_that_is_new_goes(pipeline: Pipeline):
    assert made(pipeline).run("reproject", "clinic").success
    assert pipeline.run("reproject", "clinic").success
    reported(pipeline, times=3)
    rows = counts(pipeline)
    assert trim(pipeline.instance, cutoff()) == Trimmed(0, 0, 0, complete=True)
    assert counts(pipeline) == rows


@pytest.mark.parametrize("status", [s for s in DagsterRunStatus if s not in FINISHED_STATUSES])
def test_a_run_that_has_not_ended_is_never_touched(pipeline: Pipeline, status: DagsterRunStatus):
    run = create_run_for_test(pipeline.instance, job_name="reproject")
    pipeline.instance.report_engine_event("still there", run)
    with storage(pipeline) as connection:
        connection.exec_driver_sql("UPDATE runs SET status = %(status)s", {"status": status.value})
    grown_old(pipeline)
    assert trim(pipeline.instance, cutoff()).runs == 0
    assert counts(pipeline)["runs"] == 1
    assert pipeline.instance.all_logs(run.run_id)


def test_a_workspace_whose_last_run_failed_is_still_shown_so(pipeline: Pipeline):
    assert made(pipeline).run("reproject", "clinic").success
    assert not pipeline.run("reproject", "nowhere").success
    grown_old(pipeline)
    trim(pipeline.instance, cutoff())
    found = pipeline.instance.get_status_by_partition(INDEX, ["clinic", "nowhere"], WORKSPACES)
    assert found == {"clinic": AssetPartitionStatus.MATERIALIZED, "nowhere": AssetPartitionStatus.FAILED}


def test_what_was_interrupted_is_completed_by_the_next(pipeline: Pipeline, monkeypatch):
    monkeypatch.setattr(retention, "_ROWS", 7)
    first = made(pipeline).run("reproject", "clinic").run_id
    copied(pipeline, first, copies=40)
    assert pipeline.run("reproject", "clinic").success
    grown_old(pipeline)
    before = shown(pipeline)
    turns = iter([True] * 4)

    halfway = trim(pipeline.instance, cutoff(), lambda: next(turns, False))

    assert (halfway.runs, halfway.event_logs, halfway.complete) == (28, 0, False)
    rest = trim(pipeline.instance, cutoff())
    assert (rest.runs, rest.complete) == (41 - 28, True)
    with storage(pipeline) as connection:
        found = connection.exec_driver_sql("SELECT DISTINCT run_id FROM event_logs WHERE run_id <> ''").scalars().all()
    assert found == [run.run_id for run in pipeline.instance.get_runs()]
    assert shown(pipeline) == before


def test_two_that_trim_at_once_get_in_each_others_way_as_little_as_a_run_that_begins(pipeline: Pipeline, monkeypatch):
    monkeypatch.setattr(retention, "_ROWS", 5)
    copied(pipeline, made(pipeline).run("reproject", "clinic").run_id, copies=60)
    assert pipeline.run("reproject", "clinic").success
    grown_old(pipeline)
    with ThreadPoolExecutor() as pool:
        trims = [pool.submit(trim, pipeline.instance, cutoff()) for _ in range(2)]
        begun = pipeline.run("reproject", "clinic")
        trimmed = [each.result() for each in trims]
    assert begun.success
    assert sum(each.runs for each in trimmed) == 61
    assert all(each.complete for each in trimmed)
    assert begun.run_id in {run.run_id for run in pipeline.instance.get_runs()}
    assert len(pipeline.instance.all_logs(begun.run_id)) >= len(begun.all_events)


def test_a_run_of_it_is_asked_for_once_a_day(pipeline: Pipeline):
    schedule = defs.resolve_schedule_def("daily_trim")
    with build_schedule_context(pipeline.instance, scheduled_execution_time=datetime.now(UTC)) as context:
        found = schedule.evaluate_tick(context)
    assert len(found.run_requests) == 1
    assert schedule.job_name == "trim_history"


def test_the_logs_of_a_run_that_goes_go_with_it(pipeline: Pipeline):
    instance = pipeline.instance
    gone, kept = (made(pipeline).run("reproject", "clinic").run_id for _ in range(2))
    for run_id in (gone, kept):
        with instance.compute_log_manager.open_log_stream(
            [run_id, "compute_logs", "step"], ComputeIOType.STDERR
        ) as log:
            log.write("said")
    grown_old(pipeline)
    trim(instance, cutoff())
    directory = Path(instance.storage_directory())
    assert not (directory / gone).exists()
    assert (directory / kept).exists()


def test_logs_that_another_takes_away_meanwhile_go_wholly(pipeline: Pipeline, monkeypatch):
    instance = pipeline.instance
    run_id = made(pipeline).run("reproject", "clinic").run_id
    for step in ("first", "second"):
        with instance.compute_log_manager.open_log_stream([run_id, "compute_logs", step], ComputeIOType.STDERR) as log:
            log.write("said")
    assert pipeline.run("reproject", "clinic").success
    grown_old(pipeline)
    unlink, other = os.unlink, []

    def raced(path, **options):
        unlink(path, **options)
        if not other:  # the other trims the same run, and was a moment quicker with its first file
            other.append(path)
            raise FileNotFoundError(path)

    monkeypatch.setattr(os, "unlink", raced)
    assert trim(instance, cutoff()).complete
    assert other
    assert not (Path(instance.storage_directory()) / run_id).exists()


def test_a_run_that_was_executed_anew_stays_as_long_as_what_repeats_it(pipeline: Pipeline):
    failed = create_run_for_test(pipeline.instance, job_name="audit", status=DagsterRunStatus.FAILURE)
    grown_old(pipeline)
    repeats = {"root_run_id": failed.run_id, "parent_run_id": failed.run_id}
    tags = {ROOT_RUN_ID_TAG: failed.run_id, PARENT_RUN_ID_TAG: failed.run_id}
    again = create_run_for_test(
        pipeline.instance, job_name="audit", status=DagsterRunStatus.FAILURE, tags=tags, **repeats
    )

    assert trim(pipeline.instance, cutoff()).runs == 0
    assert pipeline.instance.get_run_group(again.run_id)[0] == failed.run_id

    grown_old(pipeline)
    assert [trim(pipeline.instance, cutoff()).runs for _ in range(2)] == [1, 1]
