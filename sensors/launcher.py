"""Launches runs in the code server, and can tell when one is dead.

Dagster's own launcher cannot: a run whose code server was killed with it, or whose machine went down, would be under
way for ever, and its workspace would never get another. With this one, run monitoring marks such a run as failed.
"""

import json
import socket
from collections.abc import Mapping
from contextlib import closing

import psutil
from dagster import DagsterRun
from dagster._core.errors import DagsterUserCodeUnreachableError
from dagster._core.launcher import CheckRunHealthResult, DefaultRunLauncher, WorkerStatus
from dagster._core.storage.tags import GRPC_INFO_TAG
from dagster._grpc.client import DagsterGrpcClient
from dagster._grpc.types import CanCancelExecutionRequest, CanCancelExecutionResult
from dagster._serdes import deserialize_value

PROCESS_TAG = "memory/process"
"""On runs without a code server: the process that they run in."""

_CONNECT_SECONDS = 5.0
_ANSWER_SECONDS = 20


class WatchedRunLauncher(DefaultRunLauncher):
    """Dagster's default launcher, with an answer to whether a run is still alive."""

    @property
    def supports_check_run_worker_health(self) -> bool:
        """Whether run monitoring may ask."""
        return True

    def check_run_worker_health(self, run: DagsterRun) -> CheckRunHealthResult:
        """Whether the process of a run is alive; in doubt it is, since a run must not be given up that goes on."""
        return CheckRunHealthResult(WorkerStatus.RUNNING if _alive(run) else WorkerStatus.NOT_FOUND, "its process")


def this_process() -> str:
    """What stands for this process, and for no later one of the same number."""
    return _process(psutil.Process())


def _process(process: psutil.Process) -> str:
    return f"{process.pid} {process.create_time():.1f}"


def _alive(run: DagsterRun) -> bool:
    if PROCESS_TAG in run.tags:
        return _lives(run.tags[PROCESS_TAG])
    if GRPC_INFO_TAG in run.tags:
        server = json.loads(run.tags[GRPC_INFO_TAG])
        return _listens(server) and _knows(server, run.run_id)
    return True


def _lives(process: str) -> bool:
    try:
        return _process(psutil.Process(int(process.partition(" ")[0]))) == process
    except psutil.Error:
        return False


def _listens(server: Mapping[str, str]) -> bool:
    unix = server.get("socket")
    with closing(socket.socket(socket.AF_UNIX if unix else socket.AF_INET)) as probe:
        probe.settimeout(_CONNECT_SECONDS)
        try:
            probe.connect(unix or (server["host"], int(server["port"])))
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        except OSError:
            return True
    return True


def _knows(server: Mapping[str, str], run_id: str) -> bool:
    port = int(server["port"]) if "port" in server else None
    client = DagsterGrpcClient(host=server["host"], port=port, socket=server.get("socket"))
    try:
        answer = client.can_cancel_execution(CanCancelExecutionRequest(run_id=run_id), timeout=_ANSWER_SECONDS)
    except DagsterUserCodeUnreachableError:
        return True  # it listens, and is only busy
    return deserialize_value(answer, CanCancelExecutionResult).can_cancel
