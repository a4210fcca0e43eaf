from __future__ import annotations

import json
import subprocess
import sys

from memory_pipeline.archive.status import status
from tests.dagster.conftest import Pipeline


def materialize(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "assets.materialize", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_outcome_of_every_asset_and_check_is_all_that_is_printed(pipeline: Pipeline):
    pipeline.session("clinic")
    done = materialize("--workspace", "clinic", "--workspace", "nowhere", "--json")
    found = json.loads(done.stdout)

    assert done.returncode == 1
    assert not found["succeeded"]
    assert list(found["assets"]) == ["clinic", "nowhere"]
    assert all(asset == {"materialized": True, "error": None} for asset in found["assets"]["clinic"].values())
    assert "nowhere" in found["assets"]["nowhere"]["session_ledgers"]["error"]
    assert found["assets"]["nowhere"]["memory_index"]["error"] == "not run: an earlier asset failed"
    assert {check["name"]: check["passed"] for check in found["checks"]} == {
        "ledgers_readable": True,
        "promotions_reviewed": True,
        "propagation_complete": True,
        "index_matches_archive": True,
        "dependencies_present": True,
        "near_duplicates": True,
    }
    assert status(pipeline.runtime.database, pipeline.runtime.identity.hash)["clinic"].pending == 0


def test_a_workspace_has_to_be_named(pipeline: Pipeline):
    assert materialize("--json").returncode == 2
