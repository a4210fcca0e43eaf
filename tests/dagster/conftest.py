"""What Dagster's tests share: a real instance on PostgreSQL, and short words for what is done to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import psycopg
import pytest
import sqlalchemy.pool
from dagster import AddDynamicPartitionsRequest, DagsterInstance, ExecuteInProcessResult, build_sensor_context
from dagster_postgres import DagsterPostgresStorage

from memory_pipeline.dagster_home import dagster_environment
from memory_pipeline.definitions import defs
from memory_pipeline.embedded import EmbeddedUrls
from memory_pipeline.resources import Memory
from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import Settings
from tests.builders import a_session, aged
from tests.conftest import drop_database, in_database, make_database


@pytest.fixture(scope="session")
def dagster_template(postgres: EmbeddedUrls, superuser: psycopg.Connection) -> str:
    """A database in which Dagster has made its tables, and that nobody is connected to."""
    name = make_database(superuser, owner="memory_dagster")
    DagsterPostgresStorage(in_database(postgres.dagster, name).get_secret_value())
    return name


@pytest.fixture
def prepared_settings(
    settings: Settings, postgres: EmbeddedUrls, superuser: psycopg.Connection, dagster_template: str
) -> Iterator[Settings]:
    """The settings of the test, with a database for Dagster's storage that has its tables."""
    name = make_database(superuser, owner="memory_dagster", template=dagster_template)
    yield settings.model_copy(update={"dagster_url": in_database(postgres.dagster, name)})
    drop_database(superuser, name)


@pytest.fixture
def instance(prepared_settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[DagsterInstance]:
    """Dagster with its storage in PostgreSQL, configured as in production; the resources read the same environment.

    But for one thing: it keeps its connections. In production it makes one for each of its statements, hundreds in a
    run, and for each of them PostgreSQL starts a process.
    """
    monkeypatch.setattr(sqlalchemy.pool, "NullPool", sqlalchemy.pool.QueuePool)
    with Runtime(prepared_settings) as opened:
        for name, value in dagster_environment(opened).items():
            monkeypatch.setenv(name, value)
    with DagsterInstance.get() as found:
        yield found


@pytest.fixture
def pipeline(instance: DagsterInstance, runtime: Runtime) -> Pipeline:
    return Pipeline(instance, runtime)


class Pipeline:
    """The code location on a real instance, with short words for what tests do to it."""

    def __init__(self, instance: DagsterInstance, runtime: Runtime) -> None:
        self.instance = instance
        self.runtime = runtime

    def session(self, workspace: str, *decisions, session: str = "session-1", **others) -> None:
        """A session that was written a while ago."""
        aged(a_session(self.runtime.settings.sessions, *decisions, workspace=workspace, session=session, **others))

    def run(self, job: str, workspace: str, config: Mapping[str, Any] | None = None) -> ExecuteInProcessResult:
        self.instance.add_dynamic_partitions("workspace", [workspace])
        return defs.resolve_job_def(job).execute_in_process(
            instance=self.instance, partition_key=workspace, run_config=config, raise_on_error=False
        )

    def evaluate(self, sensor: str) -> Evaluation:
        """One tick of a sensor, without the daemon."""
        known = {"resources": {"memory": Memory()}, "definitions": defs, "instance_ref": self.instance.get_ref()}
        with build_sensor_context(self.instance, **known) as context:
            return Evaluation(defs.resolve_sensor_def(sensor).evaluate_tick(context))


class Evaluation:
    """What a tick asks for."""

    def __init__(self, data) -> None:
        self.requests = list(data.run_requests or [])
        self.requested = [request.partition_key for request in self.requests]
        self.run_keys = [request.run_key for request in self.requests]
        self.skipped = data.skip_message
        partitions = data.dynamic_partitions_requests or []
        added = [request for request in partitions if isinstance(request, AddDynamicPartitionsRequest)]
        self.partitions = [key for request in added for key in request.partition_keys]
        self.removed = [key for request in partitions if request not in added for key in request.partition_keys]
        self.reports = list(data.asset_events)
        self.cursor = data.cursor


def metadata(result: ExecuteInProcessResult, asset: str) -> dict[str, Any]:
    """What an asset's materialization says."""
    event = next(e for e in result.get_asset_materialization_events() if e.asset_key.to_user_string() == asset)
    return {name: value.value for name, value in event.materialization.metadata.items()}


def checks(result: ExecuteInProcessResult) -> dict[str, Any]:
    """The evaluations of a run's checks by name."""
    return {evaluation.check_name: evaluation for evaluation in result.get_asset_check_evaluations()}
