from __future__ import annotations

import json
import subprocess
import sys

import pytest
from dagster import DagsterInstance, DagsterRun
from dagster._core.launcher import WorkerStatus
from dagster._core.storage.tags import GRPC_INFO_TAG

from sensors.launcher import PROCESS_TAG, WatchedRunLauncher, this_process

PROCESS_OF_ANOTHER_START = "1 12.0"


def status(**tags: str) -> WorkerStatus:
    run = DagsterRun(job_name="refresh", tags=tags)
    return WatchedRunLauncher().check_run_worker_health(run).status


def test_the_instance_uses_it_and_monitors_runs(instance: DagsterInstance):
    assert isinstance(instance.run_launcher, WatchedRunLauncher)
    assert instance.run_monitoring_enabled


def test_a_run_whose_code_server_is_gone_is_dead(tmp_path):
    server = {"host": "localhost", "socket": str(tmp_path / "code")}
    assert status(**{GRPC_INFO_TAG: json.dumps(server)}) is WorkerStatus.NOT_FOUND


def test_a_run_in_this_process_is_alive():
    assert status(**{PROCESS_TAG: this_process()}) is WorkerStatus.RUNNING


def test_a_run_in_a_process_that_ended_is_dead():
    ended = subprocess.run(
        [sys.executable, "-c", "from sensors.launcher import this_process; print(this_process())"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert status(**{PROCESS_TAG: ended.stdout.strip()}) is WorkerStatus.NOT_FOUND


def test_a_process_that_was_given_the_number_of_an_ended_one_is_not_taken_for_it():
    assert status(**{PROCESS_TAG: PROCESS_OF_ANOTHER_START}) is WorkerStatus.NOT_FOUND


@pytest.mark.parametrize("tags", [{}, {"dagster/partition": "clinic"}])
def test_in_doubt_a_run_is_alive(tags):
    assert status(**tags) is WorkerStatus.RUNNING
