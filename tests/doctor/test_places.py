"""Each fault of directories is found: a home or a sessions root that is not there, or cannot be read or written."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from memory_pipeline.doctor import State, places
from memory_pipeline.doctor.base import Finding, Installation
from memory_pipeline.errors import SessionsUnavailable
from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import Examined, load_settings
from tests.builders import a_session, clarified

FAULT, OK, WARNING = State.FAULT, State.OK, State.WARNING


@pytest.fixture
def installation(tmp_path) -> Installation:
    (tmp_path / "home" / "sessions").mkdir(parents=True)
    settings = load_settings(_env_file=None, home=tmp_path / "home")
    return Installation(Examined(settings), Runtime(settings))


def session(installation: Installation) -> Path:
    return a_session(installation.settings.sessions, clarified(1), session="first")


def only(found) -> Finding:
    [finding] = found
    return finding


def test_a_home_that_is_there_is_told_with_its_room(installation):
    found = only(places.home(installation))
    assert found.state is OK
    assert "GiB free" in found.found


def test_a_home_that_is_not_there_is_told_with_the_command_that_makes_it_and_not_made(tmp_path):
    settings = load_settings(_env_file=None, home=tmp_path / "nowhere")
    found = only(places.home(Installation(Examined(settings), Runtime(settings))))
    assert found.state is FAULT
    assert "memory-pipeline migrate" in found.do
    assert not settings.home.exists()


def test_a_home_that_cannot_be_written_is_a_fault(installation, permissions):
    # root made it, and whoever acts now is somebody else
    assert only(places.home(installation)).state is FAULT


def test_little_room_is_told(installation, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=100 << 20))
    found = only(places.home(installation))
    assert (found.state, "100 MiB left" in found.found) == (WARNING, True)


def test_sessions_that_can_be_read_and_written_are_counted(installation):
    session(installation)
    found = only(places.sessions(installation))
    assert (found.state, "1 session(s) of 1 workspace(s)" in found.found) == (OK, True)


def test_a_sessions_root_that_is_not_there_is_said_by_who_reads_it(installation):
    installation.settings.sessions.rmdir()
    with pytest.raises(SessionsUnavailable):
        list(places.sessions(installation))


def test_a_directory_that_cannot_be_a_workspace_is_told(installation):
    (installation.settings.sessions / "Not A Name").mkdir()
    refused, rest = places.sessions(installation)
    assert (refused.state, rest.state) == (WARNING, OK)
    assert "Not A Name" in refused.found


class TestPermissions:
    @pytest.fixture
    def held_back(self, installation, request) -> Path:
        """A session that somebody else made, before this process becomes who is held back by permissions."""
        made = session(installation)
        request.getfixturevalue("permissions")
        return made

    def test_sessions_that_cannot_be_written_cannot_be_reviewed(self, installation, held_back):
        found = only(places.sessions(installation))
        assert found.state is WARNING
        assert "'clinic/first' cannot be written: sessions are ingested, and cannot be reviewed" in found.found

    def test_sessions_that_cannot_be_read_are_a_fault(self, installation, request):
        made = session(installation)
        made.chmod(0o700)
        request.getfixturevalue("permissions")
        found = only(places.sessions(installation))
        assert found.state is FAULT
        assert "'clinic/first' cannot be read" in found.found
