from __future__ import annotations

from collections.abc import Mapping

from memory_pipeline.archive.status import status
from memory_pipeline.cards import Collection
from memory_pipeline.points import target
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


def test_edits_that_wait_are_counted(pipeline: Pipeline):
    pipeline.session("clinic")
    assert metadata(pipeline.run("refresh", "clinic"), "admin_edits")["waiting_edits"] == 0


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


def test_a_workspace_that_cannot_be_audited_fails_the_check_and_hides_no_other(pipeline: Pipeline, monkeypatch):
    for name in ("clinic", "ward"):
        pipeline.session(name)
        pipeline.run("refresh", name)
    from assets import checks as module  # noqa: PLC0415

    audit = module.audit
    monkeypatch.setattr(module, "audit", lambda runtime, name: audit(runtime, name) if name == "ward" else 1 / 0)

    found = checks(pipeline.run("reproject", "ward"))["index_matches_archive"]

    assert not found.passed
    assert found.metadata["not_looked_at"].value == {"clinic": "division by zero"}
    assert isinstance(found.metadata["by_workspace"].value, Mapping)
    assert found.metadata["by_workspace"].value == {"ward": 0}
