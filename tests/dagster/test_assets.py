from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from dagster import AssetCheckSeverity

from assets import checks as module
from assets.outcomes import LISTED
from memory_pipeline.archive import workspaces
from memory_pipeline.archive.audits import last
from memory_pipeline.archive.status import status
from memory_pipeline.cards import Collection
from memory_pipeline.definitions import defs
from memory_pipeline.index.base import Point
from memory_pipeline.points import target
from memory_pipeline.propagation import audit, repair
from tests.builders import SQL, approved, clarified, promoted
from tests.dagster.conftest import Pipeline, checks, metadata

ALL = {
    "session_ledgers",
    "admin_edits",
    "memory_cards",
    "solved_question_cards",
    "memory_index",
    "solved_question_index",
}


def made(result) -> set[str]:
    return {event.asset_key.to_user_string() for event in result.get_asset_materialization_events()}


def error(result, step: str) -> str:
    event = next(e for e in result.get_step_failure_events() if e.step_key == step)
    return event.step_failure_data.user_failure_data.description


def empty_index(pipeline: Pipeline, workspace: str, collection: Collection) -> None:
    """Take every point of a collection out of the index, behind the archive's back."""
    runtime = pipeline.runtime
    into = target(workspace, collection, runtime.identity)
    runtime.index.delete(into, [point.id for point in runtime.index.scan(into)])


def test_the_whole_graph_is_materialized_for_two_workspaces_and_a_second_time_changes_nothing(pipeline: Pipeline):
    pipeline.session("clinic")
    pipeline.session("ward", clarified(1, "fever", "temp > 38"), promoted(2, 1), sql=None)

    first = {name: pipeline.run("refresh", name) for name in ("clinic", "ward")}

    assert all(result.success and made(result) == ALL for result in first.values())
    found = status(pipeline.runtime.database, pipeline.runtime.identity.hash)
    assert {name: state.pending for name, state in found.items()} == {"clinic": 0, "ward": 0}
    assert (found["clinic"].certified, found["ward"].certified) == (3, 2)
    assert metadata(first["clinic"], "session_ledgers")["new_decisions"] == 3
    assert metadata(first["clinic"], "memory_index")["written"] == 2
    for asset in ("memory_index", "solved_question_index"):
        found_of = metadata(first["clinic"], asset)
        assert found_of["lag_seconds"] == 0
        assert 0 < found_of["propagation_p50_seconds"] <= found_of["propagation_p95_seconds"]
    assert "propagation_p50_seconds" not in metadata(
        first["ward"], "solved_question_index"
    )  # nothing is certified there
    assert "| memory_cards" in metadata(first["clinic"], "memory_index")["table"]

    second = pipeline.run("refresh", "clinic")

    assert second.success
    assert metadata(second, "session_ledgers")["sessions_read"] == 0
    assert metadata(second, "memory_cards")["created"] == 0
    assert metadata(second, "memory_index")["written"] == 0
    assert status(pipeline.runtime.database, pipeline.runtime.identity.hash) == found


def test_the_checks_cover_all_workspaces_and_are_shown_after_the_run(pipeline: Pipeline):
    pipeline.session("clinic", ledger=b"not a decision\n")
    pipeline.session("ward", clarified(1, "fever", "temp > 38"), approved(2), sql=SQL)
    (pipeline.runtime.settings.sessions / "Not A Workspace").mkdir()
    pipeline.run("refresh", "clinic")

    result = pipeline.run("refresh", "ward")

    found = checks(result)
    assert {name: check.passed for name, check in found.items()} == {
        "ledgers_readable": False,
        "promotions_reviewed": False,
        "propagation_complete": True,
        "index_matches_archive": True,
        "dependencies_present": True,
        "near_duplicates": True,
    }
    ledgers = {name: value.value for name, value in found["ledgers_readable"].metadata.items()}
    assert ledgers["by_workspace"] == {"clinic": 1, "ward": 0}
    assert ledgers["refused_directories"] == ["Not A Workspace"]
    assert "not_json" in ledgers["look_at"]
    assert found["promotions_reviewed"].severity.value == "WARN"
    assert found["promotions_reviewed"].metadata["look_at"].value == [
        {"workspace": "ward", "session": "session-1", "seq": 1, "subject": "fever"}
    ]
    stored = pipeline.instance.event_log_storage.get_latest_asset_check_execution_by_key(
        [check.asset_check_key for check in found.values()]
    )
    assert {record.run_id for record in stored.values()} == {result.run_id}


def test_each_check_can_be_executed_alone_over_all_workspaces(pipeline: Pipeline):
    for workspace in ("clinic", "ward"):
        pipeline.session(workspace)
        assert pipeline.run("refresh", workspace).success
    empty_index(pipeline, "ward", Collection.MEMORY_CARDS)
    everything = defs.resolve_implicit_global_asset_job_def()
    for spec in (spec for check in defs.asset_checks or () for spec in check.check_specs):
        alone = everything.get_subset(asset_selection=set(), asset_check_selection={spec.key})
        result = alone.execute_in_process(instance=pipeline.instance)
        assert list(checks(result)) == [spec.name]
        assert checks(result)[spec.name].passed is (spec.name != "index_matches_archive")
        assert not made(result)


def test_faults_are_counted_all_and_listed_so_far_only(pipeline: Pipeline):
    pipeline.session("clinic", ledger=b"not a decision\n" * 1_200 + b"[]\n" * 3, sql=None)
    found = checks(pipeline.run("refresh", "clinic"))["ledgers_readable"].metadata
    assert found["faults"].value == 1_203
    assert found["by_kind"].value == {"not_json": 1_200, "not_an_object": 3}
    assert found["by_workspace"].value == {"clinic": 1_203}
    assert len(found["look_at"].value.splitlines()) == LISTED + 2  # and the head of the table


def test_a_workspace_that_is_on_disk_no_more_fails_the_check(pipeline: Pipeline):
    for name in ("clinic", "ward"):
        pipeline.session(name)
        pipeline.run("refresh", name)
    shutil.rmtree(pipeline.runtime.settings.sessions / "ward")
    found = checks(pipeline.run("refresh", "clinic"))["ledgers_readable"]
    assert not found.passed
    assert found.metadata["vanished_workspaces"].value == ["ward"]
    assert status(pipeline.runtime.database, pipeline.runtime.identity.hash)["ward"].cards["concept"] == 1


def test_an_asset_counts_no_more_than_it_shows(pipeline: Pipeline, monkeypatch):
    def refused(tx, identity):
        raise AssertionError("the whole status was counted")

    pipeline.session("clinic")
    monkeypatch.setattr("memory_pipeline.archive.status.workspace_status", refused)
    for name in ("assets.archive", "assets.sources"):
        monkeypatch.setattr(f"{name}.workspace_status", refused, raising=False)
    result = pipeline.run("refresh", "clinic")
    assert metadata(result, "memory_cards")["cards"] == 1
    read = metadata(result, "session_ledgers")
    assert {name: read[name] for name in ("sessions", "decisions", "effective", "faults")} == {
        "sessions": 1,
        "decisions": 3,
        "effective": 3,
        "faults": 0,
    }


def test_a_workspace_without_a_directory_is_one_clear_failure(pipeline: Pipeline):
    result = pipeline.run("refresh", "nowhere")
    assert not result.success
    assert "nowhere" in error(result, "session_ledgers")
    assert made(result) == {"admin_edits"}


def test_points_that_vanish_are_found_by_the_check_and_mended_by_the_audit_job(pipeline: Pipeline):
    pipeline.session("clinic")
    pipeline.run("refresh", "clinic")
    empty_index(pipeline, "clinic", Collection.MEMORY_CARDS)

    found = checks(pipeline.run("reproject", "clinic"))["index_matches_archive"]
    assert not found.passed
    assert found.metadata["missing"].value == 1
    assert found.metadata["look_at"].value[0]["item"] == "mem-0001"

    mended = pipeline.run("audit", "clinic")
    assert metadata(mended, "memory_index")["mended_missing"] == 1
    assert metadata(mended, "memory_index")["written"] == 1
    assert checks(mended)["index_matches_archive"].passed


def test_a_run_that_is_configured_to_rebuild_writes_every_point_anew(pipeline: Pipeline):
    pipeline.session("clinic")
    pipeline.run("refresh", "clinic")
    empty_index(pipeline, "clinic", Collection.SOLVED_QUESTIONS)
    config = {"ops": {name: {"config": {"rebuild": True}} for name in ("memory_index", "solved_question_index")}}
    result = pipeline.run("reproject", "clinic", config)
    shown = [metadata(result, name) for name in ("memory_index", "solved_question_index")]
    assert [(m["renewed"], m["mended_missing"], m["written"], m["pending"]) for m in shown] == [
        (2, 0, 2, 0),
        (0, 1, 1, 0),
    ]
    assert checks(result)["index_matches_archive"].passed


@pytest.mark.parametrize(
    ("counts", "severity"),
    [
        ({"other_identity": 3, "missing": 0}, AssetCheckSeverity.WARN),
        ({"other_identity": 3, "missing": 1}, AssetCheckSeverity.ERROR),
        ({"duplicate": 1}, AssetCheckSeverity.ERROR),
        ({}, AssetCheckSeverity.WARN),
    ],
)
def test_what_other_embeddings_left_over_is_a_warning_and_all_else_an_error(counts, severity):
    assert module.severity_of(counts) is severity


def test_what_other_embeddings_left_over_alone_fails_the_check_as_a_warning(pipeline: Pipeline):
    pipeline.session("clinic")
    pipeline.run("refresh", "clinic")
    runtime = pipeline.runtime
    into = target("clinic", Collection.MEMORY_CARDS, runtime.identity)
    left = replace(into, identity="left-over")
    runtime.index.ensure(left)
    runtime.index.upsert(left, [Point(p.id, p.payload) for p in runtime.index.scan(into)])
    found = checks(pipeline.run("reproject", "clinic"))["index_matches_archive"]
    assert (found.passed, found.severity, found.metadata["other_identity"].value) == (
        False,
        AssetCheckSeverity.WARN,
        1,
    )


class TestAudits:
    @pytest.fixture(autouse=True)
    def _projected(self, pipeline: Pipeline):
        for name in ("clinic", "ward"):
            pipeline.session(name)
            pipeline.run("refresh", name)

    @pytest.fixture
    def audited(self, monkeypatch) -> list[str]:
        """The workspaces whose points were read."""
        names = []
        audit = module.audit
        monkeypatch.setattr(module, "audit", lambda runtime, name: names.append(name) or audit(runtime, name))
        return names

    @pytest.mark.parametrize("job", ["refresh", "reproject", "audit"])
    def test_a_run_audits_its_own_workspace_and_repeats_the_others(self, pipeline: Pipeline, audited, job):
        before = found(pipeline.run("reproject", "ward"))
        audited.clear()
        after = found(pipeline.run(job, "clinic"))
        assert audited == ["clinic"]
        assert after["by_workspace"] == {"clinic": 0, "ward": 0}
        assert after["checked"] == 6
        assert after["audited_at"]["ward"] == before["audited_at"]["ward"]
        assert after["audited_at"]["clinic"] > before["audited_at"]["clinic"]

    def test_what_was_found_stands_until_an_audit_finds_it_no_more(self, pipeline: Pipeline):
        empty_index(pipeline, "ward", Collection.MEMORY_CARDS)
        pipeline.run("reproject", "ward")
        for _ in range(2):
            result = pipeline.run("reproject", "clinic")
            assert not checks(result)["index_matches_archive"].passed
            assert found(result)["by_workspace"] == {"clinic": 0, "ward": 1}
            assert [point["workspace"] for point in found(result)["look_at"]] == ["ward"]
        assert checks(pipeline.run("audit", "ward"))["index_matches_archive"].passed
        assert checks(pipeline.run("reproject", "clinic"))["index_matches_archive"].passed

    def test_after_an_audit_of_each_all_are_fresh(self, pipeline: Pipeline):
        start = datetime.now(UTC).isoformat(timespec="milliseconds")
        for name in ("clinic", "ward"):
            last = pipeline.run("audit", name)
        assert all(at >= start for at in found(last)["audited_at"].values())

    def test_what_the_archive_knows_of_an_audit_counts_whoever_made_it(self, pipeline: Pipeline):
        empty_index(pipeline, "ward", Collection.MEMORY_CARDS)
        audit(pipeline.runtime, "ward")  # as the command line does
        result = pipeline.run("reproject", "clinic")
        assert not checks(result)["index_matches_archive"].passed
        assert found(result)["by_workspace"] == {"clinic": 0, "ward": 1}
        with pipeline.runtime.database.transaction("ward") as tx:
            at = last(tx).at.isoformat(timespec="milliseconds")
        assert found(result)["audited_at"]["ward"] == at

        repair(pipeline.runtime, "ward")
        result = pipeline.run("reproject", "clinic")
        assert checks(result)["index_matches_archive"].passed
        assert found(result)["by_workspace"] == {"clinic": 0, "ward": 0}

    def test_a_workspace_never_audited_is_said_to_be(self, pipeline: Pipeline):
        workspaces.make(pipeline.runtime.database, "lab", language="italian", principal="tester")
        result = pipeline.run("reproject", "clinic")
        assert found(result)["audited_at"]["lab"] == "never"
        assert checks(result)["index_matches_archive"].description.endswith("never audited: lab")

    def test_one_that_cannot_be_audited_fails_the_check_until_it_can_and_hides_no_other(
        self, pipeline: Pipeline, monkeypatch
    ):
        with monkeypatch.context() as patch:
            patch.setattr(module, "audit", lambda runtime, name: 1 / 0)
            pipeline.run("reproject", "clinic")
        result = pipeline.run("reproject", "ward")
        assert not checks(result)["index_matches_archive"].passed
        assert found(result)["not_looked_at"] == {"clinic": "division by zero"}
        assert found(result)["by_workspace"] == {"ward": 0}
        assert checks(pipeline.run("reproject", "clinic"))["index_matches_archive"].passed

    def test_of_two_runs_at_once_neither_hides_what_the_other_found(self, pipeline: Pipeline, monkeypatch):
        empty_index(pipeline, "ward", Collection.MEMORY_CARDS)
        last_audits = module.last_audits

        def meanwhile(instance):
            before = list(last_audits(instance))
            with monkeypatch.context() as patch:
                patch.setattr(module, "last_audits", last_audits)
                pipeline.run("reproject", "ward")
            return before

        with monkeypatch.context() as patch:
            patch.setattr(module, "last_audits", meanwhile)
            assert found(pipeline.run("reproject", "clinic"))["by_workspace"] == {"clinic": 0, "ward": 1}
        assert found(pipeline.run("reproject", "clinic"))["by_workspace"] == {"clinic": 0, "ward": 1}


def found(result) -> dict[str, Any]:
    """What a run says of the audits."""
    return {name: value.value for name, value in checks(result)["index_matches_archive"].metadata.items()}
