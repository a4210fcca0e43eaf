from __future__ import annotations

import os
import shutil
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from dagster import DagsterRunStatus, build_schedule_context
from dagster._core.test_utils import create_run_for_test

from assets.checks import PROPAGATION_COMPLETE
from memory_pipeline.archive.ingest import ingest
from memory_pipeline.cards import Collection
from memory_pipeline.definitions import defs
from memory_pipeline.errors import IndexUnavailable
from memory_pipeline.points import target
from memory_pipeline.propagation import audit, project
from memory_pipeline.resources import Memory
from sensors import runs
from tests.archives import connected
from tests.builders import clarified, promoted
from tests.dagster.conftest import Pipeline
from tests.statements import counting


def past_run(pipeline: Pipeline, workspace: str, status: DagsterRunStatus, job: str = "refresh") -> None:
    create_run_for_test(pipeline.instance, job_name=job, status=status, tags={"dagster/partition": workspace})


def ingested(pipeline: Pipeline, *workspaces: str) -> None:
    """Sessions that the archive has read and the index has not."""
    for name in workspaces:
        pipeline.session(name)
        ingest(pipeline.runtime.database, name, pipeline.runtime.settings, pipeline.runtime.identity)


def report(pipeline: Pipeline, evaluation) -> None:
    """What the daemon does with the events of a tick."""
    for event in evaluation.reports:
        pipeline.instance.report_runless_asset_event(event)


# ── Sessions ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_new_workspace_gets_a_partition_and_a_run_and_then_nothing_more(pipeline: Pipeline):
    pipeline.session("clinic")
    found = pipeline.evaluate("ledger_sensor")
    assert (found.requested, found.partitions) == (["clinic"], ["clinic"])

    assert pipeline.run("refresh", "clinic").success

    found = pipeline.evaluate("ledger_sensor")
    assert (found.requested, found.skipped) == ([], "nothing changed")


def test_no_run_key_and_no_cursor_are_given(pipeline: Pipeline):
    # A run key deduplicates for ever, a failed run included; a cursor would hide what a lost run left undone.
    pipeline.session("clinic")
    found = pipeline.evaluate("ledger_sensor")
    assert found.run_keys == [None]
    assert found.cursor is None


def test_a_line_appended_to_a_ledger_is_noticed(pipeline: Pipeline):
    pipeline.session("clinic", clarified(1))
    pipeline.run("refresh", "clinic")
    pipeline.session("clinic", clarified(1), promoted(2, 1))
    assert pipeline.evaluate("ledger_sensor").requested == ["clinic"]


def test_a_session_that_disappears_is_noticed_once(pipeline: Pipeline):
    pipeline.session("clinic")
    pipeline.run("refresh", "clinic")
    directory = pipeline.runtime.settings.sessions / "clinic" / "session-1"
    for file in directory.iterdir():
        file.unlink()
    directory.rmdir()
    assert pipeline.evaluate("ledger_sensor").requested == ["clinic"]
    pipeline.run("refresh", "clinic")
    assert pipeline.evaluate("ledger_sensor").requested == []


def test_files_from_the_future_do_not_make_runs_for_ever(pipeline: Pipeline):
    pipeline.session("clinic")
    future = datetime.now(UTC).timestamp() + 10_000_000
    for file in (pipeline.runtime.settings.sessions / "clinic" / "session-1").iterdir():
        os.utime(file, (future, future))
    pipeline.run("refresh", "clinic")
    time.sleep(2.1)  # until that change is old
    pipeline.run("refresh", "clinic")
    assert pipeline.evaluate("ledger_sensor").requested == []


def test_a_session_that_cannot_be_read_rests_between_two_tries(pipeline: Pipeline):
    pipeline.session("clinic")
    ledger = pipeline.runtime.settings.sessions / "clinic" / "session-1" / "review_decisions.jsonl"
    ledger.unlink()
    ledger.mkdir()  # unreadable for root too
    pipeline.run("refresh", "clinic")
    found = pipeline.evaluate("ledger_sensor")
    assert found.requested == []
    assert "could not be read, will be tried again" in found.skipped


@pytest.mark.parametrize("status", [DagsterRunStatus.NOT_STARTED, DagsterRunStatus.STARTING, DagsterRunStatus.STARTED])
def test_a_workspace_whose_run_is_in_flight_is_left_alone(pipeline: Pipeline, status):
    pipeline.session("clinic")
    pipeline.session("ward")
    past_run(pipeline, "clinic", status, job="reproject")
    found = pipeline.evaluate("ledger_sensor")
    assert found.requested == ["ward"]


def test_a_workspace_whose_last_run_failed_backs_off_and_stops_no_other(pipeline: Pipeline):
    pipeline.session("clinic")
    pipeline.session("ward")
    past_run(pipeline, "clinic", DagsterRunStatus.FAILURE)
    assert pipeline.evaluate("ledger_sensor").requested == ["ward"]
    past_run(pipeline, "ward", DagsterRunStatus.FAILURE)
    assert "backing off after a failed run" in pipeline.evaluate("ledger_sensor").skipped


def test_a_failed_reprojection_does_not_keep_sessions_from_the_archive(pipeline: Pipeline):
    pipeline.session("clinic")
    past_run(pipeline, "clinic", DagsterRunStatus.FAILURE, job="reproject")
    assert pipeline.evaluate("ledger_sensor").requested == ["clinic"]


def test_an_index_that_cannot_be_used_does_not_keep_sessions_from_the_archive_either(pipeline: Pipeline):
    pipeline.session("clinic")
    into = target("clinic", Collection.MEMORY_CARDS, pipeline.runtime.identity)
    pipeline.runtime.index.ensure(replace(into, schema=replace(into.schema, dimension=8)))
    assert not pipeline.run("refresh", "clinic").success
    assert pipeline.evaluate("ledger_sensor").skipped == "nothing changed"
    pipeline.session("clinic", session="another")
    assert pipeline.evaluate("ledger_sensor").requested == ["clinic"]


def test_at_most_eight_runs_are_asked_for_at_once(pipeline: Pipeline):
    for n in range(11):
        pipeline.session(f"w{n:02d}")
    assert len(pipeline.evaluate("ledger_sensor").requested) == 8


def test_the_partition_of_a_workspace_that_was_removed_goes_once_nothing_runs_in_it(pipeline: Pipeline):
    ingested(pipeline, "clinic")
    pipeline.instance.add_dynamic_partitions("workspace", ["clinic", "gone", "ending"])
    past_run(pipeline, "ending", DagsterRunStatus.STARTED)
    assert pipeline.evaluate("ledger_sensor").removed == ["gone"]


def test_a_missing_root_is_said(pipeline: Pipeline):
    pipeline.runtime.settings.sessions.rmdir()
    assert "MEMORY_SESSIONS_ROOT" in pipeline.evaluate("ledger_sensor").skipped


def test_an_empty_root_is_no_work(pipeline: Pipeline):
    assert pipeline.evaluate("ledger_sensor").skipped == "nothing changed"


# ── Projections ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_workspace_that_the_index_is_behind_gets_a_run_and_then_nothing_more(pipeline: Pipeline):
    ingested(pipeline, "clinic")
    found = pipeline.evaluate("reprojection_sensor")
    assert (found.requested, found.partitions) == (["clinic"], ["clinic"])

    assert pipeline.run("reproject", "clinic").success

    found = pipeline.evaluate("reprojection_sensor")
    assert (found.requested, found.skipped) == ([], "nothing is pending")


def test_an_index_that_is_lost_is_reported_and_filled_again(pipeline: Pipeline):
    ingested(pipeline, "clinic")
    assert pipeline.run("reproject", "clinic").success
    shutil.rmtree(pipeline.runtime.settings.home / "index")

    found = pipeline.evaluate("reprojection_sensor")
    assert found.requested == ["clinic"]
    [said] = found.reports
    assert (said.passed, said.metadata["pending"].value) == (False, 3)
    assert "the index has lost collections of clinic" in said.description

    assert pipeline.run("reproject", "clinic").success
    assert pipeline.evaluate("reprojection_sensor").requested == []
    assert not audit(pipeline.runtime, "clinic")


def test_pending_work_in_flight_or_after_a_failure_is_left_alone(pipeline: Pipeline):
    ingested(pipeline, "clinic", "ward", "lab")
    past_run(pipeline, "clinic", DagsterRunStatus.STARTED)
    past_run(pipeline, "ward", DagsterRunStatus.FAILURE, job="reproject")
    assert pipeline.evaluate("reprojection_sensor").requested == ["lab"]


def test_work_that_waits_for_its_next_try_makes_no_run(pipeline: Pipeline, monkeypatch):
    ingested(pipeline, "clinic")

    def away(*args, **kwargs):
        raise IndexUnavailable("the index is away")

    monkeypatch.setattr("memory_pipeline.index.edge.EdgeIndex.ensure", away)
    for collection in Collection:
        with pytest.raises(IndexUnavailable):
            project(pipeline.runtime, "clinic", [collection])

    found = pipeline.evaluate("reprojection_sensor")
    assert (found.requested, found.skipped) == ([], "clinic: waiting for its next try")
    [why] = found.reports[0].metadata["put_off"].value
    assert (why["workspace"], why["reason"], why["points"], why["attempts"]) == ("clinic", "the index is away", 3, 1)
    assert datetime.fromisoformat(why["next_try"]) > datetime.now(UTC) - timedelta(minutes=1)


def test_what_a_look_has_no_time_for_is_said_and_comes_with_another(pipeline: Pipeline, monkeypatch):
    ingested(pipeline, "clinic", "ward")
    monkeypatch.setattr("sensors.looks.in_turn", lambda names: names[:1])
    found = pipeline.evaluate("reprojection_sensor")
    assert found.requested == ["clinic"]
    assert not found.reports[0].passed
    assert found.reports[0].metadata["not_looked_at"].value == {"ward": "no time was left for it"}


def test_propagation_is_reported_without_a_run_when_it_changes(pipeline: Pipeline):
    ingested(pipeline, "clinic")
    first = pipeline.evaluate("reprojection_sensor")
    assert [(e.check_name, e.passed) for e in first.reports] == [("propagation_complete", True)]
    assert first.reports[0].metadata["pending"].value == 3
    report(pipeline, first)

    assert pipeline.evaluate("reprojection_sensor").reports == []

    ingested(pipeline, "ward")
    again = pipeline.evaluate("reprojection_sensor")
    assert [e.metadata["pending"].value for e in again.reports] == [6]
    report(pipeline, again)
    latest = pipeline.instance.event_log_storage.get_latest_asset_check_execution_by_key([PROPAGATION_COMPLETE])
    assert latest[PROPAGATION_COMPLETE].evaluation.metadata["pending"].value == 6


def test_a_report_that_a_run_still_owes_is_left_to_it_while_it_is_in_flight(pipeline: Pipeline):
    ingested(pipeline, "clinic")
    pipeline.instance.add_dynamic_partitions("workspace", ["clinic"])
    owing = pipeline.instance.create_run_for_job(
        defs.resolve_job_def("reproject"), tags={"dagster/partition": "clinic"}
    )
    assert pipeline.evaluate("reprojection_sensor").reports == []
    pipeline.instance.report_run_failed(owing)
    assert len(pipeline.evaluate("reprojection_sensor").reports) == 1


def test_propagation_is_reported_again_after_ten_minutes(pipeline: Pipeline, monkeypatch):
    ingested(pipeline, "clinic")
    report(pipeline, pipeline.evaluate("reprojection_sensor"))
    monkeypatch.setattr("memory_pipeline.scheduling.REPORT_EVERY", timedelta(0))
    assert len(pipeline.evaluate("reprojection_sensor").reports) == 1


def test_work_that_is_pending_for_too_long_fails_the_check(pipeline: Pipeline, monkeypatch):
    ingested(pipeline, "clinic")
    monkeypatch.setattr("assets.checks.TARGET_SECONDS", 0.0)
    found = pipeline.evaluate("reprojection_sensor").reports[0]
    assert not found.passed
    assert found.metadata["counts"].value == {"pending": {"clinic": 3}, "reasons": {"not tried yet": 3}}


# ── The clock ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_daily_audit_asks_for_a_run_of_every_workspace(pipeline: Pipeline):
    ingested(pipeline, "clinic", "ward")
    known = {"resources": {"memory": Memory()}, "repository_def": defs.get_repository_def()}
    with build_schedule_context(pipeline.instance, datetime(2026, 1, 5, 3, 30, tzinfo=UTC), **known) as context:
        found = defs.resolve_schedule_def("daily_audit").evaluate_tick(context)
    assert [(r.partition_key, r.run_key) for r in found.run_requests] == [
        ("clinic", "clinic 2026-01-05"),
        ("ward", "ward 2026-01-05"),
    ]
    assert set(pipeline.instance.get_dynamic_partitions("workspace")) == {"clinic", "ward"}


# ── In time ──────────────────────────────────────────────────────────────────────────────────────────────────────────

SENSORS = ("ledger_sensor", "edit_sensor", "reprojection_sensor")


@pytest.mark.parametrize(
    ("sensor", "table"),
    [("ledger_sensor", "session_reading"), ("edit_sensor", "admin_edit"), ("reprojection_sensor", "projection")],
)
def test_a_look_does_not_wait_for_a_lock_and_says_what_it_could_not_see(pipeline: Pipeline, monkeypatch, sensor, table):
    ingested(pipeline, "clinic")
    monkeypatch.setattr("sensors.looks.STATEMENT_SECONDS", 0.2)
    with connected(pipeline.runtime.settings.owner_url) as owner, owner.transaction():
        owner.execute("SET LOCAL idle_in_transaction_session_timeout = '20s'")  # whoever waits, does not for ever
        owner.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        found = pipeline.evaluate(sensor)
    assert found.requested == []
    assert found.skipped.startswith("clinic: PostgreSQL stopped the work")


@pytest.mark.parametrize("sensor", SENSORS)
def test_every_sensor_says_what_it_had_no_time_for(pipeline: Pipeline, monkeypatch, sensor):
    ingested(pipeline, "clinic")
    monkeypatch.setattr("sensors.looks.in_turn", lambda names: [])
    assert pipeline.evaluate(sensor).skipped == "clinic: no time was left for it"


def test_the_history_of_many_workspaces_takes_no_more_statements_than_of_one(pipeline: Pipeline):
    names = [f"w{n:02d}" for n in range(12)]
    for name in names:
        past_run(pipeline, name, DagsterRunStatus.FAILURE)
    with counting() as of_one:
        runs.history(pipeline.instance, names[:1])
    with counting() as of_all:
        found = runs.history(pipeline.instance, names)
    assert [[run.failed for run in found[name]] for name in names] == [[True]] * 12
    assert len(of_all.dagster) == len(of_one.dagster)


def test_a_workspace_with_many_runs_hides_no_other_ones_failures(pipeline: Pipeline):
    for status in (DagsterRunStatus.SUCCESS, *[DagsterRunStatus.FAILURE] * 3):
        past_run(pipeline, "failing", status)
    for _ in range(40):
        past_run(pipeline, "busy", DagsterRunStatus.SUCCESS)
    found = runs.history(pipeline.instance, ["failing", "busy", "new"])
    assert [run.failed for run in found["failing"]] == [True, True, True, False]
    assert (len(found["busy"]), found["new"]) == (8, [])


def test_an_audit_that_waits_in_the_queue_keeps_no_edit_waiting(pipeline: Pipeline):
    ingested(pipeline, "clinic", "ward")
    tags = defs.resolve_job_def("audit").run_tags
    for name, status in (("clinic", DagsterRunStatus.NOT_STARTED), ("ward", DagsterRunStatus.STARTED)):
        partition = {"dagster/partition": name}
        create_run_for_test(pipeline.instance, job_name="audit", status=status, tags={**tags, **partition})
    assert pipeline.evaluate("reprojection_sensor").requested == ["clinic"]
    past_run(pipeline, "clinic", DagsterRunStatus.NOT_STARTED, job="reproject")
    assert pipeline.evaluate("reprojection_sensor").requested == []


def test_a_tick_opens_neither_the_index_nor_the_model(pipeline: Pipeline, monkeypatch):
    ingested(pipeline, "clinic", "ward")
    project(pipeline.runtime, "ward")

    def opened(*_: object) -> None:
        raise AssertionError("opened by a tick")

    monkeypatch.setattr("memory_pipeline.index.edge_files.EdgeShard.load", opened)
    monkeypatch.setattr("memory_pipeline.runtime.open_embedder", opened)
    assert [pipeline.evaluate(sensor).requested for sensor in SENSORS] == [[], [], ["clinic"]]
