from __future__ import annotations

from pathlib import Path

from dagster import DagsterInstance
from dagster_postgres import PostgresEventLogStorage
from pydantic import SecretStr

from memory_pipeline.dagster_home import dagster_environment, write_dagster_home
from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import Settings, load_settings


def test_a_workspace_has_one_run_at_a_time(instance: DagsterInstance):
    queue = instance.get_concurrency_config().run_queue_config
    assert queue is not None
    assert queue.tag_concurrency_limits == [
        {"key": "dagster/partition", "value": {"applyLimitPerUniqueValue": True}, "limit": 1}
    ]


def test_dagster_stores_in_postgres_and_reports_to_nobody(instance: DagsterInstance):
    assert isinstance(instance.event_log_storage, PostgresEventLogStorage)
    assert not instance.telemetry_enabled


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
