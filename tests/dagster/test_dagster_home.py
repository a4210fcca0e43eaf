from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from dagster import DagsterInstance
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.run_coordinator import QueuedRunCoordinator
from dagster_postgres import PostgresEventLogStorage, PostgresRunStorage
from pydantic import SecretStr

from memory_pipeline.dagster_home import CHECKOUT, dagster_environment, write_dagster_home
from memory_pipeline.runtime import Runtime
from memory_pipeline.scheduling import PARTITION_TAG
from memory_pipeline.settings import Settings, load_settings
from sensors.launcher import WatchedRunLauncher

SCHEDULE, SENSOR = InstigatorType.SCHEDULE, InstigatorType.SENSOR


@pytest.fixture(params=["embedded", "production"])
def configured(
    request: pytest.FixtureRequest, prepared_settings: Settings, tmp_path: Path, monkeypatch
) -> Iterator[DagsterInstance]:
    """Dagster as a process of either set-up finds it: with what a home is given, or with what the image carries."""
    if request.param == "embedded":
        home = write_dagster_home(prepared_settings)
    else:
        home = Path(shutil.copy(CHECKOUT / "memory_pipeline" / "dagster.yaml", tmp_path)).parent
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    monkeypatch.setenv("MEMORY_DAGSTER_URL", prepared_settings.dagster_url.get_secret_value())
    with DagsterInstance.get() as found:
        yield found


def test_a_workspace_has_one_run_at_a_time(configured: DagsterInstance):
    assert isinstance(configured.run_coordinator, QueuedRunCoordinator)
    queue = configured.get_concurrency_config().run_queue_config
    assert queue is not None
    assert queue.max_concurrent_runs == 4
    assert queue.tag_concurrency_limits == [
        {"key": PARTITION_TAG, "value": {"applyLimitPerUniqueValue": True}, "limit": 1}
    ]


def test_a_run_that_died_or_hangs_keeps_no_workspace_waiting(configured: DagsterInstance):
    assert isinstance(configured.run_launcher, WatchedRunLauncher)
    assert configured.run_monitoring_enabled
    assert configured.run_monitoring_start_timeout_seconds == 180
    assert configured.run_monitoring_cancel_timeout_seconds == 60
    assert configured.run_monitoring_max_runtime_seconds == 4 * 60 * 60


def test_ticks_are_kept_for_a_while(configured: DagsterInstance):
    kept = {kind: configured.get_tick_retention_settings(kind) for kind in (SCHEDULE, SENSOR)}
    assert set(kept[SCHEDULE].values()) == {90}
    assert {status.value: days for status, days in kept[SENSOR].items() if days > 0} == {
        "SKIPPED": 2,
        "FAILURE": 30,
        "SUCCESS": 30,
    }


def test_dagster_stores_in_postgres_and_reports_to_nobody(configured: DagsterInstance):
    assert isinstance(configured.event_log_storage, PostgresEventLogStorage)
    assert isinstance(configured.run_storage, PostgresRunStorage)
    assert not configured.telemetry_enabled
    assert not configured.nux_enabled


def test_a_home_that_is_as_it_should_be_is_left_alone(tmp_path: Path):
    settings = load_settings(_env_file=None, home=tmp_path)
    file = write_dagster_home(settings) / "dagster.yaml"
    before = file.stat().st_ino
    write_dagster_home(settings)
    assert file.stat().st_ino == before
    file.write_text("telemetry: {enabled: true}\n")
    write_dagster_home(settings)
    assert "MEMORY_DAGSTER_URL" in file.read_text()


def test_a_process_started_with_the_environment_has_the_same_settings(
    dagster_settings: Settings, monkeypatch, tmp_path: Path
):
    monkeypatch.setenv("MEMORY_QDRANT_URL", "http://somebody.else:6333")
    monkeypatch.chdir(tmp_path)
    urls = {"clinic": SecretStr("postgresql+psycopg://reader:secret@db/clinic")}
    dagster_settings = dagster_settings.model_copy(
        update={"catalog_urls": urls, "web_hosts": ("a.example", "b.example")}
    )
    with Runtime(dagster_settings) as runtime:
        environment = dagster_environment(runtime)
    for name in ("MEMORY_QDRANT_URL", "MEMORY_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    found = load_settings()

    assert "MEMORY_QDRANT_URL" not in environment
    assert Path(environment["DAGSTER_HOME"]).parent == dagster_settings.home
    assert found == dagster_settings
