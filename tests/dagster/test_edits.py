"""Edits in bulk through Dagster: a sensor picks them up, one job applies and propagates them."""

from __future__ import annotations

import pytest
from dagster import DagsterRunStatus
from dagster._core.test_utils import create_run_for_test

from memory_pipeline.archive import queue
from memory_pipeline.archive.status import status
from memory_pipeline.edits import Change, Delete
from tests.curating import CLINIC, WARD, a_creation, a_workspace
from tests.dagster.conftest import Pipeline, metadata


@pytest.fixture
def clinic(pipeline: Pipeline) -> Pipeline:
    """A workspace that has no sessions, as one that was imported."""
    a_workspace(pipeline.runtime, CLINIC)
    return pipeline


def submit(pipeline: Pipeline, *edits, workspace: str = CLINIC) -> None:
    with pipeline.runtime.database.transaction(workspace) as tx:
        queue.submit(tx, "tester", edits)


def test_waiting_edits_are_picked_up_applied_and_propagated_once(clinic: Pipeline):
    submit(clinic, a_creation(), Change("mem-0001", 1, {"detail": "flag = 1"}), Delete("mem-0404", 1))
    tick = clinic.evaluate("edit_sensor")
    assert (tick.requested, tick.partitions, tick.run_keys, tick.cursor) == ([CLINIC], [CLINIC], [None], None)

    result = clinic.run("apply_edits", CLINIC)

    assert result.success
    made = metadata(result, "admin_edits")
    assert (made["applied"], made["refused"], made["waiting"]) == (2, 1, 0)
    assert "no card 'mem-0404'" in made["table"]
    assert metadata(result, "memory_index")["written"] == 1
    state = status(clinic.runtime.database, clinic.runtime.identity.hash)[CLINIC]
    assert (state.cards["concept"], state.certified, state.pending) == (1, 1, 0)
    assert clinic.evaluate("edit_sensor").skipped == "no edit waits"


def test_edits_of_a_workspace_are_applied_by_a_refresh_too(pipeline: Pipeline):
    pipeline.session(CLINIC)
    pipeline.run("refresh", CLINIC)
    submit(pipeline, Change("mem-0001", 1, {"detail": "flag = 1"}))
    result = pipeline.run("refresh", CLINIC)
    assert metadata(result, "admin_edits")["applied"] == 1
    assert "table" not in metadata(result, "admin_edits")
    assert metadata(result, "memory_index")["written"] == 1


def test_a_workspace_with_a_run_in_flight_or_after_a_failure_is_left_alone(clinic: Pipeline):
    a_workspace(clinic.runtime, WARD)
    a_workspace(clinic.runtime, "lab")
    for name in (CLINIC, WARD, "lab"):
        submit(clinic, a_creation(), workspace=name)
    for name, state in ((CLINIC, DagsterRunStatus.STARTED), (WARD, DagsterRunStatus.FAILURE)):
        create_run_for_test(clinic.instance, job_name="refresh", status=state, tags={"dagster/partition": name})
    assert clinic.evaluate("edit_sensor").requested == ["lab"]


def test_a_failed_reprojection_does_not_keep_edits_from_the_archive(clinic: Pipeline):
    submit(clinic, a_creation())
    failed = {"job_name": "reproject", "status": DagsterRunStatus.FAILURE}
    create_run_for_test(clinic.instance, **failed, tags={"dagster/partition": CLINIC})
    assert clinic.evaluate("edit_sensor").requested == [CLINIC]
